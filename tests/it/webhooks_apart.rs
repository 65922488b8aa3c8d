//! Places apart: what one receiver, one secret or one day without a network does to its own deliveries, and not to others.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nameplate::app::notify::{Notifier, NotifySettings};
use nameplate::model::hook_url::HookUrl;
use nameplate::model::id::WebhookId;
use nameplate::reach::ReachError;
use nameplate::reach::hook::{HookReply, HookRequest, Hooks};
use nameplate::store::retention::{self, Keep};
use nameplate::store::{sql, webhooks};
use tokio_util::sync::CancellationToken;

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::told::{Receivers, Told};

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);

/// Receivers of which those at `/slow` never answer.
struct SomeHang(Receivers);

#[async_trait]
impl Hooks for SomeHang {
    async fn post(&self, hook: &HookUrl, addresses: &[IpAddr], request: &HookRequest) -> Result<HookReply, ReachError> {
        let answer = self.0.post(hook, addresses, request).await;
        if hook.path.starts_with("/slow") { std::future::pending().await } else { answer }
    }
}

fn by<'a>(told: &'a Told, path: &'a str) -> usize {
    told.receivers.tries().iter().filter(|got| got.url.ends_with(path)).count()
}

/// Lets tasks run until something is so, for half a minute at most.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let real = nameplate::env::Env::real();
    for _ in 0..30_000 {
        if condition() {
            return;
        }
        real.sleep(Duration::from_millis(1)).await;
    }
    panic!("never happened: {what}");
}

#[tokio::test]
async fn receivers_that_hang_hold_up_nobody_else_and_new_events_go_out_meanwhile() {
    let told = Told::new(321).await;
    let tenant = told.rig.tenant("acme").await;
    for n in 0..4 {
        told.webhook_at(Some(&tenant), &format!("https://hooks.acme.test/slow{n}"), &["claimed"]).await;
    }
    told.webhook_at(Some(&tenant), "https://hooks.acme.test/quick", &["claimed"]).await;
    let notifier =
        Notifier::new(told.rig.app.clone(), Arc::new(SomeHang(told.receivers.clone())), None, NotifySettings::default());
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { notifier.run_webhooks(stop, || ()).await }
    });
    for n in 0..40 {
        told.rig.claim(&tenant, &format!("n{n}.acme.test")).await;
        told.number().await;
        if n % 10 == 9 {
            // A second later the stream is looked at again, whatever hangs.
            until("a pause", || told.rig.hand.next_wake().is_some()).await;
            told.rig.hand.advance(Duration::from_secs(1));
            until("all of it at the quick one", || by(&told, "/quick") == n + 1).await;
        }
    }
    let slow: usize = (0..4).map(|n| by(&told, &format!("/slow{n}"))).sum();
    assert!((4..=4 * 8).contains(&slow), "{slow} tries hang, at most eight a place");
    assert!(!running.is_finished());
    running.abort();
}

#[tokio::test]
async fn a_secret_that_cannot_be_opened_is_its_own_places_trouble_and_an_alert() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(322, &test.url).await).await;
        let tenant = told.rig.tenant("acme").await;
        let (broken, _) = told.webhook_at(Some(&tenant), "https://hooks.acme.test/broken", &["claimed"]).await;
        told.webhook_at(Some(&tenant), "https://hooks.acme.test/well", &["claimed"]).await;
        told.webhook_at(None, "https://hooks.acme.test/ops", &["alert_raised", "alert_resolved"]).await;
        let store = &told.rig.app.store;
        let row = webhooks::lookup(&mut store.read().await.unwrap(), &broken).await.unwrap().unwrap();
        let spoil =
            |bytes: &[u8]| sql("UPDATE webhook_endpoints SET secret = $2 WHERE id = $1").bind(broken.as_str()).bind(bytes);
        let mut other = row.secret.clone();
        *other.last_mut().unwrap() ^= 1;
        store.execute(spoil(&other)).await.unwrap();
        for n in 0..5 {
            told.rig.claim(&tenant, &format!("n{n}.acme.test")).await;
        }
        told.beats(HOUR).await;
        assert_eq!((by(&told, "/well"), by(&told, "/broken"), by(&told, "/ops")), (5, 0, 1), "{kind:?}");
        let alert = told.receivers.taken().into_iter().find(|got| got.url.ends_with("/ops")).unwrap();
        assert_eq!(alert.body["data"]["detail"]["kind"], "webhook_unusable");
        assert!(alert.body.to_string().contains("hooks.acme.test (") && !alert.body.to_string().contains("/broken"));
        assert_eq!(told.deliveries("pending").await, 5, "nothing is lost");
        // Once it can be opened again, what waited goes out, and the alert is over.
        store.execute(spoil(&row.secret)).await.unwrap();
        told.beats(HOUR).await;
        assert_eq!((by(&told, "/broken"), by(&told, "/ops")), (5, 2), "{kind:?}");
        store.close().await;
        test.remove().await;
    }
}

async fn place(told: &Told, id: &WebhookId) -> webhooks::WebhookRow {
    webhooks::lookup(&mut told.rig.app.store.read().await.unwrap(), id).await.unwrap().unwrap()
}

/// Beats with long strides in between.
async fn days(told: &Told, days: u32) {
    let end = told.rig.env.now() + days * DAY;
    while told.rig.env.now() < end {
        told.beat().await;
        told.rig.hand.advance(Duration::from_secs(2_980));
    }
}

#[tokio::test]
async fn days_of_silence_cost_a_delivery_none_of_its_tries_and_switch_nothing_off() {
    let told = Told::new(323).await;
    let tenant = told.rig.tenant("acme").await;
    let (id, _) = told.webhook(Some(&tenant), &["claimed"]).await;
    told.receivers.down();
    told.rig.claim(&tenant, "a.acme.test").await;
    days(&told, 8).await;
    assert!(place(&told, &id).await.disabled_at.is_none(), "silence is no refusal");
    // Its first real answer is its first refusal.
    told.receivers.answer(|got| Ok(if got.body["data"]["hostname"] == "a.acme.test" { 500 } else { 200 }));
    told.rig.claim(&tenant, "b.acme.test").await;
    told.beats(3 * HOUR).await;
    assert_eq!((told.deliveries("given_up").await, told.deliveries("pending").await), (0, 1));
    let refusals = told.rig.count(sql("SELECT MAX(refusals) AS n FROM deliveries")).await;
    assert!((1..=6).contains(&refusals), "{refusals}");
    told.receivers.up();
    told.beats(3 * HOUR).await;
    assert_eq!(told.receivers.kinds(), ["claimed", "claimed"]);
}

#[tokio::test]
async fn weeks_of_silence_switch_a_place_off_with_an_alert() {
    let told = Told::new(324).await;
    let tenant = told.rig.tenant("acme").await;
    let (id, _) = told.webhook(Some(&tenant), &["claimed"]).await;
    told.webhook_at(None, "https://hooks.acme.test/ops", &["webhook_disabled"]).await;
    told.receivers
        .answer(|got| if got.url.ends_with("/ops") { Ok(200) } else { Err(ReachError::TimedOut(Duration::from_secs(15))) });
    told.rig.claim(&tenant, "a.acme.test").await;
    days(&told, 14).await;
    assert!(place(&told, &id).await.disabled_at.is_none());
    days(&told, 2).await;
    assert_eq!(place(&told, &id).await.disabled_why.as_deref(), Some("failing"));
    let said = told.receivers.taken()[0].body["data"].to_string();
    assert!(said.contains("did not answer for weeks") && !said.contains("/in"), "{said}");
}

/// A clock that jumps, or a process that stood still for weeks, is no failure of the receiver's.
#[tokio::test]
async fn a_jump_of_the_clock_switches_nothing_off_and_gives_nothing_up() {
    let told = Told::new(325).await;
    let tenant = told.rig.tenant("acme").await;
    let (id, _) = told.webhook(Some(&tenant), &["claimed"]).await;
    told.receivers.answer(|_| Ok(503));
    for n in 0..3 {
        told.rig.claim(&tenant, &format!("n{n}.acme.test")).await;
    }
    told.beats(HOUR).await;
    told.rig.hand.advance(40 * DAY);
    told.beats(HOUR).await;
    assert!(place(&told, &id).await.disabled_at.is_none());
    // And back: what was due in that future is due again soon, for it is asked when the place is.
    let back = told.rig.env.now() + 40 * DAY;
    let stmt = sql("UPDATE webhook_endpoints SET tried_at = $1, failing_since = $1").bind(back);
    told.rig.app.store.execute(stmt).await.unwrap();
    told.beats(HOUR).await;
    let row = place(&told, &id).await;
    assert!(row.disabled_at.is_none());
    told.receivers.up();
    told.beats(HOUR).await;
    assert_eq!(told.receivers.taken().len(), 3);
    assert_eq!(told.deliveries("given_up").await, 0);
}

#[tokio::test]
async fn what_waits_for_nobody_ends_and_what_is_done_with_is_forgotten() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(326, &test.url).await).await;
        let (acme, other) = (told.rig.tenant("acme").await, told.rig.tenant("other").await);
        let (off, _) = told.webhook_at(Some(&acme), "https://hooks.acme.test/off", &["claimed"]).await;
        told.webhook_at(Some(&acme), "https://hooks.acme.test/on", &["claimed"]).await;
        let (gone, _) = told.webhook_at(Some(&other), "https://hooks.acme.test/gone", &["claimed"]).await;
        told.receivers.answer(|got| Ok(if got.url.ends_with("/on") { 200 } else { 503 }));
        let store = &told.rig.app.store;
        // More than one batch of one place.
        for n in 0..3 {
            told.rig.claim(&acme, &format!("n{n}.acme.test")).await;
            told.rig.claim(&other, &format!("o{n}.acme.test")).await;
        }
        told.beats(HOUR / 10).await;
        store.execute(webhooks::disable(&off, "failing", told.rig.env.now())).await.unwrap();
        let prune = async || {
            let now = told.rig.env.now();
            let keep = Keep { deliveries: now - 30 * DAY, alerts: now - 180 * DAY };
            retention::prune(store, keep, now).await.unwrap()
        };
        assert_eq!(prune().await, retention::Pruned::default(), "{kind:?}");
        // A tenant that is gone is waited for by nobody, as soon as no claim of it stands.
        nameplate::app::offboard::begin(store, &told.rig.env, &other, "operator").await.unwrap();
        assert_eq!(prune().await, retention::Pruned::default(), "{kind:?}");
        told.rig.pass(HOUR / 60).await;
        let pruned = prune().await;
        assert_eq!((pruned.ended, pruned.done, pruned.places), (0, 3, 1), "{kind:?}: {pruned:?}");
        assert!(
            webhooks::lookup(&mut store.read().await.unwrap(), &gone).await.unwrap().is_none(),
            "its secrets went with it"
        );
        // A place that is switched off is waited for as long as things are kept.
        told.rig.hand.advance(31 * DAY);
        let pruned = prune().await;
        assert_eq!((pruned.ended, pruned.places), (3, 0), "{kind:?}: {pruned:?}");
        assert!(pruned.done >= 3, "{kind:?}: {pruned:?}");
        assert!(webhooks::lookup(&mut store.read().await.unwrap(), &off).await.unwrap().is_some());
        told.rig.hand.advance(31 * DAY);
        prune().await;
        assert_eq!(told.rig.count(sql("SELECT count(*) AS n FROM deliveries")).await, 0, "{kind:?}");
        store.close().await;
        test.remove().await;
    }
}

/// Many places that fail for the same reason are one alert with a count.
#[tokio::test]
async fn places_that_fail_alike_are_one_alert() {
    let told = Told::new(327).await;
    told.webhook_at(None, "https://hooks.acme.test/ops", &["alert_raised"]).await;
    let mut tenants = Vec::new();
    for n in 0..6 {
        let tenant = told.rig.tenant(&format!("t{n}")).await;
        told.webhook_at(Some(&tenant), &format!("https://hooks.acme.test/{n}?key=hunter{n}"), &["claimed"]).await;
        tenants.push(tenant);
    }
    told.receivers.answer(|got| Ok(if got.url.ends_with("/ops") { 200 } else { 410 }));
    for (n, tenant) in tenants.iter().enumerate() {
        told.rig.claim(tenant, &format!("n{n}.acme.test")).await;
    }
    told.beats(HOUR).await;
    let alerts: BTreeSet<String> =
        told.receivers.taken().iter().map(|got| got.body["data"]["detail"]["count"].to_string()).collect();
    assert_eq!(alerts, BTreeSet::from(["6".to_owned()]));
    let said = told.receivers.taken()[0].body.to_string();
    assert!(said.contains("and 3 more") && !said.contains("hunter"), "{said}");
}

/// URLs may hold what opens a door: they are sealed, and shown to their owner alone.
#[tokio::test]
async fn a_url_stands_nowhere_in_the_open() {
    let told = Told::new(328).await;
    let tenant = told.rig.tenant("acme").await;
    let secret = "https://hooks.acme.test/in?key=hunter2";
    let (id, _) = told.webhook_at(Some(&tenant), secret, &["claimed"]).await;
    let pool = told.rig.app.store.sqlite_pool().unwrap();
    let dump = async || -> String {
        let rows: Vec<String> =
            sqlx::query_scalar("SELECT url || quote(sealed_url) || host || fingerprint FROM webhook_endpoints")
                .fetch_all(pool)
                .await
                .unwrap();
        rows.concat()
    };
    let stored = dump().await;
    assert!(!stored.contains("hunter2") && stored.contains("hooks.acme.test"), "{stored}");
    // What an older release wrote is sealed, once.
    let stmt = sql("UPDATE webhook_endpoints SET url = $2, sealed_url = NULL, host = '', fingerprint = '' WHERE id = $1");
    told.rig.app.store.execute(stmt.bind(id.as_str()).bind(secret)).await.unwrap();
    told.rig.claim(&tenant, "a.acme.test").await;
    told.beats(HOUR / 60).await;
    assert_eq!(nameplate::app::webhooks::seal_urls(&told.rig.app).await.unwrap(), 1);
    assert_eq!(nameplate::app::webhooks::seal_urls(&told.rig.app).await.unwrap(), 0);
    let sealed = dump().await;
    assert!(!sealed.contains("hunter2") && sealed.contains("hooks.acme.test"), "{sealed}");
    told.rig.claim(&tenant, "b.acme.test").await;
    told.beats(HOUR / 60).await;
    let urls: Vec<String> = told.receivers.taken().into_iter().map(|got| got.url).collect();
    assert_eq!(urls, ["hooks.acme.test/in?key=hunter2"; 2]);
    // Whatever it is told of: not in the log of events, nor in what fails.
    told.receivers.answer(|_| Ok(410));
    told.rig.claim(&tenant, "c.acme.test").await;
    told.beats(HOUR / 60).await;
    let told_of: Vec<String> = sqlx::query_scalar("SELECT cause || detail FROM events UNION ALL SELECT said FROM alerts")
        .fetch_all(pool)
        .await
        .unwrap();
    assert!(told_of.iter().all(|text| !text.contains("hunter2")));
    assert!(told_of.iter().any(|text| text.contains("hooks.acme.test")));
}

/// Eighty places that have much to be told leave room for the one that has one thing: whoever waits longest is next.
#[tokio::test]
async fn whoever_has_much_to_be_told_keeps_nobody_waiting() {
    let told = Told::new(327).await;
    for tenant in ["acme", "beta", "gamma", "delta"] {
        let id = told.rig.tenant(tenant).await;
        for n in 0..20 {
            told.webhook_at(Some(&id), &format!("https://hooks.acme.test/{tenant}/{n}"), &["claimed"]).await;
        }
        for n in 0..8 {
            told.rig.claim(&id, &format!("n{n}.{tenant}.test")).await;
        }
    }
    let last = told.rig.tenant("last").await;
    told.webhook_at(Some(&last), "https://hooks.acme.test/last", &["claimed"]).await;
    told.rig.claim(&last, "shop.last.test").await;
    told.number().await;
    told.notifier.round().await.unwrap();
    let tries = told.receivers.tries();
    assert_eq!(tries.len(), 4 * 20 * 8 + 1, "each once");
    let turn = tries.iter().position(|got| got.url.ends_with("/last")).unwrap();
    assert!(turn < 320, "it had its turn after {turn} of {}", tries.len());
}

/// A place that failed while there was something to be told, and took none of it before it was over, begins anew: what comes months
/// later does not meet a place that has nearly been switched off.
#[tokio::test]
async fn what_was_over_before_it_was_taken_is_not_held_against_a_place() {
    let told = Told::new(328).await;
    let (tenant, ids) = told.live("acme", 1).await;
    let (id, _) = told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    told.lives(&ids[0], 90 * DAY).await;
    told.rig.hand.advance(70 * DAY);
    // Nothing of it can have arrived.
    told.receivers.answer(|_| Ok(503));
    days(&told, 4).await;
    let failing = place(&told, &id).await;
    assert!(failing.failures > 100 && failing.failing_since.is_some(), "{failing:?}");
    told.renewed(&ids[0], 90 * DAY).await;
    days(&told, 1).await;
    let rests = place(&told, &id).await;
    assert_eq!((rests.failures, rests.failing_since, rests.pending), (0, None, 0));
    assert_eq!(
        (told.deliveries("dropped").await, told.deliveries("delivered").await),
        (2, 0),
        "nobody was told, nobody waits"
    );
    // Its next failure is its first.
    told.rig.hand.advance(70 * DAY);
    told.receivers.answer(|_| Ok(503));
    told.beats(Duration::from_secs(60)).await;
    assert!((1..=4).contains(&place(&told, &id).await.failures));
    told.receivers.up();
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["certificate_ending"]);
}
