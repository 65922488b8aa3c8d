//! Many processes of the real binary on one PostgreSQL: killed at random, their database stopped, cut off and made read-only,
//! while 300 names are claimed one by one and by a file. The CA counts, and its limits are never passed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream;
use nameplate::app::show::DomainView;
use nameplate::env::Env;
use nameplate::env::manual::Hand;
use nameplate::model::moment::Moment;
use nameplate::sandbox::ca::{Limit, Rate};
use nameplate::sandbox::visitor::Visitor;
use nameplate::store::{OpenSettings, Store, sql};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::support::cluster::Cluster;
use crate::support::processes::{Fleet, Process, Said};

/// Names claimed one by one, and names in the file.
const SINGLE: usize = 180;
const IMPORTED: usize = 120;
/// Registered domains and tenants that they are spread over.
const ZONES: usize = 10;
const TENANTS: usize = 6;
/// Customers at a time; each claims about one name a second, and the storm goes on meanwhile.
const CUSTOMERS: usize = 4;
const PACE: u64 = 1_500;

/// The CA's limits, scaled down: all 300 orders take about 55 s, and no registered domain gets its share at once.
const ORDERS: Rate = Rate { burst: 40, per: Duration::from_secs(8) };
const OF_A_DOMAIN: Rate = Rate { burst: 12, per: Duration::from_secs(12) };
const OF_A_NAME: Rate = Rate { burst: 5, per: Duration::from_secs(600) };
const FAILURES: Rate = Rate { burst: 5, per: Duration::from_secs(3600) };

/// How long the database is away, and how long it takes no writes.
const AWAY: Duration = Duration::from_secs(20);
const READ_ONLY: Duration = Duration::from_secs(30);
/// Orders whose spend was durable before that may still reach the CA so long.
const IN_FLIGHT: Duration = Duration::from_secs(2);
/// How long a process may take until it can work.
const START_UP: Duration = Duration::from_secs(60);
/// How long everything may take.
const CONVERGE: Duration = Duration::from_secs(600);

/// What happens to the processes, in this order and at random moments.
#[derive(Clone, Copy, Debug)]
enum Weather {
    Kill,
    Cut,
    Outage,
    ReadOnly,
}

const STORM: [Weather; 14] = {
    use Weather::{Cut, Kill, Outage, ReadOnly};
    [Kill, Kill, Cut, Kill, Kill, Outage, Kill, Kill, ReadOnly, Kill, Cut, Kill, Kill, Kill]
};

struct Run {
    seed: u64,
    hand: Hand,
    env: Env,
    cluster: Cluster,
    fleet: Fleet,
    /// Where the APIs of both `serve` are.
    webs: [SocketAddr; 2],
    /// The id and the TXT value of each claim that was acknowledged, by name.
    acknowledged: Mutex<BTreeMap<String, (String, String)>>,
    /// Lives that were ended, and the domains that those had in hand.
    dead: Mutex<Vec<u32>>,
    orphans: Mutex<BTreeSet<String>>,
}

fn name(n: usize) -> String {
    // One registered domain after the other: together its names are more than it may have at once.
    format!("n{n}.r{}.test", n * ZONES / (SINGLE + IMPORTED))
}

fn tenant(n: usize) -> String {
    format!("tenant{}", n % TENANTS)
}

fn adapted(text: String) -> String {
    let limits = |key: &str, rate: Rate| format!("{key}_burst = {}\n{key}_per = \"{}s\"\n", rate.burst, rate.per.as_secs());
    let none =
        "domain_certificates_burst = 0\nname_certificates_burst = 0\nfailures_burst = 0\nfailures_in_a_row_burst = 0\n";
    assert!(text.contains(none), "the sandbox's limits are told otherwise now:\n{text}");
    let scaled = limits("orders", ORDERS)
        + &limits("domain_certificates", OF_A_DOMAIN)
        + &limits("name_certificates", OF_A_NAME)
        + &limits("failures", FAILURES);
    let looks = "\n[looks]\nper_second = 2000\nzone_per_second = 2000\nzone_at_once = 64\ntenant_per_second = 2000\n\
                 tenant_at_once = 64\nserver_per_second = 20000\nserver_at_once = 512\nimports_per_second = 100\n";
    text.replace(none, &scaled) + looks
}

impl Run {
    async fn new() -> (Run, [Process; 4]) {
        let env = Env::real();
        let seed = match std::env::var("NAMEPLATE_KILL_SEED") {
            Ok(text) => text.parse().unwrap(),
            Err(_) => u64::from(u32::from_be_bytes(env.draw())),
        };
        let cluster = Cluster::start(&env).await;
        let tenants: Vec<String> = (0..TENANTS).map(tenant).collect();
        let (fleet, processes) = Fleet::new(cluster.url(), &tenants, adapted, &env).await;
        for zone in 0..ZONES {
            fleet.outside.zones.add_zone(
                &format!("r{zone}.test"),
                "ns1.acme.test",
                IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53)),
            );
        }
        {
            let mut ca = fleet.ca().state();
            ca.allow(Limit::NewOrders, ORDERS);
            ca.allow(Limit::RegisteredDomain, OF_A_DOMAIN);
            ca.allow(Limit::ExactSet, OF_A_NAME);
            ca.allow(Limit::FailedAuthorizations, FAILURES);
        }
        let run = Run {
            seed,
            hand: Hand::new(Moment::default(), seed),
            env,
            webs: [processes[0].web, processes[1].web],
            cluster,
            fleet,
            acknowledged: Mutex::default(),
            dead: Mutex::default(),
            orphans: Mutex::default(),
        };
        (run, processes)
    }

    /// Waits for something that must happen; what it waits for says what is missing.
    async fn until(&self, within: Duration, mut missing: impl AsyncFnMut() -> Option<String>) {
        let deadline = self.env.now() + within;
        while let Some(what) = missing().await {
            assert!(self.env.now() < deadline, "seed {}: still missing after {within:?}: {what}", self.seed);
            self.env.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Asks one `serve` or the other, until one did it.
    async fn insist(&self, turn: usize, method: Method, path: &str, body: Option<&Value>) -> Option<Value> {
        let mut turn = turn;
        loop {
            match self.fleet.ask(self.webs[turn % 2], method.clone(), path, body).await {
                Said::Done(document) => return Some(document),
                Said::TooSoon => return None,
                Said::Away | Said::Refused => {
                    turn += 1;
                    self.env.sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn claim(&self, n: usize) -> DomainView {
        let body = json!({ "tenant": tenant(n), "hostname": name(n) });
        let claimed = self.insist(n, Method::POST, "/api/v1/domains", Some(&body)).await.unwrap();
        serde_json::from_value(claimed).unwrap()
    }

    /// A customer who claims names one by one, publishes what is asked for and wants it looked at.
    async fn customer(&self, names: impl Iterator<Item = usize>) {
        for n in names {
            self.env.sleep(Duration::from_millis(self.hand.below(PACE))).await;
            let view = self.claim(n).await;
            self.acknowledged.lock().unwrap().insert(name(n), (view.id.to_string(), view.attempt.value.clone()));
            for record in &view.records {
                self.fleet.outside.zones.add(&record.zone_line()).unwrap();
            }
            self.insist(n, Method::POST, &format!("/api/v1/domains/{}/check", view.id), None).await;
        }
    }

    /// Sends the file; the id of the import.
    async fn send_file(&self) -> String {
        let mut file = "hostname,tenant\n".to_owned();
        for n in SINGLE..SINGLE + IMPORTED {
            file.push_str(&format!("{},{}\n", name(n), tenant(n)));
        }
        let sent = self.fleet.request(self.webs[0], Method::POST, "/api/v1/imports?name=many.csv");
        match self.fleet.send(sent.header(CONTENT_TYPE, "text/csv").body(file)).await {
            Said::Done(import) => import["id"].as_str().unwrap().to_owned(),
            _ => panic!("the file was not taken while all was well"),
        }
    }

    /// Whoever sent the file waits for its verdicts, publishes its records as one zone file and wants them looked at.
    async fn importer(&self, id: &str) {
        let path = format!("/api/v1/imports/{id}");
        loop {
            let import = self.insist(0, Method::GET, &path, None).await.unwrap();
            if import["state"] == "done" {
                assert_eq!(import["verdicts"]["claimed"], json!(IMPORTED), "{import}");
                break;
            }
            self.env.sleep(Duration::from_millis(100)).await;
        }
        let records = self.insist(1, Method::GET, &format!("{path}/records?format=zone"), None).await.unwrap();
        for line in records.as_str().unwrap().lines().filter(|line| !line.starts_with([';', '$'])) {
            self.fleet.outside.zones.add(line).unwrap();
        }
        let rows = self.insist(0, Method::GET, &format!("{path}/rows?limit=200"), None).await.unwrap();
        for (n, row) in rows["items"].as_array().unwrap().iter().enumerate() {
            let id = row["domain_id"].as_str().unwrap();
            let view = self.insist(n, Method::GET, &format!("/api/v1/domains/{id}"), None).await.unwrap();
            let value = view["attempt"]["value"].as_str().unwrap().to_owned();
            let host = row["hostname"].as_str().unwrap().to_owned();
            self.acknowledged.lock().unwrap().insert(host, (id.to_owned(), value));
            self.insist(n, Method::POST, &format!("/api/v1/domains/{id}/check"), None).await;
        }
        assert_eq!(rows["items"].as_array().unwrap().len(), IMPORTED);
    }

    async fn all_ready(&self, processes: &mut [Process; 4], within: Duration) {
        self.until(within, async || {
            for process in processes.iter_mut() {
                if let Some(ended) = process.ended() {
                    panic!("seed {}: ended by itself: {ended}\n{}", self.seed, self.fleet.log_end(process));
                }
                if let Err(why) = self.fleet.ready(process).await {
                    return Some(format!("ready {}: {why}", process.id()));
                }
            }
            None
        })
        .await;
    }

    /// Every process says that it cannot work and why, a claim is refused so that it can be sent again, and nothing new
    /// reaches the CA.
    async fn nothing_goes(&self, processes: &[Process; 4], why: &str, lasts: Duration) {
        let since = self.env.now();
        self.until(Duration::from_secs(10), async || {
            for process in processes {
                match self.fleet.ready(process).await {
                    Ok(()) => return Some(format!("{} says that it is not ready", process.id())),
                    Err(said) if !said.contains(why) => return Some(format!("{why:?} in {said}")),
                    Err(_) => {}
                }
            }
            None
        })
        .await;
        self.env.sleep((since + IN_FLIGHT).since(self.env.now())).await;
        let before = self.fleet.ca().state().counters().orders_created;
        let body = json!({ "tenant": tenant(0), "hostname": "refused.r0.test" });
        for web in self.webs {
            let said = self.fleet.ask(web, Method::POST, "/api/v1/domains", Some(&body)).await;
            assert!(matches!(said, Said::Refused), "seed {}: a claim was not refused while {why}", self.seed);
        }
        self.env.sleep((since + lasts).since(self.env.now())).await;
        let after = self.fleet.ca().state().counters().orders_created;
        assert_eq!(before, after, "seed {}: orders were made while {why}", self.seed);
    }

    /// Waits until some names more have their certificates, or for a while, and then for a random moment.
    async fn work_goes_on(&self) {
        let (before, until) = (self.certified(), self.env.now() + Duration::from_secs(3));
        while self.certified() < before + 8 && self.env.now() < until {
            self.env.sleep(Duration::from_millis(50)).await;
        }
        self.env.sleep(Duration::from_millis(self.hand.below(800))).await;
    }

    async fn storm(&self, processes: &mut [Process; 4]) {
        for weather in STORM {
            self.work_goes_on().await;
            println!("seed {}: {} certificates, then {weather:?}", self.seed, self.certified());
            match weather {
                Weather::Kill => {
                    let process = &mut processes[usize::try_from(self.hand.below(4)).unwrap()];
                    let died = process.id();
                    if let Some(ended) = process.ended() {
                        panic!("seed {}: ended by itself: {ended}\n{}", self.seed, self.fleet.log_end(process));
                    }
                    self.fleet.kill(process).await;
                    self.dead.lock().unwrap().push(died);
                }
                // Whoever starts without a database is told so and ends; this is about those that run.
                Weather::Cut => {
                    self.all_ready(processes, START_UP).await;
                    self.cluster.cut().await;
                }
                Weather::Outage => {
                    self.all_ready(processes, START_UP).await;
                    self.cluster.stop(["fast", "immediate"][usize::try_from(self.hand.below(2)).unwrap()]).await;
                    self.nothing_goes(processes, "the database", AWAY).await;
                    self.cluster.again().await;
                    self.all_ready(processes, START_UP).await;
                }
                Weather::ReadOnly => {
                    self.all_ready(processes, START_UP).await;
                    self.cluster.read_only(true).await;
                    self.nothing_goes(processes, "the database is read-only", READ_ONLY).await;
                    self.cluster.read_only(false).await;
                    self.all_ready(processes, START_UP).await;
                }
            }
        }
    }

    /// Lets the leases of lives that were ended run out, as two minutes would, for as long as this is polled.
    async fn leases_run_out(&self, store: &Store) {
        loop {
            self.env.sleep(Duration::from_millis(500)).await;
            let dead = self.dead.lock().unwrap().clone();
            for died in dead {
                let owner = format!("{died}-%");
                let held = "SELECT hostname FROM domains WHERE lease_until > 0 AND lease_owner LIKE $1";
                // The database may be away: then it is done next time.
                let Ok(rows) = store.query(sql(held).bind(owner.as_str())).await else { break };
                self.orphans.lock().unwrap().extend(rows.iter().map(|row| row.text("hostname").unwrap()));
                for over in [
                    "UPDATE domains SET lease_until = 0 WHERE lease_owner LIKE $1",
                    "UPDATE issuers SET lease_until = 0 WHERE lease_owner LIKE $1",
                    "UPDATE imports SET lease_until = 0 WHERE lease_owner LIKE $1",
                ] {
                    let _ = store.execute(sql(over).bind(owner.as_str())).await;
                }
            }
        }
    }

    fn certified(&self) -> usize {
        self.fleet.ca().state().counters().certificates_by_name.len()
    }

    async fn all_certified(&self) {
        self.until(CONVERGE, async || {
            let made = self.certified();
            (made < SINGLE + IMPORTED).then(|| format!("certificates, {made} so far"))
        })
        .await;
    }

    /// Everybody is told that every name is active, by the same claim as at first, and is served on every edge.
    async fn all_served(&self) {
        let acknowledged = self.acknowledged.lock().unwrap().clone();
        assert_eq!(acknowledged.len(), SINGLE + IMPORTED);
        stream::iter(0..SINGLE + IMPORTED)
            .for_each_concurrent(8, |n| {
                let acknowledged = &acknowledged;
                async move {
                    self.until(Duration::from_secs(30), async || {
                        // Claimed once more, it is the claim that stands.
                        let view = self.claim(n).await;
                        let here = (view.id.to_string(), view.attempt.value.clone());
                        assert_eq!(acknowledged[&name(n)], here, "seed {}: an acknowledged claim was lost", self.seed);
                        (!view.active).then(|| format!("{} is active: {}", name(n), view.sentence))
                    })
                    .await;
                    for edge in &self.fleet.edges {
                        let visitor = Visitor::new(self.fleet.ca().root_pem().to_owned(), *edge);
                        let visit = visitor.of(&name(n)).unwrap();
                        let asked = visit.pay().await.unwrap_or_else(|e| panic!("{} at {edge}: {e:?}", name(n)));
                        assert_eq!(asked.tenant, Some(tenant(n)), "{}", name(n));
                    }
                }
            })
            .await;
    }

    /// What the CA and the books say in the end.
    async fn reckon(&self, store: &Store, processes: &[Process]) {
        for process in processes {
            let log = self.fleet.log(process);
            let fell = log.lines().find(|line| line.contains("panicked"));
            assert_eq!(fell, None, "seed {}: a part of a process fell over", self.seed);
        }
        let (seed, made) = (self.seed, self.fleet.ca().state().counters().clone());
        let orphans = self.orphans.lock().unwrap().clone();
        assert_eq!(made.limits_passed, 0, "seed {seed}: the CA had to say no");
        assert_eq!(made.certificates_by_name.len(), SINGLE + IMPORTED);
        let count = async |statement| store.query(sql(statement)).await.unwrap()[0].int("n").unwrap();
        let used = count("SELECT count(*) AS n FROM grants WHERE state = 'used'").await;
        let orders = i64::try_from(made.orders_created).unwrap();
        assert!(orders <= used, "seed {seed}: {orders} orders at the CA, {used} grants used");
        let held = count("SELECT count(*) AS n FROM holdings WHERE state = 'held' AND domain_id IS NOT NULL").await;
        assert_eq!(held, i64::try_from(SINGLE + IMPORTED).unwrap());
        let mut twice = Vec::new();
        for (host, orders) in &made.orders_by_name {
            assert_eq!(made.certificates_by_name.get(host), Some(&1), "seed {seed}: certificates for {host}");
            if *orders > 1 {
                // Only whoever was killed between newOrder and its answer leaves one that nobody knows of.
                assert!(orphans.contains(host), "seed {seed}: {orders} orders for {host}, which no killed process had");
                twice.push(host);
            }
        }
        let most = STORM.len() * 16;
        assert!(twice.len() <= most, "seed {seed}: {twice:?}");
        println!(
            "seed {seed}: {orders} orders, {} of them lost to SIGKILL, {} domains orphaned",
            twice.len(),
            orphans.len()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b62_four_processes_lose_and_double_nothing_whatever_befalls_them_and_their_database() {
    let (run, mut processes) = Run::new().await;
    let began = run.env.now();
    let store = Store::open(&OpenSettings { url: run.fleet.url.clone(), connections: 2 }).await.unwrap();
    run.all_ready(&mut processes, START_UP).await;
    let import = run.send_file().await;
    let customers = join_all((0..CUSTOMERS).map(|first| run.customer((first..SINGLE).step_by(CUSTOMERS))));
    let everything = async {
        tokio::join!(customers, run.importer(&import), run.storm(&mut processes));
        let stormy = run.env.now().since(began);
        run.all_certified().await;
        let certified = run.env.now().since(began);
        run.all_served().await;
        run.all_ready(&mut processes, START_UP).await;
        println!("over after {stormy:?}, certified after {certified:?}, visited after {:?}", run.env.now().since(began));
    };
    tokio::select! {
        () = everything => {}
        () = run.leases_run_out(&store) => {}
        () = run.env.sleep(CONVERGE) => panic!("seed {}: not over after {CONVERGE:?}", run.seed),
    }
    run.reckon(&store, &processes).await;
    store.close().await;
}
