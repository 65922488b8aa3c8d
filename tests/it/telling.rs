//! What each place believes: whoever was told that something began is told that it ended, however often it was told again, grew
//! tighter or was let go of meanwhile; and nobody hears of what is over.

use std::time::Duration;

use nameplate::app;
use nameplate::app::{clocks, contacts};
use nameplate::env::manual::Hand;
use nameplate::model::email::ContactKind;
use nameplate::model::id::{EventId, TenantId};
use nameplate::model::moment::Moment;
use nameplate::notify::mail::MailError;
use nameplate::reach::ReachError;
use nameplate::store::{alerts, feed, sql};

use crate::support::rig::Rig;
use crate::support::seed;
use crate::support::stores::{Kind, TestStore};
use crate::support::told::Told;

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);

async fn contact(told: &Told, tenant: &TenantId, address: &str) {
    let mut tx = told.rig.app.store.begin().await.unwrap();
    let kinds = [ContactKind::Certificates];
    contacts::add_in(&mut tx, &told.rig.env, tenant, address, &kinds, "operator").await.unwrap();
    tx.commit().await.unwrap();
}

/// A name with a certificate of 90 days of which this share, in hundredths, is left.
async fn with_left(told: &Told, percent: u32) -> (TenantId, nameplate::model::id::DomainId) {
    let (tenant, ids) = told.live("acme", 1).await;
    told.beats(HOUR).await;
    told.lives(&ids[0], 90 * DAY).await;
    told.rig.hand.advance(90 * DAY * (100 - percent) / 100);
    (tenant, ids[0].clone())
}

/// The place was told of 25 hundredths; while it takes nothing, ten are reached and the certificate is renewed.
#[tokio::test]
async fn an_alert_that_grew_tighter_and_ended_in_an_outage_is_told_as_over() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(301, &test.url).await).await;
        let (tenant, id) = with_left(&told, 24).await;
        contact(&told, &tenant, "certs@acme.test").await;
        told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
        told.beats(HOUR).await;
        assert_eq!(told.receivers.kinds(), ["certificate_ending"]);
        told.receivers.answer(|_| Ok(503));
        told.mailbox.refuse(Some(MailError::Unreachable("connection refused".into())));
        told.rig.hand.advance(90 * DAY * 15 / 100);
        told.beats(HOUR).await;
        told.renewed(&id, 90 * DAY).await;
        told.beats(HOUR).await;
        told.receivers.up();
        told.mailbox.refuse(None);
        told.beats(3 * HOUR).await;
        assert_eq!(told.receivers.kinds(), ["certificate_ending", "certificate_safe"], "{kind:?}");
        let mails: Vec<String> =
            told.mailbox.all().into_iter().filter(|m| m.to == "certs@acme.test").map(|m| m.text).collect();
        assert_eq!(mails.len(), 2, "{kind:?}: {mails:?}");
        assert!(mails[0].contains("25 %") && mails[1].contains("was replaced"), "{mails:?}");
        told.rig.app.store.close().await;
        test.remove().await;
    }
}

/// The platform's alert was told with a count of one; while the place takes nothing it grows tenfold, and ends.
#[tokio::test]
async fn an_alert_that_was_told_again_and_ended_in_an_outage_is_told_as_over() {
    let told = Told::new(302).await;
    let (_, ids) = told.live("acme", 12).await;
    told.beats(HOUR).await;
    told.webhook(None, &["alert_raised", "alert_resolved"]).await;
    for id in &ids {
        told.lives(id, 90 * DAY).await;
    }
    told.lives(&ids[0], 80 * DAY).await;
    told.rig.hand.advance(80 * DAY * 76 / 100);
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["alert_raised"]);
    told.receivers.answer(|_| Ok(503));
    told.rig.hand.advance(8 * DAY);
    told.beats(HOUR).await;
    assert!(told.logged("alert_raised").await >= 2, "it was told again");
    for id in &ids {
        told.renewed(id, 90 * DAY).await;
    }
    told.beats(HOUR).await;
    told.receivers.up();
    told.beats(3 * HOUR).await;
    assert_eq!(told.receivers.kinds(), ["alert_raised", "alert_resolved"]);
}

/// What was let go of is over for whoever was told, and for nobody else.
#[tokio::test]
async fn a_name_that_was_let_go_of_is_told_as_over_to_whoever_was_told() {
    let told = Told::new(303).await;
    let (tenant, id) = with_left(&told, 24).await;
    told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    told.beats(HOUR).await;
    // Another place comes when it is on its way already.
    told.webhook_at(Some(&tenant), "https://hooks.acme.test/late", &["certificate_ending", "certificate_safe"]).await;
    // And one wants to hear of ends alone.
    told.webhook_at(Some(&tenant), "https://hooks.acme.test/ends", &["certificate_safe"]).await;
    app::remove::remove(&told.rig.app, &id, "tenant").await.unwrap();
    told.beats(HOUR).await;
    let by = |path: &str| -> Vec<String> {
        told.receivers.taken().iter().filter(|got| got.url.ends_with(path)).map(|got| got.kind().to_owned()).collect()
    };
    assert_eq!(by("/in"), ["certificate_ending", "certificate_safe"]);
    assert_eq!(by("/late"), Vec::<String>::new());
    assert_eq!(by("/ends"), ["certificate_safe"]);
    assert_eq!(told.rig.count(sql("SELECT count(*) AS n FROM told")).await, 0, "nobody takes it for open");
}

/// A release that is undone brings the alert back, under its threshold.
#[tokio::test]
async fn a_release_that_is_undone_brings_its_alert_back() {
    let told = Told::new(304).await;
    let (tenant, id) = with_left(&told, 24).await;
    told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    told.beats(HOUR).await;
    for claim in ["releasing", "live"] {
        let stmt = sql("UPDATE domains SET claim = $2 WHERE id = $1").bind(id.as_str()).bind(claim);
        told.rig.app.store.execute(stmt).await.unwrap();
        told.touch_all().await;
        told.beats(HOUR).await;
    }
    assert_eq!(told.receivers.kinds(), ["certificate_ending", "certificate_safe", "certificate_ending"]);
    told.renewed(&id, 90 * DAY).await;
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds().last().unwrap(), "certificate_safe");
    assert_eq!(told.receivers.kinds().len(), 4);
}

/// A process that dies after the receiver took a beginning has forgotten nothing that its end needs; what surely never arrived has
/// no end.
#[tokio::test]
async fn what_may_have_arrived_is_told_as_over_and_what_surely_did_not_is_not() {
    for (arrives, wanted) in [(true, vec!["certificate_ending", "certificate_safe"]), (false, vec![])] {
        let told = Told::new(305).await;
        let (tenant, id) = with_left(&told, 24).await;
        told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
        told.watch().await;
        told.number().await;
        if !arrives {
            told.receivers.answer(|_| Err(ReachError::Connect(std::io::ErrorKind::ConnectionRefused.into())));
        }
        // Handed out (two boundaries), taken, sent.
        told.rig.scissors.set(4);
        tokio::select! {
            biased;
            _ = told.notifier.round() => {}
            () = told.rig.scissors.reached() => {}
        }
        told.rig.scissors.set(0);
        if !arrives {
            // The next process is told for sure that nothing got there.
            told.rig.hand.advance(Duration::from_secs(120));
            told.notifier.round().await.unwrap();
        }
        told.renewed(&id, 90 * DAY).await;
        told.watch().await;
        told.receivers.up();
        told.beats(HOUR).await;
        if arrives {
            assert_eq!(told.receivers.kinds(), wanted);
        } else {
            // The first process cannot have known; the end is told rather than kept back.
            assert!(told.receivers.kinds().iter().all(|kind| kind == "certificate_safe"), "{:?}", told.receivers.kinds());
        }
    }
    // Without anybody dying it is known.
    let told = Told::new(306).await;
    let (tenant, id) = with_left(&told, 24).await;
    told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    told.receivers.answer(|_| Err(ReachError::Connect(std::io::ErrorKind::ConnectionRefused.into())));
    told.beats(HOUR).await;
    told.renewed(&id, 90 * DAY).await;
    told.beats(HOUR).await;
    told.receivers.up();
    told.beats(HOUR).await;
    assert!(told.receivers.taken().is_empty(), "{:?}", told.receivers.kinds());
}

/// Somebody asks for an event again: it is sent, whatever became of what it tells.
#[tokio::test]
async fn what_is_asked_for_is_sent_though_it_is_over() {
    let told = Told::new(307).await;
    let (tenant, id) = with_left(&told, 24).await;
    let (place, _) = told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe"]).await;
    told.beats(HOUR).await;
    told.renewed(&id, 90 * DAY).await;
    told.beats(HOUR).await;
    let event = told.receivers.taken()[0].id.parse().unwrap();
    let stmt = nameplate::store::deliveries::replay(&place, &event, told.rig.env.now());
    assert_eq!(told.rig.app.store.execute(stmt).await.unwrap(), 1);
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["certificate_ending", "certificate_safe", "certificate_ending"]);
    assert!(alerts::list(&told.rig.app.store, &alerts::AlertFilter::default(), 9).await.unwrap().is_empty());
}

/// Names are looked at when something changed or a threshold is crossed: a pass over many that are well writes and reads nothing.
#[tokio::test]
async fn a_pass_looks_at_what_changed_and_at_nothing_else() {
    let told = Told::new(308).await;
    let (_, ids) = told.live("acme", 5).await;
    told.beats(HOUR).await;
    let due = || sql("SELECT count(*) AS n FROM expiry_looks WHERE due_at <= $1");
    assert_eq!(told.rig.count(due().bind(told.rig.env.now())).await, 0);
    // Each has a moment of its own, of its certificate.
    let set = sql("SELECT count(*) AS n FROM expiry_looks l JOIN domains d ON d.id = l.domain_id \
         WHERE l.due_at < d.certificate_until AND l.due_at > $1");
    assert_eq!(told.rig.count(set.bind(told.rig.env.now())).await, 5);
    // The one door makes a name due in the transaction that lets it go.
    app::remove::remove(&told.rig.app, &ids[0], "tenant").await.unwrap();
    assert_eq!(told.rig.count(due().bind(told.rig.env.now())).await, 1);
    told.watch().await;
    assert_eq!(told.rig.count(due().bind(told.rig.env.now())).await, 0);
    // With other thresholds every name is looked at once.
    let mut other = Told::on(told.rig).await;
    other.alerts = nameplate::app::alerts::AlertSettings::new(
        nameplate::model::alert::threshold::Thresholds::new([30, 5]).unwrap(),
        Duration::from_secs(600),
    );
    let before = "SELECT MIN(due_at) AS n FROM expiry_looks WHERE due_at > 0";
    let was = other.rig.count(sql(before)).await;
    other.watch().await;
    assert!(other.rig.count(sql(before)).await < was, "30 hundredths come before 25");
}

/// A look by a process whose clock is so far ahead, and what it told reaches those who hear.
async fn looks_ahead(told: &Told, by: Duration) {
    let mut app = told.rig.new_worker();
    app.env = Hand::new(told.rig.env.now() + by, 7).env();
    app::alerts::pass(&app, &told.alerts).await.unwrap();
    told.number().await;
    told.notifier.round().await.unwrap();
    assert!(clocks::mend(&told.rig.app).await.unwrap() > 0);
    assert_eq!(clocks::mend(&told.rig.app).await.unwrap(), 0, "once is enough");
    told.beats(Duration::from_secs(600)).await;
}

/// B53: what a clock said that ran ahead is taken back, told in its time, and what it put off is sent.
#[tokio::test]
async fn b53_what_was_told_by_a_clock_that_ran_ahead_is_taken_back_and_told_in_its_time() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(309, &test.url).await).await;
        let (tenant, ids) = told.live("acme", 1).await;
        told.beats(HOUR).await;
        told.webhook(Some(&tenant), &["certificate_ending", "certificate_safe", "claimed"]).await;
        contact(&told, &tenant, "dns@acme.test").await;
        told.lives(&ids[0], 90 * DAY).await;
        let begun = told.rig.env.now();
        told.beats(Duration::from_secs(60)).await;
        looks_ahead(&told, 85 * DAY).await;
        assert_eq!(told.receivers.kinds(), ["certificate_ending", "certificate_safe"]);
        assert_eq!(told.receivers.taken()[1].body["data"]["detail"]["why"], "mistaken");
        let until = |left: Duration| (begun + 90 * DAY - left).since(told.rig.env.now());
        told.rig.hand.advance(until(22 * DAY));
        told.beats(HOUR).await;
        // What is true already stays so.
        looks_ahead(&told, 17 * DAY).await;
        told.rig.hand.advance(until(8 * DAY));
        told.beats(HOUR).await;
        let thresholds: Vec<i64> = told
            .receivers
            .taken()
            .iter()
            .filter_map(|got| got.body["data"]["detail"]["threshold_percent"].as_i64())
            .collect();
        assert_eq!(thresholds, [10, 25, 10, 25, 10], "{kind:?}");
        // What it handed out and what it had in hand.
        told.rig.claim(&tenant, "late.acme.test").await;
        told.number().await;
        told.receivers.down();
        told.notifier.round().await.unwrap();
        told.receivers.up();
        let far = told.rig.env.now() + 40 * DAY;
        for stmt in [
            "UPDATE deliveries SET due_at = $1, leased_until = $1 WHERE state = 'pending'",
            "UPDATE webhook_endpoints SET not_before = $1",
            "UPDATE mail_items SET due_at = $1, leased_until = $1 WHERE state = 'pending'",
            "UPDATE alerts SET clear_since = $1 WHERE domain_id IS NULL AND resolved_at IS NULL",
        ] {
            told.rig.app.store.execute(sql(stmt).bind(far)).await.unwrap();
        }
        told.renewed(&ids[0], 90 * DAY).await;
        clocks::mend(&told.rig.app).await.unwrap();
        told.beats(HOUR).await;
        assert_eq!(told.deliveries("pending").await, 0, "{kind:?}");
        assert_eq!(told.rig.count(sql("SELECT count(*) AS n FROM mail_items WHERE state = 'pending'")).await, 0);
        let open = sql(
            "SELECT count(*) AS n FROM alerts WHERE resolved_at IS NULL AND (domain_id IS NOT NULL OR clear_since > $1)",
        );
        assert_eq!(told.rig.count(open.bind(told.rig.env.now())).await, 0, "{kind:?}");
        told.rig.app.store.close().await;
        test.remove().await;
    }
}

/// What happened to one domain comes in the order in which it happened, whatever the clocks of those who wrote it said.
#[tokio::test]
async fn events_of_a_domain_are_in_order_though_clocks_are_not() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let rig = Rig::on(310, &test.url).await;
        let store = &rig.app.store;
        let (tenant, domain) = (seed::tenant_id(1), seed::domain_id(1));
        store.execute(seed::tenant(&tenant, "acme")).await.unwrap();
        store.execute(seed::domain(&domain, &tenant, "shop.acme.test", Moment::NEVER)).await.unwrap();
        for (n, at) in [(1_u8, 100), (2, 90), (3, 95), (4, 120)] {
            let event = sql("INSERT INTO events (id, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
                 VALUES ($1, $2, $3, $4, 'claimed', 'tenant', '', '{}', $5)");
            let at = Moment::from_secs(at);
            let event = event.bind(EventId::mint(at, [n; 10]).as_str()).bind(tenant.as_str()).bind(domain.as_str());
            store.execute(event.bind(i64::from(n)).bind(at)).await.unwrap();
        }
        let mut tx = store.begin().await.unwrap();
        feed::number(&mut tx, "test", Moment::from_secs(130), 100).await.unwrap();
        tx.commit().await.unwrap();
        let rows =
            store.query(sql("SELECT domain_seq FROM events WHERE domain_seq IS NOT NULL ORDER BY position")).await.unwrap();
        let order: Vec<i64> = rows.iter().map(|row| row.int("domain_seq").unwrap()).collect();
        assert_eq!(order, [1, 2, 3, 4], "{kind:?}");
        store.close().await;
        test.remove().await;
    }
}
