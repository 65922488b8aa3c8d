//! Somebody tries to make us flood a stranger's name server, with everything a tenant can do.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nameplate::dns::{AddressMap, Caps, Gate, Limits, Look, Observers, Settings, wire};
use nameplate::env::Env;
use nameplate::env::manual::Hand;
use nameplate::model::id::TenantId;
use nameplate::model::look::{Ask, Lane, Turn};
use nameplate::model::moment::Moment;
use nameplate::model::traffic::Cap;
use nameplate::sandbox::dns::{DnsServer, Sockets, Who, ZoneStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::task::AbortOnDropHandle;

use crate::support::dns_ask::{caa, ownership, routing, world};

/// The server that everything is aimed at.
struct Victim {
    at: SocketAddr,
    came: Arc<Mutex<Vec<Moment>>>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

/// What it does with a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answers,
    /// Everything is sent again after a while, and hangs meanwhile.
    Silent,
    /// Everything comes again by TCP.
    Cuts,
}

async fn victim(world: &ZoneStore, manner: Manner, env: &Env) -> Victim {
    let Sockets { udp, tcp } = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
    let at = tcp.local_addr().unwrap();
    let came = Arc::new(Mutex::new(Vec::new()));
    let (packets_env, count, zones) = (env.clone(), came.clone(), world.clone());
    let who = Who::Server("ns1.dns.example".to_owned());
    let packets = tokio::spawn(async move {
        let mut octets = vec![0; 4096];
        loop {
            let Ok((length, from)) = udp.recv_from(&mut octets).await else { continue };
            count.lock().unwrap().push(packets_env.now());
            let Some(asked) = wire::asked(&octets[..length]) else { continue };
            let answer = match (manner, zones.answer(&who, &asked.name, asked.kind)) {
                (Manner::Silent, _) => continue,
                (Manner::Cuts, _) => wire::cut(&asked, false).unwrap(),
                (Manner::Answers, nameplate::dns::world::Reply::Answer(a)) => wire::reply(&asked, &a, false, 1232).unwrap(),
                (Manner::Answers, _) => continue,
            };
            let _ = udp.send_to(&answer, from).await;
        }
    });
    let (env, count) = (env.clone(), came.clone());
    let streams = tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = tcp.accept().await else { continue };
            count.lock().unwrap().push(env.now());
            tokio::spawn(async move {
                let _ = stream.read_u16().await;
                let _ = stream.write_all(&[0, 0]).await;
            });
        }
    });
    Victim { at, came, _tasks: [AbortOnDropHandle::new(packets), AbortOnDropHandle::new(streams)] }
}

impl Victim {
    fn count(&self) -> usize {
        self.came.lock().unwrap().len()
    }

    /// The most that came in any second.
    fn most_in_a_second(&self) -> usize {
        let came = self.came.lock().unwrap();
        let within = |from: &Moment| came.iter().filter(|t| **t >= *from && t.since(*from) < Duration::from_secs(1)).count();
        came.iter().map(within).max().unwrap_or(0)
    }
}

const ZONES: usize = 60;

/// Zones of many tenants, all at the victim's: plain ones, one with hundreds of servers, one that refers deeper and deeper.
fn aimed() -> (ZoneStore, Vec<String>, Vec<IpAddr>) {
    let victim = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let (world, mut names, mut addresses) = (world(&[]), vec!["shop.example.com".to_owned()], vec![victim]);
    for n in 0..ZONES {
        let zone = format!("aimed-{n}.test");
        world.add_zone(&zone, "ns1.dns.example", victim);
        names.push(format!("shop.{zone}"));
    }
    world.add_zone("many.test", "ns1.dns.example", victim);
    for n in 0..300_u16 {
        let [high, low] = n.to_be_bytes();
        let address = Ipv4Addr::new(198, 18, high, low);
        world.add(&format!("many.test. 300 IN NS ns{n}.many.test.")).unwrap();
        world.add(&format!("ns{n}.many.test. 300 IN A {address}")).unwrap();
        addresses.push(IpAddr::V4(address));
    }
    names.extend((0..20).map(|n| format!("x{n}.many.test")));
    world.add_zone("deep.test", "ns1.dns.example", victim);
    let mut zone = "deep.test".to_owned();
    for n in 0..8 {
        zone = format!("d{n}.{zone}");
        for glue in 0..20 {
            world.add(&format!("{zone}. 300 IN NS g{glue}.{zone}.")).unwrap();
            world.add(&format!("g{glue}.{zone}. 300 IN A 192.0.2.1")).unwrap();
        }
    }
    names.push(format!("shop.{zone}"));
    (world, names, addresses)
}

fn everything(hostname: &str, turn: Turn) -> Ask {
    let mut ask = ownership(hostname);
    ask.routing = routing(hostname).routing;
    ask.caa = caa(hostname).caa;
    ask.turn = turn;
    ask
}

const PER_SECOND: u32 = 40;

/// Between a packet's turn and its arrival lie some turns of the runtime, for which others may catch up with it.
const LATE: usize = 6;

/// How far the clock moves at once.
const TICK: Duration = Duration::from_millis(5);

/// A clock that goes with the real one but stands still while this process waits for a processor. Sender and victim read the same:
/// a packet whose turn came before such a wait and which is taken after it is no faster than it was sent.
fn running_time() -> (Env, AbortOnDropHandle<()>) {
    let real = Env::real();
    let hand = Hand::new(real.now(), 1);
    let env = hand.env();
    let goes = tokio::spawn(async move {
        loop {
            real.sleep(TICK).await;
            hand.advance(TICK);
        }
    });
    (env, AbortOnDropHandle::new(goes))
}

async fn never_above_the_cap(manner: Manner) {
    let (world, names, addresses) = aimed();
    let (env, _goes) = running_time();
    let victim = victim(&world, manner, &env).await;
    let mut resolvers = Vec::new();
    let mut running = Vec::new();
    for label in ["own-a", "own-b"] {
        let sockets = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
        let server = DnsServer::start(world.clone(), Who::Resolver(label.to_owned()), sockets).unwrap();
        resolvers.push((label.to_owned(), server.address()));
        running.push(server);
    }
    let caps = Caps { server: Cap::new(PER_SECOND, 16), ..Caps::default() };
    let limits = Limits { per_query: Duration::from_millis(600), time: Duration::from_secs(2), ..Limits::default() };
    let settings = Settings { resolvers, servers: AddressMap::table(addresses.into_iter().map(|a| (a, victim.at))), limits };
    let gate = Gate::new(caps, &env, Arc::default());
    let observers = Observers::new(settings, env.clone()).behind(gate.clone());
    let began = env.now();
    let (asked, next) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let names = Arc::new(names);
    // A hundred buttons of twenty tenants, pressed again as soon as they answer.
    let mut pressing = Vec::new();
    for n in 0..100_u8 {
        let (observers, env, asked, next, names) =
            (observers.clone(), env.clone(), asked.clone(), next.clone(), names.clone());
        pressing.push(tokio::spawn(async move {
            while env.now().since(began) < Duration::from_secs(4) {
                let name = &names[next.fetch_add(1, Ordering::Relaxed) % names.len()];
                let tenant = TenantId::mint(Moment::from_secs(1), [n % 20; 10]);
                let lane = Lane::ALL[usize::from(n) % 4];
                // Without patience at all it would be put off at once, which floods nobody either.
                let turn = Turn { patience: Some(Duration::from_millis(800)), ..Turn::of(&tenant, lane) };
                let seen = observers.look(&everything(name, turn)).await;
                asked.fetch_add(1, Ordering::Relaxed);
                if seen.put_off.is_some() {
                    assert!(seen.put_off > Some(Duration::ZERO));
                    // Who comes back sooner than told is put off again.
                    env.sleep(Duration::from_millis(3)).await;
                }
            }
        }));
    }
    for press in pressing {
        press.await.unwrap();
    }
    let ran = env.now().since(began);
    let (most, all) = (victim.most_in_a_second(), victim.count());
    let cap = PER_SECOND as usize;
    println!("{all} packets in {ran:?}, {most} at most in a second; {} looks", asked.load(Ordering::Relaxed));
    assert!(most <= cap + LATE, "{most} packets in one second");
    assert!(all as f64 <= f64::from(PER_SECOND) * (ran.as_secs_f64() + 1.0), "{all} packets in {ran:?}");
    assert!(asked.load(Ordering::Relaxed) > 100, "nobody tried very hard");
    let (looks, packets) = gate.rows();
    assert!(looks < 2_000 && packets < 100, "{looks} and {packets} rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_gets_no_more_than_its_cap() {
    never_above_the_cap(Manner::Answers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_silent_gets_no_more_than_its_cap() {
    never_above_the_cap(Manner::Silent).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_sends_everybody_to_tcp_gets_no_more_than_its_cap() {
    never_above_the_cap(Manner::Cuts).await;
}
