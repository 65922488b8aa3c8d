//! Crash-proof, deterministically: the worker is dropped at every boundary of every step, and the world always converges to
//! one holder, one certificate, no lost domain, and at most the one documented lost grant.

use std::time::Duration;

use nameplate::app::advance::LEASE;
use nameplate::model::moment::Moment;
use nameplate::store::sql;

use nameplate::jobs::hand::Fate;

use crate::support::rig::{Rig, START};
use crate::support::stores::{Kind, TestStore};

const NAME: &str = "support.acme.test";
const HOUR: Duration = Duration::from_secs(3600);

/// The whole walk with the worker cut at the `cut`-th boundary (0: never); how many boundaries were crossed.
async fn walk(seed: u64, cut: usize) -> Vec<&'static str> {
    walk_on(Rig::new(seed).await, cut).await
}

async fn walk_on(rig: Rig, cut: usize) -> Vec<&'static str> {
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, NAME).await;
    rig.publish(&id, NAME).await;
    rig.scissors.set(cut);
    let cuts = rig.until_active(&id, HOUR).await;
    assert_eq!(cuts, usize::from(cut > 0), "the worker was to be cut {cut}");
    converged(&rig, &id, cuts).await;
    rig.scissors.crossed()
}

/// What must be true once the domain is active, whatever happened on the way.
async fn converged(rig: &Rig, id: &nameplate::model::id::DomainId, cuts: usize) {
    rig.check_invariants().await;
    let story = rig.story(id).await;
    let held = sql("SELECT count(*) AS n FROM holdings WHERE state = 'held' AND domain_id = $1").bind(id.as_str());
    assert_eq!(rig.count(held).await, 1, "one holder: {story}");
    let stored = sql("SELECT count(*) AS n FROM certificates WHERE domain_id = $1").bind(id.as_str());
    assert_eq!(rig.count(stored).await, 1, "one certificate stored: {story}");
    let lost = sql("SELECT count(*) AS n FROM orders WHERE domain_id = $1 AND state = 'lost'").bind(id.as_str());
    let lost = usize::try_from(rig.count(lost).await).unwrap();
    assert!(lost <= cuts, "{lost} grants were lost by {cuts} cuts: {story}");
    {
        let ca = rig.ca.state();
        let counters = ca.counters();
        assert_eq!(counters.certificates_by_name.get(NAME).copied(), Some(1), "one certificate issued: {story}");
        let placed = counters.orders_by_name.get(NAME).copied().unwrap_or(0);
        assert!(placed <= 1 + u64::try_from(lost).unwrap(), "{placed} orders placed, {lost} lost: {story}");
        assert_eq!(counters.accounts_created, 1, "one account");
    }
    let open = sql("SELECT count(*) AS n FROM orders WHERE state NOT IN ('issued', 'failed', 'lost')");
    assert_eq!(rig.count(open).await, 0, "no open order is left: {story}");
    assert!(rig.serial_at_edge(NAME).is_some(), "the edge serves the name: {story}");
}

#[tokio::test]
async fn the_walk_is_told_step_by_step() {
    let rig = Rig::new(1).await;
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, NAME).await;
    rig.publish(&id, NAME).await;
    rig.until_active(&id, HOUR).await;
    assert_eq!(
        rig.events(&id).await,
        [
            "claimed",
            "evidence_changed",
            "proven",
            "key_ready",
            "order_placed",
            "challenge_published",
            "challenge_announced",
            "order_ready",
            "finalized",
            "certificate_stored",
            "active",
            "public_name_ok",
        ]
    );
    converged(&rig, &id, 0).await;
}

#[tokio::test]
async fn b40_b59_a_worker_dropped_at_any_boundary_leaves_nothing_behind() {
    let boundaries = walk(7, 0).await;
    assert!(boundaries.len() > 30, "the walk crosses {} boundaries", boundaries.len());
    for cut in 1..=boundaries.len() {
        walk(7, cut).await;
    }
}

/// Nobody comes for hours after the worker died: whatever the CA made meanwhile is found, and not made a second time.
#[tokio::test]
async fn b40_a_worker_that_dies_anywhere_and_is_missed_for_hours_costs_no_second_certificate() {
    let boundaries = walk(8, 0).await;
    for cut in 1..=boundaries.len() {
        let rig = Rig::new(8).await;
        let tenant = rig.tenant("acme").await;
        let id = rig.claim(&tenant, NAME).await;
        rig.publish(&id, NAME).await;
        rig.scissors.set(cut);
        while !rig.turn().await {
            assert!(rig.env.now() < START + HOUR, "nobody died at boundary {cut}");
        }
        rig.scissors.set(0);
        rig.hand.advance(3 * HOUR);
        rig.until_active(&id, 4 * HOUR).await;
        rig.check_invariants().await;
        let story = rig.story(&id).await;
        let made = rig.ca.state().counters().certificates_by_name.get(NAME).copied();
        assert_eq!(made, Some(1), "cut {cut} at {}: {story}", boundaries[cut - 1]);
    }
}

/// What looks at DNS alone is over sooner than what speaks to a CA, and is taken up sooner by another worker.
#[tokio::test]
async fn a_worker_that_dies_keeps_a_name_as_long_as_its_step_could_have_lasted() {
    let boundaries = walk(9, 0).await;
    let (mut looking, mut asking) = (0, 0);
    for cut in 1..=boundaries.len() {
        let rig = Rig::new(9).await;
        let tenant = rig.tenant("acme").await;
        let id = rig.claim(&tenant, NAME).await;
        rig.publish(&id, NAME).await;
        rig.scissors.set(cut);
        while !rig.turn().await {
            assert!(rig.env.now() < START + HOUR, "nobody died at boundary {cut}");
        }
        let lease = sql("SELECT lease_until AS n FROM domains WHERE id = $1").bind(id.as_str());
        let left = Moment::from_micros(rig.count(lease).await).since(rig.env.now());
        if left.is_zero() {
            continue;
        }
        let at_ca = sql("SELECT count(*) AS n FROM orders WHERE domain_id = $1 \
             AND state IN ('granted', 'placed', 'authorizing', 'ready', 'finalizing')")
        .bind(id.as_str());
        if rig.count(at_ca).await == 0 {
            looking += 1;
            assert!(left <= Duration::from_secs(90), "{left:?} at {}", boundaries[cut - 1]);
        } else {
            asking += 1;
            assert!(left > Duration::from_secs(90) && left <= LEASE, "{left:?} at {}", boundaries[cut - 1]);
        }
    }
    assert!(looking > 3 && asking > 3, "{looking} died looking, {asking} asking");
}

/// The walk with its cuts on PostgreSQL, where an outcome is one statement and others write at the same time.
#[tokio::test]
async fn a_worker_dropped_at_any_boundary_on_postgres_leaves_nothing_behind() {
    let mut last = 0;
    let mut cut = 0;
    while cut <= last {
        let test = TestStore::blank(Kind::Postgres).await;
        let boundaries = walk_on(Rig::on(7, &test.url).await, cut).await;
        if cut == 0 {
            last = boundaries.len();
            assert!(last > 30, "the walk crosses {last} boundaries");
        }
        test.remove().await;
        cut += 1;
    }
}

#[tokio::test]
async fn workers_dropped_again_and_again_still_converge() {
    for seed in 0..40 {
        let rig = Rig::new(seed).await;
        let tenant = rig.tenant("acme").await;
        let id = rig.claim(&tenant, NAME).await;
        rig.publish(&id, NAME).await;
        let mut cuts = 0;
        for _ in 0..6 {
            let next = usize::try_from(rig.hand.below(12)).unwrap() + 1;
            rig.scissors.set(next);
            for _ in 0..30 {
                if rig.active_since(&id).await.is_some() {
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
        cuts += rig.until_active(&id, 24 * HOUR).await;
        converged(&rig, &id, cuts).await;
    }
}

/// The third crash test: every row of the queue is lost, again and again; the sweep finds what is due.
#[tokio::test]
async fn losing_every_alarm_costs_time_and_nothing_else() {
    let rig = Rig::new(3).await;
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, NAME).await;
    rig.publish(&id, NAME).await;
    let mut lost = 0;
    while rig.active_since(&id).await.is_none() {
        lost += rig.queue.clear();
        rig.turn().await;
        assert!(rig.env.now() < START + HOUR, "{}", rig.story(&id).await);
    }
    assert!(lost >= 1, "alarms were set and lost: {lost}");
    converged(&rig, &id, 0).await;
}

/// Doubled alarms are harmless: the lease is the filter.
#[tokio::test]
async fn doubled_alarms_make_no_second_order() {
    let rig = Rig::new(4).await;
    rig.queue.decide(std::iter::repeat_n(Fate::Doubled, 50));
    let tenant = rig.tenant("acme").await;
    let id = rig.claim(&tenant, NAME).await;
    rig.publish(&id, NAME).await;
    rig.until_active(&id, HOUR).await;
    converged(&rig, &id, 0).await;
}

/// The fourth crash test: a worker stops at a boundary, its lease runs out, others finish the work; then it comes back.
#[tokio::test]
async fn a_worker_that_comes_back_after_its_lease_writes_nothing() {
    let boundaries = walk(7, 0).await;
    let mut refused = 0;
    for cut in 1..=boundaries.len() {
        let rig = Rig::new(7).await;
        let tenant = rig.tenant("acme").await;
        let id = rig.claim(&tenant, NAME).await;
        rig.publish(&id, NAME).await;
        // Turn until the domain is one boundary before the place, then let one worker stop there with its step kept alive.
        rig.scissors.set(cut);
        let app = rig.new_worker();
        let mut sleeper = None;
        for _ in 0..200 {
            let stopped = {
                let mut step = Box::pin(rig.everything_once(&app));
                tokio::select! {
                    biased;
                    () = &mut step => None,
                    () = rig.scissors.reached() => Some(step),
                }
            };
            if let Some(step) = stopped {
                sleeper = Some(step);
                break;
            }
            rig.edge_follows().await;
            rig.hand.advance(Duration::from_secs(1));
        }
        let sleeper = sleeper.expect("some worker stops at the boundary");
        let cut_name = rig.scissors.crossed().last().copied().unwrap_or_default();
        if cut_name.starts_with("before") {
            // It holds the transaction itself: with one connection nobody can pass it, so it is only dropped above.
            continue;
        }
        rig.until_active(&id, 24 * HOUR).await;
        let before = rig.row(&id).await;
        let events = rig.events(&id).await;
        rig.scissors.resume();
        sleeper.await;
        assert_eq!(rig.row(&id).await, before, "after {cut_name}");
        assert_eq!(rig.events(&id).await, events, "after {cut_name}");
        converged(&rig, &id, 1).await;
        refused += 1;
    }
    assert!(refused > 10, "{refused} workers came back");
}
