//! What a dry run says of an import, and what then becomes of it.

use std::time::Duration;

use nameplate::app::account;
use nameplate::model::id::DomainId;
use nameplate::model::ledger::Limit;
use nameplate::model::limits::{self, LimitName, Limits};
use nameplate::model::moment::Moment;
use nameplate::store::sql;
use serde_json::{Value, json};

use crate::bulk::{import, work};
use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::web::Web;

const HOUR: Duration = Duration::from_secs(3600);

fn csv(names: &[String]) -> String {
    format!("hostname\n{}\n", names.join("\n"))
}

fn last_of(plan: &Value) -> Moment {
    let text = plan["last_order_at"].as_str().unwrap_or_else(|| panic!("no end: {plan}"));
    Moment::from_rfc3339(text).unwrap()
}

/// Names that wait already under a registered domain, of an earlier import that nobody has proven yet and of a single claim, go first;
/// the import that is planned is not counted twice once it has been started.
async fn behind_others(kind: Kind, seed: u64) {
    let test = TestStore::blank(kind).await;
    let web = Web::on(Rig::with_limits(seed, &test.url, limits::usual()).await, "").await;
    let (_, token) = web.tenant("acme").await;
    let earlier: Vec<String> = (0..200).map(|n| format!("n{n}.crowded.com")).collect();
    import(&web, &token, "", &csv(&earlier)).await;
    let (other, _) = web.tenant("other").await;
    web.rig.claim(&other, "by-hand.crowded.com").await;
    web.rig.claim(&other, "gone.crowded.com").await;
    let gone = sql("UPDATE domains SET claim = 'withdrawn' WHERE hostname = 'gone.crowded.com'");
    web.rig.app.store.execute(gone).await.unwrap();
    let later: Vec<String> =
        (0..40).map(|n| format!("m{n}.crowded.com")).chain((0..30).map(|n| format!("m{n}.fresh.com"))).collect();
    let dry = import(&web, &token, "?dry_run=true", &csv(&later)).await;
    let plan = &dry["plan"];
    assert_eq!((&plan["orders"], &plan["colliding"]), (&json!(70), &json!(1)), "{kind:?} {plan}");
    let collision = &plan["collisions"][0];
    assert_eq!((&collision["names"], &collision["at_once"]), (&json!(40), &json!(0)), "{kind:?} {collision}");
    // 201 others, fifty at once, then one in 3 h 21 min 36 s.
    let last = web.rig.env.now() + Duration::from_secs((201 + 40 - 50) * 12_096);
    assert_eq!(plan["last_order_at"], json!(last.rfc3339()), "{kind:?}");
    let path = format!("/api/v1/imports/{}/start", dry["id"].as_str().unwrap());
    assert_eq!(web.api(&token, "POST", &path, None).await.status, 200);
    work(&web).await;
    let started = crate::bulk::show(&web, &token, dry["id"].as_str().unwrap()).await;
    assert_eq!(started["verdicts"]["claimed"], 70, "{kind:?} {started}");
    assert_eq!(started["plan"]["last_order_at"], json!(last.rfc3339()), "{kind:?}: its own names are no others");
    drop(web);
    test.remove().await;
}

#[tokio::test]
async fn what_waits_already_under_a_registered_domain_is_in_the_plan() {
    behind_others(Kind::SqliteMemory, 530).await;
}

#[tokio::test]
async fn what_waits_already_under_a_registered_domain_is_in_the_plan_on_postgres() {
    behind_others(Kind::Postgres, 531).await;
}

fn small() -> Limits {
    let mut all = limits::usual();
    all.insert(LimitName::OrdersPerAccount, Limit { burst: 10, per_secs: 720 });
    all.insert(LimitName::CertificatesPerDomain, Limit { burst: 5, per_secs: 5 * 3_600 });
    all
}

/// Publishes what the claims with such names were told.
async fn publish(web: &Web, like: &str) {
    let stmt = sql("SELECT id, hostname FROM domains WHERE hostname LIKE $1 ORDER BY id").bind(like);
    for row in web.rig.app.store.query(stmt).await.unwrap() {
        let id: DomainId = row.parse("id").unwrap();
        web.rig.publish(&id, &row.text("hostname").unwrap()).await;
    }
}

/// Dry run, start, and records for all; what the plan said.
async fn planned_and_started(web: &Web, token: &str, names: &[String], like: &str) -> (Moment, Moment) {
    let dry = import(web, token, "?dry_run=true", &csv(names)).await;
    let made = web.rig.env.now();
    let path = format!("/api/v1/imports/{}/start", dry["id"].as_str().unwrap());
    assert_eq!(web.api(token, "POST", &path, None).await.status, 200);
    work(web).await;
    publish(web, like).await;
    (made, last_of(&dry["plan"]))
}

/// The last of these names got its last grant within one in a hundred of the time that the plan said.
async fn comes_true(web: &Web, like: &str, (made, last): (Moment, Moment)) {
    let stmt = sql("SELECT max(g.granted_at) AS n FROM grants g JOIN orders o ON o.id = g.order_id JOIN domains d ON d.id = o.domain_id \
         WHERE d.hostname LIKE $1")
    .bind(like);
    let ended = Moment::from_micros(web.rig.count(stmt).await);
    let (said, took) = (last.since(made), ended.since(made));
    assert!(said > HOUR && took.abs_diff(said) * 100 <= said, "{like}: said {said:?}, took {took:?}");
}

/// An import under few registered domains, and another one that comes behind it: each is through when its dry run said.
#[tokio::test]
async fn what_a_plan_says_of_crowded_domains_comes_true() {
    let web = Web::on(Rig::with_limits(532, "sqlite::memory:", small()).await, "").await;
    account::ensure_all(&web.rig.app).await.unwrap();
    let (_, token) = web.tenant("acme").await;
    for zone in ["one.test", "two.test"] {
        web.rig.also_zone(zone);
    }
    let mut first: Vec<String> = (0..36).map(|n| format!("first{n}.{}.test", ["one", "two"][n % 2])).collect();
    for n in 0..8 {
        web.rig.also_zone(&format!("own{n}.test"));
        first.push(format!("first.own{n}.test"));
    }
    let of_first = planned_and_started(&web, &token, &first, "first%").await;
    web.rig.pass(HOUR / 2).await;
    assert_eq!(web.rig.count(sql("SELECT count(*) AS n FROM domains WHERE claim = 'live'")).await, 18);
    let second: Vec<String> = (0..6).map(|n| format!("second{n}.one.test")).collect();
    // Who waits for room under a domain of its own is not in the way of those under others.
    let third: Vec<String> = (0..9).map(|n| format!("third.other{n}.test")).collect();
    let dry = import(&web, &token, "?dry_run=true", &csv(&third)).await;
    let now = web.rig.env.now().rfc3339();
    assert_eq!((&dry["plan"]["first_order_at"], &dry["plan"]["last_order_at"]), (&json!(now), &json!(now)), "{dry}");
    let of_second = planned_and_started(&web, &token, &second, "second%").await;
    let live = "SELECT count(*) AS n FROM domains WHERE claim = 'live'";
    for _ in 0..40 {
        web.rig.pass(HOUR).await;
        if web.rig.count(sql(live)).await == 50 {
            break;
        }
    }
    assert_eq!(web.rig.count(sql(live)).await, 50);
    comes_true(&web, "first%", of_first).await;
    comes_true(&web, "second%", of_second).await;
    assert_eq!(web.rig.ca.asked(), 50, "nothing was refused or asked twice");
    web.rig.check_invariants().await;
}
