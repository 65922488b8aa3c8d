//! Every fault of the CA, one after the other: each drives a name from its claim through the fault to being served, over a real
//! socket and in virtual time. What is asserted of all: the CA counted no order and no certificate too many, the wait is in the
//! row and survives a kill, the CA's own words are shown and nobody's markup is, and nothing is left open.

mod cases;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use nameplate::sandbox::ca::{Fault, Settings};

use crate::support::rig::START;
use crate::support::wire_ca::WireCa;

const NAME: &str = "support.acme.test";
const HOUR: Duration = Duration::from_secs(3600);

/// A fault, and what has to come of it.
struct Case {
    name: String,
    faults: Vec<Fault>,
    /// The CA made so many orders in the end.
    orders: u64,
    /// It issued so many certificates.
    certificates: u64,
    /// What is shown while it lasts.
    words: &'static str,
    /// Not served before this.
    not_before: Duration,
    /// The CA behaves again after this.
    cleared_after: Option<Duration>,
    /// Served after this at the latest.
    within: Duration,
}

fn case(name: impl Into<String>, faults: impl IntoIterator<Item = Fault>) -> Case {
    Case {
        name: name.into(),
        faults: faults.into_iter().collect(),
        orders: 1,
        certificates: 1,
        words: "",
        not_before: Duration::ZERO,
        cleared_after: None,
        within: HOUR,
    }
}

impl Case {
    fn says(self, words: &'static str) -> Self {
        Case { words, ..self }
    }

    fn orders(self, orders: u64) -> Self {
        Case { orders, ..self }
    }

    fn certificates(self, certificates: u64) -> Self {
        Case { certificates, ..self }
    }

    /// Served between these.
    fn waits(self, not_before: Duration, within: Duration) -> Self {
        Case { not_before, within, ..self }
    }

    /// Lasts until somebody mends it after this long; the next try may be as long away again.
    fn lasts(self, time: Duration) -> Self {
        Case { cleared_after: Some(time), ..self }.waits(time, time * 30)
    }
}

async fn run(case: &Case) {
    let what = &case.name;
    let mut world = WireCa::new(1, Settings::default()).await;
    case.faults.iter().for_each(|fault| {
        world.script().add(fault.clone());
    });
    let tenant = world.rig.tenant("acme").await;
    let id = world.rig.claim(&tenant, NAME).await;
    world.rig.publish(&id, NAME).await;
    let mut told = false;
    while world.rig.active_since(&id).await.is_none() {
        let (now, shown) = (world.rig.env.now(), world.shown(&id).await);
        assert!(now < START + case.within, "{what}: not served after {:?}: {}", case.within, world.story(&id).await);
        assert!(!shown.contains("<html") && !shown.contains("<script"), "{what}: markup is shown: {shown}");
        assert!(!shown.contains("jwt="), "{what}: a link that speaks for the account is shown: {shown}");
        if !told && !case.words.is_empty() && shown.contains(case.words) {
            told = true;
            let waits = world.waits_until(&id).await;
            assert!(waits <= START + case.within, "{what}: it waits until {waits}, now is {now}");
            world.kill();
        }
        if case.cleared_after.is_some_and(|after| now >= START + after) {
            world.script().clear();
        }
        world.turn().await;
    }
    let (shown, story) = (world.shown(&id).await, world.story(&id).await);
    assert!(case.faults.is_empty() || !world.script().happened().is_empty(), "{what}: nothing went wrong: {story}");
    assert!(shown.contains(case.words), "{what}: {:?} was not shown: {story}", case.words);
    let after = world.rig.env.now().since(START);
    assert!(after >= case.not_before, "{what}: served after {after:?}, too soon: {story}");
    let counters = world.counters();
    let certificates = counters.certificates_by_name.get(NAME).copied().unwrap_or_default();
    assert_eq!((counters.orders_created, certificates), (case.orders, case.certificates), "{what}: {story}");
    assert!(world.rig.serial_at_edge(NAME).is_some(), "{what}: the edge serves the name");
    world.settled(&id, what).await;
}

async fn run_all(cases: Vec<Case>) {
    let mut failed = 0;
    for case in cases {
        // The whole table is gone through, so that one look shows everything that is wrong.
        failed += usize::from(AssertUnwindSafe(run(&case)).catch_unwind().await.is_err());
    }
    assert_eq!(failed, 0, "so many of the cases failed; see above");
}

#[tokio::test]
async fn nothing_goes_wrong() {
    run(&case("nothing", [])).await;
}

#[tokio::test]
async fn limits_of_every_kind_are_waited_out() {
    run_all(cases::limits()).await;
}

#[tokio::test]
async fn refusals_of_every_kind_end_or_postpone_an_order() {
    run_all(cases::refusals()).await;
}

#[tokio::test]
async fn pages_redirects_and_nonces_change_nothing_but_the_time() {
    run_all(cases::pages()).await;
}

#[tokio::test]
async fn broken_connections_cost_one_grant_at_most() {
    run_all(cases::connections()).await;
}

#[tokio::test]
async fn spoilt_answers_cost_no_order() {
    run_all(cases::answers()).await;
}

#[tokio::test]
async fn orders_and_authorizations_that_go_astray_are_made_anew() {
    run_all(cases::books()).await;
}

#[tokio::test]
async fn certificates_that_are_not_ours_are_never_stored() {
    run_all(cases::certificates()).await;
}
