//! Bulk imports over the API: what becomes of each row, what people take away, and who may do what.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use nameplate::app::{account, bulk};
use nameplate::mint;
use nameplate::model::id::{IssuerId, TenantId};
use nameplate::model::ledger::Limit;
use nameplate::model::limits::{self, LimitName};
use nameplate::store::issuers::{self, IssuerSeed};
use nameplate::store::sql;
use serde_json::{Value, json};

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::web::{Answer, Web};

/// Sends a file.
pub async fn send(web: &Web, token: &str, question: &str, kind: &str, file: impl Into<Body>) -> Answer {
    send_keyed(web, token, question, kind, file, None).await
}

pub async fn send_keyed(
    web: &Web,
    token: &str,
    question: &str,
    kind: &str,
    file: impl Into<Body>,
    key: Option<&str>,
) -> Answer {
    let mut request =
        Request::builder().method("POST").uri(format!("/api/v1/imports{question}")).header("content-type", kind);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    web.send(request.header("authorization", format!("Bearer {token}")).body(file.into()).unwrap()).await
}

/// Judges all there is to judge.
pub async fn work(web: &Web) {
    while bulk::round(&web.rig.app).await.unwrap().is_some() {}
}

/// The import as it is now.
pub async fn show(web: &Web, token: &str, id: &str) -> Value {
    let shown = web.api(token, "GET", &format!("/api/v1/imports/{id}"), None).await;
    assert_eq!(shown.status, 200, "{}", shown.body);
    shown.json()
}

/// Sends a CSV file, judges its rows and gives back the import.
pub async fn import(web: &Web, token: &str, question: &str, file: &str) -> Value {
    let sent = send(web, token, question, "text/csv", file.to_owned()).await;
    assert_eq!(sent.status, 201, "{}", sent.body);
    let sent = sent.json();
    assert_eq!(sent["state"], "working", "{sent}");
    work(web).await;
    show(web, token, sent["id"].as_str().unwrap()).await
}

/// `line verdict code` of every row.
pub async fn verdicts(web: &Web, token: &str, id: &Value) -> Vec<String> {
    let path = format!("/api/v1/imports/{}/rows?limit=200", id.as_str().unwrap());
    let rows = web.api(token, "GET", &path, None).await.json();
    let one = |row: &Value| {
        let text = |field: &str| row[field].as_str().map(|text| format!(" {text}")).unwrap_or_default();
        format!("{}{}{}", row["line"], text("verdict"), text("code"))
    };
    rows["items"].as_array().unwrap().iter().map(one).collect()
}

async fn count(web: &Web, what: &'static str) -> i64 {
    web.rig.count(sql(what)).await
}

#[tokio::test]
async fn every_row_gets_its_verdict_and_good_ones_are_claimed_in_the_lane_of_imports() {
    let web = Web::new(501).await;
    let (acme, acme_token) = web.tenant("acme").await;
    let (_, other_token) = web.tenant("other").await;
    let held = web.rig.claim(&acme, "old.acme.test").await;
    let file = "hostname,tenant,method\nshop.acme.test,acme,\nold.acme.test,ACME,http-01\nhttps://x.acme.test/,acme,\n\
                b.other.test,other,\nshop.acme.test,acme,\nshop.acme.test,other,\nc.nobody.test,nobody,\nd.acme.test,acme,dns-01\n\
                f.acme.test,,\n";
    let done = import(&web, &web.operator, "?name=first.csv", file).await;
    assert_eq!(
        (&done["state"], &done["rows"], &done["judged"], &done["name"]),
        (&json!("done"), &json!(9), &json!(9), &json!("first.csv"))
    );
    assert_eq!(
        verdicts(&web, &web.operator, &done["id"]).await,
        [
            "2 claimed",
            "3 already_yours",
            "4 refused hostname_is_url",
            "5 claimed",
            "6 duplicate duplicate",
            "7 refused row_conflicts",
            "8 refused tenant_unknown",
            "9 refused method_unknown",
            "10 refused tenant_missing",
        ]
    );
    let counted = &done["verdicts"];
    assert_eq!(
        (&counted["claimed"], &counted["already_yours"], &counted["duplicate"], &counted["refused"]),
        (&json!(2), &json!(1), &json!(1), &json!(5))
    );
    assert_eq!(done["claims"], json!({ "awaiting_dns": 2, "queued": 0, "live": 0, "expired": 0, "removed": 0 }));
    assert_eq!(web.rig.domain_text(&held, "lane").await.as_deref(), Some("single"), "a claim by hand stays where it was");
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains WHERE lane = 'bulk' AND import_id IS NOT NULL").await, 2);
    assert_eq!(count(&web, "SELECT count(*) AS n FROM events WHERE kind = 'claimed'").await, 3);
    // Each is the tenant's own, and nobody else's.
    for (token, n) in [(&acme_token, 2), (&other_token, 1)] {
        let list = web.api(token, "GET", "/api/v1/domains", None).await.json();
        assert_eq!(list["items"].as_array().unwrap().len(), n);
        assert_eq!(
            web.api(token, "GET", &format!("/api/v1/imports/{}", done["id"].as_str().unwrap()), None).await.problem().0,
            404
        );
    }
    // Sent again it changes nothing.
    let again = import(&web, &web.operator, "", file).await;
    let counted = &again["verdicts"];
    assert_eq!((&counted["claimed"], &counted["already_yours"], &counted["refused"]), (&json!(0), &json!(3), &json!(5)));
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains").await, 3);
}

#[tokio::test]
async fn imported_names_are_served_and_one_claimed_by_hand_is_not_kept_waiting() {
    let web = Web::new(502).await;
    let (acme, token) = web.tenant("acme").await;
    let names: Vec<String> = (0..30).map(|n| format!("n{n}.acme.test")).collect();
    let done = import(&web, &token, "", &format!("hostname\n{}\n", names.join("\n"))).await;
    assert_eq!((&done["verdicts"]["claimed"], &done["tenant_id"]), (&json!(30), &json!(acme)));
    assert_eq!(web.rig.queue.next_at(), None, "no alarm is set for the claims of an import");
    let ids = web.rig.app.store.query(sql("SELECT id, hostname, due_at FROM domains ORDER BY due_at")).await.unwrap();
    let due: Vec<_> = ids.iter().map(|row| row.moment("due_at").unwrap()).collect();
    assert!(due.windows(2).all(|w| w[0] < w[1]), "the first looks are spread");
    for row in &ids {
        web.rig.publish(&row.parse("id").unwrap(), &row.text("hostname").unwrap()).await;
    }
    // By hand: the same claim, in the other lane, looked at at once.
    let last = ids.last().unwrap();
    let body = json!({ "hostname": last.text("hostname").unwrap() });
    let claimed = web.api(&token, "POST", "/api/v1/domains", Some(body)).await;
    assert_eq!((claimed.status.as_u16(), claimed.json()["id"].as_str()), (200, Some(last.text("id").unwrap().as_str())));
    let id = last.parse("id").unwrap();
    assert_eq!(web.rig.domain_text(&id, "lane").await.as_deref(), Some("single"));
    assert_eq!(web.rig.queue.next_at(), Some(web.rig.env.now()));
    web.rig.until_active(&id, Duration::from_secs(3600)).await;
    for row in &ids {
        web.rig.until_active(&row.parse("id").unwrap(), Duration::from_secs(7200)).await;
    }
    web.rig.check_invariants().await;
    assert_eq!(count(&web, "SELECT count(*) AS n FROM orders WHERE lane = 'bulk'").await, 29);
    assert_eq!(show(&web, &token, done["id"].as_str().unwrap()).await["claims"]["live"], 30);
}

/// What counts is the row that was taken, not the first that tried; the same in a dry run, within a batch and across batches.
#[tokio::test]
async fn a_refused_row_leaves_the_name_to_those_after_it_and_they_are_compared_with_each_other() {
    let web = Web::new(519).await;
    web.tenant("acme").await;
    web.tenant("other").await;
    let mut file =
        "hostname,tenant\nshop.acme.test,nobody\nshop.acme.test,acme\nshop.acme.test,ACME\nshop.acme.test,other\n\
                    far.acme.test,nobody\nfar.acme.test,acme\n"
            .to_owned();
    (0..120).for_each(|n| file.push_str(&format!("n{n}.acme.test,acme\n")));
    file.push_str("far.acme.test,other\nfar.acme.test,acme\n");
    let told = async |question: &str, taken: &str| {
        let done = import(&web, &web.operator, question, &file).await;
        let all = verdicts(&web, &web.operator, &done["id"]).await;
        let (first, last) = (&all[..6], &all[126..]);
        let taken = |line: u32| format!("{line} {taken}");
        assert_eq!(
            first,
            [
                "2 refused tenant_unknown".to_owned(),
                taken(3),
                "4 duplicate duplicate".to_owned(),
                "5 refused row_conflicts".to_owned(),
                "6 refused tenant_unknown".to_owned(),
                taken(7),
            ]
        );
        assert_eq!(last, ["128 refused row_conflicts", "129 duplicate duplicate"]);
        done
    };
    let dry = told("?dry_run=true", "would_be_claimed").await;
    assert_eq!((&dry["verdicts"]["would_be_claimed"], &dry["plan"]["orders"]), (&json!(122), &json!(122)));
    // Started, it is judged by what it is now, and not by what the dry run said of later rows.
    let path = format!("/api/v1/imports/{}/start", dry["id"].as_str().unwrap());
    assert_eq!(web.api(&web.operator, "POST", &path, None).await.status, 200);
    work(&web).await;
    let done = show(&web, &web.operator, dry["id"].as_str().unwrap()).await;
    assert_eq!((&done["verdicts"]["claimed"], &done["verdicts"]["duplicate"]), (&json!(122), &json!(2)));
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains").await, 122);
    told("", "already_yours").await;
}

#[tokio::test]
async fn an_imported_claim_that_expired_leaves_the_lane_of_imports_when_it_is_claimed_by_hand() {
    let web = Web::new(520).await;
    let (_, token) = web.tenant("acme").await;
    import(&web, &token, "", "hostname\na.acme.test\n").await;
    let id = web.rig.app.store.query(sql("SELECT id FROM domains")).await.unwrap()[0].parse("id").unwrap();
    web.rig.pass(Duration::from_secs(31 * 86_400)).await;
    assert_eq!(web.rig.domain_text(&id, "claim").await.as_deref(), Some("expired"));
    let claimed = web.api(&token, "POST", "/api/v1/domains", Some(json!({ "hostname": "a.acme.test" }))).await;
    assert_eq!(claimed.status, 200, "{}", claimed.body);
    assert_eq!(
        (web.rig.domain_text(&id, "claim").await.as_deref(), web.rig.domain_text(&id, "lane").await.as_deref()),
        (Some("awaiting_dns"), Some("single"))
    );
}

#[tokio::test]
async fn an_order_that_waits_follows_its_claim_out_of_the_lane_of_imports() {
    let web = Web::limited(503, Limit { burst: 1, per_secs: 36_000 }).await;
    let (acme, token) = web.tenant("acme").await;
    import(&web, &token, "", "hostname\na.acme.test\nb.acme.test\n").await;
    let ids = web.rig.app.store.query(sql("SELECT id, hostname FROM domains ORDER BY hostname")).await.unwrap();
    for row in &ids {
        web.rig.publish(&row.parse("id").unwrap(), &row.text("hostname").unwrap()).await;
    }
    web.rig.pass(Duration::from_secs(120)).await;
    let waiting = "SELECT o.lane, d.hostname FROM orders o JOIN domains d ON d.id = o.domain_id WHERE o.state = 'waiting'";
    let rows = web.rig.app.store.query(sql(waiting)).await.unwrap();
    assert_eq!((rows.len(), rows[0].text("lane").unwrap().as_str()), (1, "bulk"));
    web.rig.claim(&acme, &rows[0].text("hostname").unwrap()).await;
    assert_eq!(web.rig.app.store.query(sql(waiting)).await.unwrap()[0].text("lane").unwrap(), "single");
}

#[tokio::test]
async fn a_tenant_imports_for_itself_alone_and_learns_nothing_of_others() {
    let web = Web::new(504).await;
    let (acme, token) = web.tenant("acme").await;
    let (other, _) = web.tenant("other").await;
    let file = format!(
        "hostname;tenant\na.acme.test;\nb.acme.test;acme\nc.acme.test;{acme}\nd.acme.test;other\ne.acme.test;{other}\n\
         f.acme.test;nobody\ng.acme.test;ten_{}\n",
        "0".repeat(32)
    );
    let done = import(&web, &token, "", &file).await;
    let told = verdicts(&web, &token, &done["id"]).await;
    assert_eq!(told[..3], ["2 claimed", "3 claimed", "4 claimed"]);
    let rows = web.api(&token, "GET", &format!("/api/v1/imports/{}/rows", done["id"].as_str().unwrap()), None).await.json();
    let refused: Vec<&Value> = rows["items"].as_array().unwrap()[3..].iter().collect();
    assert_eq!(refused.len(), 4);
    for row in &refused {
        assert_eq!((&row["code"], &row["detail"]), (&json!("tenant_unknown"), &refused[0]["detail"]), "{row}");
    }
    assert_eq!(
        send(&web, &token, "?create_tenants=true", "text/csv", file.clone()).await.problem(),
        (403, "operator_needed".into())
    );
    for named in ["other", "nobody"] {
        let answer = send(&web, &token, &format!("?tenant={named}"), "text/csv", file.clone()).await;
        assert_eq!(answer.problem(), (422, "tenant_unknown".into()));
    }
    assert_eq!(count(&web, "SELECT count(*) AS n FROM imports").await, 1, "what is refused at once leaves nothing");
    // The operator sees it, in the list and by itself.
    let list = web.api(&web.operator, "GET", "/api/v1/imports?tenant=acme", None).await.json();
    assert_eq!(list["items"][0]["id"], done["id"]);
    let digest = done["digest"].as_str().unwrap();
    let found = web.api(&token, "GET", &format!("/api/v1/imports?digest={digest}&state=done"), None).await.json();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn operators_tokens_add_tenants_where_they_say_so() {
    let web = Web::new(505).await;
    web.tenant("acme").await;
    let file = "tenant,hostname\nfresh,a.fresh.test\nFRESH,b.fresh.test\nacme,c.acme.test\nadmin,d.admin.test\nacm3,x.test.test\na-c-m-e,e.acme.test\n";
    let told = import(&web, &web.operator, "", file).await;
    assert_eq!(told["verdicts"]["refused"], 5);
    let dry = import(&web, &web.operator, "?create_tenants=true&dry_run=true", file).await;
    assert_eq!(
        (&dry["verdicts"]["would_be_claimed"], &dry["verdicts"]["already_yours"], &dry["tenants_added"]),
        (&json!(3), &json!(1), &json!(2))
    );
    assert_eq!(count(&web, "SELECT count(*) AS n FROM tenants").await, 1);
    let done = import(&web, &web.operator, "?create_tenants=true", file).await;
    assert_eq!(
        verdicts(&web, &web.operator, &done["id"]).await,
        ["2 claimed", "3 claimed", "4 already_yours", "5 refused slug_invalid", "6 claimed", "7 refused slug_taken"]
    );
    assert_eq!(done["tenants_added"], 2);
    let tenants = web.api(&web.operator, "GET", "/api/v1/tenants", None).await.json();
    let mut slugs: Vec<&str> = tenants["items"].as_array().unwrap().iter().map(|t| t["slug"].as_str().unwrap()).collect();
    slugs.sort_unstable();
    assert_eq!(slugs, ["acm3", "acme", "fresh"]);
    assert_eq!(count(&web, "SELECT count(*) AS n FROM import_slugs").await, 2, "of the one dry run");
    let routes = "SELECT count(*) AS n FROM routes WHERE hostname = 'fresh.app.example'";
    assert_eq!(count(&web, routes).await, 1, "a tenant that is added has its canonical host");
}

/// Two new tenants whose slugs people could mistake for each other: the check says of each row what the import will.
#[tokio::test]
async fn a_dry_run_adds_one_of_two_look_alikes_as_the_import_does() {
    let web = Web::new(511).await;
    // Within one batch of rows, and far apart.
    let many: Vec<String> = (0..1_200).map(|n| format!("fresh,n{n}.fresh.test")).collect();
    let file = format!(
        "tenant,hostname\nbest0,a.test.test\nbesto,b.test.test\nBEST0,c.test.test\n{}\nfre-sh,z.fresh.test\n",
        many.join("\n")
    );
    let dry = import(&web, &web.operator, "?create_tenants=true&dry_run=true", &file).await;
    let told = |import: &Value, kind: &str| {
        (import["verdicts"][kind].clone(), import["verdicts"]["refused"].clone(), import["tenants_added"].clone())
    };
    assert_eq!(told(&dry, "would_be_claimed"), (json!(1_202), json!(2), json!(2)));
    let refused = async |id: &Value| {
        let path = format!("/api/v1/imports/{}/rows?verdict=refused", id.as_str().unwrap());
        web.api(&web.operator, "GET", &path, None).await.json()["items"].clone()
    };
    let expected = refused(&dry["id"]).await;
    assert!(expected.as_array().unwrap().iter().all(|row| row["code"] == "slug_taken"), "{expected}");
    let id = dry["id"].as_str().unwrap();
    let started = web.api(&web.operator, "POST", &format!("/api/v1/imports/{id}/start"), None).await;
    assert_eq!(started.status, 200, "{}", started.body);
    work(&web).await;
    let done = show(&web, &web.operator, id).await;
    assert_eq!(told(&done, "claimed"), (json!(1_202), json!(2), json!(2)));
    assert_eq!(refused(&done["id"]).await, expected);
    assert_eq!(count(&web, "SELECT count(*) AS n FROM import_slugs").await, 0);
}

/// Each import of a list has its own claims, which are counted together.
#[tokio::test]
async fn a_list_of_imports_counts_all_claims_at_once() {
    let web = Web::new(512).await;
    let (_, token) = web.tenant("acme").await;
    let mut trips = Vec::new();
    for n in 0..4 {
        web.rig.hand.advance(Duration::from_secs(1));
        let names: Vec<String> = (0..=n).map(|m| format!("n{m}.of{n}.test")).collect();
        import(&web, &token, "", &format!("hostname\n{}\n", names.join("\n"))).await;
        let before = web.rig.app.store.round_trips();
        let list = web.api(&token, "GET", "/api/v1/imports", None).await.json();
        trips.push(web.rig.app.store.round_trips() - before);
        let waiting: Vec<i64> =
            list["items"].as_array().unwrap().iter().map(|i| i["claims"]["awaiting_dns"].as_i64().unwrap()).collect();
        assert_eq!(waiting, (1..=n + 1).rev().collect::<Vec<i64>>());
    }
    assert!(trips.windows(2).all(|two| two[0] == two[1]), "{trips:?}");
    let (_, other) = web.tenant("other").await;
    assert_eq!(web.api(&other, "GET", "/api/v1/imports", None).await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_dry_run_claims_nothing_says_how_long_it_takes_and_comes_true() {
    let web = Web::on(Rig::with_limits(506, "sqlite::memory:", limits::usual()).await, "").await;
    let (_, token) = web.tenant("acme").await;
    let names: Vec<String> = (0..120).map(|n| format!("n{n}.crowded.com")).collect();
    let file = format!("hostname\n{}\nbad_name.acme.test\nlone.acme.com\n", names.join("\n"));
    let dry = import(&web, &token, "?dry_run=true", &file).await;
    assert_eq!(
        (&dry["dry_run"], &dry["verdicts"]["would_be_claimed"], &dry["verdicts"]["refused"]),
        (&json!(true), &json!(121), &json!(1))
    );
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains").await, 0);
    let plan = &dry["plan"];
    assert_eq!((&plan["orders"], &plan["registered_domains"], &plan["colliding"]), (&json!(121), &json!(2), &json!(1)));
    let collision = &plan["collisions"][0];
    assert_eq!(
        (&collision["registered_domain"], &collision["names"], &collision["at_once"]),
        (&json!("crowded.com"), &json!(120), &json!(50))
    );
    // 70 names wait for one free place after the other, 3 h 21 min 36 s apart.
    let last = web.rig.env.now() + Duration::from_secs(70 * 12_096);
    assert_eq!(plan["last_order_at"], json!(last.rfc3339()));
    let path = format!("/api/v1/imports/{}/start", dry["id"].as_str().unwrap());
    let started = web.api(&token, "POST", &path, None).await;
    assert_eq!((started.status.as_u16(), &started.json()["dry_run"]), (200, &json!(false)), "{}", started.body);
    assert_eq!(started.json()["verdicts"]["pending"], 122);
    assert_eq!(web.api(&token, "POST", &path, None).await.problem(), (409, "import_not_turned".into()));
    work(&web).await;
    let done = show(&web, &token, dry["id"].as_str().unwrap()).await;
    assert_eq!(
        (&done["verdicts"]["claimed"], &done["verdicts"]["would_be_claimed"], &done["verdicts"]["refused"]),
        (&json!(121), &json!(0), &json!(1))
    );
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains").await, 121);
}

/// A CA that was added and never gave an account is no CA to plan by, whatever its limits and its preference.
#[tokio::test]
async fn the_plan_is_that_of_the_issuer_where_names_begin() {
    let web = Web::on(Rig::with_limits(518, "sqlite::memory:", limits::usual()).await, "").await;
    let (_, token) = web.tenant("acme").await;
    let spare = IssuerSeed {
        name: "spare".into(),
        directory: "https://spare.test/directory".into(),
        preference: -1,
        limits: [(LimitName::OrdersPerAccount, Limit { burst: 9_000, per_secs: 1 })].into(),
        ..IssuerSeed::default()
    };
    let mut tx = web.rig.app.store.begin().await.unwrap();
    issuers::add(&mut tx, &spare, web.rig.env.now(), &mint!(web.rig.env, IssuerId)).await.unwrap();
    tx.commit().await.unwrap();
    account::ensure_all(&web.rig.app).await.unwrap();
    let names: Vec<String> = (0..60).map(|n| format!("n{n}.crowded.com")).collect();
    let dry = import(&web, &token, "?dry_run=true", &format!("hostname\n{}\n", names.join("\n"))).await;
    assert_eq!((&dry["plan"]["orders"], &dry["plan"]["colliding"]), (&json!(60), &json!(1)));
}

#[tokio::test]
async fn an_import_is_held_goes_on_and_is_given_up() {
    let web = Web::new(507).await;
    let (_, token) = web.tenant("acme").await;
    let names: Vec<String> = (0..350).map(|n| format!("n{n}.acme.test")).collect();
    let sent = send(&web, &token, "", "text/csv", format!("hostname\n{}\n", names.join("\n"))).await.json();
    let id = sent["id"].as_str().unwrap();
    let turn = async |to: &str| web.api(&token, "POST", &format!("/api/v1/imports/{id}/{to}"), None).await;
    assert!(bulk::round(&web.rig.app).await.unwrap().is_some());
    let paused = turn("pause").await.json();
    assert_eq!(
        (&paused["state"], &paused["judged"], &paused["verdicts"]["pending"]),
        (&json!("paused"), &json!(100), &json!(250))
    );
    assert_eq!(turn("pause").await.status, 200, "held twice it is held");
    work(&web).await;
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains").await, 100, "nothing moves while it is held");
    assert_eq!(turn("start").await.problem(), (409, "import_not_turned".into()));
    assert_eq!(turn("resume").await.json()["state"], "working");
    assert!(bulk::round(&web.rig.app).await.unwrap().is_some());
    let cancelled = turn("cancel").await.json();
    assert_eq!(
        (&cancelled["state"], &cancelled["verdicts"]["cancelled"], &cancelled["verdicts"]["claimed"]),
        (&json!("cancelled"), &json!(150), &json!(200))
    );
    work(&web).await;
    assert_eq!(count(&web, "SELECT count(*) AS n FROM domains").await, 200, "claims that were made stay");
    assert_eq!(turn("resume").await.problem(), (409, "import_not_turned".into()));
    let rows = web.api(&token, "GET", &format!("/api/v1/imports/{id}/rows?verdict=cancelled&limit=200"), None).await.json();
    assert_eq!((rows["items"].as_array().unwrap().len(), &rows["items"][0]["line"]), (150, &json!(202)));
    let page = web.api(&token, "GET", &format!("/api/v1/imports/{id}/rows?verdict=claimed&limit=150"), None).await.json();
    let next = page["next"].as_str().unwrap().split_once("/api").unwrap().1;
    let rest = web.api(&token, "GET", &format!("/api{next}"), None).await.json();
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next"]), (50, &Value::Null));
}

/// One tenant's import on a database of its own, judged by two workers at once.
async fn by_two(kind: Kind) {
    let test = TestStore::blank(kind).await;
    let web = Web::on(Rig::on(510, &test.url).await, "").await;
    let (_, token): (TenantId, String) = web.tenant("acme").await;
    let names: Vec<String> = (0..400).map(|n| format!("n{n}.acme.test")).collect();
    let forward = format!("hostname\n{}\n", names.join("\n"));
    let backward = format!("hostname\n{}\n", names.iter().rev().cloned().collect::<Vec<_>>().join("\n"));
    let (a, b) = tokio::join!(send(&web, &token, "", "text/csv", forward), send(&web, &token, "", "text/csv", backward));
    let ids = [a.json()["id"].clone(), b.json()["id"].clone()];
    let workers = [web.rig.new_worker(), web.rig.new_worker(), web.rig.new_worker()];
    for _ in 0..200 {
        let rounds = workers.iter().map(|app| async { bulk::round(app).await.is_ok() });
        futures::future::join_all(rounds).await;
        let open = web.rig.count(sql("SELECT count(*) AS n FROM imports WHERE state = 'working'")).await;
        if open == 0 {
            break;
        }
        web.rig.hand.advance(Duration::from_secs(1));
    }
    let mut claimed = 0;
    for id in &ids {
        let done = show(&web, &token, id.as_str().unwrap()).await;
        assert_eq!((&done["state"], &done["judged"]), (&json!("done"), &json!(400)), "{kind:?} {done}");
        claimed += done["verdicts"]["claimed"].as_i64().unwrap();
    }
    assert_eq!(claimed, 400, "{kind:?}: each name is claimed by one of them");
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM events WHERE kind = 'claimed'")).await, 400);
    drop(web);
    test.remove().await;
}

#[tokio::test]
async fn two_imports_of_the_same_names_at_once_claim_each_once() {
    by_two(Kind::SqliteFile).await;
}

#[tokio::test]
async fn two_imports_of_the_same_names_at_once_claim_each_once_on_postgres() {
    by_two(Kind::Postgres).await;
}
