//! Deliveries to real web servers on loopback, with the hand-driven clock: an outage of hours, a threshold, addresses that are
//! silent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nameplate::app::notify::{Notifier, NotifySettings};
use nameplate::app::webhooks::{self, NewWebhook};
use nameplate::env::Env;
use nameplate::model::hook_url::{HookHost, HookRules, HookUrl};
use nameplate::model::id::TenantId;
use nameplate::model::moment::Moment;
use nameplate::reach::ReachError;
use nameplate::reach::hook::{HookRequest, HookSettings, Hooks as _, HttpHooks};
use nameplate::store::sql;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::rig::Rig;
use crate::support::stores::{Kind, TestStore};
use crate::support::told::Told;

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3600);

/// How a receiver behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Takes,
    /// Accepts and hangs up.
    HangsUp,
    /// Reads all of it and hangs up.
    TakesWithoutAWord,
    /// Says so.
    OutOfOrder,
}

/// A receiver that keeps what it took.
#[derive(Clone)]
struct Receiver {
    at: SocketAddr,
    mood: Arc<Mutex<Mood>>,
    took: Arc<Mutex<Vec<(Moment, Value)>>>,
    asked: Arc<AtomicUsize>,
}

impl Receiver {
    async fn new(env: &Env) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Receiver {
            at: listener.local_addr().unwrap(),
            mood: Arc::new(Mutex::new(Mood::Takes)),
            took: Arc::default(),
            asked: Arc::default(),
        };
        let (own, env) = (receiver.clone(), env.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(own.clone().serve(stream, env.clone()));
            }
        });
        receiver
    }

    async fn serve(self, mut stream: TcpStream, env: Env) {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mood = *self.mood.lock().unwrap();
        if mood == Mood::HangsUp {
            return;
        }
        let Some(body) = read(&mut stream).await else { return };
        let answer = match mood {
            Mood::Takes => {
                self.took.lock().unwrap().push((env.now(), body));
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
            }
            Mood::OutOfOrder => "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
            Mood::TakesWithoutAWord | Mood::HangsUp => return,
        };
        let _ = stream.write_all(answer.as_bytes()).await;
    }

    fn took(&self) -> Vec<(Moment, Value)> {
        self.took.lock().unwrap().clone()
    }

    fn mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn url(&self) -> String {
        format!("http://{}/in", self.at)
    }
}

/// The body of one request.
async fn read(stream: &mut TcpStream) -> Option<Value> {
    let (mut text, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        let n = stream.read(&mut buffer).await.ok()?;
        if n == 0 {
            return None;
        }
        text.extend_from_slice(&buffer[..n]);
        let Some(end) = text.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&text[..end]).to_ascii_lowercase();
        let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
        if text.len() >= end + 4 + length {
            return serde_json::from_slice(&text[end + 4..end + 4 + length]).ok();
        }
    }
}

/// What sends to receivers of this machine, over sockets.
fn over_sockets(told: &mut Told) {
    let settings = HookSettings { loopback: true, timeout: Duration::from_secs(15) };
    let hooks = HttpHooks::new(&told.rig.env, settings, Some(rustls::RootCertStore::empty())).unwrap();
    let settings = NotifySettings { rules: rules(), ..NotifySettings::default() };
    told.notifier = Notifier::new(told.rig.app.clone(), Arc::new(hooks), None, settings);
}

fn rules() -> HookRules {
    HookRules { loopback: true, ..HookRules::default() }
}

async fn webhook(told: &Told, tenant: &TenantId, receiver: &Receiver, kinds: &[&str]) {
    let kinds: Vec<String> = kinds.iter().map(|k| (*k).to_owned()).collect();
    let new = NewWebhook { tenant: Some(tenant.clone()), url: &receiver.url(), kinds: &kinds };
    let mut tx = told.rig.app.store.begin().await.unwrap();
    webhooks::add_in(&mut tx, &told.rig.app, &rules(), new, "operator").await.unwrap();
    tx.commit().await.unwrap();
}

/// Six hours in which a receiver refuses connections' answers in every way; then everything is there once, in order per domain.
#[tokio::test]
async fn after_six_hours_of_outage_a_real_receiver_has_everything_once_and_in_order() {
    for kind in [Kind::SqliteFile, Kind::Postgres] {
        let test = TestStore::blank(kind).await;
        let mut told = Told::on(Rig::on(341, &test.url).await).await;
        over_sockets(&mut told);
        let (receiver, other) = (Receiver::new(&told.rig.env).await, Receiver::new(&told.rig.env).await);
        let tenant = told.rig.tenant("acme").await;
        webhook(&told, &tenant, &receiver, &["*"]).await;
        webhook(&told, &tenant, &other, &["*"]).await;
        let end = told.rig.env.now() + 6 * HOUR;
        for n in 0.. {
            if told.rig.env.now() >= end {
                break;
            }
            receiver.mood(if n % 2 == 0 { Mood::HangsUp } else { Mood::OutOfOrder });
            if n < 8 {
                let name = format!("n{n}.acme.test");
                let id = told.rig.claim(&tenant, &name).await;
                told.rig.publish(&id, &name).await;
                told.rig.until_active(&id, HOUR).await;
            }
            told.beats(Duration::from_secs(600)).await;
            assert!(other.took().len() > n.min(7), "the other one goes on");
        }
        assert!(receiver.took().is_empty());
        let tries = receiver.asked.load(Ordering::SeqCst);
        assert!((20..150).contains(&tries), "{tries} tries in six hours");
        receiver.mood(Mood::Takes);
        let back = told.rig.env.now();
        told.beats(Duration::from_secs(1200)).await;
        let took = receiver.took();
        let ids: BTreeSet<&str> = took.iter().map(|(_, body)| body["data"]["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), took.len(), "{kind:?}: something came twice");
        let log = told.rig.count(sql("SELECT count(*) AS n FROM events WHERE domain_id IS NOT NULL")).await;
        let of_domains = took.iter().filter(|(_, body)| !body["data"]["domain_id"].is_null()).count();
        assert_eq!(i64::try_from(of_domains).unwrap(), log, "{kind:?}");
        let mut last: BTreeMap<String, i64> = BTreeMap::new();
        for (_, body) in &took {
            let (domain, position) = (body["data"]["domain_id"].to_string(), body["data"]["position"].as_i64().unwrap());
            assert!(last.insert(domain, position).is_none_or(|before| before < position), "{body}");
        }
        let done = took.iter().map(|(at, _)| *at).max().unwrap();
        assert!(done.since(back) <= Duration::from_secs(900), "{kind:?}: all of it after {:?}", done.since(back));
        told.rig.app.store.close().await;
        test.remove().await;
    }
}

/// B91, B92: a threshold that is crossed is accepted by a web server in less than a minute, in steps of the loops' own pace.
#[tokio::test]
async fn a_threshold_crossed_is_accepted_by_a_real_receiver_within_a_minute() {
    for seed in 342..346 {
        let mut told = Told::new(seed).await;
        over_sockets(&mut told);
        let receiver = Receiver::new(&told.rig.env).await;
        let (tenant, ids) = told.live("acme", 1).await;
        told.beats(HOUR / 10).await;
        webhook(&told, &tenant, &receiver, &["certificate_ending"]).await;
        told.lives(&ids[0], 90 * DAY).await;
        let crossed = told.rig.env.now() + 90 * DAY * 3 / 4;
        // The loops stand anywhere in their pace.
        told.rig.hand.advance(90 * DAY * 3 / 4 - Duration::from_secs(seed % 20 + 40));
        told.beats(Duration::from_secs(120)).await;
        let took = receiver.took();
        assert_eq!(took.len(), 1);
        let late = took[0].0.since(crossed);
        assert!(took[0].0 >= crossed && late < Duration::from_secs(60), "{late:?}");
    }
}

/// A receiver that takes everything and hangs up gets everything again, under the same id, and nothing is lost.
#[tokio::test]
async fn a_receiver_that_never_says_so_is_sent_the_same_again_and_holds_up_nothing_else() {
    let mut told = Told::new(346).await;
    over_sockets(&mut told);
    let (silent, well) = (Receiver::new(&told.rig.env).await, Receiver::new(&told.rig.env).await);
    let tenant = told.rig.tenant("acme").await;
    webhook(&told, &tenant, &silent, &["claimed"]).await;
    webhook(&told, &tenant, &well, &["claimed"]).await;
    silent.mood(Mood::TakesWithoutAWord);
    told.rig.claim(&tenant, "a.acme.test").await;
    told.beats(HOUR).await;
    assert_eq!((well.took().len(), silent.took().len()), (1, 0));
    assert!(silent.asked.load(Ordering::SeqCst) > 3);
    silent.mood(Mood::Takes);
    told.beats(HOUR).await;
    assert_eq!(silent.took().len(), 1);
    assert_eq!(silent.took()[0].1["data"]["id"], well.took()[0].1["data"]["id"]);
}

/// An address that is silent, or refuses, is not the end of it: the next one of the same name is tried.
#[tokio::test]
async fn an_address_that_lets_nobody_in_makes_room_for_the_next() {
    let rig = Rig::new(347).await;
    let receiver = Receiver::new(&rig.env).await;
    let settings = HookSettings { loopback: true, timeout: Duration::from_secs(15) };
    let hooks = HttpHooks::new(&rig.env, settings, Some(rustls::RootCertStore::empty())).unwrap();
    let mut hook = HookUrl::read(&receiver.url(), &rules()).unwrap();
    hook.host = HookHost::Name(nameplate::model::hostname::Hostname::trusted("hooks.acme.test"));
    let request = HookRequest { headers: vec![], body: b"{}".to_vec() };
    // Nobody listens at 127.0.0.2; 10.0.0.1 is none to be asked; a listener whose queue is full lets nobody in.
    let addresses = |all: [&str; 3]| all.map(|a| a.parse().unwrap());
    let all = addresses(["10.0.0.1", "127.0.0.2", "127.0.0.1"]);
    assert_eq!(hooks.post(&hook, &all, &request).await.unwrap().status, 200);
    assert_eq!(receiver.took().len(), 1);
    // TLS that never comes about is no connection either: each address has five seconds, of virtual time here.
    let mute = TcpListener::bind("127.0.0.3:0").await.unwrap();
    let mut hook = HookUrl::read(&format!("https://127.0.0.3:{}/in", mute.local_addr().unwrap().port()), &rules()).unwrap();
    hook.host = HookHost::Name(nameplate::model::hostname::Hostname::trusted("hooks.acme.test"));
    let all = addresses(["127.0.0.3", "127.0.0.3", "127.0.0.3"]);
    let before = rig.env.now();
    let pushing = async {
        loop {
            if rig.hand.next_wake().is_some() {
                rig.hand.advance(Duration::from_secs(1));
            }
            tokio::task::yield_now().await;
        }
    };
    let answer = tokio::select! {
        answer = hooks.post(&hook, &all, &request) => answer,
        () = pushing => unreachable!(),
    };
    assert!(matches!(answer, Err(ReachError::Connect(e)) if e.kind() == std::io::ErrorKind::TimedOut));
    let took = rig.env.now().since(before);
    assert!((15..=20).contains(&took.as_secs()), "{took:?}");
}
