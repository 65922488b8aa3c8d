//! Renewals under crashes: the worker is dropped at every boundary of a renewal, two workers meet, and one renewal is still one
//! certificate, while the one in use is served.

use std::time::Duration;

use nameplate::model::id::DomainId;
use nameplate::model::moment::Moment;
use nameplate::sandbox::ca::Windows;
use nameplate::store::sql;

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};

const NAME: &str = "support.acme.test";
const HOUR: Duration = Duration::from_secs(3600);

/// A live name whose renewal is due now, with windows or without.
async fn due(rig: &Rig, windows: bool) -> DomainId {
    if !windows {
        rig.ca.windows(Windows::None);
    }
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, NAME).await;
    rig.publish(&id, NAME).await;
    rig.until_active(&id, HOUR).await;
    rig.pass_quickly(2 * HOUR).await;
    let at = sql("SELECT renew_at AS n FROM renewals WHERE domain_id = $1").bind(id.as_str());
    let at = Moment::from_micros(rig.count(at).await);
    rig.pass_quickly(at.since(rig.env.now() + Duration::from_secs(1))).await;
    if windows {
        // The CA is known to keep to it, so that nobody has to grant anything.
        rig.app.store.execute(sql("UPDATE issuers SET honours_replaces = 1")).await.unwrap();
    }
    id
}

async fn renewed(rig: &Rig, id: &DomainId) -> bool {
    rig.events(id).await.contains(&"renewed".to_owned())
}

/// Turns until the renewal is over; how often a worker was cut.
async fn until_renewed(rig: &Rig, id: &DomainId) -> usize {
    let end = rig.env.now() + 48 * HOUR;
    let mut cuts = 0;
    while !renewed(rig, id).await {
        assert!(rig.env.now() < end, "not renewed: {}", rig.story(id).await);
        cuts += usize::from(rig.turn().await);
        assert!(rig.serial_at_edge(NAME).is_some(), "the name is not served: {}", rig.story(id).await);
    }
    cuts
}

async fn converged(rig: &Rig, id: &DomainId, cuts: usize) {
    rig.check_invariants().await;
    let story = rig.story(id).await;
    let of = |text: &'static str| sql(text).bind(id.as_str());
    let lost = rig.count(of("SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND state = 'lost'")).await;
    let lost = usize::try_from(lost).unwrap();
    assert!(lost <= cuts, "{lost} orders lost by {cuts} cuts: {story}");
    let stored = rig.count(of("SELECT count(*) AS n FROM certificates WHERE domain_id = $1")).await;
    assert_eq!(stored, 2, "one renewal is one certificate: {story}");
    let issued = rig.ca.state().counters().certificates_by_name.get(NAME).copied();
    assert_eq!(issued, Some(2), "one renewal is one certificate at the CA: {story}");
    let keys = "SELECT count(*) AS n FROM certificates WHERE domain_id = $1 AND sealed_key IS NOT NULL";
    assert_eq!(rig.count(of(keys)).await, 1, "the one before is retired: {story}");
    let open = "SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND state NOT IN ('issued', 'failed', 'lost')";
    assert_eq!(rig.count(of(open)).await, 0, "no order is left open: {story}");
}

async fn walk(rig: Rig, cut: usize, windows: bool) -> Vec<&'static str> {
    let id = due(&rig, windows).await;
    let before = rig.scissors.crossed().len();
    rig.scissors.set(cut);
    let cuts = until_renewed(&rig, &id).await;
    rig.scissors.set(0);
    converged(&rig, &id, cuts).await;
    rig.scissors.crossed()[before..].to_vec()
}

#[tokio::test]
async fn a_worker_dropped_at_any_boundary_of_a_renewal_leaves_one_certificate() {
    for windows in [true, false] {
        let boundaries = walk(Rig::new(320).await, 0, windows).await;
        assert!(boundaries.len() > 30, "a renewal crosses {} boundaries", boundaries.len());
        for cut in 1..=boundaries.len() {
            walk(Rig::new(320).await, cut, windows).await;
        }
    }
}

#[tokio::test]
async fn a_worker_dropped_at_boundaries_of_a_renewal_on_postgres() {
    for cut in [3, 14, 24, 33] {
        let store = TestStore::blank(Kind::Postgres).await;
        walk(Rig::on(321, &store.url).await, cut, cut % 2 == 0).await;
        store.remove().await;
    }
}

#[tokio::test]
async fn workers_dropped_again_and_again_renew_once() {
    for seed in 330..345 {
        let rig = Rig::new(seed).await;
        let id = due(&rig, seed % 2 == 0).await;
        let mut cuts = 0;
        for _ in 0..6 {
            rig.scissors.set(usize::try_from(rig.hand.below(12)).unwrap() + 1);
            for _ in 0..30 {
                if renewed(&rig, &id).await {
                    break;
                }
                if rig.turn().await {
                    cuts += 1;
                    break;
                }
                rig.check_invariants().await;
            }
        }
        rig.scissors.set(0);
        cuts += until_renewed(&rig, &id).await;
        converged(&rig, &id, cuts).await;
    }
}

/// Two workers find the same renewal due at the same moment, at each of its steps.
#[tokio::test]
async fn two_workers_make_one_renewal() {
    let store = TestStore::blank(Kind::SqliteFile).await;
    let rig = Rig::on(350, &store.url).await;
    let id = due(&rig, true).await;
    let end = rig.env.now() + 2 * HOUR;
    while !renewed(&rig, &id).await {
        assert!(rig.env.now() < end, "{}", rig.story(&id).await);
        let (a, b) = (rig.new_worker(), rig.new_worker());
        let step = |app: nameplate::app::App| {
            let id = id.clone();
            async move { nameplate::app::advance::advance(&app, &id).await.unwrap() }
        };
        tokio::join!(step(a), step(b));
        nameplate::app::dispatch::round(&rig.app).await.unwrap();
        rig.edge_follows().await;
        rig.hand.advance(Duration::from_secs(1));
    }
    converged(&rig, &id, 0).await;
    store.remove().await;
}

/// An order that costs nothing is asked for, and the worker dies before it hears the answer: the CA may have counted it as any other, so
/// it counts; and so it does whatever becomes of the name in between.
#[tokio::test]
async fn an_order_without_a_grant_whose_answer_is_lost_is_counted() {
    let tat = "SELECT COALESCE(max(tat), 0) AS n FROM ledger WHERE key = 'account'";
    let boundaries = walk(Rig::new(346).await, 0, true).await;
    let called = boundaries.iter().position(|boundary| *boundary == "effect done").unwrap() + 1;
    for removed in [false, true] {
        let rig = Rig::new(346).await;
        let id = due(&rig, true).await;
        let before = rig.count(sql(tat)).await;
        rig.scissors.set(called);
        while !rig.turn().await {}
        rig.scissors.set(0);
        let free = sql("SELECT count(*) AS n FROM grants WHERE free = 1 AND state = 'used'");
        assert_eq!(rig.count(free).await, 1, "{}", rig.story(&id).await);
        let open = sql("SELECT count(*) AS n FROM spends WHERE counts = 'order'");
        assert_eq!(rig.count(open).await, 1, "it counts while nobody knows");
        if removed {
            nameplate::app::remove::remove(&rig.app, &id, "tenant").await.unwrap();
        }
        rig.pass_quickly(HOUR).await;
        // Nothing of a name that was removed is due: it is the dispatcher's next round that finds the deadline over.
        rig.turn().await;
        let spent = rig.count(sql(tat)).await - before;
        assert!(spent > 0, "it is counted where the name was removed ({removed}): {}", rig.story(&id).await);
        assert_eq!(rig.count(sql("SELECT count(*) AS n FROM spends")).await, 0);
    }
}
