//! Webhooks: signed, in order, once, until they arrive; and safe from receivers of every kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nameplate::app::notify::{Notifier, NotifySettings};
use nameplate::app::{self, webhooks};
use nameplate::model::hook_url::{HookRules, HookUrl};
use nameplate::model::secret::Secret;
use nameplate::reach::ReachError;
use nameplate::reach::hook::{HookReply, HookRequest, HookSettings, Hooks as _, HttpHooks};
use nameplate::store::{deliveries, sql};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

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

// ---- Receivers over sockets ----

/// A receiver that does `what` with each connection; how many came.
async fn receiver<F, Fut>(what: F) -> (u16, Arc<AtomicUsize>)
where
    F: Fn(tokio::net::TcpStream) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, came) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&came);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(what(stream));
        }
    });
    (port, came)
}

async fn read_head(stream: &mut tokio::net::TcpStream) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while !text.windows(4).any(|w| w == b"\r\n\r\n") {
        let n = stream.read(&mut buffer).await.unwrap_or(0);
        if n == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..n]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn request() -> HookRequest {
    HookRequest { headers: vec![("webhook-id", "evt_1".to_owned())], body: b"{}".to_vec() }
}

/// Posts to a receiver of this machine, as a sandbox may; the hand moves on when nothing else does.
async fn post(rig: &Rig, url: &str, addresses: &[&str]) -> Result<HookReply, ReachError> {
    let settings = HookSettings { loopback: true, timeout: Duration::from_secs(15) };
    let hooks = HttpHooks::new(&rig.env, settings, Some(rustls::RootCertStore::empty())).unwrap();
    let hook = HookUrl::read(url, &HookRules { loopback: true, ..HookRules::default() }).unwrap();
    let addresses: Vec<_> = addresses.iter().map(|a| a.parse().unwrap()).collect();
    let over = AtomicBool::new(false);
    let pushing = async {
        // Real time for a receiver that answers, then virtual time for one that does not.
        let real = nameplate::env::Env::real();
        real.sleep(Duration::from_millis(400)).await;
        while !over.load(Ordering::SeqCst) {
            rig.hand.advance(Duration::from_secs(1));
            real.sleep(Duration::from_millis(5)).await;
        }
    };
    let request = request();
    tokio::select! {
        answer = hooks.post(&hook, &addresses, &request) => answer,
        () = pushing => unreachable!(),
    }
}

#[tokio::test]
async fn receivers_that_hang_stream_for_ever_or_talk_nonsense_cost_little() {
    let rig = Rig::new(29).await;
    let (port, _) = receiver(|mut s| async move {
        read_head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ngarbage").await;
    })
    .await;
    assert_eq!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await.unwrap().status, 200);
    let (port, _) = receiver(|mut s| async move {
        read_head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while s.write_all(&[b'x'; 65_536]).await.is_ok() {}
    })
    .await;
    assert_eq!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await.unwrap().status, 200);
    let (port, _) = receiver(|mut s| async move {
        read_head(&mut s).await;
        std::future::pending::<()>().await;
    })
    .await;
    let before = rig.env.now();
    assert!(matches!(
        post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await,
        Err(ReachError::TimedOut(_))
    ));
    assert!(rig.env.now().since(before) <= Duration::from_secs(20));
    // Headers without end, a byte at a time.
    let (port, _) = receiver(|mut s| async move {
        read_head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\n").await;
        loop {
            if s.write_all(b"x-more: and more\r\n").await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await.is_err());
    let (port, _) = receiver(|mut s| async move {
        let _ = s.write_all(b"220 mail.example ESMTP\r\n").await;
    })
    .await;
    assert!(matches!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await, Err(ReachError::Http(_))));
    // TLS with a certificate that nobody trusts.
    let (port, _) = receiver(|mut s| async move { drop(s.write_all(b"not TLS at all").await) }).await;
    assert!(matches!(post(&rig, &format!("https://127.0.0.1:{port}/in"), &["127.0.0.1"]).await, Err(ReachError::Tls(_))));
}

#[tokio::test]
async fn a_redirect_inwards_is_not_followed() {
    let rig = Rig::new(30).await;
    let (inside, came) = receiver(|_| async {}).await;
    let (port, _) = receiver(move |mut s| async move {
        read_head(&mut s).await;
        let answer = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:{inside}/admin\r\ncontent-length: 0\r\n\r\n"
        );
        let _ = s.write_all(answer.as_bytes()).await;
    })
    .await;
    assert_eq!(post(&rig, &format!("http://127.0.0.1:{port}/in"), &["127.0.0.1"]).await.unwrap().status, 307);
    assert_eq!(came.load(Ordering::SeqCst), 0);
}

/// B87: a name that leads elsewhere at the time of delivery than when it was added.
#[tokio::test]
async fn a_name_that_turns_inwards_is_refused_at_delivery() {
    let rig = Rig::new(31).await;
    let (port, came) = receiver(|mut s| async move {
        read_head(&mut s).await;
        let _ = s.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    let settings = HookSettings { loopback: false, timeout: Duration::from_secs(15) };
    let hooks = HttpHooks::new(&rig.env, settings, Some(rustls::RootCertStore::empty())).unwrap();
    let rules = HookRules { ports: vec![443, port], loopback: false };
    let hook = HookUrl::read(&format!("https://hooks.acme.test:{port}/in"), &rules).unwrap();
    for inward in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00::1", "0.0.0.0", "100.64.0.1"]
    {
        let answer = hooks.post(&hook, &[inward.parse().unwrap()], &request()).await;
        assert!(matches!(answer, Err(ReachError::Refused(_))), "{inward}: {answer:?}");
    }
    assert_eq!(came.load(Ordering::SeqCst), 0);

    // The same through the whole way: it is told as an error, and nothing is sent.
    let told = Told::on(rig).await;
    let tenant = told.rig.tenant("acme").await;
    told.rig.zones.add("inward.acme.test. 60 IN A 127.0.0.1").unwrap();
    told.webhook_at(Some(&tenant), "https://inward.acme.test/in", &["claimed"]).await;
    told.rig.claim(&tenant, "a.acme.test").await;
    told.number().await;
    let notifier = Notifier::new(told.rig.app.clone(), Arc::new(hooks), None, NotifySettings::default());
    assert_eq!(notifier.round().await.unwrap().tried, 1);
    let said = told.rig.app.store.query(sql("SELECT said FROM deliveries")).await.unwrap()[0].text("said").unwrap();
    assert!(said.contains("loopback"), "{said}");
}

#[tokio::test]
async fn a_request_is_whole_and_signed_on_the_wire() {
    let rig = Rig::new(32).await;
    let told = Told::on(rig).await;
    let heads = Arc::new(std::sync::Mutex::new(Vec::new()));
    let keep = Arc::clone(&heads);
    let (port, _) = receiver(move |mut s| {
        let keep = Arc::clone(&keep);
        async move {
            let head = read_head(&mut s).await;
            keep.lock().unwrap().push(head);
            let _ = s.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    })
    .await;
    let rules = HookRules { loopback: true, ..HookRules::default() };
    let kinds = ["claimed".to_owned()];
    let new = webhooks::NewWebhook { tenant: None, url: &format!("http://127.0.0.1:{port}/in?a=1"), kinds: &kinds };
    let mut tx = told.rig.app.store.begin().await.unwrap();
    webhooks::add_in(&mut tx, &told.rig.app, &rules, new, "operator").await.unwrap();
    tx.commit().await.unwrap();
    let tenant = told.rig.tenant("acme").await;
    told.rig.claim(&tenant, "a.acme.test").await;
    told.number().await;
    let settings = HookSettings { loopback: true, timeout: Duration::from_secs(15) };
    let hooks = HttpHooks::new(&told.rig.env, settings, Some(rustls::RootCertStore::empty())).unwrap();
    let notifier =
        Notifier::new(told.rig.app.clone(), Arc::new(hooks), None, NotifySettings { rules, ..NotifySettings::default() });
    assert_eq!(notifier.round().await.unwrap().delivered, 1);
    let head = heads.lock().unwrap()[0].to_ascii_lowercase();
    assert!(head.starts_with("post /in?a=1 http/1.1\r\n"), "{head}");
    for line in [
        format!("host: 127.0.0.1:{port}"),
        "content-type: application/json".into(),
        "webhook-id: evt_".into(),
        "webhook-timestamp: 18".into(),
        "webhook-signature: v1,".into(),
        "user-agent: nameplate/".into(),
    ] {
        assert!(head.contains(&line), "{line} in {head}");
    }
}
