//! Faults of CAs that people met in the field, each named after its case.

use std::time::Duration;

use nameplate::app;
use nameplate::model::id::DomainId;
use nameplate::sandbox::ca::{At, Endpoint, Fault, Kind, Limit, RetryAfter, Twist, What, When};
use nameplate::store::sql;

use crate::support::rig::{Rig, START};
use crate::support::wire_ca::WireCa;

const NAME: &str = "support.acme.test";
const HOUR: Duration = Duration::from_secs(3600);

async fn with(faults: impl IntoIterator<Item = Fault>) -> (WireCa, DomainId) {
    WireCa::claimed(NAME, faults).await
}

#[tokio::test]
async fn b29_three_five_and_endless_refusals_of_nonces() {
    for times in [3, 5] {
        let storm = Fault::once(Endpoint::NewOrder, What::BadNonce).when(When::Next(times));
        let (world, id) = with([storm]).await;
        world.until_active(&id, HOUR).await;
        assert_eq!(
            world.script().asked(Endpoint::NewOrder),
            u64::from(times) + 1,
            "each refusal was followed by one new try"
        );
        assert_eq!(world.rig.count(sql("SELECT count(*) AS n FROM grants")).await, 1, "one grant was enough");
    }
    let (world, id) = with([Fault::once(At::Signed, What::BadNonce).when(When::Always)]).await;
    world.pass(6 * HOUR).await;
    assert!(world.rig.active_since(&id).await.is_none());
    let asked: u64 = Endpoint::ALL.into_iter().map(|e| world.script().asked(e)).sum();
    assert!(asked < 6 * 60 * 12, "{asked} requests in six hours");
    world.script().clear();
    world.until_active(&id, HOUR).await;
    world.settled(&id, "b29").await;
}

#[tokio::test]
async fn b30_finalize_is_sent_once_and_every_state_after_it_is_acted_on() {
    // Processing with a delay, then valid.
    let (world, id) = with([Fault::once(Endpoint::Finalize, Twist::ProcessingLasts { seconds: 300 })]).await;
    world.until_active(&id, HOUR).await;
    assert_eq!(world.script().asked(Endpoint::Finalize), 1, "the CSR is sent once");
    assert!(world.script().asked(Endpoint::Order) < 12, "the CA's delay is kept: {}", world.script().asked(Endpoint::Order));
    // It goes back to ready, as if the CSR had never come: it is sent again, for the same order.
    let (world, id) = with([Fault::once(Endpoint::Finalize, What::page(500))]).await;
    world.until_active(&id, HOUR).await;
    assert_eq!(world.script().asked(Endpoint::Finalize), 2);
    assert_eq!(world.counters().orders_created, 1);
    // Not ready after all.
    let (world, id) =
        with([Fault::once(Endpoint::Finalize, What::refused(Kind::OrderNotReady, "Order is not ready"))]).await;
    world.until_active(&id, HOUR).await;
    assert_eq!((world.counters().orders_created, world.counters().certificates_by_name[NAME]), (1, 1));
    // It shows as pending for a while.
    let pending = What::with("status", "pending");
    let (world, id) =
        with([Fault::once(Endpoint::Finalize, pending.clone()), Fault::once(Endpoint::Order, pending).when(When::Nth(6))])
            .await;
    world.until_active(&id, HOUR).await;
    assert_eq!((world.counters().orders_created, world.counters().certificates_by_name[NAME]), (1, 1));
}

#[tokio::test]
async fn b31_an_order_that_never_moves_has_a_deadline_and_is_kept_for_the_books() {
    for (twist, deadline) in [
        (Fault::once(Endpoint::Finalize, Twist::ProcessingLasts { seconds: 10_000_000 }), 24 * HOUR),
        (Fault::once(Endpoint::NewOrder, Twist::OrderLags { seconds: 10_000_000 }), 2 * HOUR),
    ] {
        let (world, id) = with([twist]).await;
        world.pass(deadline).await;
        assert_eq!(world.counters().orders_created, 1, "patience for {deadline:?}");
        world.until_active(&id, deadline + 2 * HOUR).await;
        assert_eq!(world.counters().orders_created, 2);
        let kept = sql("SELECT count(*) AS n FROM orders WHERE url IS NOT NULL");
        assert_eq!(world.rig.count(kept).await, 2, "the old order's URL is kept");
        let looks = world.script().asked(Endpoint::Order);
        assert!(looks < 24 * 3600 / 10 + 100, "{looks} looks are a busy poll");
    }
}

/// The look at a stuck order decides, not the clock: what was issued while we were away is downloaded, not ordered again.
#[tokio::test]
async fn b31_a_certificate_that_came_while_nobody_looked_is_not_ordered_twice() {
    let (world, id) = with([Fault::once(Endpoint::Finalize, Twist::ProcessingLasts { seconds: 600 })]).await;
    while world.script().asked(Endpoint::Finalize) == 0 {
        world.turn().await;
    }
    world.rig.hand.advance(72 * HOUR);
    world.until_active(&id, HOUR + 72 * HOUR).await;
    assert_eq!((world.counters().orders_created, world.counters().certificates_by_name[NAME]), (1, 1));
    world.settled(&id, "b31").await;
}

#[tokio::test]
async fn b32_every_form_of_retry_after_is_a_wait_in_the_row() {
    let text = |text: &str| RetryAfter::Text(text.to_owned());
    let ahead = text("Thu, 01 Jan 2032 00:00:00 GMT").value(START).unwrap();
    assert_eq!(ahead, "Thu, 01 Jan 2032 00:00:00 GMT");
    // Where the header says nothing, the CA's words do: "retry after" in 202 minutes.
    let in_words = 201 * 60;
    for (retry_after, at_least) in [
        (text("3"), 3),
        (text("Thu, 01 Jan 2032 00:00:00 GMT"), u64::MAX),
        (text("Fri, 31 Dec 1999 23:59:59 GMT"), in_words),
        (text("604800"), 604_800),
        (text("-5"), in_words),
        (text("soon"), in_words),
    ] {
        let limited = What::Limited { limit: Limit::RegisteredDomain, retry_after: Some(retry_after.clone()) };
        let (mut world, id) = with([Fault::once(Endpoint::NewOrder, limited)]).await;
        while world.script().asked(Endpoint::NewOrder) == 0 {
            world.turn().await;
        }
        let told_at = world.rig.env.now();
        world.kill();
        if at_least == u64::MAX {
            world.pass(100 * HOUR).await;
            assert_eq!(world.script().asked(Endpoint::NewOrder), 1, "{retry_after:?}");
            continue;
        }
        world.until_active(&id, Duration::from_secs(at_least) + HOUR).await;
        assert!(world.rig.env.now().since(told_at).as_secs() + 1 >= at_least, "{retry_after:?}");
        assert_eq!(world.script().asked(Endpoint::NewOrder), 2, "{retry_after:?}: asked once more, when it was time");
    }
}

/// An account that the CA does not know, or has closed: said loudly, asked seldom, and never a second account in silence.
#[tokio::test]
async fn b36_a_missing_account_is_an_operators_error_and_no_loop() {
    for (twist, words) in [(Twist::AccountsVanish, "accountDoesNotExist"), (Twist::AccountsDeactivated, "is deactivated")] {
        let (world, id) = with([Fault::once(Endpoint::NewOrder, twist)]).await;
        world.pass(72 * HOUR).await;
        assert!(world.rig.active_since(&id).await.is_none());
        let asked: u64 = Endpoint::ALL.into_iter().map(|e| world.script().asked(e)).sum();
        assert!(asked < 60, "{asked} requests in three days");
        let shown = world.shown(&id).await;
        assert!(shown.contains(words), "{shown}");
        assert_eq!(world.counters().orders_created, 0);
        world.rig.check_invariants().await;
    }
}

#[tokio::test]
async fn b38_a_failed_challenge_ends_its_order_and_the_next_is_a_new_one() {
    let fails =
        Twist::ValidationFails { kind: Kind::IncorrectResponse, detail: "the key authorization does not match".to_owned() };
    let two = Twist::Offers { challenges: vec!["http-01".to_owned(), "dns-01".to_owned()] };
    let (world, id) = with([Fault::once(Endpoint::NewOrder, two), Fault::once(Endpoint::Challenge, fails)]).await;
    world.until_active(&id, HOUR).await;
    assert_eq!(world.script().asked(Endpoint::Challenge), 2, "no second challenge of the first authorization");
    assert_eq!((world.script().asked(Endpoint::Finalize), world.counters().orders_created), (1, 2));
    let kept = sql("SELECT count(*) AS n FROM orders WHERE state = 'failed' AND problem LIKE '%does not match%'");
    assert_eq!(world.rig.count(kept).await, 1, "the CA's words are kept with the order");
    assert!(world.rig.env.now().since(START) >= Duration::from_secs(60), "not at once");
}

#[tokio::test]
async fn b45_a_challenge_type_that_disappears_is_told_and_tried_seldom() {
    let dns_only = Twist::Offers { challenges: vec!["dns-01".to_owned(), "tls-alpn-01".to_owned()] };
    let (world, id) = with([Fault::once(Endpoint::NewOrder, dns_only).when(When::Always)]).await;
    world.pass(72 * HOUR).await;
    let orders = world.counters().orders_created;
    assert!((3..=7).contains(&orders), "{orders} orders in three days");
    assert!(world.shown(&id).await.contains("offers no http-01"));
    world.script().clear();
    world.until_active(&id, 30 * HOUR).await;
    assert_eq!(world.counters().certificates_by_name[NAME], 1);
}

/// The part of a refusal that is about the name is shown, with the name.
#[tokio::test]
async fn b48_a_refused_identifier_is_shown_by_name() {
    let parts = serde_json::json!([{
        "type": "urn:ietf:params:acme:error:rejectedIdentifier", "detail": "the CA issues for no such name",
        "identifier": {"type": "dns", "value": NAME},
    }]);
    let (world, id) =
        with([Fault::once(Endpoint::Order, Twist::OrderInvalid { detail: "several names were refused".to_owned() })]).await;
    let told = What::with("error", serde_json::json!({"detail": "no", "subproblems": parts}));
    world.script().add(Fault::once(Endpoint::Order, told).when(When::Next(4)));
    while world.ended_as(&id, "failed").await == 0 {
        world.turn().await;
    }
    let shown = world.shown(&id).await;
    assert!(shown.contains("the CA issues for no such name"), "{shown}");
    world.until_active(&id, HOUR).await;
    assert_eq!(world.counters().certificates_by_name[NAME], 1);
}

/// A worker dies right after it took a domain, and between that and its first step.
#[tokio::test]
async fn b55_a_hard_kill_right_after_the_claim_costs_one_lease_and_nothing_else() {
    for boundary in 1..=3 {
        let rig = Rig::new(55).await;
        let tenant = rig.tenant("acme").await;
        let id = rig.claim(&tenant, NAME).await;
        rig.publish(&id, NAME).await;
        let app = rig.new_worker();
        app::account::ensure_all(&app).await.unwrap();
        let generation =
            async || rig.count(sql("SELECT generation AS n FROM domains WHERE id = $1").bind(id.as_str())).await;
        let before = generation().await;
        rig.scissors.set(boundary);
        tokio::select! {
            biased;
            _ = app::advance::advance(&app, &id) => panic!("the worker was to be cut"),
            () = rig.scissors.reached() => {}
        }
        let died = rig.env.now();
        assert_eq!(generation().await, before + 1, "it took the domain");
        let other = rig.new_worker();
        let taken = app::advance::advance(&other, &id).await.unwrap();
        assert_eq!(taken, app::advance::Advanced::NotDue, "its lease still holds");
        rig.until_active(&id, HOUR).await;
        assert!(rig.env.now().since(died) < Duration::from_secs(120), "taken over after the lease of a look");
        assert_eq!(rig.ca.state().counters().orders_created, 1);
        rig.check_invariants().await;
    }
}
