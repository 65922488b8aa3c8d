//! Every limit of a CA at once: what is spent at the CA never passes one of them, whoever crashes where; what has no room of its
//! own keeps nobody else waiting; and what was foretold happens.

use std::collections::HashMap;
use std::time::Duration;

use nameplate::app;
use nameplate::model::hostname::Hostname;
use nameplate::model::id::DomainId;
use nameplate::model::ledger::{Bucket, Limit, settle};
use nameplate::model::limits::{Counted, LimitName, Limits, spends};
use nameplate::model::moment::Moment;
use nameplate::store::sql;

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};

const HOUR: Duration = Duration::from_secs(3600);

/// Limits small enough to be met by a handful of names.
fn small() -> Limits {
    [
        (LimitName::OrdersPerAccount, Limit { burst: 6, per_secs: 240 }),
        (LimitName::CertificatesPerDomain, Limit { burst: 3, per_secs: 1_800 }),
        (LimitName::CertificatesPerName, Limit { burst: 2, per_secs: 4_000 }),
        (LimitName::FailuresPerName, Limit { burst: 2, per_secs: 1_200 }),
        (LimitName::FailuresInARow, Limit { burst: 20, per_secs: 200_000 }),
    ]
    .into()
}

/// The CA's own counting: of all that it counted, the first that was one too many.
fn too_many(limits: &Limits, counted: &[(Counted, Hostname, Moment)]) -> Option<String> {
    let mut rows: HashMap<(LimitName, String), Moment> = HashMap::new();
    for (what, name, at) in counted {
        for (limit, numbers, key) in spends(limits, name).filter(|(limit, ..)| limit.counts() == *what) {
            // A success ends a row of failures; that is the CA's own rule and no limit of its own here.
            if limit == LimitName::FailuresInARow {
                continue;
            }
            let tat = rows.entry((limit, key.to_owned())).or_insert(Moment::from_micros(i64::MIN));
            if (Bucket { tat: *tat, ..Bucket::default() }).earliest(numbers, *at) > *at {
                return Some(format!("{limit} for {key} at {at}"));
            }
            *tat = settle(*tat, *at, numbers);
        }
    }
    None
}

#[test]
fn the_counting_ca_refuses_what_is_too_much() {
    let (at, name) = (Moment::from_secs(1_000), Hostname::trusted("a.acme.test"));
    let certificates = |n: usize| vec![(Counted::Certificate, name.clone(), at); n];
    assert_eq!(too_many(&small(), &certificates(2)), None);
    assert!(too_many(&small(), &certificates(3)).unwrap().starts_with("certificates_per_name"));
    assert!(too_many(&small(), &vec![(Counted::Failure, name, at); 3]).unwrap().starts_with("failures_per_name"));
}

async fn claimed(rig: &Rig, tenant: &nameplate::model::id::TenantId, name: &str) -> DomainId {
    let id = rig.claim(tenant, name).await;
    rig.publish(&id, name).await;
    id
}

/// Two tenants, two crowded registered domains, workers and dispatchers cut everywhere, validations that fail now and then.
async fn crashing_on(rig: Rig) {
    rig.also_zone("beta.test");
    let tenants = [rig.tenant("acme").await, rig.tenant("beta").await];
    let mut ids = Vec::new();
    for n in 0..12 {
        let name = format!("n{n}.{}.test", ["acme", "beta"][n % 2]);
        ids.push(claimed(&rig, &tenants[n % 2], &name).await);
    }
    rig.ca.fail_validations(5);
    for _ in 0..30 {
        rig.scissors.set(usize::try_from(rig.hand.below(25)).unwrap() + 1);
        for _ in 0..8 {
            if rig.turn().await {
                break;
            }
        }
        rig.check_invariants().await;
    }
    rig.scissors.set(0);
    for id in &ids {
        rig.until_active(id, 80 * HOUR).await;
    }
    rig.check_invariants().await;
    assert_eq!(too_many(&small(), &rig.ca.counted()), None);
    let counters = rig.ca.state().counters().clone();
    assert!(counters.certificates_by_name.values().all(|n| *n == 1), "{:?}", counters.certificates_by_name);
    let open = rig.count(sql("SELECT count(*) AS n FROM spends")).await;
    let lost = rig.count(sql("SELECT count(*) AS n FROM orders WHERE state = 'lost'")).await;
    assert!(open <= lost, "{open} spends are open when all is done, {lost} orders were lost");
}

#[tokio::test]
async fn no_limit_is_passed_at_any_crash() {
    for seed in 60..63 {
        crashing_on(Rig::with_limits(seed, "sqlite::memory:", small()).await).await;
    }
}

#[tokio::test]
async fn no_limit_is_passed_at_any_crash_on_postgres() {
    let store = TestStore::blank(Kind::Postgres).await;
    crashing_on(Rig::with_limits(64, &store.url, small()).await).await;
    store.remove().await;
}

/// Two dispatchers at once, on both databases: no more grants than one would have given, and each order one.
#[tokio::test]
async fn two_dispatchers_give_what_one_would() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let store = TestStore::blank(kind).await;
        let rig = Rig::with_limits(65, &store.url, small()).await;
        let acme = rig.tenant("acme").await;
        let mut ids = Vec::new();
        for n in 0..10 {
            let id = claimed(&rig, &acme, &format!("www.n{n}.test")).await;
            ids.push(id);
        }
        let app = rig.new_worker();
        app::account::ensure_all(&app).await.unwrap();
        // The look that proves it, and the preflight.
        for id in ids.iter().chain(&ids).chain(&ids) {
            app::advance::advance(&app, id).await.unwrap();
        }
        let rounds = (0..6).map(|_| {
            let app = rig.new_worker();
            async move { app::dispatch::round(&app).await }
        });
        for round in futures::future::join_all(rounds).await {
            round.unwrap();
        }
        let grants = rig.count(sql("SELECT count(*) AS n FROM grants WHERE state = 'open'")).await;
        assert_eq!(grants, 6, "{kind:?}: the account's burst");
        assert_eq!(rig.count(sql("SELECT count(*) AS n FROM spends")).await, 30, "{kind:?}: one of each limit");
        rig.check_invariants().await;
        drop(rig);
        store.remove().await;
    }
}

/// B34 before any refusal: a registered domain without room is set aside, and its names are told when it has room.
#[tokio::test]
async fn b34_a_crowded_domain_keeps_nobody_else_waiting() {
    let rig = Rig::with_limits(66, "sqlite::memory:", small()).await;
    rig.also_zone("beta.test");
    let (acme, beta) = (rig.tenant("acme").await, rig.tenant("beta").await);
    let mut crowded = Vec::new();
    for n in 0..5 {
        crowded.push(claimed(&rig, &acme, &format!("n{n}.acme.test")).await);
    }
    rig.pass(Duration::from_secs(60)).await;
    let late = claimed(&rig, &beta, "www.beta.test").await;
    let began = rig.env.now();
    rig.until_active(&late, HOUR).await;
    assert!(rig.env.now().since(began) < Duration::from_secs(240), "it took {:?}", rig.env.now().since(began));
    let taken = app::fleet::played(&rig.app).await.unwrap();
    let waiting = &taken.queues[0].orders;
    assert_eq!(waiting.len(), 2);
    for order in waiting {
        assert!(crowded.contains(&order.domain_id));
        assert_eq!(order.held.map(|(limit, _)| limit), Some(LimitName::CertificatesPerDomain));
    }
    for order in waiting {
        let (id, eta) = (&order.domain_id, order.eta.unwrap());
        rig.until_active(id, 3 * HOUR).await;
        let stmt =
            sql("SELECT min(g.granted_at) AS n FROM grants g JOIN orders o ON o.id = g.order_id WHERE o.domain_id = $1");
        let granted = Moment::from_micros(rig.count(stmt.bind(id.as_str())).await);
        // The rig looks at most every ten minutes; before the told time nobody is granted.
        assert!(granted >= eta && granted.since(eta) <= Duration::from_secs(600), "told {eta}, granted {granted}");
    }
}

/// B39: a name whose validation fails is tried no more often than the CA allows failures, far less than what pauses it, and the
/// preflight costs nothing.
#[tokio::test]
async fn b39_a_failing_name_stays_below_the_failure_limit() {
    let rig = Rig::with_limits(67, "sqlite::memory:", small()).await;
    let acme = rig.tenant("acme").await;
    rig.ca.fail_validations(usize::MAX);
    let id = claimed(&rig, &acme, "n.acme.test").await;
    rig.pass(8 * 24 * HOUR).await;
    let counted = rig.ca.counted();
    let failures = counted.iter().filter(|(what, ..)| *what == Counted::Failure).count();
    assert!((4..30).contains(&failures), "{failures} failures in 8 days");
    assert_eq!(too_many(&small(), &counted), None);
    rig.check_invariants().await;
    // A success ends the row of failures.
    rig.ca.fail_validations(0);
    rig.until_active(&id, 48 * HOUR).await;
    let in_a_row = sql("SELECT count(*) AS n FROM ledger WHERE limit_name = 'failures_in_a_row'");
    assert_eq!(rig.count(in_a_row).await, 0);
}

/// The stop long before the CA's pause: a name that used up its failures in a row is tried at the pace at which they are forgiven.
#[tokio::test]
async fn a_name_near_the_pause_is_tried_at_the_pace_of_forgiving() {
    let mut limits = small();
    limits.insert(LimitName::FailuresInARow, Limit { burst: 2, per_secs: 4 * 86_400 });
    let rig = Rig::with_limits(68, "sqlite::memory:", limits).await;
    let acme = rig.tenant("acme").await;
    rig.ca.fail_validations(usize::MAX);
    claimed(&rig, &acme, "n.acme.test").await;
    rig.pass(9 * 24 * HOUR).await;
    let failures = rig.ca.counted().iter().filter(|(what, ..)| *what == Counted::Failure).count();
    assert!((4..=2 + 5).contains(&failures), "{failures} failures in 9 days: two at once, and one in two days");
}
