//! The real process, killed by SIGKILL at random moments and started again: the CA, DNS, the origin and the edge outlive it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use nameplate::app::tenants::{self, NewTenant};
use nameplate::app::tokens::{self, Principal};
use nameplate::config::{Config, Role, Sources};
use nameplate::edge::EdgeListeners;
use nameplate::env::Env;
use nameplate::env::manual::Hand;
use nameplate::model::moment::Moment;
use nameplate::roles::{ControlPlane, EDGE_DRAIN, run_edge};
use nameplate::sandbox::api::Api;
use nameplate::sandbox::config::{Places, text};
use nameplate::sandbox::home::Home;
use nameplate::sandbox::issuer::{Choice, Issuer};
use nameplate::sandbox::outside::{Outside, OutsidePorts};
use nameplate::sandbox::ports::Ports;
use nameplate::sandbox::visitor::Visitor;
use nameplate::sandbox::walk::TENANT;
use nameplate::store::{Store, sql};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::stores::{Kind, TestStore, until};

/// How often the process is killed; each life begins one domain more.
const KILLS: u64 = 12;
/// How long a life lasts at most after its first answer, in milliseconds: about as long as a domain takes from its claim to
/// being active. One life in four is killed while it still starts up.
const LIFE: u64 = 350;
/// How long the last life may take to finish everything.
const CONVERGE: Duration = Duration::from_secs(120);

/// The id and the TXT value of each claim that the process has acknowledged, by name.
type Acknowledged = Mutex<BTreeMap<String, (String, String)>>;

/// What outlives the process.
struct Abroad {
    env: Env,
    outside: Outside,
    tls: SocketAddr,
    api: Api,
    config_file: PathBuf,
    log: PathBuf,
    _edge: DropGuard,
    _dir: TempDir,
}

impl Abroad {
    async fn new(url: &str) -> Abroad {
        let (env, dir) = (Env::real(), tempfile::tempdir().unwrap());
        let home = Home::open(Some(dir.path()), &env).unwrap();
        let ports = Ports::free().await.unwrap();
        let at = |listener: &tokio::net::TcpListener| listener.local_addr().unwrap();
        let (web, feed, plain, tls) = (at(&ports.web), at(&ports.feed), at(&ports.plain), at(&ports.tls));
        // The process binds these itself, in every life.
        drop((ports.web, ports.feed));
        let outside_ports = OutsidePorts {
            provider: ports.provider,
            origin: ports.origin,
            ca: ports.ca,
            mail: ports.mail,
            edge_plain: plain.port(),
        };
        let outside = Outside::start(outside_ports, &Choice::Test, dir.path(), &env).await.unwrap();
        let places = Places {
            database: url.to_owned(),
            master_key: &home.master_key(&env).unwrap(),
            ca_roots: &home.write("acme-root.pem", outside.issuer.directory_root()).unwrap(),
            directory: outside.issuer.directory("kill"),
            web,
            feed,
            plain,
            tls,
            edge_state: &home.path("edge"),
        };
        let text = text(&places, &outside);
        let config_file = home.write("nameplate.toml", &text).unwrap();
        let mut config = Config::read(Sources::none().file("nameplate.toml", text)).unwrap();

        let control = ControlPlane::open(&config, Role::Serve, &env).await.unwrap();
        let new = NewTenant { slug: TENANT, name: None };
        let host = |slug: &_| config.canonical_host(slug);
        tenants::add(control.store(), &env, new, host, "test").await.unwrap();
        let token = tokens::mint(control.store(), &env, &Principal::Operator, "test", None).await.unwrap().text;
        let join = control.feed().mint_join_token(&format!("https://{feed}"), "edge", CONVERGE).await.unwrap();
        control.store().close().await;
        config.edge.join_token = Some(join);

        let stop = CancellationToken::new();
        tokio::spawn({
            let (env, stop) = (env.clone(), stop.clone());
            let listeners = EdgeListeners { plain: ports.plain, tls: ports.tls };
            async move { run_edge(&config, &env, Some(listeners), EDGE_DRAIN, stop).await.unwrap() }
        });
        let api = Api::new(format!("http://{web}"), token).unwrap();
        let log = home.path("serve.log");
        Abroad { env, outside, tls, api, config_file, log, _edge: stop.drop_guard(), _dir: dir }
    }

    fn start(&self) -> Child {
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        Command::new(env!("CARGO_BIN_EXE_nameplate"))
            .arg("serve")
            .arg("--config")
            .arg(&self.config_file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    fn log_end(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(30).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// A customer with so many names, who goes on where the last life ended, until all are active.
    async fn customer(&self, names: &[String], acknowledged: &Acknowledged, heard: &Notify) {
        loop {
            let mut active = 0;
            for name in names {
                let known = acknowledged.lock().unwrap().get(name).cloned();
                // Claiming again answers with the claim that stands: how a customer finds out whether it was heard.
                let Ok(view) = self.api.claim(TENANT, name).await else { break };
                heard.notify_one();
                let here = (view.id.to_string(), view.attempt.value.clone());
                match known {
                    Some(before) => assert_eq!(before, here, "an acknowledged claim was lost"),
                    None => {
                        for record in &view.records {
                            self.outside.zones.add(&record.zone_line()).unwrap();
                        }
                        acknowledged.lock().unwrap().insert(name.clone(), here);
                        // Refused or not heard: the look comes by itself.
                        let _ = self.api.check(&view.id).await;
                    }
                }
                active += usize::from(view.active);
            }
            if active == names.len() {
                return;
            }
            self.env.sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Lets the leases and waits of the life that ended run out, as minutes would.
async fn let_time_pass(store: &Store, now: Moment) {
    store.execute(sql("UPDATE domains SET lease_until = 0")).await.unwrap();
    let earlier = now - Duration::from_secs(60);
    store
        .execute(
            sql("UPDATE domains SET due_at = $1 WHERE due_at > $1 AND claim IN ('awaiting_dns', 'queued')").bind(earlier),
        )
        .await
        .unwrap();
    store.execute(sql("UPDATE orders SET not_before = 0 WHERE not_before > 0")).await.unwrap();
    store.execute(sql("UPDATE issuers SET lease_until = 0, not_before = 0")).await.unwrap();
}

/// The seed that chooses the moments: `NAMEPLATE_KILL_SEED` to play a run again, else another each time.
fn seed(env: &Env) -> u64 {
    match std::env::var("NAMEPLATE_KILL_SEED") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => u64::from(u32::from_be_bytes(env.draw())),
    }
}

/// Waits until PostgreSQL does nothing for anybody else in this database.
async fn settled(store: &Store) {
    let busy = "SELECT COUNT(*) AS n FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'";
    until("PostgreSQL is done with what a dead process sent", async || {
        store.query(sql(busy)).await.unwrap()[0].int("n").unwrap() == 0
    })
    .await;
}

async fn count(store: &Store, statement: &'static str, host: &str) -> u64 {
    let rows = store.query(sql(statement).bind(host)).await.unwrap();
    u64::try_from(rows[0].int("n").unwrap()).unwrap()
}

async fn lives(kind: Kind) {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let test = TestStore::blank(kind).await;
    let abroad = Abroad::new(&test.url).await;
    let seed = seed(&abroad.env);
    let hand = Hand::new(Moment::default(), seed);
    let acknowledged = Acknowledged::default();
    let mut names: Vec<String> = Vec::new();
    let (mut interrupted, mut all_lost) = (0, 0);
    for life in 1..=KILLS {
        names.push(format!("life-{life}.acme.test"));
        let mut process = abroad.start();
        let (length, heard) = (Duration::from_millis(hand.below(LIFE)), Notify::new());
        let starts_up = hand.below(4) != 0;
        let moment = async {
            if starts_up {
                heard.notified().await;
            }
            abroad.env.sleep(length).await;
        };
        tokio::select! {
            () = abroad.customer(&names, &acknowledged, &heard) => {}
            () = moment => interrupted += 1,
        }
        process.kill().await.unwrap();
        if kind == Kind::Postgres {
            // What the process had sent is still carried out.
            settled(&test.store).await;
        }
        let_time_pass(&test.store, abroad.env.now()).await;
    }
    let (mut process, heard) = (abroad.start(), Notify::new());
    tokio::select! {
        () = abroad.customer(&names, &acknowledged, &heard) => {}
        () = abroad.env.sleep(CONVERGE) => panic!("seed {seed}: not all are active\n{}", abroad.log_end()),
        ended = process.wait() => panic!("seed {seed}: the process ended by itself: {ended:?}\n{}", abroad.log_end()),
    }

    let Issuer::Test(ca, _) = &abroad.outside.issuer else { panic!("the CA is the test's own") };
    let made = ca.state().counters().clone();
    let visitor = Visitor::new(ca.root_pem().to_owned(), abroad.tls);
    for name in &names {
        let visited = visitor.of(name).unwrap().pay().await.unwrap();
        assert_eq!(visited.tenant.as_deref(), Some(TENANT), "seed {seed}: {name}");
        assert_eq!(made.certificates_by_name.get(name), Some(&1), "seed {seed}: certificates for {name}");
        let held = "SELECT COUNT(*) AS n FROM holdings WHERE hostname = $1 AND state = 'held' AND domain_id IS NOT NULL";
        assert_eq!(count(&test.store, held, name).await, 1, "seed {seed}: holders of {name}");
        let claims = "SELECT COUNT(*) AS n FROM domains WHERE hostname = $1";
        assert_eq!(count(&test.store, claims, name).await, 1, "seed {seed}: claims on {name}");
        let lost = "SELECT COUNT(*) AS n FROM events e JOIN domains d ON d.id = e.domain_id \
                    WHERE d.hostname = $1 AND e.kind = 'order_lost'";
        let lost = count(&test.store, lost, name).await;
        all_lost += lost;
        assert!(lost <= KILLS, "seed {seed}: {lost} orders lost for {name}");
        let orders = made.orders_by_name[name];
        assert!((1..=1 + lost).contains(&orders), "seed {seed}: {orders} orders for {name}, {lost} known as lost");
    }
    assert!(interrupted >= KILLS / 3, "seed {seed}: only {interrupted} of {KILLS} lives ended in the middle of something");
    println!("seed {seed}: {interrupted} of {KILLS} lives ended in the middle of something, {all_lost} orders lost");
    process.kill().await.unwrap();
    drop(abroad);
    test.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigkill_at_random_moments_loses_nothing_on_sqlite() {
    lives(Kind::SqliteFile).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigkill_at_random_moments_loses_nothing_on_postgres() {
    lives(Kind::Postgres).await;
}

/// B41, where state is on a disk that does not last: each start finds nothing, says so, and orders nothing; the edge serves on with what it
/// has.
#[tokio::test(flavor = "multi_thread")]
async fn b41_a_process_that_finds_its_data_folder_empty_ten_times_says_so_and_orders_nothing() {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let test = TestStore::blank(Kind::SqliteFile).await;
    let file = PathBuf::from(test.url.strip_prefix("sqlite:").unwrap());
    let abroad = Abroad::new(&test.url).await;
    let name = "shop.acme.test";
    let mut process = abroad.start();
    abroad.customer(&[name.to_owned()], &Acknowledged::default(), &Notify::new()).await;
    process.kill().await.unwrap();
    let Issuer::Test(ca, _) = &abroad.outside.issuer else { panic!("the CA is the test's own") };
    let visitor = Visitor::new(ca.root_pem().to_owned(), abroad.tls);
    let told = || fs::read_to_string(&abroad.log).unwrap().matches("the database was empty and is begun anew").count();
    let before = told();
    for start in 1..=10 {
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{suffix}", file.display()));
        }
        assert!(!file.exists());
        let mut process = abroad.start();
        until("the start's warning", async || told() == before + start).await;
        // It answers, and so has begun all that it does by itself.
        until("the API", async || abroad.api.claim(TENANT, name).await.is_err_and(|e| e.to_string().contains("token")))
            .await;
        let visited = visitor.of(name).unwrap().pay().await.unwrap();
        assert_eq!(visited.tenant.as_deref(), Some(TENANT), "start {start}");
        process.kill().await.unwrap();
    }
    let made = ca.state().counters().clone();
    assert_eq!((made.orders_created, made.certificates_by_name[name]), (1, 1));
    drop(abroad);
    test.remove().await;
}
