//! Invariant 3: what we spend at a CA never exceeds its limit in any window, at any crash point, with any number of workers.

use std::time::Duration;

use nameplate::model::ledger::{Bucket, Limit, settle};
use nameplate::model::moment::Moment;
use nameplate::store::sql;

use crate::support::rig::Rig;

const LIMIT: Limit = Limit { burst: 5, per_secs: 100 };

/// The CA's own counting: whether it would have taken every order at its moment.
fn ca_takes_all(ordered_at: &[Moment]) -> bool {
    let mut tat = Moment::from_micros(i64::MIN);
    ordered_at.iter().all(|at| {
        let taken = Bucket { tat, ..Bucket::default() }.earliest(LIMIT, *at) <= *at;
        tat = settle(tat, *at, LIMIT);
        taken
    })
}

#[test]
fn the_counting_ca_refuses_what_is_too_much() {
    let at = Moment::from_secs(1_000);
    assert!(ca_takes_all(&[at; 5]));
    assert!(!ca_takes_all(&[at; 6]));
}

#[tokio::test]
async fn crashing_workers_never_spend_more_than_the_limit() {
    for seed in 0..6 {
        let rig = Rig::with_limit(seed, "sqlite::memory:", LIMIT).await;
        let tenants = [rig.tenant("acme").await, rig.tenant("beta").await];
        let mut ids = Vec::new();
        for n in 0..24 {
            let name = format!("n{n}.acme.test");
            let id = rig.claim(&tenants[n % 2], &name).await;
            rig.publish(&id, &name).await;
            ids.push(id);
        }
        let mut cuts = 0;
        while cuts < 40 {
            rig.scissors.set(usize::try_from(rig.hand.below(25)).unwrap() + 1);
            cuts += 1;
            for _ in 0..10 {
                if rig.turn().await {
                    break;
                }
            }
        }
        rig.scissors.set(0);
        for id in &ids {
            rig.until_active(id, Duration::from_secs(48 * 3600)).await;
        }
        rig.check_invariants().await;
        let ordered_at = rig.ca.ordered_at();
        assert!(ordered_at.len() >= ids.len());
        assert!(ca_takes_all(&ordered_at), "seed {seed}: {ordered_at:?}");
        let lost = rig.count(sql("SELECT count(*) AS n FROM orders WHERE state = 'lost'")).await;
        assert!(ordered_at.len() <= ids.len() + usize::try_from(lost).unwrap(), "{} orders, {lost} lost", ordered_at.len());
        assert!(rig.ca.state().counters().certificates_by_name.values().all(|n| *n == 1));
    }
}

/// An import does not keep a single claim of another tenant waiting, and everybody learns a position that comes true.
#[tokio::test]
async fn grants_go_round_between_tenants() {
    let rig = Rig::with_limit(3, "sqlite::memory:", LIMIT).await;
    let many = rig.tenant("acme").await;
    for n in 0..12 {
        let name = format!("n{n}.acme.test");
        let id = rig.claim(&many, &name).await;
        rig.publish(&id, &name).await;
    }
    let one = rig.tenant("beta").await;
    let late = rig.claim(&one, "late.acme.test").await;
    rig.publish(&late, "late.acme.test").await;
    rig.until_active(&late, Duration::from_secs(3600)).await;
    let before = rig.ca.ordered_at().len();
    assert!(before <= LIMIT.burst as usize + 1, "{before} orders went before the other tenant's one");
}
