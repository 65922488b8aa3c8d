//! Webhooks: signed, in order, once, until they arrive; and safe from receivers of every kind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nameplate::app::{self, webhooks};
use nameplate::model::secret::Secret;
use nameplate::store::{deliveries, sql};

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::told::{Got, Told};

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);

/// The signatures under this secret that a request should carry.
fn signature(got: &Got, secret: &Secret) -> String {
    let key = STANDARD.decode(secret.expose_str().unwrap().strip_prefix("whsec_").unwrap()).unwrap();
    let signed = [format!("{}.{}.", got.id, got.headers["webhook-timestamp"]).into_bytes(), got.raw.clone()].concat();
    format!("v1,{}", STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &signed)))
}

/// Taken once each, and for each domain in the order of the log.
async fn once_and_in_order(told: &Told) {
    let taken = told.receivers.taken();
    let ids: BTreeSet<&str> = taken.iter().map(|got| got.id.as_str()).collect();
    assert_eq!(ids.len(), taken.len(), "something came twice");
    let mut last: BTreeMap<String, i64> = BTreeMap::new();
    for got in &taken {
        let (domain, position) = (got.body["data"]["domain_id"].to_string(), got.body["data"]["position"].as_i64().unwrap());
        if let Some(before) = last.insert(domain, position) {
            assert!(before < position, "{:?}", got.body);
        }
    }
}

/// Events of domains in the log.
async fn of_domains(told: &Told) -> i64 {
    told.rig.count(sql("SELECT count(*) AS n FROM events WHERE domain_id IS NOT NULL")).await
}

#[tokio::test]
async fn the_whole_life_of_a_domain_arrives_signed_once_and_in_order() {
    let told = Told::new(21).await;
    let tenant = told.rig.tenant("acme").await;
    let (_, secret) = told.webhook(Some(&tenant), &["*"]).await;
    let (_, platform) = told.webhook_at(None, "https://hooks.acme.test/all", &["active", "removed"]).await;
    let (_, ids) = {
        let id = told.rig.claim(&tenant, "support.acme.test").await;
        told.rig.publish(&id, "support.acme.test").await;
        told.rig.until_active(&id, HOUR).await;
        ((), id)
    };
    app::remove::remove(&told.rig.app, &ids, "tenant").await.unwrap();
    told.beats(Duration::from_secs(120)).await;
    let taken = told.receivers.taken();
    let (all, own): (Vec<&Got>, Vec<&Got>) = taken.iter().partition(|got| got.url.ends_with("/all"));
    let kinds = |got: &[&Got]| got.iter().map(|g| g.kind().to_owned()).collect::<Vec<_>>();
    assert_eq!(kinds(&all), ["active", "removed"]);
    let own_kinds = kinds(&own);
    let told_of_domain: Vec<_> =
        own_kinds.iter().filter(|k| !k.starts_with("tenant") && !k.starts_with("webhook")).cloned().collect();
    assert_eq!(told_of_domain, told.rig.events(&ids).await);
    for got in &own {
        assert_eq!(got.headers["webhook-signature"], signature(got, &secret));
        assert_eq!(got.id, got.body["data"]["id"].as_str().unwrap());
        assert_eq!(got.body["data"]["kind"], got.body["type"]);
    }
    assert!(all.iter().all(|got| got.headers["webhook-signature"] == signature(got, &platform)));
    assert_eq!(all[0].body["data"]["hostname"], "support.acme.test");
}

#[tokio::test]
async fn nobody_hears_of_another_tenants_domains() {
    let told = Told::new(22).await;
    let (acme, other) = (told.rig.tenant("acme").await, told.rig.tenant("other").await);
    told.webhook(Some(&other), &["*"]).await;
    let id = told.rig.claim(&acme, "support.acme.test").await;
    told.rig.publish(&id, "support.acme.test").await;
    told.rig.until_active(&id, HOUR).await;
    told.beats(Duration::from_secs(60)).await;
    for got in told.receivers.tries() {
        assert_eq!(got.body["data"]["tenant_id"], other.as_str(), "{}", got.body);
    }
}

#[tokio::test]
async fn after_six_hours_of_outage_everything_is_delivered_once_and_in_order() {
    let told = Told::new(23).await;
    let tenant = told.rig.tenant("acme").await;
    told.webhook(Some(&tenant), &["*"]).await;
    told.receivers.down();
    let end = told.rig.env.now() + 6 * HOUR;
    let mut n = 0;
    while told.rig.env.now() < end {
        if n < 12 {
            let name = format!("n{n}.acme.test");
            let id = told.rig.claim(&tenant, &name).await;
            told.rig.publish(&id, &name).await;
            told.rig.until_active(&id, HOUR).await;
            n += 1;
        }
        told.beats(Duration::from_secs(600)).await;
    }
    let tried = told.receivers.tries().len();
    assert!((20..120).contains(&tried), "{tried} tries in six hours of outage");
    assert_eq!(told.receivers.taken().len(), 0);
    told.receivers.up();
    told.beats(Duration::from_secs(900)).await;
    assert_eq!(told.deliveries("pending").await, 0, "all of it within a quarter of an hour");
    once_and_in_order(&told).await;
    let of_domains_taken = told.receivers.taken().iter().filter(|got| !got.body["data"]["domain_id"].is_null()).count();
    assert_eq!(i64::try_from(of_domains_taken).unwrap(), of_domains(&told).await);
}

#[tokio::test]
async fn one_event_that_is_never_taken_holds_up_its_own_domain_only() {
    let told = Told::new(24).await;
    let tenant = told.rig.tenant("acme").await;
    told.webhook(Some(&tenant), &["*"]).await;
    told.receivers
        .answer(|got| Ok(if got.body["data"]["hostname"] == "a.acme.test" && got.kind() == "proven" { 500 } else { 200 }));
    for name in ["a.acme.test", "b.acme.test"] {
        let id = told.rig.claim(&tenant, name).await;
        told.rig.publish(&id, name).await;
        told.rig.until_active(&id, HOUR).await;
    }
    told.beats(HOUR).await;
    let of = |name: &str| {
        told.receivers
            .taken()
            .iter()
            .filter(|got| got.body["data"]["hostname"] == name)
            .map(|g| g.kind().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(of("b.acme.test").contains(&"active".to_owned()));
    assert!(!of("a.acme.test").contains(&"active".to_owned()) && of("a.acme.test").contains(&"claimed".to_owned()));
    // Days later it is given up, and the rest of that domain goes on in order; it can be sent again.
    for _ in 0..6 * 24 {
        told.beat().await;
        told.rig.hand.advance(HOUR);
    }
    assert!(of("a.acme.test").contains(&"active".to_owned()));
    assert_eq!(told.deliveries("given_up").await, 1);
    told.receivers.up();
    let place = told.rig.app.store.query(sql("SELECT id FROM webhook_endpoints")).await.unwrap()[0].parse("id").unwrap();
    let stmt = deliveries::replay_given_up(&place, crate::support::rig::START, told.rig.env.now());
    assert_eq!(told.rig.app.store.execute(stmt).await.unwrap(), 1);
    told.beats(HOUR).await;
    assert!(of("a.acme.test").contains(&"proven".to_owned()));
    assert_eq!(told.deliveries("pending").await + told.deliveries("given_up").await, 0);
}

#[tokio::test]
async fn a_place_that_is_gone_or_fails_for_days_is_switched_off_with_an_alert() {
    for (answer, within, why) in [(410_u16, HOUR, "gone"), (500, 6 * DAY, "failing")] {
        let told = Told::new(25).await;
        let tenant = told.rig.tenant("acme").await;
        let (id, _) = told.webhook(Some(&tenant), &["claimed"]).await;
        let (_, _) = told.webhook_at(None, "https://hooks.acme.test/ops", &["alert_raised", "webhook_disabled"]).await;
        told.receivers.answer(move |got| Ok(if got.url.ends_with("/ops") { 200 } else { answer }));
        for name in ["a.acme.test", "b.acme.test"] {
            told.rig.claim(&tenant, name).await;
        }
        let end = told.rig.env.now() + within;
        while told.rig.env.now() < end {
            told.beat().await;
            told.rig.hand.advance(Duration::from_secs(300));
        }
        let off = told
            .rig
            .app
            .store
            .query(sql("SELECT disabled_why AS why FROM webhook_endpoints WHERE disabled_at IS NOT NULL"))
            .await
            .unwrap();
        assert_eq!(off.iter().map(|row| row.text("why").unwrap()).collect::<Vec<_>>(), [why]);
        assert_eq!(told.receivers.kinds(), ["webhook_disabled", "alert_raised"]);
        let before = told.receivers.tries().len();
        told.beats(2 * HOUR).await;
        assert_eq!(told.receivers.tries().len(), before, "nothing is sent any more");
        // Nothing was lost: switched on again it gets what waited.
        told.receivers.up();
        let row =
            nameplate::store::webhooks::lookup(&mut told.rig.app.store.read().await.unwrap(), &id).await.unwrap().unwrap();
        assert!(webhooks::enable(&told.rig.app, &row, "operator").await.unwrap());
        told.beats(HOUR).await;
        assert!(told.receivers.kinds().contains(&"claimed".to_owned()), "{why}");
    }
}

#[tokio::test]
async fn a_replaced_secret_is_good_for_a_day_beside_the_new_one() {
    let told = Told::new(26).await;
    let tenant = told.rig.tenant("acme").await;
    let (id, old) = told.webhook(Some(&tenant), &["claimed"]).await;
    let row = nameplate::store::webhooks::lookup(&mut told.rig.app.store.read().await.unwrap(), &id).await.unwrap().unwrap();
    let mut tx = told.rig.app.store.begin().await.unwrap();
    let (new, _) = webhooks::rotate_in(&mut tx, &told.rig.app, &row, "operator").await.unwrap();
    tx.commit().await.unwrap();
    assert_ne!(new, old);
    told.rig.claim(&tenant, "a.acme.test").await;
    told.beats(Duration::from_secs(60)).await;
    told.rig.hand.advance(DAY);
    told.rig.claim(&tenant, "b.acme.test").await;
    told.beats(Duration::from_secs(60)).await;
    let got = told.receivers.taken();
    assert_eq!(got[0].headers["webhook-signature"], format!("{} {}", signature(&got[0], &new), signature(&got[0], &old)));
    assert_eq!(got[1].headers["webhook-signature"], signature(&got[1], &new));
    // Neither stands anywhere in the open.
    let pool = told.rig.app.store.sqlite_pool().unwrap();
    let stored: Vec<String> = sqlx::query_scalar("SELECT quote(secret) || quote(previous_secret) FROM webhook_endpoints")
        .fetch_all(pool)
        .await
        .unwrap();
    for secret in [&new, &old] {
        assert!(!stored[0].contains(secret.expose_str().unwrap()));
    }
}

/// A process dies between any two steps: nothing is lost, and what comes twice carries the same id.
#[tokio::test]
async fn whoever_dies_while_telling_loses_nothing_and_doubles_nothing_unmarked() {
    let mut places = BTreeSet::new();
    for cut in 1..=14 {
        let told = Told::new(27).await;
        let tenant = told.rig.tenant("acme").await;
        told.webhook(Some(&tenant), &["*"]).await;
        for name in ["a.acme.test", "b.acme.test"] {
            let id = told.rig.claim(&tenant, name).await;
            told.rig.publish(&id, name).await;
            told.rig.until_active(&id, HOUR).await;
        }
        told.number().await;
        let crossed = told.rig.scissors.crossed().len();
        told.rig.scissors.set(cut);
        tokio::select! {
            biased;
            _ = told.notifier.round() => {}
            () = told.rig.scissors.reached() => {}
        }
        told.rig.scissors.set(0);
        places.extend(told.rig.scissors.crossed().split_off(crossed).last().copied());
        let before = told.receivers.taken().len();
        told.rig.hand.advance(Duration::from_secs(120));
        told.beats(HOUR).await;
        assert_eq!(told.deliveries("pending").await, 0, "cut {cut}");
        let taken = told.receivers.taken();
        let ids: BTreeSet<&str> = taken.iter().map(|got| got.id.as_str()).collect();
        let log = told
            .rig
            .count(sql("SELECT count(*) AS n FROM events e WHERE e.tenant_id IS NOT NULL AND e.position > \
             (SELECT from_position FROM webhook_endpoints)"))
            .await;
        assert_eq!(i64::try_from(ids.len()).unwrap(), log, "cut {cut}");
        // Only what was under way when it died can have come twice.
        assert!(taken.len() - ids.len() <= before.min(8), "cut {cut}");
    }
    for place in ["before handed out", "handed out", "delivery taken", "delivery sent", "before delivery told"] {
        assert!(places.contains(place), "{place} in {places:?}");
    }
}

/// Two processes tell at the same time.
#[tokio::test]
async fn two_notifiers_at_once_send_nothing_twice() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(28, &test.url).await).await;
        let tenant = told.rig.tenant("acme").await;
        told.webhook(Some(&tenant), &["*"]).await;
        told.webhook_at(Some(&tenant), "https://hooks.acme.test/two", &["claimed"]).await;
        for n in 0..12 {
            told.rig.claim(&tenant, &format!("n{n}.acme.test")).await;
        }
        told.number().await;
        let rounds = (0..4).map(|_| told.notifier.round());
        for done in futures::future::join_all(rounds).await {
            // A database that was busy is asked again.
            drop(done);
        }
        told.beats(HOUR).await;
        let taken = told.receivers.taken();
        let unique: BTreeSet<_> = taken.iter().map(|got| (got.url.clone(), got.id.clone())).collect();
        assert_eq!(unique.len(), taken.len(), "{kind:?}");
        assert_eq!(told.receivers.kinds().iter().filter(|k| *k == "claimed").count(), 24, "{kind:?}");
        told.rig.app.store.close().await;
        test.remove().await;
    }
}
