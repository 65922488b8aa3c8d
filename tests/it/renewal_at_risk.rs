//! A renewal that what was last seen would refuse: told once with its day and what to do, to whoever must act, and over when it heals
//! or when the name is let go of. Silence tells nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use nameplate::app::{self, contacts};
use nameplate::dns::world::{Fault, How};
use nameplate::model::email::ContactKind;
use nameplate::model::id::{DomainId, TenantId};
use nameplate::model::moment::Moment;
use nameplate::notify::message::Message;
use nameplate::store::{alerts, sql};

use crate::preflight::{OURS, claimed, prove, world};
use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::told::{OPERATOR, Told};

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);
const KINDS: &[&str] = &["renewal_at_risk", "renewal_safe"];
const HOSTILE: &str = "acme.test. 60 IN CAA 0 issue \"other.example\"";
const READER: &str = "dns@acme.test";

async fn contact(told: &Told, tenant: &TenantId) {
    let mut tx = told.rig.app.store.begin().await.unwrap();
    let kinds = [ContactKind::Certificates];
    contacts::add_in(&mut tx, &told.rig.env, tenant, READER, &kinds, "operator").await.unwrap();
    tx.commit().await.unwrap();
}

/// A look at each name from everywhere, as somebody asks for.
async fn looked(told: &Told, ids: &[DomainId]) {
    for id in ids {
        app::check::check_now(&told.rig.app, id, "tenant").await.unwrap();
    }
    told.rig.pass(MINUTE).await;
}

async fn looked_and_told(told: &Told, ids: &[DomainId]) {
    looked(told, ids).await;
    told.beats(2 * MINUTE).await;
}

/// What is gathered for a day is written.
async fn a_day_later(told: &Told) {
    told.rig.hand.advance(DAY);
    told.beats(5 * MINUTE).await;
}

fn mails(told: &Told, to: &str) -> Vec<Message> {
    told.mailbox.all().into_iter().filter(|m| m.to == to).collect()
}

/// The codes that webhooks were told of.
fn codes(told: &Told) -> Vec<String> {
    let of = told.receivers.taken();
    let risks = of.iter().filter(|got| got.kind() == "renewal_at_risk");
    risks.map(|got| got.body["data"]["detail"]["code"].as_str().unwrap().to_owned()).collect()
}

/// What is asked of this name, and of its label for the proof, is answered like that; the receivers' own name is well.
fn spoilt(told: &Told, name: &str, how: Option<How>) {
    let of = |name: String, how| Fault { name, kind: None, how, below: false };
    let both = |how| [of(name.to_owned(), how), of(format!("_nameplate-challenge.{name}"), how)];
    told.rig.zones.set_faults(how.map(both).into_iter().flatten().collect());
}

/// When its renewal is due, and when its certificate ends.
async fn days_of(rig: &Rig, id: &DomainId) -> (Moment, Moment) {
    let stmt = sql("SELECT w.renew_at, c.not_after FROM renewals w JOIN certificates c ON c.id = w.certificate_id \
         WHERE w.domain_id = $1");
    let rows = rig.app.store.query(stmt.bind(id.as_str())).await.unwrap();
    (rows[0].moment("renew_at").unwrap(), rows[0].moment("not_after").unwrap())
}

#[tokio::test]
async fn b28_a_permission_that_was_taken_away_is_told_once_with_its_day_and_taken_back_when_it_heals() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(391, &test.url).await).await;
        let (tenant, ids) = told.live("acme", 1).await;
        contact(&told, &tenant).await;
        told.webhook(Some(&tenant), KINDS).await;
        told.rig.zones.add(HOSTILE).unwrap();
        looked_and_told(&told, &ids).await;
        let got = told.receivers.taken();
        assert_eq!(told.receivers.kinds(), ["renewal_at_risk"], "{kind:?}");
        let (at, end) = days_of(&told.rig, &ids[0]).await;
        let (data, detail) = (&got[0].body["data"], &got[0].body["data"]["detail"]);
        assert_eq!((data["hostname"].as_str(), detail["hostname"].as_str()), (Some("n0.acme.test"), Some("n0.acme.test")));
        assert_eq!((detail["check"].as_str(), detail["code"].as_str()), (Some("caa"), Some("caa_excludes_ca")));
        assert_eq!(
            (detail["cause"].as_str(), detail["found_at"].as_str()),
            (Some("tenant_dns/caa_excludes_ca"), Some("acme.test"))
        );
        assert_eq!(detail["renews_at"], at.rfc3339());
        assert_eq!(detail["not_after"], end.rfc3339());
        // Seen again it is nothing new; mail waits for a day, until every other name of the zone was met, too.
        looked_and_told(&told, &ids).await;
        assert!(mails(&told, READER).is_empty(), "{kind:?}");
        a_day_later(&told).await;
        looked_and_told(&told, &ids).await;
        a_day_later(&told).await;
        let written = mails(&told, READER);
        assert_eq!(written.len(), 1, "{kind:?}: {written:?}");
        for part in ["n0.acme.test will fail on", &at.in_words(), &end.in_words(), "acme.test CAA 0 issue"] {
            assert!(written[0].text.contains(part), "{part}: {}", written[0].text);
        }
        assert_eq!(told.receivers.kinds().len(), 1);
        // It heals: whoever was told hears that it is over.
        told.rig.zones.remove(HOSTILE).unwrap();
        looked_and_told(&told, &ids).await;
        assert_eq!(told.receivers.kinds(), KINDS, "{kind:?}");
        assert_eq!(told.receivers.taken()[1].body["data"]["detail"]["why"], "healed");
        a_day_later(&told).await;
        assert!(mails(&told, READER)[1].text.contains("not at risk any more"), "{:?}", mails(&told, READER));
        let store = &told.rig.app.store;
        assert!(alerts::list(store, &alerts::AlertFilter::default(), 9).await.unwrap().is_empty());
        let all = alerts::AlertFilter { resolved: true, tenant: Some(tenant), ..alerts::AlertFilter::default() };
        let over = alerts::list(store, &all, 9).await.unwrap();
        assert_eq!(over.len(), 1);
        assert_eq!(over[0].resolution.as_deref(), Some("healed"));
        // A second time is another story.
        told.rig.zones.add(HOSTILE).unwrap();
        looked_and_told(&told, &ids).await;
        assert_eq!(told.receivers.kinds().len(), 3, "{kind:?}");
        told.rig.app.store.close().await;
        test.remove().await;
    }
}

/// What is mended within the day is told to programs, and bothers nobody by mail.
#[tokio::test]
async fn what_heals_within_a_day_is_written_to_nobody() {
    let told = Told::new(392).await;
    let (tenant, ids) = told.live("acme", 1).await;
    contact(&told, &tenant).await;
    told.webhook(Some(&tenant), KINDS).await;
    told.rig.zones.add(HOSTILE).unwrap();
    looked_and_told(&told, &ids).await;
    told.rig.zones.remove(HOSTILE).unwrap();
    looked_and_told(&told, &ids).await;
    a_day_later(&told).await;
    a_day_later(&told).await;
    assert_eq!(told.receivers.kinds(), KINDS);
    assert!(mails(&told, READER).is_empty(), "{:?}", mails(&told, READER));
}

/// A routine look asks one resolver; it is confirmed from everywhere before anybody is told.
#[tokio::test]
async fn a_routine_look_alone_tells_nobody() {
    let mut told = Told::new(393).await;
    told.workers_gone = true;
    let (tenant, ids) = told.live("acme", 1).await;
    told.webhook(Some(&tenant), KINDS).await;
    app::routine::batch(&told.rig.app).await.unwrap();
    told.rig.zones.add(HOSTILE).unwrap();
    let mut differ = 0;
    for _ in 0..24 * 6 {
        told.rig.hand.advance(10 * MINUTE);
        loop {
            let batch = app::routine::batch(&told.rig.app).await.unwrap();
            differ += batch.differ;
            if !batch.more {
                break;
            }
        }
    }
    assert!(differ >= 1);
    told.watch().await;
    assert_eq!(told.logged("renewal_at_risk").await, 0);
    told.rig.edge_follows().await;
    told.rig.pass(MINUTE).await;
    told.watch().await;
    assert_eq!(told.logged("renewal_at_risk").await, 1, "{}", told.rig.story(&ids[0]).await);
}

/// Silence is no hostility, and no sign that it is over.
#[tokio::test]
async fn silence_neither_raises_nor_ends_anything() {
    for how in [How::ServFail, How::Timeout, How::Truncated] {
        let told = Told::new(394).await;
        let (tenant, ids) = told.live("acme", 1).await;
        told.webhook(Some(&tenant), KINDS).await;
        spoilt(&told, "n0.acme.test", Some(how));
        looked_and_told(&told, &ids).await;
        assert!(told.logged("evidence_changed").await > 0, "{how:?}: the silence was seen");
        assert_eq!(told.logged("renewal_at_risk").await, 0, "{how:?}");
        spoilt(&told, "n0.acme.test", None);
        told.rig.zones.add(HOSTILE).unwrap();
        told.rig.hand.advance(HOUR);
        looked_and_told(&told, &ids).await;
        assert_eq!(told.receivers.kinds(), ["renewal_at_risk"], "{how:?}");
        spoilt(&told, "n0.acme.test", Some(how));
        told.rig.hand.advance(HOUR);
        looked_and_told(&told, &ids).await;
        assert_eq!(told.receivers.kinds(), ["renewal_at_risk"], "{how:?}");
        assert_eq!(told.logged("renewal_safe").await, 0, "{how:?}: nothing was seen to be mended");
        spoilt(&told, "n0.acme.test", None);
        told.rig.zones.remove(HOSTILE).unwrap();
        told.rig.hand.advance(HOUR);
        looked_and_told(&told, &ids).await;
        assert_eq!(told.receivers.kinds(), KINDS, "{how:?}");
    }
}

/// Another cause for the same check is told as the same story, and a zone whose signatures are broken stands in the way once.
#[tokio::test]
async fn each_cause_is_told_once_and_all_of_a_check_have_one_end() {
    let rig = world(395).await;
    let id = claimed(&rig, "acme.test").await;
    rig.zones.add(&format!("acme.test. 60 IN A {OURS}")).unwrap();
    prove(&rig, &id, "acme.test").await;
    rig.until_active(&id, HOUR).await;
    let told = Told::on(rig).await;
    let ids = [id];
    told.webhook(None, KINDS).await;
    let elsewhere = "acme.test. 60 IN AAAA 2001:db8::666";
    told.rig.zones.add(elsewhere).unwrap();
    looked_and_told(&told, &ids).await;
    assert_eq!(codes(&told), ["aaaa_points_elsewhere"]);
    spoilt(&told, "acme.test", Some(How::Bogus));
    looked_and_told(&told, &ids).await;
    assert_eq!(codes(&told), ["aaaa_points_elsewhere", "dnssec_bogus"]);
    spoilt(&told, "acme.test", None);
    told.rig.zones.remove(elsewhere).unwrap();
    looked_and_told(&told, &ids).await;
    assert_eq!(told.receivers.kinds(), ["renewal_at_risk", "renewal_at_risk", "renewal_safe"]);
    // At the top of a zone the record is the tie: that the way is gone is told by nobody else.
    told.rig.zones.remove(&format!("acme.test. 60 IN A {OURS}")).unwrap();
    looked_and_told(&told, &ids).await;
    assert_eq!(codes(&told).last().map(String::as_str), Some("address_missing"));
    assert_eq!(told.logged("tie_weakened").await + told.logged("tie_lost").await, 0);
}

/// Where the way is a part of the tie, the tie tells of it, with the day on which that matters.
#[tokio::test]
async fn what_the_tie_tells_is_not_told_twice() {
    let told = Told::new(396).await;
    let (tenant, ids) = told.live("acme", 1).await;
    told.webhook(Some(&tenant), &["tie_weakened", "renewal_at_risk", "renewal_safe"]).await;
    let target = told.rig.domain_text(&ids[0], "target").await.unwrap();
    told.rig.zones.remove(&format!("n0.acme.test. 60 IN CNAME {target}.")).unwrap();
    told.rig.zones.add("elsewhere.test. 60 IN A 198.51.100.1").unwrap();
    told.rig.zones.add("n0.acme.test. 60 IN CNAME elsewhere.test.").unwrap();
    looked_and_told(&told, &ids).await;
    assert_eq!(told.receivers.kinds(), ["tie_weakened"]);
    let (at, _) = days_of(&told.rig, &ids[0]).await;
    let said = told.receivers.taken()[0].body["data"]["cause"].as_str().unwrap().to_owned();
    assert!(said.contains(&format!("Renewal will fail on {}", at.in_words())), "{said}");
}

#[tokio::test]
async fn a_name_that_is_let_go_of_is_at_risk_no_more() {
    let told = Told::new(397).await;
    let (tenant, ids) = told.live("acme", 2).await;
    told.webhook(Some(&tenant), KINDS).await;
    told.rig.zones.add(HOSTILE).unwrap();
    looked_and_told(&told, &ids).await;
    assert_eq!(told.receivers.kinds(), ["renewal_at_risk", "renewal_at_risk"]);
    app::remove::remove(&told.rig.app, &ids[0], "tenant").await.unwrap();
    told.beats(2 * MINUTE).await;
    let got = told.receivers.taken();
    assert_eq!(got.len(), 3);
    assert_eq!((got[2].kind(), got[2].body["data"]["detail"]["why"].as_str()), ("renewal_safe", Some("let_go")));
    assert_eq!(got[2].body["data"]["hostname"], "n0.acme.test");
    let open = alerts::list(&told.rig.app.store, &alerts::AlertFilter::default(), 9).await.unwrap();
    assert_eq!(open.iter().filter(|a| a.kind == "renewal_at_risk").count(), 1);
}

/// One record at the top of a zone concerns many names, which are met in the course of a day.
#[tokio::test]
async fn one_record_over_many_names_is_one_message_with_a_count() {
    let told = Told::new(398).await;
    let (tenant, ids) = told.live("acme", 30).await;
    contact(&told, &tenant).await;
    told.webhook(Some(&tenant), KINDS).await;
    for hostile in [true, false] {
        if hostile {
            told.rig.zones.add(HOSTILE).unwrap();
        } else {
            told.rig.zones.remove(HOSTILE).unwrap();
        }
        for some in ids.chunks(10) {
            looked_and_told(&told, some).await;
            told.rig.hand.advance(7 * HOUR);
        }
        told.beats(5 * MINUTE).await;
        a_day_later(&told).await;
    }
    let written = mails(&told, READER);
    assert_eq!(written.len(), 2, "{written:?}");
    assert!(written[0].subject.contains("30 renewals will fail for one cause"), "{}", written[0].subject);
    let text = &written[0].text;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(line.contains("The first is due on") && line.contains("CAA 0 issue") && text.len() < 4_000, "{text}");
    assert_eq!(told.receivers.kinds().len(), 60);
}

/// The platform's own record stands in the way: operators hear of it, once, and tenants do not.
#[tokio::test]
async fn what_the_platform_must_mend_is_told_to_operators_alone() {
    let told = Told::new(399).await;
    let (tenant, ids) = told.live("acme", 2).await;
    contact(&told, &tenant).await;
    told.webhook(Some(&tenant), KINDS).await;
    told.webhook_at(None, "https://hooks.acme.test/ops", &["renewal_at_risk", "alert_raised", "alert_resolved"]).await;
    told.rig.zones.add("acme.app.example. 60 IN A 192.0.2.80").unwrap();
    let ours = "acme.app.example. 60 IN CAA 0 issue \"other.example\"";
    told.rig.zones.add(ours).unwrap();
    looked_and_told(&told, &ids).await;
    let by = |place: &str, kind: &str| {
        let got = told.receivers.taken();
        got.iter().filter(|got| got.url.ends_with(place) && got.kind() == kind).count()
    };
    assert_eq!((by("/ops", "renewal_at_risk"), by("/ops", "alert_raised")), (2, 1));
    assert_eq!(by("/in", "renewal_at_risk"), 0);
    a_day_later(&told).await;
    assert!(mails(&told, READER).is_empty());
    let written = mails(&told, OPERATOR);
    assert_eq!(written.len(), 1, "{written:?}");
    assert!(written[0].text.contains("2 renewals will fail for one cause"), "{}", written[0].text);
    told.rig.zones.remove(ours).unwrap();
    looked_and_told(&told, &ids).await;
    told.beats(10 * MINUTE).await;
    assert_eq!((by("/ops", "alert_resolved"), by("/in", "renewal_safe")), (1, 0));
}

/// Whoever was told of a risk hears that it is over, also where it is the platform that stands in the way by then.
#[tokio::test]
async fn a_tenant_that_was_told_hears_of_the_end_whoever_had_to_act_last() {
    let told = Told::new(401).await;
    let (tenant, ids) = told.live("acme", 1).await;
    told.webhook(Some(&tenant), KINDS).await;
    told.rig.zones.add(HOSTILE).unwrap();
    looked_and_told(&told, &ids).await;
    assert_eq!(told.receivers.kinds(), ["renewal_at_risk"]);
    told.rig.zones.add("acme.app.example. 60 IN A 192.0.2.80").unwrap();
    let ours = "acme.app.example. 60 IN CAA 0 issue \"other.example\"";
    told.rig.zones.add(ours).unwrap();
    looked_and_told(&told, &ids).await;
    let open = alerts::list(&told.rig.app.store, &alerts::AlertFilter::default(), 9).await.unwrap();
    let cause = open.iter().find(|alert| alert.kind == "renewal_at_risk").map(|alert| alert.cause.as_str());
    assert_eq!(cause, Some("platform/caa_target_excludes_ca"));
    assert_eq!(told.receivers.kinds(), ["renewal_at_risk"], "that is the platform's to mend");
    told.rig.zones.remove(ours).unwrap();
    told.rig.zones.remove(HOSTILE).unwrap();
    looked_and_told(&told, &ids).await;
    assert_eq!(told.receivers.kinds(), KINDS);
}

/// A record that says something else at every look is written of after a day like any other.
#[tokio::test]
async fn causes_that_take_turns_put_no_mail_off() {
    let told = Told::new(402).await;
    let (tenant, ids) = told.live("acme", 1).await;
    contact(&told, &tenant).await;
    told.webhook(Some(&tenant), KINDS).await;
    let all = "acme.test. 60 IN CAA 0 issue \";\"";
    told.rig.zones.add(all).unwrap();
    for (new, old) in [(HOSTILE, all), (all, HOSTILE), (HOSTILE, all), (all, HOSTILE)] {
        told.rig.zones.remove(old).unwrap();
        told.rig.zones.add(new).unwrap();
        looked_and_told(&told, &ids).await;
        told.rig.hand.advance(5 * HOUR);
    }
    assert_eq!(codes(&told), ["caa_excludes_ca", "caa_forbids_all", "caa_excludes_ca", "caa_forbids_all"]);
    assert!(mails(&told, READER).is_empty(), "{:?}", mails(&told, READER));
    told.rig.hand.advance(4 * HOUR);
    told.beats(5 * MINUTE).await;
    assert_eq!(mails(&told, READER).len(), 1, "a day after it was raised");
}

/// The CA may ask for an earlier renewal while one is at risk.
#[tokio::test]
async fn an_open_alert_says_the_day_that_the_renewal_has_now() {
    let told = Told::new(403).await;
    let (_, ids) = told.live("acme", 1).await;
    told.rig.zones.add(HOSTILE).unwrap();
    looked_and_told(&told, &ids).await;
    let said = async || {
        let open = alerts::list(&told.rig.app.store, &alerts::AlertFilter::default(), 9).await.unwrap();
        open.into_iter().find(|alert| alert.kind == "renewal_at_risk").unwrap().said
    };
    let (first, _) = days_of(&told.rig, &ids[0]).await;
    assert!(said().await.contains(&format!("will fail on {}", first.in_words())));
    let moved = told.rig.env.now() + 3 * DAY;
    let stmt = sql("UPDATE renewals SET renew_at = $2 WHERE domain_id = $1").bind(ids[0].as_str()).bind(moved);
    told.rig.app.store.execute(stmt).await.unwrap();
    a_day_later(&told).await;
    assert!(said().await.contains(&format!("will fail on {}", moved.in_words())), "{}", said().await);
    assert_eq!(told.logged("renewal_at_risk").await, 1, "nobody is told a second time");
}

/// Whoever dies while raising, or while telling, leaves nothing untold and nothing told twice.
#[tokio::test]
async fn a_process_that_dies_between_raising_and_telling_loses_and_doubles_nothing() {
    for cut in 1..=6 {
        let told = Told::new(400).await;
        let (tenant, ids) = told.live("acme", 1).await;
        contact(&told, &tenant).await;
        told.webhook(Some(&tenant), KINDS).await;
        told.rig.zones.add(HOSTILE).unwrap();
        looked(&told, &ids).await;
        let life = async || {
            told.watch().await;
            told.number().await;
            told.notifier.round().await.unwrap();
        };
        for wait in [Duration::ZERO, DAY + HOUR] {
            told.rig.hand.advance(wait);
            told.rig.scissors.set(cut);
            tokio::select! {
                biased;
                () = life() => {}
                () = told.rig.scissors.reached() => {}
            }
            told.rig.scissors.set(0);
            // What the dead process had in hand is free again.
            told.rig.hand.advance(5 * MINUTE);
            told.beats(5 * MINUTE).await;
        }
        assert_eq!(told.logged("renewal_at_risk").await, 1, "cut {cut}");
        let webhooks: BTreeSet<String> = told.receivers.taken().iter().map(|got| got.id.clone()).collect();
        assert_eq!(webhooks.len(), 1, "cut {cut}: {:?}", told.receivers.kinds());
        let messages: BTreeSet<String> = mails(&told, READER).into_iter().map(|m| m.id).collect();
        assert_eq!(messages.len(), 1, "cut {cut}: {:?}", mails(&told, READER));
    }
}
