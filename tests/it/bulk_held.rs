//! Imports that are paused or cancelled while their claims wait for their turn at the CA.

use std::time::Duration;

use nameplate::app::advance::{Advanced, advance};
use nameplate::app::{App, account, dispatch};
use nameplate::model::id::DomainId;
use nameplate::model::ledger::Limit;
use nameplate::model::moment::Moment;
use nameplate::store::sql;
use serde_json::{Value, json};

use crate::bulk::{import, send, show, work};
use crate::support::web::{Answer, Web};

const HOUR: Duration = Duration::from_secs(3600);
const NAMES: [&str; 4] = ["a.acme.test", "b.acme.test", "c.acme.test", "d.acme.test"];

struct Held {
    web: Web,
    token: String,
    import: String,
    ids: Vec<DomainId>,
}

impl Held {
    /// An import whose rows have their verdicts and whose names are set up right, at a CA that takes one order an hour.
    async fn new(seed: u64) -> Held {
        let web = Web::limited(seed, Limit { burst: 1, per_secs: 3_600 }).await;
        let (_, token) = web.tenant("acme").await;
        let done = import(&web, &token, "", &format!("hostname\n{}\n", NAMES.join("\n"))).await;
        assert_eq!(done["state"], "done");
        let rows = web.rig.app.store.query(sql("SELECT id, hostname FROM domains ORDER BY hostname")).await.unwrap();
        let ids: Vec<DomainId> = rows.iter().map(|row| row.parse("id").unwrap()).collect();
        for (id, name) in ids.iter().zip(NAMES) {
            web.rig.publish(id, name).await;
        }
        Held { web, token, import: done["id"].as_str().unwrap().to_owned(), ids }
    }

    async fn turn(&self, to: &str) -> Answer {
        self.web.api(&self.token, "POST", &format!("/api/v1/imports/{}/{to}", self.import), None).await
    }

    async fn state(&self) -> Value {
        show(&self.web, &self.token, &self.import).await["state"].clone()
    }

    async fn in_line(&self) -> i64 {
        let stmt = sql("SELECT count(*) AS n FROM orders WHERE state IN ('waiting', 'granted') AND not_before < $1");
        self.web.rig.count(stmt.bind(Moment::NEVER)).await
    }

    /// Moves one claim as far as its grant, which nobody uses yet.
    async fn granted(&self, app: &App, id: &DomainId) {
        let rig = &self.web.rig;
        account::ensure_all(app).await.unwrap();
        let waits = "SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND state = 'waiting' AND not_before <= $2";
        while rig.count(sql(waits).bind(id.as_str()).bind(rig.env.now())).await == 0 {
            advance(app, id).await.unwrap();
            rig.hand.advance(Duration::from_secs(1));
        }
        dispatch::round(app).await.unwrap();
    }

    async fn by_hand(&self, n: usize) {
        let claimed = self.web.api(&self.token, "POST", "/api/v1/domains", Some(json!({ "hostname": NAMES[n] }))).await;
        assert_eq!(claimed.status, 200, "{}", claimed.body);
        self.web.rig.until_active(&self.ids[n], 3 * HOUR).await;
    }
}

#[tokio::test]
async fn a_paused_import_orders_nothing_and_goes_on_where_it_stood() {
    let held = Held::new(531).await;
    let rig = &held.web.rig;
    rig.pass(HOUR / 2).await;
    assert_eq!((rig.ca.asked(), held.in_line().await), (1, 3));
    assert_eq!(held.turn("pause").await.json()["state"], "paused");
    assert_eq!(held.in_line().await, 0, "orders of a paused import wait in line");
    assert_eq!(held.turn("pause").await.status, 200, "held twice it is held");
    rig.pass(30 * HOUR).await;
    assert_eq!((rig.ca.asked(), held.in_line().await), (1, 0), "ordered while it was paused");
    assert_eq!(held.state().await, "paused");
    // Whoever wants one of them now claims it by itself.
    held.by_hand(2).await;
    assert_eq!((rig.ca.asked(), held.in_line().await), (2, 0));
    assert_eq!(held.turn("resume").await.json()["state"], "working");
    work(&held.web).await;
    assert_eq!(held.state().await, "done");
    for id in &held.ids {
        rig.until_active(id, 8 * HOUR).await;
    }
    assert_eq!(rig.ca.asked(), NAMES.len());
    rig.check_invariants().await;
}

#[tokio::test]
async fn a_cancelled_import_orders_nothing_ever_but_what_is_claimed_by_hand() {
    let held = Held::new(532).await;
    let rig = &held.web.rig;
    rig.pass(HOUR / 2).await;
    assert_eq!(held.turn("cancel").await.json()["state"], "cancelled");
    assert_eq!(held.turn("resume").await.problem().0, 409);
    rig.pass(50 * HOUR).await;
    assert_eq!((rig.ca.asked(), held.in_line().await), (1, 0));
    // Its books are kept as long as somebody could mistake its claims for others.
    rig.hand.advance(100 * 24 * HOUR);
    work(&held.web).await;
    assert_eq!(held.state().await, "cancelled");
    held.by_hand(1).await;
    assert_eq!(rig.ca.asked(), 2);
    rig.check_invariants().await;
}

#[tokio::test]
async fn a_step_that_read_the_pause_and_records_after_its_end_holds_nothing_back() {
    let held = Held::new(535).await;
    let rig = &held.web.rig;
    let (app, id) = (rig.new_worker(), &held.ids[0]);
    held.granted(&app, id).await;
    assert_eq!(held.turn("pause").await.status, 200);
    // It finds the import paused, looks once more, and stands there with the order to be held back.
    rig.scissors.set(2);
    let step = tokio::spawn({
        let (app, id) = (app.clone(), id.clone());
        async move { advance(&app, &id).await }
    });
    rig.scissors.reached().await;
    assert_eq!(rig.scissors.crossed().last(), Some(&"observed"));
    assert_eq!(held.turn("resume").await.status, 200);
    rig.scissors.resume();
    assert!(matches!(step.await.unwrap(), Ok(Advanced::Done(_))));
    let out_of_line = sql("SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND not_before = $2")
        .bind(id.as_str())
        .bind(Moment::NEVER);
    assert_eq!(rig.count(out_of_line.clone()).await, 1, "{}", rig.story(id).await);
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.count(out_of_line).await, 0, "{}", rig.story(id).await);
    rig.until_active(id, 4 * HOUR).await;
    rig.check_invariants().await;
}

#[tokio::test]
async fn a_grant_that_was_not_used_goes_back_when_its_import_is_paused() {
    let held = Held::new(533).await;
    let rig = &held.web.rig;
    let (app, id) = (rig.new_worker(), &held.ids[0]);
    held.granted(&app, id).await;
    let grants = async |state: &str| rig.count(sql("SELECT count(*) AS n FROM grants WHERE state = $1").bind(state)).await;
    assert_eq!(grants("open").await, 1);
    assert_eq!(held.turn("pause").await.status, 200);
    rig.pass(HOUR).await;
    assert_eq!((rig.ca.asked(), grants("open").await, grants("used").await), (0, 0, 0), "{}", rig.story(id).await);
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM spends")).await, 0);
    assert_eq!(held.turn("resume").await.status, 200);
    rig.until_active(id, 6 * HOUR).await;
}

#[tokio::test]
async fn a_dry_run_that_is_done_has_nothing_to_hold() {
    let web = Web::new(534).await;
    let (_, token) = web.tenant("acme").await;
    let sent = send(&web, &token, "?dry_run=true", "text/csv", "hostname\na.acme.test\n").await.json();
    work(&web).await;
    for to in ["pause", "cancel"] {
        let path = format!("/api/v1/imports/{}/{to}", sent["id"].as_str().unwrap());
        assert_eq!(web.api(&token, "POST", &path, None).await.problem(), (409, "import_not_turned".into()));
    }
}

impl Held {
    async fn told(&self, n: usize) -> Value {
        let path = format!("/api/v1/domains/{}", self.ids[n]);
        self.web.api(&self.token, "GET", &path, None).await.json()
    }

    /// What its row, which lists and counts go by, says.
    async fn stands(&self, n: usize) -> String {
        self.web.rig.domain_text(&self.ids[n], "standing").await.unwrap_or_default()
    }
}

#[tokio::test]
async fn a_name_says_that_its_import_is_held_by_whom_and_how_to_go_on() {
    let held = Held::new(536).await;
    let (web, rig) = (&held.web, &held.web.rig);
    let acme = rig.app.store.query(sql("SELECT tenant_id FROM imports")).await.unwrap()[0].parse("tenant_id").unwrap();
    let (admin, operator) = (web.admin(&acme).await, web.signed_in_operator().await);
    rig.pass(HOUR / 2).await;
    let waits = held.told(1).await;
    assert!(waits["sentence"].as_str().unwrap().contains("waits for its turn") && waits["held"] == Value::Null, "{waits}");
    assert_eq!(held.turn("pause").await.status, 200);
    // At once, before anybody looks again.
    assert_eq!((held.stands(1).await.as_str(), held.stands(0).await.as_str()), ("import_paused", "serving"));
    let told = held.told(1).await;
    let sentence = told["sentence"].as_str().unwrap();
    assert!(sentence.contains("is paused") && !sentence.contains("need not do anything"), "{sentence}");
    assert_eq!(told["who_acts"], "tenant");
    assert_eq!(told["held"]["by"], "paused_by_tenant");
    assert_eq!(told["held"]["import_id"], json!(held.import));
    assert_eq!(held.told(0).await["held"], Value::Null, "a name that is live waits for nothing");
    let story = web.api(&held.token, "GET", &format!("/api/v1/explain?hostname={}", NAMES[1]), None).await.json();
    let next = story["claims"][0]["next"].to_string();
    assert!(next.contains("paused by its tenant") && next.contains(&held.import), "{next}");
    let page = web.page(&admin, &format!("/domains/{}", held.ids[1])).await.body;
    assert!(page.contains("The import that brought this name is paused"), "{page}");
    assert!(page.contains(&format!("href=\"/imports/{}\"", held.import)) && page.contains("claim-by-itself"), "{page}");
    let list = web.page(&admin, "/domains").await.body;
    assert!(list.contains("the import that brought the name is paused"), "{list}");
    let page = web.page(&admin, &format!("/imports/{}", held.import)).await.body;
    assert!(page.contains("Paused by the tenant") && page.contains("its 3 claims that wait"), "{page}");
    let queue = web.page(&operator, "/operator/queue").await.body;
    assert!(queue.contains("3 held back by imports that tenants paused"), "{queue}");
    assert!(queue.contains(" 0 held back until their checks pass"), "{queue}");
    let listed = web.page(&operator, "/operator/domains?reason=import_paused").await.body;
    assert!(listed.contains(NAMES[1]) && !listed.contains(NAMES[0]), "{listed}");
    // Whoever asks for a look gets one, and no more than that.
    let check = format!("/api/v1/domains/{}/check", held.ids[1]);
    rig.pass(HOUR).await;
    let looks =
        sql("SELECT count(*) AS n FROM events WHERE domain_id = $1 AND kind = 'check_asked'").bind(held.ids[1].as_str());
    assert_eq!(web.api(&held.token, "POST", &check, None).await.status, 202);
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(rig.count(looks).await, 1);
    let due = held.told(1).await["due_at"].as_str().unwrap().to_owned();
    assert!(due >= (rig.env.now() + HOUR / 2).rfc3339(), "looked at again at {due}, now is {}", rig.env.now());
    assert_eq!(held.stands(1).await, "import_paused");
    assert_eq!(held.turn("resume").await.status, 200);
    assert_eq!((held.stands(1).await.as_str(), &held.told(1).await["held"]), ("order_waiting", &Value::Null));
    // An operator holds it, too, and goes before the tenant.
    let path = |to: &str| format!("/api/v1/imports/{}/{to}", held.import);
    assert_eq!(web.api(&web.operator, "POST", &path("pause"), None).await.status, 200);
    assert_eq!(held.turn("pause").await.status, 200);
    let told = held.told(1).await;
    assert_eq!((&told["held"]["by"], &told["who_acts"]), (&json!("paused_by_operator"), &json!("platform")), "{told}");
    assert_eq!(held.stands(1).await, "import_paused_by_operator");
    assert_eq!(held.turn("cancel").await.status, 200);
    let told = held.told(1).await;
    assert!(told["sentence"].as_str().unwrap().contains("was cancelled"), "{told}");
    assert_eq!((held.stands(1).await.as_str(), &told["who_acts"]), ("import_cancelled", &json!("tenant")));
    // By itself it goes its way, from the page too.
    let admin = web.admin(&acme).await;
    let csrf = web.csrf(&admin).await;
    let sent = web.post(&admin, "/domains/add", &format!("csrf={csrf}&names={}&tenant=acme", NAMES[1])).await;
    assert_eq!(sent.status, 303, "{}", sent.body);
    assert_eq!(held.told(1).await["held"], Value::Null);
    rig.until_active(&held.ids[1], 3 * HOUR).await;
    rig.check_invariants().await;
}

#[tokio::test]
async fn what_the_operator_paused_only_the_operator_lets_go_on() {
    let held = Held::new(538).await;
    let web = &held.web;
    web.rig.pass(HOUR / 2).await;
    let path = |to: &str| format!("/api/v1/imports/{}/{to}", held.import);
    let operators = |to: &str| {
        let path = path(to);
        async move { web.api(&web.operator, "POST", &path, None).await }
    };
    // Over a tenant's own pause, and without one.
    for first_the_tenant in [true, false] {
        if first_the_tenant {
            assert_eq!(held.turn("pause").await.status, 200);
            assert_eq!(held.stands(1).await, "import_paused");
        }
        assert_eq!(operators("pause").await.json()["state"], "paused");
        assert_eq!(held.stands(1).await, "import_paused_by_operator");
        assert_eq!(held.turn("pause").await.status, 200);
        let refused = held.turn("resume").await;
        assert_eq!(refused.problem(), (409, "import_not_turned".to_owned()));
        assert!(refused.body.contains("he operator paused it"), "{}", refused.body);
        assert_eq!(held.state().await, "paused");
        assert_eq!(held.in_line().await, 0);
        assert_eq!(operators("resume").await.json()["state"], "working");
        work(web).await;
        assert_eq!(held.stands(1).await, "order_waiting");
    }
    // To give it up is the tenant's right all the same.
    assert_eq!(operators("pause").await.status, 200);
    assert_eq!(held.turn("cancel").await.json()["state"], "cancelled");
    assert_eq!(held.stands(1).await, "import_cancelled");
    web.rig.check_invariants().await;
}

#[tokio::test]
async fn an_operators_import_is_not_named_to_the_tenants_whose_names_it_brings() {
    let web = Web::limited(537, Limit { burst: 1, per_secs: 3_600 }).await;
    let (_, token) = web.tenant("acme").await;
    web.tenant("other").await;
    let file = "hostname,tenant\na.acme.test,acme\nb.other.test,other\n";
    let done = import(&web, &web.operator, "?name=everybody.csv", file).await;
    let path = format!("/api/v1/imports/{}", done["id"].as_str().unwrap());
    assert_eq!(web.api(&web.operator, "POST", &format!("{path}/pause"), None).await.status, 200);
    let list = web.api(&token, "GET", "/api/v1/domains", None).await.json();
    let id = list["items"][0]["id"].as_str().unwrap().to_owned();
    let told = web.api(&token, "GET", &format!("/api/v1/domains/{id}"), None).await.json();
    assert_eq!((&told["held"]["by"], &told["held"]["import_id"]), (&json!("paused_by_operator"), &Value::Null), "{told}");
    let story = |token: String| {
        let web = &web;
        async move { web.api(&token, "GET", "/api/v1/explain?hostname=a.acme.test", None).await.body }
    };
    let own = story(token).await;
    assert!(own.contains("paused by the operator") && !own.contains("imp_") && !own.contains("everybody"), "{own}");
    assert!(story(web.operator.clone()).await.contains(done["id"].as_str().unwrap()));
}
