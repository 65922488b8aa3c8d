//! Nothing is bought twice, and nothing in vain: field cases of orders that are made again and again.

use std::time::Duration;

use nameplate::app::advance::{Advanced, advance};
use nameplate::app::{App, account, check, dispatch};
use nameplate::model::id::DomainId;
use nameplate::store::{of_sqlite, sql};

use crate::support::rig::Rig;

const NAME: &str = "shop.acme.test";
const HOUR: Duration = Duration::from_secs(3600);

/// A claim that is proven and waits for its grant.
async fn queued(rig: &Rig) -> DomainId {
    account::ensure_all(&rig.app).await.unwrap();
    let acme = rig.tenant("acme").await;
    let id = rig.claim(&acme, NAME).await;
    rig.publish(&id, NAME).await;
    steps_until(rig, &id, "d.claim = 'queued' AND o.state = 'waiting' AND o.not_before <= $2").await;
    id
}

/// Gives it a grant; its next step is the call.
async fn granted(rig: &Rig, id: &DomainId) {
    dispatch::round(&rig.app).await.unwrap();
    steps_until(rig, id, "o.state = 'granted' AND o.sealed_key IS NOT NULL AND d.due_at <= $2").await;
}

/// Steps of one domain until its row and its order's say so.
async fn steps_until(rig: &Rig, id: &DomainId, says: &'static str) {
    let app = rig.new_worker();
    let text = format!("SELECT count(*) AS n FROM domains d JOIN orders o ON o.domain_id = d.id WHERE d.id = $1 AND {says}");
    for _ in 0..60 {
        let rows = sqlx_count(rig, &text, id).await;
        if rows > 0 {
            return;
        }
        advance(&app, id).await.unwrap();
        rig.edge_follows().await;
        rig.hand.advance(Duration::from_secs(1));
    }
    panic!("never came to {says}: {}", rig.story(id).await);
}

async fn sqlx_count(rig: &Rig, text: &str, id: &DomainId) -> i64 {
    let pool = rig.app.store.sqlite_pool().unwrap();
    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(text.to_owned())).bind(id.as_str().to_owned());
    query.bind(rig.env.now().micros()).fetch_one(pool).await.unwrap()
}

/// Makes the database refuse every write, or take them again.
async fn read_only(rig: &Rig, on: bool) {
    let pragma = if on { of_sqlite("PRAGMA query_only = ON") } else { of_sqlite("PRAGMA query_only = OFF") };
    rig.app.store.execute(pragma).await.unwrap();
}

/// One step that is stopped at this boundary, while `meanwhile` happens; then it goes on for so long at most.
async fn step_stopped_at(
    rig: &Rig,
    app: &App,
    id: &DomainId,
    boundary: &str,
    meanwhile: impl AsyncFnOnce(),
    at_most: Duration,
    then: impl AsyncFnOnce(),
) -> Result<Advanced, nameplate::app::AppError> {
    let (app, id) = (app.clone(), id.clone());
    rig.scissors.set(1);
    let mut step = tokio::spawn(async move { advance(&app, &id).await });
    loop {
        tokio::select! {
            () = rig.scissors.reached() => {}
            ended = &mut step => panic!("the step ended before {boundary}: {ended:?}"),
        }
        if rig.scissors.crossed().last() == Some(&boundary) {
            break;
        }
        rig.scissors.set(1);
        rig.scissors.resume();
    }
    meanwhile().await;
    rig.scissors.resume();
    let until = rig.env.now() + at_most;
    let mut then = Some(then);
    while !step.is_finished() {
        if rig.env.now() >= until
            && let Some(then) = then.take()
        {
            then().await;
        }
        // Whoever waits for the clock is let on; the store takes its own time.
        if rig.hand.next_wake().is_some() {
            rig.hand.advance(Duration::from_millis(250));
        }
        tokio::task::yield_now().await;
    }
    step.await.unwrap()
}

/// B39: a customer's name moves to another host while it waits for its order. Ten times in an hour somebody wants it looked at:
/// the CA hears nothing, no limit is touched, whoever can mend it is told, and once it is back it costs one order.
#[tokio::test]
async fn b39_a_name_that_moved_away_costs_the_ca_nothing() {
    let rig = Rig::new(390).await;
    let id = queued(&rig).await;
    let target = rig.domain_text(&id, "target").await.unwrap();
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME {target}.")).unwrap();
    rig.zones.add(&format!("{NAME}. 60 IN A 203.0.113.99")).unwrap();
    for _ in 0..10 {
        check::check_now(&rig.app, &id, "tenant").await.unwrap();
        rig.pass(HOUR / 10).await;
    }
    let orders = rig.ca.state().counters().orders_created;
    assert_eq!((rig.ca.asked(), orders), (0, 0), "{}", rig.story(&id).await);
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM spends")).await, 0);
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM grants WHERE state <> 'returned'")).await, 0);
    assert_eq!(rig.domain_text(&id, "acts").await.as_deref(), Some("tenant"));
    rig.check_invariants().await;
    rig.zones.remove(&format!("{NAME}. 60 IN A 203.0.113.99")).unwrap();
    rig.zones.add(&format!("{NAME}. 60 IN CNAME {target}.")).unwrap();
    check::check_now(&rig.app, &id, "tenant").await.unwrap();
    rig.until_active(&id, HOUR).await;
    assert_eq!(rig.ca.asked(), 1);
}

/// B41: the certificate is issued and cannot be stored, for two hours. Only the storing is tried again.
#[tokio::test]
async fn b41_a_certificate_that_cannot_be_stored_is_not_ordered_again() {
    let rig = Rig::new(410).await;
    let id = queued(&rig).await;
    dispatch::round(&rig.app).await.unwrap();
    steps_until(&rig, &id, "o.state = 'finalizing' AND d.due_at <= $2").await;
    let app = rig.new_worker();
    let stored =
        step_stopped_at(&rig, &app, &id, "before recording", async || read_only(&rig, true).await, HOUR, async || {});
    assert!(stored.await.is_err(), "it was stored in a database that takes no writes");
    for _ in 0..24 {
        rig.hand.advance(HOUR / 12);
        assert!(advance(&rig.new_worker(), &id).await.is_err(), "a step was taken without its lease");
    }
    assert_eq!(rig.count(sql("SELECT count(*) AS n FROM certificates")).await, 0);
    read_only(&rig, false).await;
    rig.until_active(&id, HOUR).await;
    let made = rig.ca.state().counters().clone();
    assert_eq!((made.orders_by_name[NAME], made.certificates_by_name[NAME]), (1, 1), "{}", rig.story(&id).await);
    rig.check_invariants().await;
}

/// B41 where it is worst: nobody else knows the URL of an order that was just made. The step keeps it until it can be written, as
/// long as its lease lasts, and so a failover of the database costs no order.
#[tokio::test]
async fn b41_an_order_that_was_made_while_the_database_took_no_writes_is_kept() {
    let rig = Rig::new(411).await;
    let id = queued(&rig).await;
    granted(&rig, &id).await;
    let app = rig.new_worker();
    let (away, back) = (async || read_only(&rig, true).await, async || read_only(&rig, false).await);
    let placed = step_stopped_at(&rig, &app, &id, "intent recorded", away, Duration::from_secs(90), back).await;
    assert!(matches!(placed, Ok(Advanced::Done(_))), "{placed:?}");
    assert_eq!(rig.ca.asked(), 1);
    rig.until_active(&id, HOUR).await;
    assert_eq!(rig.ca.asked(), 1, "{}", rig.story(&id).await);
    assert!(!rig.events(&id).await.contains(&"order_lost".to_owned()));
    rig.check_invariants().await;
}

/// A step that failed because the database was away gives its lease back once it is there, instead of sitting on it.
#[tokio::test]
async fn a_step_that_failed_with_its_database_gives_its_lease_back() {
    let rig = Rig::new(412).await;
    let id = queued(&rig).await;
    granted(&rig, &id).await;
    let app = rig.new_worker();
    let (away, back) = (async || read_only(&rig, true).await, async || read_only(&rig, false).await);
    let failed = step_stopped_at(&rig, &app, &id, "before the intent", away, Duration::from_secs(20), back).await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(rig.ca.asked(), 0, "the CA was asked without a durable intent");
    let stmt = sql("SELECT lease_until AS n FROM domains WHERE id = $1").bind(id.as_str());
    assert_eq!(rig.count(stmt).await, 0, "the lease is still taken");
    rig.until_active(&id, HOUR).await;
    assert_eq!(rig.ca.asked(), 1);
}

/// B51: a certificate is of one name, so a sibling that is gone from DNS stops nobody.
#[tokio::test]
async fn b51_one_bad_name_blocks_no_other() {
    let rig = Rig::new(510).await;
    let acme = rig.tenant("acme").await;
    let names = ["a.acme.test", "gone.acme.test", "c.acme.test"];
    let mut ids = Vec::new();
    for name in names {
        let id = rig.claim(&acme, name).await;
        rig.publish(&id, name).await;
        ids.push(id);
    }
    // The second turns NXDOMAIN.
    rig.unpublish_txt(&ids[1], names[1]).await;
    let target = rig.domain_text(&ids[1], "target").await.unwrap();
    rig.zones.remove(&format!("{}. 60 IN CNAME {target}.", names[1])).unwrap();
    for n in [0, 2] {
        rig.until_active(&ids[n], HOUR).await;
    }
    assert_eq!(rig.active_since(&ids[1]).await, None);
    let made = rig.ca.state().counters().clone();
    assert_eq!(made.certificates_by_name.keys().collect::<Vec<_>>(), [names[0], names[2]]);
    let most = sql("SELECT max(n) AS n FROM (SELECT count(*) AS n FROM certificate_names GROUP BY certificate_id) c");
    assert_eq!(rig.count(most).await, 1, "names in one certificate");
}
