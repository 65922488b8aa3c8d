//! Once the CSR is handed in, a certificate may exist: nothing but the CA's own word that the order is invalid ends it, and a second one
//! is not bought for a refusal, a page or a clock.

use std::time::Duration;

use nameplate::model::id::DomainId;
use nameplate::sandbox::ca::{Endpoint, Fault, Flaw, Kind, Twist, What, When};
use nameplate::store::{issuer_health, sql};

use crate::support::rig::START;
use crate::support::wire_ca::WireCa;

const NAME: &str = "support.acme.test";
const HOUR: Duration = Duration::from_secs(3600);

/// Turns until the CSR is with the CA, which takes ten minutes to issue.
async fn finalizing(faults: impl IntoIterator<Item = Fault>) -> (WireCa, DomainId) {
    let (world, id) =
        WireCa::claimed(NAME, [Fault::once(Endpoint::Finalize, Twist::ProcessingLasts { seconds: 600 })]).await;
    while world.script().asked(Endpoint::Finalize) == 0 {
        world.turn().await;
    }
    faults.into_iter().for_each(|fault| {
        world.script().add(fault);
    });
    (world, id)
}

/// B30: what the order may become after finalize. Invalid ends it, which is the CA's own word; that it takes a CSR again does not.
#[tokio::test]
async fn b30_invalid_after_finalize_ends_the_order_and_ready_does_not() {
    let invalid = Twist::OrderInvalid { detail: "the signer is on fire".to_owned() };
    let (world, id) = finalizing([Fault::once(Endpoint::Order, invalid)]).await;
    world.until_active(&id, HOUR).await;
    assert_eq!((world.counters().orders_created, world.script().asked(Endpoint::Finalize)), (2, 2));
    let kept = sql("SELECT count(*) AS n FROM orders WHERE state = 'failed' AND problem LIKE '%on fire%'");
    assert_eq!(world.rig.count(kept).await, 1, "the CA's words are kept with the order");
    world.settled(&id, "b30").await;

    // A replica says for a while that the order takes a CSR; that it got is refused as another one, in words of any kind.
    for refused in [Kind::OrderNotReady, Kind::Malformed, Kind::Unauthorized] {
        let ready = Fault::once(Endpoint::Order, What::with("status", "ready")).when(When::Next(8));
        let again = Fault::once(Endpoint::Finalize, What::refused(refused, "it was finalized")).when(When::Next(20));
        let (world, id) = finalizing([ready, again]).await;
        world.until_active(&id, HOUR).await;
        let asked = world.script().asked(Endpoint::Finalize);
        assert!((2..=6).contains(&asked), "{refused:?}: handed in {asked} times");
        let counters = world.counters();
        assert_eq!((counters.orders_created, counters.certificates_by_name[NAME]), (1, 1), "{refused:?}");
        world.settled(&id, "b30").await;
    }
}

/// A CA that takes the CSR and says again and again that it waits for one is neither asked without end nor given up at once.
#[tokio::test]
async fn b30_an_order_that_is_always_ready_is_handed_its_csr_ever_more_seldom() {
    let ready = Fault::once(Endpoint::Order, What::with("status", "ready")).when(When::Always);
    let processing = Fault::once(Endpoint::Finalize, What::with("status", "processing")).when(When::Always);
    let (world, id) = finalizing([ready, processing]).await;
    world.pass(20 * HOUR).await;
    let asked = world.script().asked(Endpoint::Finalize);
    assert!((5..=200).contains(&asked), "handed in {asked} times in twenty hours");
    assert_eq!(world.counters().orders_created, 1);
    world.script().clear();
    world.until_active(&id, HOUR).await;
    assert_eq!((world.counters().orders_created, world.counters().certificates_by_name[NAME]), (1, 1));
}

/// B40, B41: once the CSR is handed in nothing but the CA's own word that the order is invalid ends it, whatever is said at
/// whichever resource, and however long.
#[tokio::test]
async fn b40_no_refusal_after_finalize_costs_a_second_certificate() {
    for endpoint in [Endpoint::Order, Endpoint::Certificate] {
        for kind in [
            Kind::Unauthorized,
            Kind::Malformed,
            Kind::AccountDoesNotExist,
            Kind::UserActionRequired,
            Kind::ExternalAccountRequired,
            Kind::RejectedIdentifier,
        ] {
            let refused = Fault::once(endpoint, What::refused(kind, "the CA will not")).when(When::Always);
            let (world, id) = finalizing([refused]).await;
            world.pass(6 * HOUR).await;
            let what = format!("{kind:?} at {}", endpoint.name());
            assert_eq!(world.counters().orders_created, 1, "{what}: {}", world.story(&id).await);
            assert!(world.shown(&id).await.contains("the CA will not"), "{what}: the CA's words are shown");
            let asked: u64 = Endpoint::ALL.into_iter().map(|e| world.script().asked(e)).sum();
            assert!(asked < 400, "{what}: {asked} requests in six hours");
            world.script().clear();
            world.until_active(&id, HOUR).await;
            let counters = world.counters();
            assert_eq!((counters.orders_created, counters.certificates_by_name[NAME]), (1, 1), "{what}");
            assert_eq!(world.ended_as(&id, "failed").await, 0, "{what}: no name fails");
            world.settled(&id, &what).await;
        }
    }
}

/// The CSR was taken and the answer lost; what is said then at the order is a wait as well, though no row says that it was sent.
#[tokio::test]
async fn b40_a_lost_answer_to_finalize_and_a_refusal_of_the_order_cost_no_second_certificate() {
    for lost in [What::DropAfter, What::FrozenAfter] {
        let slow = Fault::once(Endpoint::Challenge, Twist::ProcessingLasts { seconds: 600 });
        let (world, id) = WireCa::claimed(NAME, [slow, Fault::once(Endpoint::Finalize, lost.clone())]).await;
        while world.script().asked(Endpoint::Finalize) == 0 {
            world.turn().await;
        }
        let refused = What::refused(Kind::Malformed, "the CA will not");
        world.script().add(Fault::once(Endpoint::Order, refused).when(When::Next(5)));
        world.until_active(&id, HOUR).await;
        assert_eq!(world.script().happened().len(), 7, "{lost:?}: all of it was met");
        let counters = world.counters();
        assert_eq!((counters.orders_created, counters.certificates_by_name[NAME]), (1, 1), "{lost:?}");
        world.settled(&id, "b40").await;
    }
}

/// B36: an account that the CA does not know, said of an order whose CSR it has: loud, and no loop; one order that is told so though the
/// account is well keeps nobody else from ordering.
#[tokio::test]
async fn b36_a_missing_account_after_finalize_is_told_once_and_halts_nobody_for_long() {
    let refused = What::refused(Kind::AccountDoesNotExist, "no such account");
    let (world, id) = finalizing([Fault::once(Endpoint::Order, refused.clone()).when(When::Always)]).await;
    while issuer_health::all(&world.rig.app.store).await.unwrap().values().all(|h| h.halted.is_none()) {
        assert!(world.rig.env.now() < START + HOUR, "it is told: {}", world.story(&id).await);
        world.turn().await;
    }
    world.pass(3 * HOUR).await;
    let health = issuer_health::all(&world.rig.app.store).await.unwrap().into_values().next().unwrap();
    assert_eq!((health.halted, health.halts), (None, 1), "the CA says that the account is well");
    assert_eq!(world.counters().orders_created, 1);
    // The account is gone indeed.
    let (world, id) = finalizing([Fault::once(Endpoint::Order, Twist::AccountsVanish)]).await;
    world.pass(20 * HOUR).await;
    let health = issuer_health::all(&world.rig.app.store).await.unwrap().into_values().next().unwrap();
    assert!(health.halted.unwrap().contains("accountDoesNotExist") && health.halts >= 4);
    let asked = world.script().asked(Endpoint::Order) + world.script().asked(Endpoint::Account);
    assert!(asked < 200, "{asked} requests in twenty hours");
    assert_eq!((world.counters().orders_created, world.counters().accounts_created), (1, 1), "{}", world.story(&id).await);
}

/// A certificate whose time has not come is good: it waits for it, operators hear of the clocks, and none is ordered in its place.
#[tokio::test]
async fn b53_a_certificate_from_the_future_waits_for_its_time_and_is_not_bought_twice() {
    let (world, id) =
        WireCa::claimed(NAME, [Fault::once(Endpoint::Finalize, Twist::Certificate { flaw: Flaw::NotYetValid })]).await;
    world.pass(12 * HOUR).await;
    assert!(world.rig.active_since(&id).await.is_none());
    assert_eq!(world.rig.count(sql("SELECT count(*) AS n FROM certificates")).await, 0, "it is not stored early");
    assert!(world.shown(&id).await.contains("is valid from"));
    assert_eq!(world.alerts().await, [("clock_differs".to_owned(), "main".to_owned())]);
    let downloads = world.script().asked(Endpoint::Certificate);
    assert!(downloads <= 2, "{downloads} downloads of what cannot be used yet");
    world.until_active(&id, 13 * HOUR).await;
    assert_eq!((world.counters().orders_created, world.counters().certificates_by_name[NAME]), (1, 1));
    assert!(world.alerts().await.is_empty());
    world.settled(&id, "b53").await;
}
