//! Mail: grouped, kept back when it is late, durable when the server is away, and never a flood.

use std::sync::Arc;
use std::time::Duration;

use nameplate::app::contacts;
use nameplate::config::{Config, MailConfig, Sources};
use nameplate::env::Env;
use nameplate::model::email::ContactKind;
use nameplate::model::id::TenantId;
use nameplate::model::moment::Moment;
use nameplate::notify::mail::{MailError, Mailer as _, Smtp};
use nameplate::notify::message::Message;
use nameplate::sandbox::mailbox::{Mailbox, Mood};
use nameplate::store::sql;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::rig::Rig;
use crate::support::told::{OPERATOR, Told};

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);

async fn contact(told: &Told, tenant: &TenantId, address: &str, kinds: &[ContactKind]) -> nameplate::model::id::ContactId {
    let mut tx = told.rig.app.store.begin().await.unwrap();
    let row = contacts::add_in(&mut tx, &told.rig.env, tenant, address, kinds, "operator").await.unwrap();
    tx.commit().await.unwrap();
    row.id
}

/// What came to an address.
fn to(told: &Told, address: &str) -> Vec<nameplate::notify::message::Message> {
    told.mailbox.all().into_iter().filter(|m| m.to == address).collect()
}

#[tokio::test]
async fn contacts_get_what_they_asked_for_and_no_more() {
    let told = Told::new(81).await;
    let tenant = told.rig.tenant("acme").await;
    contact(&told, &tenant, "dns@acme.test", &[ContactKind::Domains]).await;
    contact(&told, &tenant, "certs@acme.test", &[ContactKind::Certificates]).await;
    let other = told.rig.tenant("other").await;
    contact(&told, &other, "dns@other.test", ContactKind::ALL).await;
    let id = told.rig.claim(&tenant, "support.acme.test").await;
    told.rig.publish(&id, "support.acme.test").await;
    told.rig.until_active(&id, HOUR).await;
    told.beats(HOUR).await;
    let got = to(&told, "dns@acme.test");
    assert_eq!(got.len(), 1, "{got:?}");
    assert!(got[0].subject.contains("support.acme.test"), "{}", got[0].subject);
    assert!(to(&told, "certs@acme.test").is_empty() && to(&told, "dns@other.test").is_empty());
    told.lives(&id, 90 * DAY).await;
    told.rig.hand.advance(90 * DAY * 4 / 5);
    told.beats(HOUR).await;
    let got = to(&told, "certs@acme.test");
    assert_eq!(got.len(), 1);
    assert!(got[0].text.contains("less than 25 %") && got[0].html.contains("support.acme.test"));
    assert_eq!(to(&told, "dns@acme.test").len(), 1);
    let ops = to(&told, OPERATOR);
    assert!(ops.len() == 1 && ops[0].text.contains("1 certificate ends soon"), "{ops:?}");
}

#[tokio::test]
async fn operators_get_no_mail_of_kinds_that_they_do_not_want() {
    for (unwanted, mails) in [(vec!["mail_late"], 1), (vec!["mail_late", "certificates_ending"], 0)] {
        let told = Told::unwanting(Rig::new(97).await, &unwanted).await;
        let (_, ids) = told.live("acme", 1).await;
        told.webhook(None, &["alert_raised"]).await;
        told.lives(&ids[0], 90 * DAY).await;
        told.rig.hand.advance(90 * DAY * 4 / 5);
        told.beats(HOUR).await;
        assert_eq!(to(&told, OPERATOR).len(), mails, "{unwanted:?}");
        assert_eq!(told.receivers.kinds(), ["alert_raised"], "other channels tell of it");
    }
}

#[tokio::test]
async fn many_things_are_one_message_and_the_next_one_waits() {
    let told = Told::new(82).await;
    let (tenant, ids) = told.live("acme", 30).await;
    told.beats(HOUR).await;
    contact(&told, &tenant, "certs@acme.test", &[ContactKind::Certificates]).await;
    // Each crosses its threshold a little later than the one before.
    for (id, n) in ids.iter().zip(0..) {
        told.lives(id, 90 * DAY + n * Duration::from_secs(60)).await;
    }
    told.rig.hand.advance(90 * DAY * 3 / 4 - HOUR / 4);
    told.beats(3 * HOUR).await;
    let got = to(&told, "certs@acme.test");
    assert!((2..=6).contains(&got.len()), "{} messages for 30 certificates", got.len());
    let named: usize = (0..30).filter(|n| got.iter().any(|m| m.text.contains(&format!("n{n}.acme.test")))).count();
    assert_eq!(named, 30);
    assert_eq!(got.iter().map(|m| m.text.matches("ends on").count()).sum::<usize>(), 30, "each once");
    assert!(got.windows(2).all(|pair| pair[1].at.since(pair[0].at) >= Duration::from_secs(600)));
}

#[tokio::test]
async fn a_server_that_is_away_defers_or_refuses_loses_nothing_and_is_not_flooded() {
    for error in [MailError::Unreachable("connection refused".into()), MailError::Deferred("451 later".into())] {
        let told = Told::new(83).await;
        let tenant = told.rig.tenant("acme").await;
        contact(&told, &tenant, "dns@acme.test", &[ContactKind::Domains]).await;
        let id = told.rig.claim(&tenant, "support.acme.test").await;
        told.rig.publish(&id, "support.acme.test").await;
        told.rig.until_active(&id, HOUR).await;
        told.mailbox.refuse(Some(error));
        told.beats(6 * HOUR).await;
        let tries = *told.mailbox.tries.lock().unwrap();
        assert!((4..40).contains(&tries), "{tries} tries in six hours");
        told.mailbox.refuse(None);
        told.beats(6 * HOUR).await;
        assert_eq!(to(&told, "dns@acme.test").len(), 1);
        // That it was late was an alert for the operators.
        assert!(to(&told, OPERATOR).iter().any(|m| m.text.to_lowercase().contains("mail has not been taken")));
    }
    // A mailbox that is not there is not asked again.
    let told = Told::new(84).await;
    let tenant = told.rig.tenant("acme").await;
    contact(&told, &tenant, "gone@acme.test", &[ContactKind::Domains]).await;
    told.mailbox.refuse(Some(MailError::Refused("550 no such user".into())));
    let id = told.rig.claim(&tenant, "support.acme.test").await;
    told.rig.publish(&id, "support.acme.test").await;
    told.rig.until_active(&id, HOUR).await;
    told.beats(DAY).await;
    let rows =
        told.rig.app.store.query(sql("SELECT state, said FROM mail_items WHERE address = 'gone@acme.test'")).await.unwrap();
    assert_eq!(rows[0].text("state").unwrap(), "given_up");
    assert!(rows[0].text("said").unwrap().contains("550 no such user"));
}

#[tokio::test]
async fn nobody_is_written_to_who_was_removed_or_of_what_is_over() {
    let told = Told::new(85).await;
    let (tenant, ids) = told.live("acme", 1).await;
    told.beats(HOUR).await;
    let gone = contact(&told, &tenant, "gone@acme.test", &[ContactKind::Certificates]).await;
    contact(&told, &tenant, "here@acme.test", &[ContactKind::Certificates]).await;
    told.lives(&ids[0], 90 * DAY).await;
    told.rig.hand.advance(90 * DAY * 4 / 5);
    told.beat().await;
    contacts::remove(&told.rig.app.store, &told.rig.env, &tenant, &gone, "operator").await.unwrap();
    told.renewed(&ids[0], 90 * DAY).await;
    told.beats(HOUR).await;
    assert!(to(&told, "gone@acme.test").is_empty() && to(&told, "here@acme.test").is_empty());
    let open = sql("SELECT count(*) AS n FROM mail_items WHERE state = 'pending'");
    assert_eq!(told.rig.count(open).await, 0);
}

#[tokio::test]
async fn whoever_dies_while_writing_loses_nothing() {
    for cut in 1..=8 {
        let told = Told::new(86).await;
        let tenant = told.rig.tenant("acme").await;
        contact(&told, &tenant, "dns@acme.test", &[ContactKind::Domains]).await;
        let id = told.rig.claim(&tenant, "support.acme.test").await;
        told.rig.publish(&id, "support.acme.test").await;
        told.rig.until_active(&id, HOUR).await;
        told.number().await;
        told.notifier.round().await.unwrap();
        told.rig.hand.advance(Duration::from_secs(60));
        let crossed = told.rig.scissors.crossed().len();
        told.rig.scissors.set(cut);
        tokio::select! {
            biased;
            _ = told.notifier.round() => {}
            () = told.rig.scissors.reached() => {}
        }
        told.rig.scissors.set(0);
        let last = told.rig.scissors.crossed().split_off(crossed).last().copied();
        told.rig.hand.advance(Duration::from_secs(300));
        told.beats(HOUR).await;
        let got = to(&told, "dns@acme.test");
        let unique: std::collections::BTreeSet<_> = got.iter().map(|m| m.id.clone()).collect();
        assert_eq!(unique.len(), 1, "cut {cut} at {last:?}: {got:?}");
        assert!(got.len() == 1 || last == Some("mail sent"), "cut {cut} at {last:?}");
    }
}

// ---- Over sockets ----

/// A mailbox behind a socket, over TLS with this certificate where there is one; and its address.
async fn served(tls: Option<&rcgen::CertifiedKey<rcgen::KeyPair>>) -> (Mailbox, u16) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, mailbox) = (listener.local_addr().unwrap().port(), Mailbox::default());
    let config = tls.map(|own| {
        let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let chain = vec![own.cert.der().clone()];
        Arc::new(rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap())
    });
    tokio::spawn(mailbox.clone().serve(listener, config));
    (mailbox, port)
}

fn config(port: u16, tls: &str) -> MailConfig {
    let text = format!(
        "[mail]\nserver = \"127.0.0.1\"\nport = {port}\ntls = \"{tls}\"\nfrom = \"domains@app.example\"\nfrom_name = \"Acme, \\\"Domains\\\" <x>\"\n"
    );
    Config::read(Sources::none().file("test", text)).unwrap().mail.unwrap()
}

fn letter(subject: &str) -> Message {
    Message {
        to: "dns@acme.test".into(),
        id: "evt_1".into(),
        at: Moment::from_secs(1_800_000_000),
        subject: subject.into(),
        text: ".a line with a dot\n\u{fc}mlaut\n".into(),
        html: "<p>\u{fc}</p>".into(),
    }
}

#[tokio::test]
async fn a_message_arrives_whole_and_nothing_breaks_out_of_its_head() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let (mailbox, port) = served(None).await;
    let smtp = Smtp::new(&Env::real(), &config(port, "none"), None).unwrap();
    smtp.send(&letter("plain")).await.unwrap();
    smtp.send(&letter("x\r\nBcc: evil@example.com\r\n\r\nBody")).await.unwrap();
    let got = mailbox.letters();
    assert_eq!(
        (got.len(), got[0].from.as_str(), got[0].to.as_slice()),
        (2, "domains@app.example", ["dns@acme.test".to_owned()].as_slice())
    );
    let head = got[0].text.split("\n\n").next().unwrap();
    for line in [
        "Subject: plain",
        "Message-ID: <evt_1@app.example>",
        "Auto-Submitted: auto-generated",
        "To: dns@acme.test",
        "Content-Type: multipart/alternative",
    ] {
        assert!(head.contains(line), "{line} in {head}");
    }
    assert!(head.contains("Date: Fri, 15 Jan 2027 08:00:00"), "{head}");
    assert!(got[0].text.contains("text/plain") && got[0].text.contains("text/html"));
    let hostile = got[1].text.split("\n\n").next().unwrap();
    assert!(!hostile.lines().any(|line| line.to_ascii_lowercase().starts_with("bcc")), "{hostile}");
    assert_eq!(got[1].to, ["dns@acme.test"]);
    // An address that is none never becomes an addressee.
    for to in ["a@acme.test\r\nRCPT TO:<evil@example.com>", "a@acme.test, b@acme.test", "", "<a@acme.test>"] {
        let wrong = Message { to: to.into(), ..letter("x") };
        assert!(matches!(smtp.send(&wrong).await, Err(MailError::Unusable(_))), "{to:?}");
    }
    assert_eq!(mailbox.letters().len(), 2);
}

#[tokio::test]
async fn servers_of_every_mood_are_told_apart() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let (mailbox, port) = served(None).await;
    let smtp = Smtp::new(&Env::real(), &config(port, "none"), None).unwrap();
    mailbox.moods([Mood::Defer, Mood::Refuse, Mood::HangUp]);
    assert!(matches!(smtp.send(&letter("1")).await, Err(MailError::Deferred(said)) if said.contains("come again later")));
    assert!(matches!(smtp.send(&letter("2")).await, Err(MailError::Refused(said)) if said.contains("nobody of that name")));
    assert!(matches!(smtp.send(&letter("3")).await, Err(MailError::Broken(_))), "it may have been taken");
    smtp.send(&letter("4")).await.unwrap();
    assert_eq!(mailbox.letters().len(), 1);
    let nobody = Smtp::new(&Env::real(), &config(1, "none"), None).unwrap();
    assert!(matches!(nobody.send(&letter("5")).await, Err(MailError::Unreachable(_))));
}

/// A server that says these things, one after each line that it gets; after the last it does what `then` does.
async fn saying<F, Fut>(lines: &'static [&'static str], then: F) -> u16
where
    F: Fn(tokio::net::TcpStream) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            for line in lines {
                if stream.write_all(line.as_bytes()).await.is_err() || stream.read(&mut buffer).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            tokio::spawn(then(stream));
        }
    });
    port
}

/// A server that is silent, talks nonsense, or is lost in the middle: each is told apart from a refusal, in bounded time.
#[tokio::test]
async fn servers_that_are_silent_talk_nonsense_or_are_lost_cost_a_bounded_time() {
    const WELCOME: &[&str] = &["220 mail ESMTP\r\n", "250 mail\r\n", "250 ok\r\n", "250 ok\r\n", "354 go on\r\n"];
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let hand = nameplate::env::manual::Hand::new(Moment::from_secs(1_800_000_000), 1);
    let env = hand.env();
    let send = async |port: u16| {
        let smtp = Smtp::new(&env, &config(port, "none"), None).unwrap();
        let pushing = async {
            let real = Env::real();
            real.sleep(Duration::from_millis(300)).await;
            loop {
                hand.advance(Duration::from_secs(5));
                real.sleep(Duration::from_millis(5)).await;
            }
        };
        let letter = letter("x");
        tokio::select! {
            answer = smtp.send(&letter) => answer,
            () = pushing => unreachable!(),
        }
    };
    let before = env.now();
    let silent = saying(&[], |stream| async move {
        let _kept = stream;
        std::future::pending::<()>().await;
    })
    .await;
    assert!(matches!(send(silent).await, Err(MailError::Broken(_))));
    assert!(env.now().since(before) <= Duration::from_secs(120));
    for nonsense in [&["HTTP/1.1 400 Bad Request\r\n\r\n"][..], &["\u{0}\u{1}\r\n"], &["220"], &["999 what\r\n"]] {
        let port = saying(nonsense, |stream| async move { drop(stream) }).await;
        let answer = send(port).await;
        assert!(matches!(answer, Err(MailError::Broken(_) | MailError::Unreachable(_))), "{nonsense:?}: {answer:?}");
    }
    // The message was handed over, and no word came back: it may have been taken.
    let lost = saying(WELCOME, |stream| async move { drop(stream) }).await;
    assert!(matches!(send(lost).await, Err(MailError::Broken(_))));
    // No longer welcome.
    let closing = saying(&["421 mail closing\r\n"], |stream| async move { drop(stream) }).await;
    assert!(matches!(send(closing).await, Err(MailError::Unreachable(said)) if said.contains("421")));
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_gets_no_mail() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (mailbox, port) = served(Some(&own)).await;
    let trusting = |pem: String| Smtp::new(&Env::real(), &config(port, "implicit"), Some(pem.as_bytes())).unwrap();
    assert!(matches!(trusting(other.cert.pem()).send(&letter("1")).await, Err(MailError::Unreachable(_))));
    let system = Smtp::new(&Env::real(), &config(port, "implicit"), None).unwrap();
    assert!(matches!(system.send(&letter("2")).await, Err(MailError::Unreachable(_))));
    // STARTTLS that is not offered is no reason to go on in the clear.
    let (open, plain) = served(None).await;
    let starting = Smtp::new(&Env::real(), &config(plain, "starttls"), None).unwrap();
    assert!(starting.send(&letter("3")).await.is_err());
    assert!(open.letters().is_empty() && mailbox.letters().is_empty());
    trusting(own.cert.pem()).send(&letter("4")).await.unwrap();
    assert_eq!(mailbox.letters().len(), 1);
}

#[test]
fn mail_without_protection_is_for_this_machine_only() {
    let told = |text: &str| Config::read(Sources::none().file("test", text)).map(|_| ()).map_err(|e| format!("{e:?}"));
    assert!(told("[mail]\nserver = \"mail.example\"\nfrom = \"a@b.co\"\n").is_ok());
    for (text, why) in [
        ("[mail]\nserver = \"mail.example\"\n", "mail.from"),
        ("[mail]\nserver = \"mail.example\"\nfrom = \"a@b.co\"\ntls = \"none\"\n", "mail.tls"),
        ("[mail]\nserver = \"mail.example\"\nfrom = \"a@b.co\\r\\nBcc: x\"\n", "mail.from"),
        ("[mail]\nserver = \"mail.example\"\nfrom = \"a@b.co\"\nuser = \"me\"\n", "mail.user"),
        ("[mail]\nserver = \"mail.example\"\nfrom = \"a@b.co\"\noperators = [\"nobody\"]\n", "mail.operators"),
        ("[alerts]\nexpiry_percent = [80]\n", "alerts.expiry_percent"),
    ] {
        let said = told(text).unwrap_err();
        assert!(said.contains(why), "{text}: {said}");
    }
}
