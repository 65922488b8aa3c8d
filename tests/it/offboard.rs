//! Tenants that leave: what is gone at once, what follows however a process dies, and what never comes back.

use std::time::Duration;

use nameplate::app::offboard;
use nameplate::app::tenants::{self, AddTenantError, NewTenant};
use nameplate::app::tokens::{self, Principal};
use nameplate::app::{self, claim::ClaimError};
use nameplate::model::hostname::Hostname;
use nameplate::model::id::TenantId;
use nameplate::model::secret::Secret;
use nameplate::model::slug::Slug;
use nameplate::store::sql;
use serde_json::Value;

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore, for_each_store};
use crate::support::web::Web;

const NAME: &str = "support.acme.test";
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn leave(rig: &Rig, tenant: &TenantId) -> offboard::Leaving {
    offboard::begin(&rig.app.store, &rig.env, tenant, "operator").await.unwrap()
}

/// Nothing of the tenant works any more, and nothing is on its way.
async fn nothing_works(rig: &Rig, tenant: &TenantId, when: &str) {
    for (what, count) in [
        (
            "a claim stands",
            "SELECT count(*) AS n FROM domains WHERE tenant_id = $1 AND claim IN ('awaiting_dns', 'queued', 'live', 'expired')",
        ),
        ("a route serves", "SELECT count(*) AS n FROM routes WHERE tenant_id = $1 AND action = 'serve'"),
        (
            "an order is open",
            "SELECT count(*) AS n FROM orders o JOIN domains d ON d.id = o.domain_id WHERE d.tenant_id = $1 \
           AND o.state NOT IN ('issued', 'failed', 'lost')",
        ),
        (
            "a challenge is answered",
            "SELECT count(*) AS n FROM challenges c JOIN orders o ON o.id = c.order_id \
           JOIN domains d ON d.id = o.domain_id WHERE d.tenant_id = $1 AND c.removed_at IS NULL",
        ),
        (
            "a grant is open",
            "SELECT count(*) AS n FROM grants g JOIN orders o ON o.id = g.order_id JOIN domains d ON d.id = o.domain_id \
           WHERE d.tenant_id = $1 AND g.state = 'open'",
        ),
        ("a name is held", "SELECT count(*) AS n FROM holdings WHERE tenant_id = $1 AND state = 'held'"),
        ("a token opens", "SELECT count(*) AS n FROM tokens WHERE tenant_id = $1 AND revoked_at IS NULL"),
        (
            "the off-boarding is unfinished",
            "SELECT count(*) AS n FROM offboardings WHERE tenant_id = $1 AND finished_at IS NULL",
        ),
    ] {
        assert_eq!(rig.count(sql(count).bind(tenant.as_str())).await, 0, "{what}, {when}");
    }
}

/// After the grace, no key is left either, and the queue is empty.
async fn nothing_remains(rig: &Rig, tenant: &TenantId, when: &str) {
    rig.hand.advance(7 * DAY);
    rig.pass(Duration::from_secs(120)).await;
    for (what, count) in [
        (
            "a name rests",
            "SELECT count(*) AS n FROM domains WHERE tenant_id = $1 AND claim NOT IN ('released', 'withdrawn')",
        ),
        ("a certificate's key", "SELECT count(*) AS n FROM certificates WHERE tenant_id = $1 AND sealed_key IS NOT NULL"),
        (
            "an order's key",
            "SELECT count(*) AS n FROM orders o JOIN domains d ON d.id = o.domain_id WHERE d.tenant_id = $1 \
           AND o.sealed_key IS NOT NULL",
        ),
        ("something due", "SELECT count(*) AS n FROM domains WHERE tenant_id = $1 AND due_at < 9000000000000000"),
    ] {
        assert_eq!(rig.count(sql(count).bind(tenant.as_str())).await, 0, "{what}, {when}");
    }
    assert!(rig.queue.next_at().is_none(), "an alarm is left, {when}");
}

#[tokio::test]
async fn b90_a_tenant_with_every_kind_of_claim_leaves_nothing_behind() {
    let rig = Rig::new(21).await;
    let host = |slug: &Slug| Some(Hostname::trusted(&format!("{slug}.app.example")));
    let new = NewTenant { slug: "acme", name: None };
    let acme = tenants::add(&rig.app.store, &rig.env, new, host, "operator").await.unwrap().id;
    let bystander = rig.tenant("globex").await;
    let token = tokens::mint(&rig.app.store, &rig.env, &Principal::Tenant(acme.clone()), "t", None).await.unwrap().text;
    let expired = rig.claim(&acme, "expired.acme.test").await;
    rig.pass(31 * DAY).await;
    assert_eq!(rig.domain_text(&expired, "claim").await.unwrap(), "expired");
    let (live, other) = (rig.claim(&acme, NAME).await, rig.claim(&bystander, "www.acme.test").await);
    for (id, name) in [(&live, NAME), (&other, "www.acme.test")] {
        rig.publish(id, name).await;
        rig.until_active(id, HOUR).await;
    }
    let waiting = rig.claim(&acme, "waiting.acme.test").await;
    rig.pass(Duration::from_secs(30)).await;

    let left = leave(&rig, &acme).await;
    assert!(left.new && left.progress.open == 3 && left.progress.finished_at.is_none());
    assert!(tokens::authenticate(&rig.app.store, rig.env.now(), &token).await.unwrap().is_none());
    let gone = sql("SELECT count(*) AS n FROM routes WHERE hostname = 'acme.app.example' AND action = 'gone'");
    assert_eq!(rig.count(gone).await, 1, "the canonical host is gone with the same stroke");
    let told = sql("SELECT count(*) AS n FROM outbox WHERE subject IN ($1, 'acme.app.example')").bind(acme.as_str());
    assert_eq!(rig.count(told).await, 4, "edges are told of both, twice");
    // A token made by somebody who had not heard yet opens nothing; a claim is refused.
    let late = tokens::mint(&rig.app.store, &rig.env, &Principal::Tenant(acme.clone()), "late", None).await.unwrap();
    assert!(tokens::authenticate(&rig.app.store, rig.env.now(), &late.text).await.unwrap().is_none());
    tokens::revoke(&rig.app.store, &rig.env, &late.id).await.unwrap();
    let refused = app::claim::claim(&rig.app, &acme, &Hostname::trusted("new.acme.test"), "x").await;
    assert!(matches!(refused, Err(ClaimError::NoTenant(_))));

    let placed = rig.ca.state().counters().orders_created;
    rig.pass(Duration::from_secs(60)).await;
    let claims = async || {
        let mut seen = Vec::new();
        for id in [&expired, &live, &waiting, &other] {
            seen.push(rig.domain_text(id, "claim").await.unwrap());
        }
        seen
    };
    assert_eq!(claims().await, ["withdrawn", "releasing", "withdrawn", "live"]);
    assert_eq!(rig.events(&live).await.last().unwrap(), "removed");
    assert_eq!((rig.serial_at_edge(NAME), rig.serial_at_edge("www.acme.test").is_some()), (None, true));
    nothing_works(&rig, &acme, "after a minute").await;
    let again = leave(&rig, &acme).await;
    assert!(!again.new && again.progress.finished_at.is_some() && again.progress.releasing == 1);
    nothing_remains(&rig, &acme, "after the grace").await;
    assert_eq!(rig.ca.state().counters().orders_created, placed, "nothing was ordered any more");
    assert!(rig.active_since(&other).await.is_some(), "the other tenant noticed nothing");
    rig.check_invariants().await;
}

/// Field case B90: the tenant leaves while a step stands at each of its boundaries.
#[tokio::test]
async fn b90_a_tenant_leaves_at_every_boundary_of_every_step() {
    let mut places = 0;
    for cut in 1..60 {
        let rig = Rig::new(22).await;
        let acme = rig.tenant("acme").await;
        let id = rig.claim(&acme, NAME).await;
        rig.publish(&id, NAME).await;
        rig.scissors.set(cut);
        let app = rig.new_worker();
        let mut sleeper = None;
        for _ in 0..40 {
            let mut step = Box::pin(rig.everything_once(&app));
            let stopped = tokio::select! {
                biased;
                () = &mut step => false,
                () = rig.scissors.reached() => true,
            };
            if stopped {
                sleeper = Some(step);
                break;
            }
            drop(step);
            rig.edge_follows().await;
            rig.hand.advance(Duration::from_secs(1));
        }
        let Some(sleeper) = sleeper else { break };
        let place = rig.scissors.crossed().last().copied().unwrap_or_default();
        if place.starts_with("before") && place.contains("commit") {
            continue;
        }
        places += 1;
        let placed = rig.ca.state().counters().orders_created;
        leave(&rig, &acme).await;
        rig.scissors.resume();
        sleeper.await;
        rig.pass(Duration::from_secs(180)).await;
        nothing_works(&rig, &acme, place).await;
        assert_eq!(rig.serial_at_edge(NAME), None, "{place}");
        // A call that was announced before may still be made; one that was not never is.
        let more = rig.ca.state().counters().orders_created - placed;
        assert!(more == 0 || (more == 1 && place == "intent recorded"), "{more} orders after leaving at {place}");
        nothing_remains(&rig, &acme, place).await;
        rig.check_invariants().await;
    }
    assert!(places > 25, "the walk stood at {places} places");
}

/// Field case B90: whoever lets go dies at each boundary.
#[tokio::test]
async fn b90_letting_go_survives_a_crash_at_every_boundary() {
    let mut cut = 0;
    loop {
        cut += 1;
        let rig = Rig::new(23).await;
        let acme = rig.tenant("acme").await;
        let id = rig.claim(&acme, NAME).await;
        rig.publish(&id, NAME).await;
        rig.until_active(&id, HOUR).await;
        rig.claim(&acme, "second.acme.test").await;
        leave(&rig, &acme).await;
        let before = rig.scissors.crossed().len();
        rig.scissors.set(cut);
        let mut cuts = 0;
        let end = rig.env.now() + Duration::from_secs(400);
        while rig.env.now() < end {
            cuts += usize::from(rig.turn().await);
        }
        rig.scissors.set(0);
        let place = rig.scissors.crossed().get(before + cut - 1).copied().unwrap_or("nowhere");
        nothing_works(&rig, &acme, place).await;
        nothing_remains(&rig, &acme, place).await;
        rig.check_invariants().await;
        if cuts == 0 {
            break;
        }
    }
    assert!(cut > 6, "there were {cut} boundaries");
}

#[tokio::test]
async fn very_many_claims_let_go_in_small_transactions() {
    let rig = Rig::new(24).await;
    let acme = rig.tenant("acme").await;
    for n in 0..450 {
        rig.claim(&acme, &format!("n{n}.acme.test")).await;
    }
    while rig.queue.pop(rig.env.now()).is_some() {}
    rig.app.store.execute(sql("UPDATE domains SET due_at = 9000000000000000")).await.unwrap();
    leave(&rig, &acme).await;
    let due = async || rig.count(sql("SELECT count(*) AS n FROM domains WHERE due_at < 9000000000000000")).await;
    assert_eq!(due().await, 0, "leaving itself touches no claim");
    for expected in [200, 400, 450, 450] {
        let next = offboard::round(&rig.app).await.unwrap();
        assert_eq!(due().await, expected);
        assert!(next.is_some());
    }
    rig.pass(Duration::from_secs(60)).await;
    nothing_works(&rig, &acme, "in the end").await;
    assert_eq!(offboard::round(&rig.app).await.unwrap(), None);
}

/// Field cases B80 and B90: what is left in DNS is of no use to anybody, and a new claim starts from zero.
#[tokio::test]
async fn b80_b90_what_a_tenant_left_in_dns_proves_nothing_for_the_next() {
    let rig = Rig::new(25).await;
    let acme = rig.tenant("acme").await;
    let former = rig.claim(&acme, NAME).await;
    rig.publish(&former, NAME).await;
    rig.until_active(&former, HOUR).await;
    let (serial, value) = (rig.serial_at_edge(NAME).unwrap(), rig.value(&former).await);
    leave(&rig, &acme).await;
    rig.pass(Duration::from_secs(60)).await;

    let squatter = rig.tenant("squatter").await;
    let claim = rig.claim(&squatter, NAME).await;
    assert_ne!(rig.value(&claim).await, value);
    let placed = rig.ca.state().counters().orders_created;
    rig.pass(10 * DAY).await;
    assert_eq!(rig.domain_text(&claim, "claim").await.unwrap(), "awaiting_dns");
    assert_eq!((rig.serial_at_edge(NAME), rig.ca.state().counters().orders_created), (None, placed));
    // The target of the leftover alias can be nobody's again.
    for spelling in ["acme", "ACME", "a-c-m-e", "acme-"] {
        let new = NewTenant { slug: spelling, name: None };
        let refused = tenants::add(&rig.app.store, &rig.env, new, |_| None, "operator").await.unwrap_err();
        assert!(matches!(refused, AddTenantError::Taken(_) | AddTenantError::Slug(_)), "{spelling}: {refused}");
    }

    // The owner of the name comes to the next tenant, with records of its own.
    rig.unpublish_txt(&former, NAME).await;
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    let next = rig.tenant("globex").await;
    let again = rig.claim(&next, NAME).await;
    rig.publish(&again, NAME).await;
    rig.until_active(&again, 4 * DAY).await;
    assert_ne!(rig.serial_at_edge(NAME).unwrap(), serial, "a certificate and a key of its own");
    nothing_works(&rig, &acme, "with another holder").await;
    rig.check_invariants().await;
}

#[tokio::test]
async fn a_retired_slug_never_returns_in_any_spelling() {
    for_each_store(async |test| {
        let env = nameplate::env::Env::real();
        let add = async |slug: &str| tenants::add(&test.store, &env, NewTenant { slug, name: None }, |_| None, "x").await;
        let first = add("lo0p-1").await.unwrap();
        offboard::begin(&test.store, &env, &first.id, "x").await.unwrap();
        let retired = sql("SELECT count(*) AS n FROM slugs WHERE slug = 'lo0p-1' AND retired_at IS NOT NULL");
        assert_eq!(test.store.query(retired).await.unwrap()[0].int("n").unwrap(), 1);
        for spelling in ["lo0p-1", "LO0P-1", "loop-1", "loopl", "10opl", "l-o-o-p-l", "1-00p-1"] {
            assert!(matches!(add(spelling).await, Err(AddTenantError::Taken(_))), "{spelling}");
        }
        for other in ["loop-2", "loops1", "lop-1"] {
            add(other).await.unwrap();
        }
        assert!(matches!(add("paypa1").await, Err(AddTenantError::Slug(_))));
        let unknown = nameplate::mint!(env, TenantId);
        assert!(matches!(
            offboard::begin(&test.store, &env, &unknown, "x").await,
            Err(offboard::OffboardError::NotFound(_))
        ));
    })
    .await;
}

/// The backfill folds as the program does, and slugs that were alike before do not stop it.
#[tokio::test]
async fn slugs_from_before_are_folded_by_the_migration() {
    for kind in [Kind::SqliteMemory, Kind::Postgres] {
        let test = TestStore::migrated(kind).await;
        let tenant = nameplate::mint!(nameplate::env::Env::real(), TenantId);
        test.store
            .execute(
                sql("INSERT INTO tenants (id, slug, name, region, stamp, shard, tier, status, version, created_at) \
                     VALUES ($1, 'a', 'A', 'r', 's', 0, 't', 'active', 1, 0)")
                .bind(tenant.as_str()),
            )
            .await
            .unwrap();
        let slugs = ["acme-10", "acmelo", "x0-1y", "plain", "a-b-c"];
        for slug in slugs {
            let stmt = sql("INSERT INTO slugs (slug, tenant_id, taken_at) VALUES ($1, $2, 0)");
            test.store.execute(stmt.bind(slug).bind(tenant.as_str())).await.unwrap();
        }
        let folder = if kind == Kind::Postgres { "postgres" } else { "sqlite" };
        let path = format!("{}/migrations/{folder}/20261130000005_offboarding.sql", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let begin = text.find("INSERT INTO slug_skeletons").unwrap();
        let statement = text[begin..begin + text[begin..].find(';').unwrap()].to_owned();
        test.store.execute(sql(Box::leak(statement.into_boxed_str()))).await.unwrap();
        let rows = test.store.query(sql("SELECT skeleton FROM slug_skeletons ORDER BY skeleton")).await.unwrap();
        let stored: Vec<String> = rows.iter().map(|row| row.text("skeleton").unwrap()).collect();
        let mut folded: Vec<String> = slugs.iter().map(|slug| Slug::parse(slug).unwrap().skeleton()).collect();
        folded.sort();
        folded.dedup();
        assert_eq!(stored, folded);
        test.remove().await;
    }
}

#[tokio::test]
async fn the_api_takes_a_tenant_off_board_and_lists_what_still_leads_here() {
    let web = Web::new(26).await;
    let (acme, token) = web.tenant("acme").await;
    let (_, stranger) = web.tenant("globex").await;
    for name in [NAME, "gone.acme.test"] {
        let id = web.rig.claim(&acme, name).await;
        web.rig.publish(&id, name).await;
        web.rig.until_active(&id, HOUR).await;
    }
    web.rig.claim(&acme, "never.acme.test").await;
    let path = format!("/api/v1/tenants/{acme}");
    for (token, status) in [(&token, 403), (&stranger, 404)] {
        assert_eq!(web.api(token, "DELETE", &path, None).await.problem().0, status);
        assert_eq!(web.api(token, "GET", &format!("{path}/dangling"), None).await.problem().0, status);
    }
    assert_eq!(web.api("", "DELETE", &path, None).await.problem().0, 401);
    let early = web.api(&web.operator, "GET", &format!("{path}/dangling"), None).await;
    assert_eq!(early.problem(), (409, "tenant_not_deleted".to_owned()));
    for nobody in ["ten_0", "nobody", "%00", "ten_018bcfe5687b7000800000000000000f"] {
        let answer = web.api(&web.operator, "DELETE", &format!("/api/v1/tenants/{nobody}"), None).await;
        assert_eq!(answer.problem().0, 404, "{nobody}");
    }

    let answer = web.api(&web.operator, "DELETE", "/api/v1/tenants/acme", None).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let body = answer.json();
    assert_eq!((&body["claims_open"], &body["status"], &body["finished_at"]), (&3.into(), &"deleted".into(), &Value::Null));
    assert_eq!(web.api(&token, "GET", &path, None).await.problem().0, 401, "its token opens nothing any more");
    web.rig.pass(Duration::from_secs(60)).await;
    let again = web.api(&web.operator, "DELETE", &path, None).await.json();
    assert_eq!((&again["claims_open"], &again["names_releasing"]), (&0.into(), &2.into()));
    assert!(again["finished_at"].is_string());
    // Nothing is given to who is gone.
    let (given, changed) = (serde_json::json!({ "label": "late", "tenant": "acme" }), serde_json::json!({ "name": "Late" }));
    let late = [
        web.api(&web.operator, "POST", "/api/v1/tokens", Some(given)).await,
        web.api(&web.operator, "POST", &format!("{path}/contacts"), Some(serde_json::json!({ "email": "a@b.example" })))
            .await,
        web.api(&web.operator, "PATCH", &path, Some(changed)).await,
    ];
    for answer in late {
        assert_eq!(answer.problem(), (409, "tenant_not_active".to_owned()));
    }

    web.rig.zones.remove("gone.acme.test. 60 IN CNAME acme.app.example.").unwrap();
    let dangling = web.api(&web.operator, "GET", &format!("{path}/dangling"), None).await.json();
    let names: Vec<&str> = dangling["items"].as_array().unwrap().iter().map(|i| i["hostname"].as_str().unwrap()).collect();
    assert_eq!((names, &dangling["looked_at"], &dangling["next"]), (vec![NAME], &3.into(), &Value::Null));
    let (mut path, mut seen) = (format!("{path}/dangling?limit=1"), 0);
    for _ in 0..4 {
        let page = web.api(&web.operator, "GET", &path, None).await.json();
        seen += page["items"].as_array().unwrap().len();
        let Some(next) = page["next"].as_str() else { break };
        path = next.trim_start_matches("https://portal.example").to_owned();
    }
    assert_eq!(seen, 1, "page by page the same is found");
    assert!(tokens::authenticate(&web.rig.app.store, web.rig.env.now(), &Secret::from(token)).await.unwrap().is_none());
}

#[test]
fn the_command_asks_before_it_removes_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let run = |line: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nameplate"));
        command.args(line.split_whitespace()).env_clear().current_dir(dir.path());
        let output = command.env("NAMEPLATE__ROUTING__CANONICAL_SUFFIX", "app.example").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    assert_eq!(run("migrate").0, Some(0));
    assert_eq!(run("tenant add acme").0, Some(0));
    assert!(run("tenant remove nobody --yes").1.contains("there is no tenant"));
    let (code, said) = run("tenant remove acme");
    assert!(code == Some(1) && said.contains("cannot be undone") && said.contains("--yes"), "{said}");
    assert!(run("tenant list").1.contains("active"));
    let (code, said) = run("tenant remove acme --yes");
    assert!(code == Some(0) && said.contains("Removed acme") && said.contains("/dangling"), "{said}");
    assert!(run("tenant remove acme --yes").1.contains("removed already"));
    assert!(run("tenant list").1.contains("deleted"));
    assert!(run("token create --tenant acme").1.contains("was removed"));
    assert!(run("tenant add ac-me").1.contains("looks like it"));
}
