//! The deterministic rig: real use cases on a hand-driven clock and queue, with scripted DNS, an in-process CA and an edge
//! that is a row. One seed drives everything; a worker can be dropped at any boundary of any step.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nameplate::acme::Authority;
use nameplate::app::{self, App, Bells, Settings};
use nameplate::dns::scripted::ScriptedDns;
use nameplate::dns::world::ZoneStore;
use nameplate::env::Env;
use nameplate::env::manual::Hand;
use nameplate::jobs::hand::HandQueue;
use nameplate::mint;
use nameplate::model::domain::RoutingMode;
use nameplate::model::hostname::Hostname;
use nameplate::model::id::{DomainId, EdgeId, IssuerId, TenantId};
use nameplate::model::ledger::Limit;
use nameplate::model::letting_go::LettingGo;
use nameplate::model::limits::{self, LimitName, Limits};
use nameplate::model::look::Platform;
use nameplate::model::moment::Moment;
use nameplate::sandbox::ca::DirectCa;
use nameplate::store::issuers::{self, IssuerSeed};
use nameplate::store::{OpenSettings, Store, edges, sql};
use nameplate::vault::distribution::{DistributionKey, Preflight};
use nameplate::vault::{Context, MasterKey, Vault};

#[path = "edge_side.rs"]
pub mod edge_side;
#[path = "scissors.rs"]
mod scissors;

pub use edge_side::EdgeSide;
pub use scissors::Scissors;

/// The world.
pub struct Rig {
    pub hand: Hand,
    pub env: Env,
    pub app: App,
    pub zones: ZoneStore,
    pub ca: Arc<DirectCa>,
    pub queue: HandQueue,
    pub scissors: Scissors,
    pub edge_side: EdgeSide,
    pub edge: EdgeId,
    /// Whether the sweep helps where alarms are lost.
    pub sweeping: bool,
    next_sweep: Mutex<Moment>,
    /// The furthest that a turn moves the clock at once.
    stride: Mutex<Duration>,
    /// When the dispatcher has somebody to grant something to.
    next_grant: Mutex<Option<Moment>>,
    workers: AtomicUsize,
}

async fn seed_issuer(store: &Store, env: &Env, name: &str, limits: Limits) {
    let seed = IssuerSeed {
        name: name.to_owned(),
        directory: "https://ca.test/directory".to_owned(),
        preference: 0,
        limits,
        ..IssuerSeed::default()
    };
    let mut tx = store.begin().await.unwrap();
    issuers::seed(&mut tx, &[seed], env.now(), || mint!(env, IssuerId)).await.unwrap();
    tx.commit().await.unwrap();
}

/// Let's Encrypt's limits with another one on orders, and room for all that a test has under its one registered domain.
fn orders(limit: Limit) -> Limits {
    let roomy = (LimitName::CertificatesPerDomain, Limit { burst: 10_000, per_secs: 604_800 });
    limits::usual().into_iter().chain([(LimitName::OrdersPerAccount, limit), roomy]).collect()
}

/// The feed's epoch in the beginning; an edge of an earlier one takes nothing.
const EPOCH: i64 = 7;

pub const START: Moment = Moment::from_secs(1_800_000_000);

impl Rig {
    /// A world on a store in memory.
    pub async fn new(seed: u64) -> Rig {
        Rig::on(seed, "sqlite::memory:").await
    }

    /// A world on the database at `url`, which is empty.
    pub async fn on(seed: u64, url: &str) -> Rig {
        Rig::with_limit(seed, url, Limit { burst: 300, per_secs: 10_800 }).await
    }

    /// A world whose CA takes so many orders.
    pub async fn with_limit(seed: u64, url: &str, limit: Limit) -> Rig {
        Rig::with_limits(seed, url, orders(limit)).await
    }

    /// A world whose CA has these limits.
    pub async fn with_limits(seed: u64, url: &str, limits: Limits) -> Rig {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let hand = Hand::new(START, seed);
        let env = hand.env();
        let store = Store::open(&OpenSettings { url: url.to_owned(), connections: 4 }).await.unwrap();
        store.migrate().await.unwrap();
        let zones = ZoneStore::new();
        let server: IpAddr = "192.0.2.53".parse().unwrap();
        zones.add_zone("test", "ns.test", server);
        zones.add_zone("acme.test", "ns1.acme.test", server);
        zones.add_zone("app.example", "ns1.app.example", server);
        zones.add("*.app.example. 60 IN A 192.0.2.80").unwrap();
        let ca = DirectCa::new(&env).unwrap();
        let edge_side = EdgeSide::default();
        let tokens = edge_side.tokens.clone();
        ca.fetch_by(Arc::new(move |_, token| tokens.lock().unwrap().get(token).cloned()));
        let authority: Arc<dyn Authority> = ca.clone();
        let queue = HandQueue::new();
        let scissors = Scissors::default();
        let platform = Platform {
            suffixes: vec!["app.example".to_owned()],
            addresses: vec!["192.0.2.80".parse().unwrap()],
            control_names: vec!["app.example".to_owned()],
            ..Platform::default()
        };
        let app = App {
            env: env.clone(),
            store: store.clone(),
            vault: Arc::new(Vault::new(MasterKey::generate(1, &env), Vec::new())),
            look: Arc::new(ScriptedDns::new(zones.clone())),
            reach: Arc::new(edge_side.clone()),
            authorities: Arc::new(HashMap::from([("main".to_owned(), authority)])),
            wake: Arc::new(queue.clone()),
            settings: Arc::new(Settings {
                platform,
                canonical_suffix: "app.example".to_owned(),
                routing_mode: RoutingMode::PerTenant,
                shared_target: None,
                apex_target: None,
                letting_go: LettingGo::default(),
                preflight: true,
                min_edges: 1,
            }),
            worker: "worker-0".into(),
            bells: Bells::default(),
            fleet: app::fleet::Snapshots::default(),
            lap: Arc::default(),
            flights: Arc::default(),
            boundary: Arc::new(scissors.clone()),
            meters: Arc::default(),
        };
        seed_issuer(&store, &env, "main", limits).await;
        let mut tx = store.begin().await.unwrap();
        tx.execute(sql(
            "INSERT INTO feed (id, epoch, last_seq, last_position, signing_key, tls_key, tls_cert) VALUES (1, $2, 0, 0, $1, $1, '')",
        )
        .bind(vec![0_u8])
        .bind(EPOCH))
        .await
        .unwrap();
        tx.commit().await.unwrap();
        let edge = mint!(env, EdgeId);
        let rig = Rig {
            hand,
            env,
            app,
            zones,
            ca,
            queue,
            scissors,
            edge_side,
            edge,
            sweeping: true,
            next_sweep: Mutex::new(START),
            stride: Mutex::new(Duration::from_secs(600)),
            next_grant: Mutex::default(),
            workers: AtomicUsize::new(1),
        };
        rig.enrol_edge().await;
        rig.distribute_a_key().await;
        rig
    }

    /// Makes the distribution key of the feed's epoch, as the feed does when it starts, and gives it to the edge.
    pub async fn distribute_a_key(&self) {
        // Chance of its own: what else is drawn stays what a seed made it.
        let at = self.env.now();
        let env = Hand::new(at, at.micros().unsigned_abs()).env();
        let key = DistributionKey::generate(&env);
        let id = key.id().to_string();
        let sealed = self.app.vault.seal(&env, &Context::new("distribution-key", &id), &key.to_secret()).unwrap();
        let epoch = self.count(sql("SELECT epoch AS n FROM feed")).await;
        let stmt = edges::insert_distribution_key(&id, epoch, sealed.as_bytes(), self.env.now());
        self.app.store.execute(stmt).await.unwrap();
        *self.edge_side.preflight.lock().unwrap() = Some(Preflight::of(&key));
    }

    /// The configuration names the same CA differently from now on.
    pub async fn rename_issuer(&mut self, name: &str) {
        let authority: Arc<dyn Authority> = self.ca.clone();
        self.app.authorities = Arc::new(HashMap::from([(name.to_owned(), authority)]));
        seed_issuer(&self.app.store, &self.env, name, limits::usual()).await;
    }

    /// A second CA, which is asked where the first may not or cannot issue. It calls itself by its name and `.test` in CAA.
    pub async fn add_issuer(&mut self, name: &str) -> Arc<DirectCa> {
        let ca = DirectCa::called(&self.env, &format!("{name}.test")).unwrap();
        let tokens = self.edge_side.tokens.clone();
        ca.fetch_by(Arc::new(move |_, token| tokens.lock().unwrap().get(token).cloned()));
        let (first, second): (Arc<dyn Authority>, Arc<dyn Authority>) = (self.ca.clone(), ca.clone());
        self.app.authorities = Arc::new(HashMap::from([("main".to_owned(), first), (name.to_owned(), second)]));
        let seed = IssuerSeed {
            name: name.to_owned(),
            directory: format!("https://{name}.test/directory"),
            preference: 10,
            limits: limits::usual(),
            ..IssuerSeed::default()
        };
        let mut tx = self.app.store.begin().await.unwrap();
        issuers::add(&mut tx, &seed, self.env.now(), &mint!(self.env, IssuerId)).await.unwrap();
        tx.commit().await.unwrap();
        ca
    }

    /// Another registered domain, with servers of its own.
    pub fn also_zone(&self, zone: &str) {
        self.zones.add_zone(zone, &format!("ns1.{zone}"), "192.0.2.53".parse().unwrap());
    }

    async fn enrol_edge(&self) {
        let stmt =
            sql("INSERT INTO edges (id, name, public_key, credential, status, cursor_epoch, cursor_seq, heartbeat_at, \
               enrolled_at) VALUES ($1, 'edge-1', $2, $2, 'active', $4, 0, $3, $3)")
            .bind(self.edge.as_str())
            .bind(vec![1_u8])
            .bind(self.env.now())
            .bind(EPOCH);
        self.app.store.execute(stmt).await.unwrap();
    }

    /// A tenant with this slug.
    pub async fn tenant(&self, slug: &str) -> TenantId {
        let new = app::tenants::NewTenant { slug, name: None };
        app::tenants::add(&self.app.store, &self.env, new, |_| None, "operator").await.unwrap().id
    }

    /// A claim of the tenant on the name.
    pub async fn claim(&self, tenant: &TenantId, name: &str) -> DomainId {
        app::claim::claim(&self.app, tenant, &Hostname::trusted(name), "tenant").await.unwrap().id
    }

    /// One number out of the store.
    pub async fn count(&self, stmt: nameplate::store::Stmt) -> i64 {
        self.app.store.query(stmt).await.unwrap()[0].int("n").unwrap()
    }

    /// The text of one column of a domain.
    pub async fn domain_text(&self, id: &DomainId, column: &str) -> Option<String> {
        let rows = self.app.store.query(sql("SELECT * FROM domains WHERE id = $1").bind(id.as_str())).await.unwrap();
        rows[0].opt_text(column).unwrap()
    }

    /// The value of the domain's present attempt.
    pub async fn value(&self, id: &DomainId) -> String {
        let stmt = sql("SELECT a.value FROM domains d JOIN attempts a ON a.id = d.attempt_id WHERE d.id = $1");
        self.app.store.query(stmt.bind(id.as_str())).await.unwrap()[0].text("value").unwrap()
    }

    /// Publishes what the tenant was told to publish.
    pub async fn publish(&self, id: &DomainId, name: &str) {
        let target = self.domain_text(id, "target").await.unwrap();
        let value = self.value(id).await;
        self.zones.add(&format!("{name}. 60 IN CNAME {target}.")).unwrap();
        self.zones.add(&format!("_nameplate-challenge.{name}. 60 IN TXT \"{value}\"")).unwrap();
    }

    /// Takes away the ownership record.
    pub async fn unpublish_txt(&self, id: &DomainId, name: &str) {
        let value = self.value(id).await;
        self.zones.remove(&format!("_nameplate-challenge.{name}. 60 IN TXT \"{value}\"")).unwrap();
    }

    /// The feed's relay and the edge: numbers what waits, applies it, acknowledges.
    pub async fn edge_follows(&self) {
        let mut tx = self.app.store.begin().await.unwrap();
        let waiting = tx.fetch_all(sql("SELECT id FROM outbox WHERE seq IS NULL ORDER BY id")).await.unwrap();
        for row in waiting {
            tx.execute(sql("UPDATE feed SET last_seq = last_seq + 1")).await.unwrap();
            tx.execute(
                sql("UPDATE outbox SET seq = (SELECT last_seq FROM feed) WHERE id = $1").bind(row.text("id").unwrap()),
            )
            .await
            .unwrap();
        }
        let confirmed = sql(
            "UPDATE edges SET cursor_epoch = CASE WHEN cursor_epoch < $2 THEN cursor_epoch ELSE (SELECT epoch FROM feed) END, \
               cursor_seq = (SELECT last_seq FROM feed), heartbeat_at = $1",
        );
        tx.execute(confirmed.bind(self.env.now()).bind(EPOCH)).await.unwrap();
        let open =
            tx.fetch_all(sql("SELECT token, key_authorization FROM challenges WHERE removed_at IS NULL")).await.unwrap();
        let routes = tx
            .fetch_all(sql("SELECT r.hostname, c.serial FROM routes r JOIN certificates c ON c.id = r.certificate_id \
                 WHERE r.action = 'serve'"))
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let text = |row: &nameplate::store::Row, column: &str| row.text(column).unwrap();
        *self.edge_side.tokens.lock().unwrap() =
            open.iter().map(|r| (text(r, "token"), text(r, "key_authorization"))).collect();
        *self.edge_side.serials.lock().unwrap() = routes.iter().map(|r| (text(r, "hostname"), text(r, "serial"))).collect();
    }

    /// What the edge answers with for a name.
    pub fn serial_at_edge(&self, name: &str) -> Option<String> {
        self.edge_side.serials.lock().unwrap().get(name).cloned()
    }

    /// A worker of a new name: the one before it is dead, or paused.
    pub fn new_worker(&self) -> App {
        let n = self.workers.fetch_add(1, Ordering::SeqCst);
        let mut app = self.app.clone();
        app.worker = format!("worker-{n}").into();
        app
    }

    /// Runs `step` until it ends or is cut; whether it was cut.
    async fn until_cut<F: Future<Output = Result<(), app::AppError>>>(&self, step: F) -> bool {
        tokio::select! {
            biased;
            done = step => { done.expect("a step fails only for the store or the vault"); false }
            () = self.scissors.reached() => true,
        }
    }

    /// One turn of everything that runs: accounts, the dispatcher, due alarms, the sweep, the edge. Moves the clock to what is
    /// due next. Whether a worker was cut.
    pub async fn turn(&self) -> bool {
        let mut cut = false;
        let app = self.new_worker();
        cut |= self.until_cut(async { app::account::ensure_all(&app).await.map(|_| ()) }).await;
        cut |= self
            .until_cut(async {
                let next = app::dispatch::round(&app).await?;
                *self.next_grant.lock().unwrap() = next;
                Ok(())
            })
            .await;
        cut |= self.until_cut(async { app::offboard::round(&app).await.map(|_| ()) }).await;
        cut |= self.until_cut(async { app::bulk::round(&app).await.map(|_| ()) }).await;
        cut |= self.until_cut(async { app::renewal::batch(&app).await.map(|_| ()) }).await;
        cut |= self.until_cut(async { app::reissue::round(&app).await }).await;
        let mut ran = false;
        while let Some(id) = self.queue.pop(self.env.now()) {
            ran = true;
            cut |= self.drive(&id).await;
        }
        self.edge_follows().await;
        if self.sweeping && *self.next_sweep.lock().unwrap() <= self.env.now() {
            *self.next_sweep.lock().unwrap() = self.env.now() + Duration::from_secs(5);
            for id in self.overdue().await {
                ran = true;
                cut |= self.drive(&id).await;
            }
            self.edge_follows().await;
        }
        if !ran {
            self.hand.advance_to(self.next_due().await);
        }
        cut
    }

    /// The next moment at which something is due, within one stride.
    async fn next_due(&self) -> Moment {
        let now = self.env.now();
        let stride = *self.stride.lock().unwrap();
        let stmt = sql("SELECT CASE WHEN due_at > lease_until THEN due_at ELSE lease_until END AS n FROM domains \
             WHERE claim NOT IN ('released', 'withdrawn', 'expired') ORDER BY n LIMIT 1");
        let rows = self.app.store.query(stmt).await.unwrap();
        let due = rows.first().map(|r| r.moment("n").unwrap());
        let soonest = due.into_iter().chain(self.queue.next_at()).min().unwrap_or(Moment::NEVER);
        let asked = nameplate::store::renewals::next_to_ask(&self.app.store).await.unwrap();
        // Only who goes by long strides would miss it by much.
        let granted = self.next_grant.lock().unwrap().filter(|_| stride > Duration::from_secs(600));
        soonest
            .min(asked.unwrap_or(Moment::NEVER))
            .min(granted.unwrap_or(Moment::NEVER))
            .clamp(now + Duration::from_secs(1), now + stride)
    }

    /// One pass over everything that is due, by one worker, without moving the clock: accounts, grants, steps.
    pub async fn everything_once(&self, app: &App) {
        app::account::ensure_all(app).await.unwrap();
        app::dispatch::round(app).await.unwrap();
        for id in self.overdue().await {
            app::advance::advance(app, &id).await.unwrap();
        }
    }

    /// The whole row of a domain but for what a lease changes.
    pub async fn row(&self, id: &DomainId) -> String {
        let stmt =
            sql("SELECT claim, evidence, settled, event_seq, certificate_id, active_since FROM domains WHERE id = $1");
        let rows = self.app.store.query(stmt.bind(id.as_str())).await.unwrap();
        let row = &rows[0];
        format!(
            "{} {} {} {} {:?} {:?}",
            row.text("claim").unwrap(),
            row.text("evidence").unwrap(),
            row.int("settled").unwrap(),
            row.int("event_seq").unwrap(),
            row.opt_text("certificate_id").unwrap(),
            row.opt_int("active_since").unwrap(),
        )
    }

    /// What the sweep would find: due, and the lease free.
    async fn overdue(&self) -> Vec<DomainId> {
        let stmt = sql("SELECT id FROM domains WHERE due_at <= $1 AND lease_until <= $1 ORDER BY id").bind(self.env.now());
        self.app.store.query(stmt).await.unwrap().iter().map(|r| r.parse("id").unwrap()).collect()
    }

    /// Steps of one domain by a worker, as long as they are due at once; whether it was cut.
    async fn drive(&self, id: &DomainId) -> bool {
        let app = self.new_worker();
        for _ in 0..100 {
            let next = Mutex::new(None);
            let cut = self
                .until_cut(async {
                    *next.lock().unwrap() = Some(app::advance::advance(&app, id).await?);
                    Ok(())
                })
                .await;
            self.edge_follows().await;
            if cut {
                return true;
            }
            let due = match next.into_inner().unwrap() {
                Some(app::advance::Advanced::Done(due)) => due,
                Some(app::advance::Advanced::Superseded) => self.env.now(),
                _ => return false,
            };
            if due.since(self.env.now()) > Duration::from_secs(2) {
                return false;
            }
            self.hand.advance_to(due);
        }
        false
    }

    /// Turns until the domain is active; panics after `limit` of virtual time.
    pub async fn until_active(&self, id: &DomainId, limit: Duration) -> usize {
        let end = self.env.now() + limit;
        let mut cuts = 0;
        while self.active_since(id).await.is_none() {
            assert!(self.env.now() < end, "not active after {limit:?} of virtual time: {}", self.story(id).await);
            cuts += usize::from(self.turn().await);
        }
        cuts
    }

    /// From now on a turn moves the clock on by so much at the most.
    pub fn stride(&self, longest: Duration) {
        *self.stride.lock().unwrap() = longest;
    }

    /// Lets a long time pass, in strides as long as nothing is due.
    pub async fn pass_quickly(&self, time: Duration) {
        *self.stride.lock().unwrap() = time;
        self.pass(time).await;
        *self.stride.lock().unwrap() = Duration::from_secs(600);
    }

    /// Turns for a time.
    pub async fn pass(&self, time: Duration) {
        let end = self.env.now() + time;
        while self.env.now() < end {
            self.turn().await;
        }
    }

    pub async fn active_since(&self, id: &DomainId) -> Option<Moment> {
        let rows = self.app.store.query(sql("SELECT * FROM domains WHERE id = $1").bind(id.as_str())).await.unwrap();
        rows[0].opt_moment("active_since").unwrap()
    }

    /// The domain's events, for a failing test's message and for snapshots.
    pub async fn events(&self, id: &DomainId) -> Vec<String> {
        let stmt = sql("SELECT kind FROM events WHERE domain_id = $1 ORDER BY domain_seq").bind(id.as_str());
        self.app.store.query(stmt).await.unwrap().iter().map(|r| r.text("kind").unwrap()).collect()
    }

    pub async fn story(&self, id: &DomainId) -> String {
        let orders =
            self.app.store.query(sql("SELECT state, problem FROM orders WHERE domain_id = $1").bind(id.as_str())).await;
        let orders: Vec<_> = orders
            .unwrap()
            .iter()
            .map(|r| format!("{} {:?}", r.text("state").unwrap(), r.opt_text("problem").unwrap()))
            .collect();
        format!(
            "claim {:?}, evidence {:?}, orders {orders:?}, events {:?}",
            self.domain_text(id, "claim").await,
            self.domain_text(id, "evidence").await,
            self.events(id).await
        )
    }
}
