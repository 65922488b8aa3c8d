//! Clocks that are wrong (B53): a process that ran far ahead is put right, and what it put off is done; none of it is lost.

use std::time::Duration;

use nameplate::app::advance::advance;
use nameplate::app::{App, clocks, dispatch, reissue, remove, renewal, resting, routine};
use nameplate::env::manual::Hand;
use nameplate::env::{Correction, Env};
use nameplate::model::id::DomainId;
use nameplate::model::ledger::Limit;
use nameplate::model::moment::Moment;
use nameplate::model::order::Lane;
use nameplate::sandbox::ca::Windows;
use nameplate::store::reissues::Selection;
use nameplate::store::{health, sql};

use crate::support::renewals::{DAY, HOUR, certificates, days, down, live_names, renew_at};
use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};

/// A process whose clock is so far ahead.
fn astray(rig: &Rig, by: Duration) -> (App, Hand) {
    let (mut app, hand) = (rig.new_worker(), Hand::new(rig.env.now() + by, 53));
    app.env = hand.env();
    (app, hand)
}

/// It does all there is to do, a few times over.
async fn works(rig: &Rig, (app, hand): &(App, Hand)) {
    for _ in 0..30 {
        // It is this one that edges speak to.
        let heard = sql("UPDATE edges SET heartbeat_at = $1").bind(app.env.now());
        app.store.execute(heard).await.unwrap();
        dispatch::round(app).await.unwrap();
        while renewal::batch(app).await.unwrap().more {}
        routine::batch(app).await.unwrap();
        reissue::round(app).await.unwrap();
        let due = sql("SELECT id FROM domains WHERE due_at <= $1 AND lease_until <= $1 ORDER BY id").bind(app.env.now());
        for row in app.store.query(due).await.unwrap() {
            advance(app, &row.parse("id").unwrap()).await.unwrap();
        }
        rig.edge_follows().await;
        rig.hand.advance(Duration::from_secs(1));
        hand.advance(Duration::from_secs(1));
    }
}

async fn ahead_of(rig: &Rig) -> i64 {
    let stmt = sql("SELECT count(*) AS n FROM domains WHERE looked_at > $1 OR lease_until > $1 OR check_asked_at > $1 \
         OR claim IN ('awaiting_dns', 'queued') AND due_at > $2 AND due_at < 9223372036854775807")
    .bind(rig.env.now() + HOUR)
    .bind(rig.env.now() + 3 * DAY);
    rig.count(stmt).await
}

/// B53: names that wait for their records, for their turn, for their renewal; one process is weeks ahead for a while. Once it is gone all
/// goes on as it was to be, within minutes.
async fn weeks_ahead(rig: Rig) {
    let names = live_names(&rig, 4).await;
    rig.pass_quickly(5 * DAY).await;
    let planned: Vec<Moment> = renewals(&rig, &names).await;
    // One that is about to be proven, one that waits for its turn, and a CA that is away just now.
    let tenant = rig.tenant("beta").await;
    let waits = rig.claim(&tenant, "waits.acme.test").await;
    let proven = rig.claim(&tenant, "proven.acme.test").await;
    rig.publish(&proven, "proven.acme.test").await;
    rig.pass(Duration::from_secs(10)).await;
    rig.ca.refuse(std::iter::repeat_n(down(), 10_000));
    let wrong = astray(&rig, 20 * DAY);
    rig.app.store.execute(sql("UPDATE domains SET due_at = 0")).await.unwrap();
    works(&rig, &wrong).await;
    // It dies with a lease in hand.
    let held = sql("UPDATE domains SET lease_until = $2, lease_owner = 'gone' WHERE id = $1").bind(names[3].0.as_str());
    rig.app.store.execute(held.bind(wrong.0.env.now() + Duration::from_secs(120))).await.unwrap();
    assert!(ahead_of(&rig).await > 0, "it left something behind");
    rig.ca.refuse_nothing();
    assert!(clocks::mend(&rig.app).await.unwrap() > 0);
    assert_eq!((clocks::mend(&rig.app).await.unwrap(), ahead_of(&rig).await), (0, 0), "once is enough");
    rig.until_active(&proven, HOUR).await;
    rig.publish(&waits, "waits.acme.test").await;
    rig.until_active(&waits, 5 * HOUR).await;
    // CAs are asked again, and each certificate is renewed when it was to be.
    let polls = rig.ca.polls().len();
    days(&rig, &names[0].1, 2).await;
    assert!(rig.ca.polls().len() >= polls + 6 * 4, "{} questions in two days", rig.ca.polls().len() - polls);
    for ((id, name), at) in names.iter().zip(planned) {
        assert_eq!(certificates(&rig, id).await, 1, "nothing is renewed for a jump: {}", rig.story(id).await);
        let now = renew_at(&rig, id).await;
        assert!(now <= at + 3 * DAY && now + 3 * DAY >= at, "{name} is to be renewed {now}, as it was {at}");
    }
    days(&rig, &names[0].1, 60).await;
    for (id, _) in &names {
        assert_eq!(certificates(&rig, id).await, 2, "{}", rig.story(id).await);
    }
}

async fn renewals(rig: &Rig, names: &[(DomainId, String)]) -> Vec<Moment> {
    let mut all = Vec::new();
    for (id, _) in names {
        all.push(renew_at(rig, id).await);
    }
    all
}

#[tokio::test]
async fn b53_a_process_weeks_ahead_loses_and_puts_off_nothing() {
    weeks_ahead(Rig::new(360).await).await;
}

#[tokio::test]
async fn b53_a_process_weeks_ahead_loses_and_puts_off_nothing_on_postgres() {
    let store = TestStore::blank(Kind::Postgres).await;
    weeks_ahead(Rig::on(361, &store.url).await).await;
    store.remove().await;
}

/// What it spent of the budget, and the grants it left, are none of the future's.
#[tokio::test]
async fn b53_what_was_spent_in_the_future_holds_nobody_up_for_long() {
    let rig = Rig::with_limit(362, "sqlite::memory:", Limit { burst: 5, per_secs: 18_000 }).await;
    rig.ca.windows(Windows::None);
    let names = live_names(&rig, 4).await;
    rig.pass_quickly(6 * HOUR).await;
    reissue::begin_now(&rig.app.store, &rig.env, &Selection::Issuer("main".to_owned()), Lane::Bulk, "operator")
        .await
        .unwrap();
    let wrong = astray(&rig, 40 * DAY);
    works(&rig, &wrong).await;
    let far = sql("SELECT count(*) AS n FROM ledger WHERE tat > $1").bind(rig.env.now() + DAY);
    assert!(rig.count(far).await > 0, "it spent something");
    clocks::mend(&rig.app).await.unwrap();
    rig.pass_quickly(10 * HOUR).await;
    for (id, _) in &names {
        assert!(certificates(&rig, id).await >= 2, "{}", rig.story(id).await);
    }
    rig.check_invariants().await;
}

/// Looks of every day go on, whatever day the other took it for.
#[tokio::test]
async fn b53_routine_looks_begin_their_day_anew() {
    let rig = Rig::new(363).await;
    let names = live_names(&rig, 3).await;
    routine::batch(&rig.app).await.unwrap();
    works(&rig, &astray(&rig, 40 * DAY)).await;
    clocks::mend(&rig.app).await.unwrap();
    let hostile = "acme.test. 60 IN CAA 0 issue \"other.example\"";
    rig.zones.add(hostile).unwrap();
    for _ in 0..50 {
        while routine::batch(&rig.app).await.unwrap().more {}
        rig.pass_quickly(HOUR / 2).await;
    }
    for (id, name) in &names {
        let evidence = rig.domain_text(id, "evidence").await.unwrap();
        assert!(evidence.contains("caa_excludes_ca"), "{name} was looked at within the day: {evidence}");
    }
}

/// Where the database has a clock, it is everybody's.
#[tokio::test]
async fn b53_the_databases_clock_is_everybodys() {
    let test = TestStore::blank(Kind::Postgres).await;
    let real = Env::real();
    let says = health::of(&test.store).await.unwrap().now.unwrap();
    assert!(says.since(real.now()).max(real.now().since(says)) < Duration::from_secs(30), "{says}");
    clocks::agree(&test.store, &real).await.unwrap();
    // A host whose clock was wrong when the process began.
    let host = Env::real();
    assert!(matches!(host.correct(says + 40 * DAY), Correction::Made(_)));
    assert!(host.now() >= says + 40 * DAY, "whatever it takes for the time, it takes it from there");
    assert!(matches!(host.correct(says), Correction::Refused(_)), "in the middle of work no jump is followed");
    test.remove().await;
}

/// Time passes, and names at rest are looked at.
async fn rested(rig: &Rig, time: Duration) {
    rig.stride(2 * HOUR);
    let end = rig.env.now() + time;
    while rig.env.now() < end {
        rig.turn().await;
        resting::round(&rig.app).await.unwrap();
    }
}

/// Names at rest are looked at, reminded of and freed in their time, and certificates are revoked, whatever a wrong clock took it for.
async fn names_at_rest(rig: Rig) {
    const NAME: &str = "shop.acme.test";
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, NAME).await;
    rig.publish(&id, NAME).await;
    rig.until_active(&id, HOUR).await;
    remove::remove(&rig.app, &id, "tenant").await.unwrap();
    rested(&rig, 10 * DAY).await;
    let reminded = async || rig.events(&id).await.iter().filter(|kind| *kind == "name_dangles").count();
    assert_eq!(reminded().await, 2, "when it was let go and a week later: {}", rig.story(&id).await);
    let far = async || {
        let stmt =
            sql("SELECT count(*) AS n FROM holdings WHERE state = 'quarantined' AND (watch_at > $1 OR reminded_at > $1 \
             OR first_off_at > $1)");
        rig.count(stmt.bind(rig.env.now() + 2 * DAY)).await
    };
    resting::round(&astray(&rig, 40 * DAY).0).await.unwrap();
    assert_eq!((far().await, reminded().await), (1, 3), "it reminds by a clock that is wrong");
    let revoke = sql("INSERT INTO revocations (certificate_id, issuer_id, domain_id, asked_at, due_at, attempts) \
         SELECT c.id, c.issuer_id, c.domain_id, $1, $2, 1 FROM certificates c WHERE c.domain_id = $3");
    let revoke = revoke.bind(rig.env.now()).bind(rig.env.now() + 40 * DAY).bind(id.as_str());
    assert_eq!(rig.app.store.execute(revoke).await.unwrap(), 1);
    assert!(clocks::mend(&rig.app).await.unwrap() >= 2);
    assert_eq!((clocks::mend(&rig.app).await.unwrap(), far().await), (0, 0), "once is enough");
    let due = sql("SELECT count(*) AS n FROM revocations WHERE due_at <= $1").bind(rig.env.now());
    assert_eq!(rig.count(due).await, 1);
    rested(&rig, 8 * DAY).await;
    assert_eq!(reminded().await, 4, "a week later, not after forty days");

    // Its record is deleted. One look of the wrong clock counts for none.
    rig.zones.remove(&format!("{NAME}. 60 IN CNAME acme.app.example.")).unwrap();
    resting::round(&astray(&rig, 40 * DAY).0).await.unwrap();
    assert_eq!(far().await, 1);
    clocks::mend(&rig.app).await.unwrap();
    let off = "SELECT CAST(COALESCE(SUM(looks_off), 0) AS BIGINT) AS n FROM holdings WHERE state = 'quarantined'";
    assert_eq!((far().await, rig.count(sql(off)).await), (0, 0));
    let free = "SELECT count(*) AS n FROM holdings WHERE state = 'free'";
    rested(&rig, 20 * HOUR).await;
    assert_eq!(rig.count(sql(free)).await, 0, "it has not led elsewhere for a day");
    rested(&rig, 2 * DAY).await;
    assert_eq!(rig.count(sql(free)).await, 1);
}

#[tokio::test]
async fn b53_names_at_rest_have_their_time() {
    names_at_rest(Rig::new(364).await).await;
}

#[tokio::test]
async fn b53_names_at_rest_have_their_time_on_postgres() {
    let store = TestStore::blank(Kind::Postgres).await;
    names_at_rest(Rig::on(365, &store.url).await).await;
    store.remove().await;
}
