//! What a CA tells once and means for all: limits and outages met by one order, a challenge type that it withdraws, another directory,
//! renewal windows.

use std::time::Duration;

use nameplate::app;
use nameplate::mint;
use nameplate::model::id::{DomainId, IssuerId};
use nameplate::model::limits::LimitName;
use nameplate::sandbox::ca::{Endpoint, Fault, Limit, RetryAfter, Settings, Twist, What, When};
use nameplate::store::issuers::{self, IssuerSeed};
use nameplate::store::{alerts, sql};

use crate::support::wire_ca::WireCa;

const NAME: &str = "support.acme.test";
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

async fn another(world: &WireCa, slug: &str, name: &str) -> DomainId {
    let tenant = world.rig.tenant(slug).await;
    let id = world.rig.claim(&tenant, name).await;
    world.rig.publish(&id, name).await;
    id
}

/// B34: a service that is busy says so while an order is on its way: the account waits, and not every order asks by itself.
#[tokio::test]
async fn b34_a_busy_service_met_by_one_order_on_its_way_stops_new_ones() {
    for endpoint in
        [Endpoint::Authorization, Endpoint::Challenge, Endpoint::Order, Endpoint::Finalize, Endpoint::Certificate]
    {
        let busy = Fault::once(endpoint, What::limited_for(Limit::Busy, 1800));
        let (world, id) = WireCa::claimed(NAME, [busy]).await;
        while world.script().happened().is_empty() {
            world.turn().await;
        }
        let told_at = world.script().happened()[0].at;
        let budgets = app::fleet::budgets(&world.rig.app).await.unwrap();
        let row = budgets[0].tokens.iter().find(|t| t.closed.is_some()).expect("the account's row is closed");
        assert_eq!((row.limit_name, row.left), (LimitName::OrdersPerAccount, 0), "{endpoint:?}");
        let mut others = Vec::new();
        for n in 0..3 {
            others.push(another(&world, &format!("t{n}"), &format!("n{n}.acme.test")).await);
        }
        world.pass(Duration::from_secs(1_500)).await;
        assert_eq!(world.script().asked(Endpoint::NewOrder), 1, "{endpoint:?}: nobody else ordered");
        world.until_active(&id, HOUR).await;
        for id in &others {
            world.until_active(id, HOUR).await;
        }
        let after = world.rig.env.now().since(told_at);
        assert!(after >= Duration::from_secs(1_799), "{endpoint:?}: served after {after:?}");
        assert_eq!(world.counters().orders_created, 4, "{endpoint:?}");
        assert_eq!(world.rig.count(sql("SELECT count(*) AS n FROM orders WHERE state <> 'issued'")).await, 0);
    }
}

/// A page that turns new orders away for a while speaks to everybody: nobody orders before, though what was placed earlier goes on
/// and works; and the told time is bounded.
#[tokio::test]
async fn a_told_time_on_a_page_is_kept_for_everybody() {
    for (told, kept) in [
        (RetryAfter::Seconds(3 * 3600), 3 * HOUR),
        (RetryAfter::Date(3 * 3600), 3 * HOUR),
        (RetryAfter::Seconds(90 * 24 * 3600), DAY),
    ] {
        // The first order is on its way for half an hour.
        let lags = Fault::once(Endpoint::NewOrder, Twist::OrderLags { seconds: 1800 });
        let (world, placed) = WireCa::claimed(NAME, [lags]).await;
        while world.counters().orders_created == 0 {
            world.turn().await;
        }
        world.script().add(Fault::once(Endpoint::NewOrder, What::Page { status: 503, retry_after: Some(told.clone()) }));
        let refused = another(&world, "beta", "b.acme.test").await;
        while world.script().asked(Endpoint::NewOrder) == 1 {
            world.turn().await;
        }
        let told_at = world.script().happened().last().unwrap().at;
        let late = another(&world, "gamma", "c.acme.test").await;
        world.until_active(&placed, HOUR).await;
        world.pass((told_at + kept).since(world.rig.env.now()) - Duration::from_secs(1_200)).await;
        assert_eq!(world.script().asked(Endpoint::NewOrder), 2, "{told:?}: nobody asks before");
        for id in [&refused, &late] {
            world.until_active(id, HOUR).await;
        }
        assert!(world.rig.env.now() + Duration::from_secs(1) >= told_at + kept, "{told:?}");
        let counters = world.counters();
        assert_eq!((counters.orders_created, counters.certificates_by_name.len()), (3, 3), "{told:?}");
    }
}

/// B45: operators hear of it once, however many names meet it, and of its end.
#[tokio::test]
async fn b45_a_missing_challenge_type_is_one_alert_that_ends_when_it_is_offered_again() {
    let dns_only = Twist::Offers { challenges: vec!["dns-01".to_owned()] };
    let world = WireCa::new(5, Settings::default()).await;
    world.script().add(Fault::once(Endpoint::NewOrder, dns_only).when(When::Always));
    let tenant = world.rig.tenant("acme").await;
    let mut ids = Vec::new();
    for name in ["a.acme.test", "b.acme.test", "c.acme.test"] {
        let id = world.rig.claim(&tenant, name).await;
        world.rig.publish(&id, name).await;
        ids.push(id);
    }
    world.pass(2 * HOUR).await;
    assert_eq!(world.alerts().await, [("challenge_type_missing".to_owned(), "main".to_owned())]);
    let said = alerts::open_of_platform(&world.rig.app.store).await.unwrap().remove(0).said;
    assert!(said.contains("http-01") && said.contains("acme.test"), "{said}");
    world.pass(30 * HOUR).await;
    assert_eq!(world.alerts().await.len(), 1, "it lasts");
    world.script().clear();
    for id in &ids {
        world.until_active(id, 30 * HOUR).await;
    }
    assert!(world.alerts().await.is_empty());
    let raised = sql("SELECT count(*) AS n FROM events WHERE kind = 'alert_raised' AND cause LIKE '%http-01%'");
    assert_eq!(world.rig.count(raised).await, 1, "told once");
}

/// B36: the issuer's directory is another one. The same key is registered there, and where it is known already, as on the way back, the
/// answer names the account that there is (200 and Location).
#[tokio::test]
async fn b36_the_key_is_registered_at_another_directory_and_known_at_the_first() {
    let (mut world, id) = WireCa::claimed(NAME, []).await;
    world.until_active(&id, HOUR).await;
    let first = issuers::list(&world.rig.app.store).await.unwrap().remove(0);
    let second = WireCa::new(6, Settings::default()).await;
    let moved = async |world: &WireCa, directory: &str| {
        let seed = IssuerSeed {
            name: first.name.clone(),
            directory: directory.to_owned(),
            limits: first.limits.clone(),
            ..IssuerSeed::default()
        };
        let mut tx = world.rig.app.store.begin().await.unwrap();
        issuers::seed(&mut tx, &[seed], world.rig.env.now(), || mint!(world.rig.env, IssuerId)).await.unwrap();
        tx.commit().await.unwrap();
        issuers::list(&world.rig.app.store).await.unwrap().remove(0)
    };
    let between = moved(&world, &second.directory()).await;
    assert_eq!((between.account_url, between.account_key.clone()), (None, first.account_key.clone()));
    world.speak_to(&second);
    app::account::ensure_all(&world.rig.new_worker()).await.unwrap();
    let there = issuers::list(&world.rig.app.store).await.unwrap().remove(0);
    assert_eq!((there.id.clone(), there.account_key), (first.id.clone(), first.account_key.clone()), "the same key");
    let there = there.account_url.unwrap();
    assert!(Some(&there) != first.account_url.as_ref() && second.counters().accounts_created == 1, "{there}");
    // Back again: the first CA knows the key.
    let asked = world.script().asked(Endpoint::NewAccount);
    moved(&world, &first.directory).await;
    world.kill();
    app::account::ensure_all(&world.rig.new_worker()).await.unwrap();
    let back = issuers::list(&world.rig.app.store).await.unwrap().remove(0);
    assert_eq!((back.account_url, back.account_key), (first.account_url, first.account_key));
    assert_eq!((world.script().asked(Endpoint::NewAccount), world.counters().accounts_created), (asked + 1, 1));
    let tenant = world.rig.tenant("beta").await;
    let other = world.rig.claim(&tenant, "b.acme.test").await;
    world.rig.publish(&other, "b.acme.test").await;
    world.until_active(&other, HOUR).await;
}

/// What the CA says of renewal windows that cannot be: past ones are renewed in at once, and once; absurd ones and failures change
/// nothing, and a third of the life is left when it is renewed all the same.
#[tokio::test]
async fn b43_windows_that_are_past_or_absurd_and_failures_are_met_by_renewals() {
    let past = Fault::once(Endpoint::RenewalInfo, Twist::Window { starts_in: -7200, ends_in: -3600 });
    let absurd = Fault::once(Endpoint::RenewalInfo, Twist::Window { starts_in: 7200, ends_in: -7200 });
    let failing = Fault::once(Endpoint::RenewalInfo, What::page(500));
    for (fault, lives, renewed_within) in [
        (past, Duration::ZERO, 12 * HOUR),
        (absurd.when(When::Always), 50 * DAY, 15 * DAY),
        (failing.when(When::Always), 50 * DAY, 15 * DAY),
    ] {
        let (world, id) = WireCa::claimed(NAME, []).await;
        world.until_active(&id, HOUR).await;
        world.rig.stride(DAY);
        // No certificate is renewed on its first day, whatever the CA says.
        world.pass(2 * DAY).await;
        world.script().add(fault.clone());
        let certificates = async || world.rig.count(sql("SELECT count(*) AS n FROM certificates")).await;
        world.pass(lives).await;
        assert_eq!(certificates().await, 1, "{fault:?}: {}", world.story(&id).await);
        let end = world.rig.env.now() + renewed_within;
        while certificates().await == 1 {
            assert!(world.rig.env.now() < end, "{fault:?} kept it from being renewed: {}", world.story(&id).await);
            world.turn().await;
        }
        assert!(!world.script().happened().is_empty(), "{fault:?}: the CA was asked");
        world.pass(5 * DAY).await;
        assert_eq!(certificates().await, 2, "{fault:?}: renewed once");
        let polls = world.script().asked(Endpoint::RenewalInfo);
        assert!(polls < 1_000, "{fault:?}: {polls} polls");
        world.rig.check_invariants().await;
    }
}
