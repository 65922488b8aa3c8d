//! The daily looks at 200,000 live domains of 1,000 tenants, all of them due at once: how long they take, how much memory, and what
//! is written, when nothing changed and when a hundred names did; on SQLite, and with 20,000 domains on PostgreSQL.
//!
//! Run `./scripts/test only --release --bench recheck`, which starts a PostgreSQL; without one (`cargo bench --bench recheck`) SQLite
//! alone is measured. A number at the end (`-- 2000`) takes so many domains instead.
//!
//! The zones' servers and three resolvers answer on loopback from a process of their own, this program started once more: their
//! memory is not the product's, their time is, since both share the processors. The looks are the product's own batches,
//! observers and judges; the gate has caps that let everything through, because what is measured is how fast they could go and
//! not how evenly they are spread. The day is over at once by the clock that the batches read, which then keeps pace with the
//! real one. Names that differ are then moved on through the one door. It fails when a pass takes longer than 10 minutes, memory
//! grows by more than 100 MB, anything is not seen, or more is written than time and changes explain.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt as _;
use nameplate::app::{account, advance, routine};
use nameplate::dns::world::{Who, ZoneStore};
use nameplate::dns::{AddressMap, Caps, Gate, Limits, Look, Observers, Settings};
use nameplate::env::Env;
use nameplate::env::manual::Hand;
use nameplate::model::id::DomainId;
use nameplate::model::look::{Ask, Seen};
use nameplate::model::traffic::Cap;
use nameplate::sandbox::dns::{DnsServer, Sockets};
use nameplate::store::{issuers, sql};
use sqlx::{Connection as _, PgConnection};

#[path = "../tests/it/support"]
mod support {
    pub mod fleet_seed;
    pub mod kernel;
    #[expect(dead_code, reason = "the tests use more of the rig than the benchmark does")]
    pub mod rig;
    #[expect(dead_code, reason = "the benchmark starts no CA")]
    pub mod services;
    #[expect(dead_code, reason = "the tests use more kinds of store than the benchmark does")]
    pub mod stores;
}

use support::rig::{Rig, START};
use support::stores::{Kind, TestStore, until};
use support::{fleet_seed, kernel};

const DOMAINS: i64 = 200_000;
const DOMAINS_ON_POSTGRES: i64 = 20_000;
const DOMAINS_OF_A_TENANT: i64 = 200;
const CHANGED: i64 = 100;

const LONGEST: Duration = Duration::from_secs(600);
const GROWTH_KB: u64 = 100 * 1024;
/// How far a pass has come is written so often, and a few times at its ends.
const WRITES_EVERY: Duration = Duration::from_secs(10);
const WRITES_AT_ENDS: u64 = 5;
/// Rows for a name that changed: its evidence, events, what is told of it.
const WRITES_A_CHANGE: u64 = 30;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The part of the day whose slots have no name in this fleet, whose ids end in digits: no name comes round twice in a pass.
const EVENING: Duration = Duration::from_secs(7 * 3600);
const TICK: Duration = Duration::from_millis(100);

const RESOLVERS: [&str; 3] = ["a", "b", "c"];
/// Hosters, each with one name server that serves many zones; behind them in the table comes the platform's own.
const HOSTERS: u8 = 8;

fn tenants(domains: i64) -> i64 {
    (domains / DOMAINS_OF_A_TENANT).max(1)
}

/// How many names change in a fleet.
fn changed(domains: i64) -> i64 {
    CHANGED.min(domains / 100)
}

/// The `n`-th name that changes, one whose certificate is not due for renewal.
fn changing(n: i64) -> i64 {
    60 + n * 88
}

// ---------------------------------------------------------------------------------------------- the servers' process

fn address(server: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1 + server))
}

/// Everything published as each tenant was told to, in a zone of each name's own.
fn world(domains: i64) -> ZoneStore {
    let world = ZoneStore::new();
    world.add_zone("test", "ns.registry.test", address(HOSTERS));
    world.add_zone("app.example", "ns1.app.example", address(HOSTERS));
    world.add("*.app.example. 300 IN A 192.0.2.80").unwrap();
    for hoster in 0..HOSTERS {
        world.add_zone(&format!("hoster-{hoster}.test"), &format!("ns1.hoster-{hoster}.test"), address(hoster));
    }
    for n in 0..domains {
        let hoster = u8::try_from(n % i64::from(HOSTERS)).unwrap();
        world.add_zone(&format!("customer{n}.test"), &format!("ns1.hoster-{hoster}.test"), address(hoster));
        let target = format!("tenant-{}.app.example", n % tenants(domains));
        world.add(&format!("support{n}.customer{n}.test. 300 IN CNAME {target}.")).unwrap();
        world.add(&ownership(n)).unwrap();
    }
    world
}

fn ownership(n: i64) -> String {
    format!("_nameplate-challenge.support{n}.customer{n}.test. 300 IN TXT \"nameplate-verify={n:032}\"")
}

/// Half of the names that change lose their TXT record, the other half get a CAA record that excludes our CA.
fn change(world: &ZoneStore, many: i64) {
    for n in 0..many {
        let at = changing(n);
        match n % 2 {
            0 => world.remove(&ownership(at)).unwrap(),
            _ => drop(world.add(&format!("customer{at}.test. 300 IN CAA 0 issue \"other.example\"")).unwrap()),
        }
    }
}

/// Serves until nobody listens any more; a line on the standard input changes so many names.
async fn serve(domains: i64) {
    let world = world(domains);
    let resolvers = RESOLVERS.map(|label| Who::Resolver(label.to_owned()));
    let hosters = (0..HOSTERS).map(|n| Who::Server(format!("ns1.hoster-{n}.test")));
    let mut servers = Vec::new();
    for role in resolvers.into_iter().chain(hosters).chain([Who::Server("ns1.app.example".to_owned())]) {
        let sockets = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
        servers.push(DnsServer::start(world.clone(), role, sockets).unwrap());
    }
    let places: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    println!("{}", places.join(" "));
    for line in std::io::stdin().lines() {
        change(&world, line.unwrap().parse().unwrap());
        println!("changed");
    }
}

/// The process with the servers; it ends when this is dropped.
struct Servers {
    process: Child,
    says: BufReader<ChildStdout>,
    places: Vec<SocketAddr>,
}

impl Servers {
    fn start(domains: i64) -> Servers {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["serve", &domains.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let says = BufReader::new(process.stdout.take().unwrap());
        let mut servers = Servers { process, says, places: Vec::new() };
        servers.places = servers.line().split_whitespace().map(|place| place.parse().unwrap()).collect();
        servers
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line
    }

    fn change(&mut self, many: i64) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{many}").unwrap();
        assert_eq!(self.line(), "changed\n");
    }

    fn observers(&self) -> Observers {
        let (resolvers, servers) = self.places.split_at(RESOLVERS.len());
        let settings = Settings {
            resolvers: RESOLVERS.iter().zip(resolvers).map(|(label, place)| ((*label).to_owned(), *place)).collect(),
            servers: AddressMap::table((0..).map(address).zip(servers.iter().copied())),
            limits: Limits::default(),
        };
        let much = Cap::new(1_000_000, 1_000_000);
        let caps = Caps { looks: much, zone: much, tenant: much, imports: much, packets: much, server: much };
        // The network knows no clock but the real one.
        let env = Env::real();
        Observers::new(settings, env.clone()).behind(Gate::new(caps, &env, Arc::default()))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

// ------------------------------------------------------------------------------------------------------ what is measured

/// What a part of the work took.
struct Spent {
    time: Duration,
    /// Of processors, by this process and by the servers.
    cpu: (f64, f64),
    /// Resident memory at its beginning and at most.
    memory: (u64, u64),
    rows: u64,
    /// Written to files: what SQLite wrote.
    bytes: u64,
}

/// Seconds of processors that a process has used.
fn cpu(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, behind_name) = stat.rsplit_once(") ").unwrap();
    let ticks = behind_name.split_whitespace().skip(11).take(2).map(|n| n.parse::<u32>().unwrap());
    ticks.map(f64::from).sum::<f64>() / 100.0
}

/// Bytes that this process has written to files.
fn bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

/// The real looks, and the first of them that was left without an answer: figures with such would be worth nothing.
struct Answered {
    looks: Observers,
    not: OnceLock<String>,
}

#[async_trait]
impl Look for Answered {
    async fn look(&self, ask: &Ask) -> Seen {
        let seen = self.looks.look(ask).await;
        let lost = seen.observations.iter().find(|o| !o.answer.definite());
        if seen.cut_short.is_some() || lost.is_some() {
            self.not.get_or_init(|| format!("{}: {:?}, {lost:?}", ask.hostname, seen.cut_short));
        }
        seen
    }
}

struct Bench {
    looks: Arc<Answered>,
    rig: Rig,
    test: TestStore,
    servers: Servers,
}

impl Bench {
    /// Rows inserted, changed and deleted so far. PostgreSQL counts those of a connection when it ends at the latest.
    async fn rows(&mut self) -> u64 {
        if let Some(rows) = self.rig.app.store.rows_written().await.unwrap() {
            return rows;
        }
        self.rig.app.store.close().await;
        let mut admin = PgConnection::connect(&self.test.url).await.unwrap();
        let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
             AND backend_type = 'client backend'";
        until("the connections end", async || {
            sqlx::query_scalar::<_, i64>(others).fetch_one(&mut admin).await.unwrap() == 0
        })
        .await;
        let written = "SELECT CAST(sum(n_tup_ins + n_tup_upd + n_tup_del) AS BIGINT) FROM pg_stat_user_tables";
        let rows: i64 = sqlx::query_scalar(written).fetch_one(&mut admin).await.unwrap();
        admin.close().await.unwrap();
        self.rig.app.store = self.test.reopened().await.unwrap();
        u64::try_from(rows).unwrap()
    }

    async fn spent<T>(&mut self, work: impl AsyncFnOnce(&Rig) -> T) -> (T, Spent) {
        let servers = self.servers.process.id().to_string();
        let rows = self.rows().await;
        kernel::forget_the_highest();
        let (memory, bytes_before) = (kernel::kb("self", "VmRSS:"), bytes());
        let (cpu_before, began) = ((cpu("self"), cpu(&servers)), Instant::now());
        let done = work(&self.rig).await;
        let spent = Spent {
            time: began.elapsed(),
            cpu: (cpu("self") - cpu_before.0, cpu(&servers) - cpu_before.1),
            memory: (memory, kernel::kb("self", "VmHWM:")),
            bytes: bytes() - bytes_before,
            rows: self.rows().await - rows,
        };
        (done, spent)
    }

    /// A day later, all names are due.
    async fn pass(&mut self, domains: i64) -> (usize, Spent) {
        self.rig.hand.advance(DAY);
        let (differ, spent) = self
            .spent(async |rig| {
                let (mut looked, mut differ) = (0, 0);
                loop {
                    let batch = routine::batch(&rig.app).await.unwrap();
                    looked += batch.looked;
                    differ += batch.differ;
                    if !batch.more {
                        break;
                    }
                }
                assert_eq!(i64::try_from(looked).unwrap(), domains, "every name is looked at once");
                differ
            })
            .await;
        (differ, spent)
    }
}

/// Everybody who is due goes through the one door.
async fn steps(rig: &Rig) {
    let stmt = sql("SELECT id FROM domains WHERE due_at <= $1 AND lease_until <= $1 ORDER BY id").bind(rig.env.now());
    let due: Vec<DomainId> = rig.app.store.query(stmt).await.unwrap().iter().map(|row| row.parse("id").unwrap()).collect();
    futures::stream::iter(due)
        .for_each_concurrent(16, |id| async move { advance::drive(&rig.app, &id).await.unwrap() })
        .await;
}

async fn tick(hand: Hand) {
    let real = Env::real();
    loop {
        real.sleep(TICK).await;
        hand.advance(TICK);
    }
}

fn say(what: &str, names: i64, spent: &Spent) {
    let seconds = spent.time.as_secs_f64();
    println!(
        "{what}: {seconds:.1} s, {:.0} names a second, {:.0} s of CPU and {:.0} s of the servers'; resident {:.1} MB, at most {:.1} MB; \
         {} rows written, {:.1} kB to files",
        names as f64 / seconds,
        spent.cpu.0,
        spent.cpu.1,
        kernel::mb(spent.memory.0),
        kernel::mb(spent.memory.1),
        spent.rows,
        spent.bytes as f64 / 1024.0,
    );
}

async fn measure(kind: Kind, domains: i64) -> Vec<String> {
    let test = TestStore::blank(kind).await;
    let mut rig = Rig::on(1, &test.url).await;
    test.store.close().await;
    account::ensure_all(&rig.app).await.unwrap();
    let issuer = issuers::list(&rig.app.store).await.unwrap().remove(0);
    // Of the mix, those with which all is well.
    let mut mix = fleet_seed::parts();
    mix.truncate(1);
    mix[0].to = 99;
    let began = Instant::now();
    fleet_seed::fill(&rig.app.store, &mix, (domains, tenants(domains)), issuer.id.as_str(), START).await;
    eprintln!(
        "{kind:?}: {domains} live domains of {} tenants written in {:.1} s",
        tenants(domains),
        began.elapsed().as_secs_f64()
    );
    let servers = Servers::start(domains);
    eprintln!("the servers have {:.0} MB", kernel::mb(kernel::kb(&servers.process.id().to_string(), "VmRSS:")));
    let looks = Arc::new(Answered { looks: servers.observers(), not: OnceLock::new() });
    rig.app.look = looks.clone();
    rig.hand.advance_to(START + EVENING);
    let clock = tokio::spawn(tick(rig.hand.clone()));
    routine::batch(&rig.app).await.unwrap();

    let many = changed(domains);
    let mut bench = Bench { looks, rig, test, servers };
    println!("{kind:?}, {domains} live domains of {} tenants", tenants(domains));
    let (differ, unchanged) = bench.pass(domains).await;
    assert_eq!(differ, 0, "nothing has changed; not answered: {:?}", bench.looks.not.get());
    say("a pass, nothing changed", domains, &unchanged);
    bench.servers.change(many);
    let (differ, some_changed) = bench.pass(domains).await;
    say(&format!("a pass, {many} names changed"), domains, &some_changed);
    let ((), stepped) = bench.spent(steps).await;
    say("those names, looked at from everywhere", many, &stepped);
    clock.abort();

    let mut missed = Vec::new();
    for (pass, changes) in [(&unchanged, 0), (&some_changed, u64::try_from(many).unwrap())] {
        let growth = pass.memory.1.saturating_sub(pass.memory.0);
        if pass.time > LONGEST || growth > GROWTH_KB {
            missed.push(format!("{kind:?}: a pass took {:?} and {:.1} MB", pass.time, kernel::mb(growth)));
        }
        let explained = pass.time.as_secs() / WRITES_EVERY.as_secs() + WRITES_AT_ENDS + changes;
        if pass.rows > explained {
            missed.push(format!("{kind:?}: {} rows written in a pass, where {explained} are explained", pass.rows));
        }
    }
    if stepped.rows > WRITES_A_CHANGE * u64::try_from(many).unwrap() {
        missed.push(format!("{kind:?}: {} rows written for {many} names that changed", stepped.rows));
    }
    let rig = &bench.rig;
    let gone = rig.count(sql("SELECT count(*) AS n FROM domains WHERE evidence LIKE '%\"txt_missing\"%'")).await;
    let excluded = rig.count(sql("SELECT count(*) AS n FROM domains WHERE evidence LIKE '%\"caa_excludes_ca\"%'")).await;
    if i64::try_from(differ) != Ok(many) || (gone, excluded) != (many - many / 2, many / 2) {
        missed.push(format!("{kind:?}: {many} names changed, {differ} were seen; {gone} without TXT, {excluded} excluded"));
    }
    missed.extend(bench.looks.not.get().map(|what| format!("{kind:?}: a look was not answered: {what}")));
    let Bench { rig, test, servers, .. } = bench;
    rig.app.store.close().await;
    drop((rig, servers));
    test.remove().await;
    missed
}

#[tokio::main]
async fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let number = asked.iter().find_map(|word| word.parse().ok());
    if asked.first().is_some_and(|word| word == "serve") {
        serve(number.unwrap_or(DOMAINS)).await;
        return ExitCode::SUCCESS;
    }
    let mut missed = measure(Kind::SqliteFile, number.unwrap_or(DOMAINS)).await;
    if std::env::var_os("NAMEPLATE_TEST_POSTGRES_URL").is_some() {
        missed.extend(measure(Kind::Postgres, number.unwrap_or(DOMAINS_ON_POSTGRES)).await);
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("{}", missed.join("\n"));
    ExitCode::FAILURE
}
