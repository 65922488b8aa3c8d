//! Mail per address: what one reader gets is one message with a count; who is no addressee any more gets nothing; and what was
//! given up is told by another channel.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nameplate::app::contacts;
use nameplate::app::notify::{Notifier, NotifySettings};
use nameplate::model::email::ContactKind;
use nameplate::model::id::TenantId;
use nameplate::notify::mail::MailError;
use nameplate::notify::message::Message;
use nameplate::store::sql;

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::told::{OPERATOR, Told};

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);

async fn contact(told: &Told, tenant: &TenantId, address: &str, kinds: &[ContactKind]) {
    let mut tx = told.rig.app.store.begin().await.unwrap();
    contacts::add_in(&mut tx, &told.rig.env, tenant, address, kinds, "operator").await.unwrap();
    tx.commit().await.unwrap();
}

fn to(told: &Told, address: &str) -> Vec<Message> {
    told.mailbox.all().into_iter().filter(|m| m.to == address).collect()
}

/// A claim of a tenant that nobody publishes, and 31 days: one mail of the kind `domains`.
async fn expired(told: &Told, tenant: &TenantId, name: &str) {
    told.rig.claim(tenant, name).await;
    told.rig.pass_quickly(31 * DAY).await;
}

/// B92: an agency looks after many tenants; one outage of the CA is one message to it, with a count.
#[tokio::test]
async fn b92_one_cause_over_many_tenants_of_one_reader_is_one_message_with_a_count() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let told = Told::on(Rig::on(381, &test.url).await).await;
        let mut names = Vec::new();
        for n in 0..30 {
            let (tenant, ids) = told.live(&format!("t{n}"), 1).await;
            contact(&told, &tenant, "agency@acme.test", &[ContactKind::Certificates]).await;
            names.extend(ids);
        }
        told.beats(HOUR / 10).await;
        for id in &names {
            told.lives(id, 90 * DAY).await;
        }
        told.rig.hand.advance(90 * DAY * 4 / 5);
        told.beats(HOUR).await;
        let mails = to(&told, "agency@acme.test");
        assert_eq!(mails.len(), 1, "{kind:?}: {mails:?}");
        assert!(mails[0].subject.contains("30 certificates end soon for one cause"), "{}", mails[0].subject);
        assert!(mails[0].text.contains("and 10 more") && mails[0].text.len() < 4_000, "{}", mails[0].text);
        assert_eq!(mails[0].html.matches("<li>").count(), 1);
        // All of them renewed: one message, too.
        for id in &names {
            told.renewed(id, 90 * DAY).await;
        }
        told.beats(HOUR).await;
        assert_eq!(to(&told, "agency@acme.test").len(), 2, "{kind:?}");
        told.rig.app.store.close().await;
        test.remove().await;
    }
}

#[tokio::test]
async fn an_operator_who_was_removed_gets_nothing_that_waits() {
    let told = Told::new(382).await;
    let (_, ids) = told.live("acme", 1).await;
    told.beats(HOUR / 10).await;
    told.lives(&ids[0], 90 * DAY).await;
    told.rig.hand.advance(90 * DAY * 4 / 5);
    told.mailbox.refuse(Some(MailError::Unreachable("away".into())));
    told.beats(HOUR / 2).await;
    let waits = sql("SELECT count(*) AS n FROM mail_items WHERE state = 'pending' AND address = $1").bind(OPERATOR);
    assert!(told.rig.count(waits.clone()).await > 0);
    told.mailbox.refuse(None);
    // The process starts again with another list.
    let settings = NotifySettings { operators: vec!["new@platform.example".to_owned()], ..NotifySettings::default() };
    let mailer = Arc::new(told.mailbox.clone());
    let told = Told {
        notifier: Notifier::new(told.rig.app.clone(), Arc::new(told.receivers.clone()), Some(mailer), settings),
        ..told
    };
    told.beats(3 * HOUR).await;
    assert!(to(&told, OPERATOR).is_empty());
    assert_eq!(told.rig.count(waits).await, 0, "and nothing waits for them");
}

/// Two messages have two names, whatever they share; the same message tried again keeps its own.
#[tokio::test]
async fn no_two_messages_have_one_name() {
    let told = Told::new(383).await;
    let tenant = told.rig.tenant("acme").await;
    for address in ["a@acme.test", "b@acme.test"] {
        contact(&told, &tenant, address, &[ContactKind::Domains]).await;
    }
    told.mailbox.refuse(Some(MailError::Deferred("451 later".into())));
    expired(&told, &tenant, "one.acme.test").await;
    told.beats(HOUR).await;
    expired(&told, &tenant, "two.acme.test").await;
    told.beats(HOUR).await;
    told.mailbox.refuse(None);
    told.beats(6 * HOUR).await;
    let sent = told.mailbox.all();
    let names: BTreeSet<&str> = sent.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(names.len(), sent.len(), "{sent:?}");
    // Tried again with the same things it is the same message, with more things another one.
    let tried = told.mailbox.tried.lock().unwrap().clone();
    let of_a: Vec<&str> = tried.iter().filter(|(to, _)| to == "a@acme.test").map(|(_, id)| id.as_str()).collect();
    let different: BTreeSet<&&str> = of_a.iter().collect();
    assert!(of_a.len() > different.len() && different.len() == 2, "{of_a:?}");
}

#[tokio::test]
async fn mail_that_was_given_up_is_told_by_another_channel() {
    let told = Told::new(384).await;
    let tenant = told.rig.tenant("acme").await;
    contact(&told, &tenant, "gone@acme.test", &[ContactKind::Domains]).await;
    told.webhook(None, &["alert_raised", "alert_resolved"]).await;
    told.mailbox.refuse(Some(MailError::Refused("550 no such user".into())));
    expired(&told, &tenant, "one.acme.test").await;
    told.beats(HOUR).await;
    let raised = told.receivers.taken();
    assert_eq!(raised.len(), 1, "{:?}", told.receivers.kinds());
    assert_eq!(raised[0].body["data"]["detail"]["kind"], "mail_given_up");
    assert!(!raised[0].body.to_string().contains("gone@acme.test"), "an address is nobody else's business");
    // A day without more of it, and it is over.
    told.mailbox.refuse(None);
    told.rig.hand.advance(DAY);
    told.beats(HOUR).await;
    assert_eq!(told.receivers.kinds(), ["alert_raised", "alert_resolved"]);
}

/// A server that is away, however long, is nobody's refusal; one that puts an address off is not asked more often because more
/// waits for it.
#[tokio::test]
async fn days_without_a_server_lose_nothing_and_new_things_make_no_flood() {
    for (error, most) in [
        (MailError::Unreachable("connection refused".into()), 4 * 24 + 20),
        (MailError::Broken("it hung up".into()), 4 * 24 + 20),
        (MailError::Deferred("451 greylisted".into()), 60),
    ] {
        let told = Told::new(385).await;
        let tenant = told.rig.tenant("acme").await;
        contact(&told, &tenant, "dns@acme.test", &[ContactKind::Domains]).await;
        told.mailbox.refuse(Some(error.clone()));
        for n in 0..20 {
            told.rig.claim(&tenant, &format!("n{n}.acme.test")).await;
            told.rig.hand.advance(Duration::from_secs(60));
        }
        told.rig.pass_quickly(31 * DAY).await;
        let end = told.rig.env.now() + if matches!(error, MailError::Deferred(_)) { 2 * DAY } else { 4 * DAY };
        while told.rig.env.now() < end {
            told.beat().await;
            told.rig.hand.advance(Duration::from_secs(1180));
        }
        let tried = told.mailbox.tried.lock().unwrap().iter().filter(|(to, _)| to == "dns@acme.test").count();
        assert!((5..=most).contains(&tried), "{error:?}: {tried} tries");
        assert_eq!(told.rig.count(sql("SELECT count(*) AS n FROM mail_items WHERE state = 'given_up'")).await, 0);
        told.mailbox.refuse(None);
        told.rig.hand.advance(25 * HOUR);
        told.beats(HOUR).await;
        assert_eq!(to(&told, "dns@acme.test").len(), 1);
        assert!(to(&told, "dns@acme.test")[0].text.contains("20 things happened"));
    }
}

/// A clock that jumped forward and back keeps nobody from being written to.
#[tokio::test]
async fn a_clock_that_jumps_keeps_no_mail_back() {
    let told = Told::new(386).await;
    let tenant = told.rig.tenant("acme").await;
    contact(&told, &tenant, "dns@acme.test", &[ContactKind::Domains]).await;
    expired(&told, &tenant, "one.acme.test").await;
    told.beats(HOUR).await;
    assert_eq!(to(&told, "dns@acme.test").len(), 1);
    // What was sent was sent by a clock a month ahead.
    let ahead = told.rig.env.now() + 30 * DAY;
    told.rig.app.store.execute(sql("UPDATE mail_items SET done_at = $1").bind(ahead)).await.unwrap();
    expired(&told, &tenant, "two.acme.test").await;
    told.rig
        .app
        .store
        .execute(sql("UPDATE mail_items SET done_at = $1 WHERE done_at IS NOT NULL").bind(ahead + 30 * DAY))
        .await
        .unwrap();
    told.beats(HOUR).await;
    assert_eq!(to(&told, "dns@acme.test").len(), 2);
}
