//! What a hostile zone costs on the whole way: somebody presses "check now", the step is taken, the look passes the gate with its
//! real caps and limits, and every question is counted at the servers that it comes to, our own resolvers included.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nameplate::app::{App, account, advance, check, claim};
use nameplate::dns::world::{Who, ZoneStore};
use nameplate::dns::{AddressMap, Caps, Gate, Limits, Look, Observers, Settings};
use nameplate::env::Env;
use nameplate::jobs::door::Door;
use nameplate::jobs::queue::{Queue, QueueSettings};
use nameplate::model::hostname::Hostname;
use nameplate::model::id::{DomainId, TenantId};
use nameplate::model::look::{Ask, Seen};
use tokio_util::sync::CancellationToken;

use crate::support::dns_counted::{Counted, Manner};
use crate::support::rig::Rig;
use crate::support::stores::until;

/// Where all servers of hostile zones are: the first two numbers of their addresses.
const HOSTILE: [u8; 2] = [198, 51];

fn hostile(high: u8, low: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(HOSTILE[0], HOSTILE[1], high, low))
}

/// What a hostile zone looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zone {
    /// One server, and no records.
    Plain,
    /// Aliases that go round inside the zone and through another one, and delegations that need each other.
    Loops,
    /// Aliases through forty zones, for traffic and for the proof.
    Chain,
    /// Twenty servers with twenty addresses each.
    Crowd,
}

fn add(world: &ZoneStore, line: &str) {
    world.add(line).unwrap_or_else(|e| panic!("{line}: {e}"));
}

/// A world with our own zone and a hostile one that `name` lies in.
fn world(zone: Zone, name: &str) -> ZoneStore {
    let world = ZoneStore::new();
    world.add_zone("app.example", "ns1.app.example", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53)));
    add(&world, "*.app.example. 60 IN A 192.0.2.80");
    world.add_zone("evil.test", "ns.evil.test", hostile(0, 1));
    match zone {
        Zone::Plain => {}
        Zone::Loops => {
            world.add_zone("other.test", "ns.evil.test", hostile(0, 1));
            for (from, to) in [
                (name.to_owned(), "a.other.test".to_owned()),
                ("a.other.test".to_owned(), name.to_owned()),
                (format!("_nameplate-challenge.{name}"), "b.evil.test".to_owned()),
                ("b.evil.test".to_owned(), "c.evil.test".to_owned()),
                ("c.evil.test".to_owned(), "b.evil.test".to_owned()),
            ] {
                add(&world, &format!("{from}. 300 IN CNAME {to}."));
            }
            add(&world, "x.evil.test. 300 IN NS ns.y.evil.test.");
            add(&world, "y.evil.test. 300 IN NS ns.x.evil.test.");
        }
        Zone::Chain => {
            for i in 0..40_u8 {
                world.add_zone(&format!("z{i}.test"), &format!("ns.z{i}.test"), hostile(1, i));
                for label in ["a", "t"] {
                    add(&world, &format!("{label}.z{i}.test. 300 IN CNAME {label}.z{}.test.", i + 1));
                }
            }
            add(&world, &format!("{name}. 300 IN CNAME a.z0.test."));
            add(&world, &format!("_nameplate-challenge.{name}. 300 IN CNAME t.z0.test."));
        }
        Zone::Crowd => {
            for server in 0..20_u8 {
                add(&world, &format!("evil.test. 300 IN NS n{server}.evil.test."));
                for address in 0..20_u8 {
                    add(&world, &format!("n{server}.evil.test. 300 IN A {}", hostile(10 + server, address)));
                }
            }
        }
    }
    world
}

/// Keeps what each look saw and how long it took, its waiting at the gate included.
struct Kept {
    inner: Observers,
    looks: Mutex<Vec<(Seen, Duration)>>,
}

#[async_trait]
impl Look for Kept {
    async fn look(&self, ask: &Ask) -> Seen {
        let began = Env::real().now();
        let seen = self.inner.look(ask).await;
        self.looks.lock().unwrap().push((seen.clone(), Env::real().now().since(began)));
        seen
    }
}

/// All servers of one world, and who looks at it through a gate of its own.
struct Stage {
    look: Arc<Kept>,
    servers: Vec<Counted>,
}

impl Stage {
    async fn new(world: &ZoneStore, resolvers: Manner, servers: Manner) -> Stage {
        let mut running = Vec::new();
        let mut own = Vec::new();
        for label in ["own-a", "own-b", "own-c"] {
            let server = Counted::start(world, Who::Resolver(label.to_owned()), resolvers).await;
            own.push((label.to_owned(), server.at));
            running.push(server);
        }
        let mut table: Vec<(IpAddr, SocketAddr)> = Vec::new();
        let ours = Counted::start(world, Who::Server("ns1.app.example".to_owned()), Manner::Answers).await;
        table.push((IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53)), ours.at));
        let good = Counted::start(world, Who::Server("ns.good.test".to_owned()), Manner::Answers).await;
        table.push((IpAddr::V4(Ipv4Addr::new(192, 0, 2, 54)), good.at));
        let bad = Counted::start(world, Who::Server("ns.evil.test".to_owned()), servers).await;
        table.extend((0..=255).flat_map(|high| (0..=40).map(move |low| hostile(high, low))).map(|a| (a, bad.at)));
        for i in 0..40_u8 {
            let link = Counted::start(world, Who::Server(format!("ns.z{i}.test")), servers).await;
            table.retain(|(address, _)| *address != hostile(1, i));
            table.push((hostile(1, i), link.at));
            running.push(link);
        }
        running.extend([ours, good, bad]);
        let env = Env::real();
        let settings = Settings { resolvers: own, servers: AddressMap::table(table), limits: Limits::default() };
        let observers = Observers::new(settings, env.clone()).behind(Gate::new(Caps::default(), &env, Arc::default()));
        Stage { look: Arc::new(Kept { inner: observers, looks: Mutex::default() }), servers: running }
    }

    /// The rig's application by the real clock, looking at this stage.
    fn app(&self, rig: &Rig) -> App {
        App { env: Env::real(), look: self.look.clone(), ..rig.app.clone() }
    }

    fn asked(&self) -> usize {
        self.servers.iter().map(Counted::asked).sum()
    }
}

async fn claimed(app: &App, tenant: &TenantId, name: &str) -> DomainId {
    claim::claim(app, tenant, &Hostname::trusted(name), "tenant").await.unwrap().id
}

/// Presses the button and takes the step; what was spent, in questions, octets and time.
async fn pressed(rig: &Rig, tenant: &TenantId, n: usize, (zone, resolvers, servers): (Zone, Manner, Manner)) {
    let name = format!("shop{n}.evil.test");
    let stage = Stage::new(&world(zone, &name), resolvers, servers).await;
    let app = stage.app(rig);
    let id = claimed(&app, tenant, &name).await;
    check::check_now(&app, &id, "tenant").await.unwrap();
    advance::advance(&app, &id).await.unwrap();
    let about = format!("{zone:?}, resolvers {resolvers:?}, servers {servers:?}");
    assert_eq!(rig.domain_text(&id, "claim").await.unwrap(), "awaiting_dns", "{about}");
    let looks = stage.look.looks.lock().unwrap();
    assert_eq!(looks.len(), 1, "{about}");
    let (seen, took) = &looks[0];
    let octets: usize = seen.observations.iter().map(|o| o.answer.size).sum();
    println!("{about}: {} questions, {octets} octets, {took:?}, {:?}", stage.asked(), seen.cut_short);
    assert!(stage.asked() <= 64, "{about}: {} questions", stage.asked());
    assert!(octets <= 1_000_000, "{about}: {octets} octets");
    let full = octets > 20_000 || seen.cut_short.is_some();
    assert!(servers != Manner::Heaps || full, "{about}: only {octets} octets came");
    // Ten seconds, and what a busy machine takes to notice.
    assert!(*took <= Duration::from_secs(12), "{about}: {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_zone_makes_a_look_cost_more_than_was_promised() {
    use Manner::{Answers, Drips, Floods, Heaps, Refers, Silent};
    let rig = Rig::new(90).await;
    let tenant = rig.tenant("acme").await;
    account::ensure_all(&rig.app).await.unwrap();
    let mut cases = vec![
        (Zone::Plain, Answers, Floods),
        (Zone::Plain, Answers, Refers),
        (Zone::Plain, Refers, Refers),
        (Zone::Plain, Heaps, Heaps),
        (Zone::Plain, Answers, Heaps),
        (Zone::Plain, Drips, Drips),
        (Zone::Plain, Silent, Silent),
    ];
    for zone in [Zone::Loops, Zone::Chain, Zone::Crowd] {
        cases.extend([Answers, Silent, Drips, Heaps, Refers].map(|servers| (zone, Answers, servers)));
    }
    assert_eq!(cases.iter().map(|case| format!("{case:?}")).collect::<HashSet<_>>().len(), cases.len());
    let pressing = cases.into_iter().enumerate().map(|(n, case)| pressed(&rig, &tenant, n, case));
    futures::future::join_all(pressing).await;
}

/// Three tenants bring forty names each whose zones never answer, and the workers of one process have their hands full of them.
/// Whoever else presses the button is served at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_zones_keep_no_worker_from_whoever_asks() {
    let rig = Rig::new(91).await;
    let world = world(Zone::Plain, "shop.evil.test");
    for n in 0..120 {
        world.add_zone(&format!("evil{n}.test"), "ns.evil.test", hostile(0, 1));
    }
    world.add_zone("good.test", "ns.good.test", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 54)));
    let stage = Stage::new(&world, Manner::Answers, Manner::Silent).await;
    let app = stage.app(&rig);
    account::ensure_all(&app).await.unwrap();
    Queue::migrate(&app.store).await.unwrap();
    let queue = Queue::new(&app.store, &app.env, QueueSettings::default());
    let app = App { wake: Arc::new(queue.clone()), ..app };
    let mut evil = Vec::new();
    for tenant in ["bad-a", "bad-b", "bad-c"] {
        evil.push(rig.tenant(tenant).await);
    }
    let tenant = rig.tenant("acme").await;
    for n in 0..120 {
        claimed(&app, &evil[n % 3], &format!("shop.evil{n}.test")).await;
    }
    let stop = CancellationToken::new();
    let work = tokio::spawn({
        let (queue, step, stop) = (queue.clone(), Arc::new(Door::new(app.clone())), stop.clone());
        async move { queue.work(step, stop).await }
    });
    until("the workers have their hands full", || async { stage.asked() > 100 }).await;
    let mut waits = Vec::new();
    for n in 0..6 {
        let name = format!("shop{n}.good.test");
        let id = claimed(&app, &tenant, &name).await;
        let value = rig.value(&id).await;
        add(&world, &format!("{name}. 60 IN CNAME acme.app.example."));
        add(&world, &format!("_nameplate-challenge.{name}. 60 IN TXT \"{value}\""));
        let began = app.env.now();
        check::check_now(&app, &id, "tenant").await.unwrap();
        until("the name is proven", || async { rig.domain_text(&id, "claim").await.as_deref() == Some("queued") }).await;
        waits.push(app.env.now().since(began));
    }
    println!("{waits:?} beside {} questions to silent servers", stage.asked());
    assert!(waits.iter().all(|wait| *wait < Duration::from_secs(2)), "{waits:?}");
    stop.cancel();
    work.await.unwrap();
}
