//! The world of a simulation: the application on a store in memory, a scripted DNS, an edge that is a row.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::SimulationError;
use super::ca::{CaLimits, MoodyCa};
use super::engine::{Blade, Gate};
use crate::acme::Authority;
use crate::app::{self, App, Bells, Settings};
use crate::dns::scripted::ScriptedDns;
use crate::dns::world::ZoneStore;
use crate::env::manual::Hand;
use crate::jobs::hand::HandQueue;
use crate::mint;
use crate::model::domain::RoutingMode;
use crate::model::feed::{HostAction, Position};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, EdgeId, IssuerId, TenantId};
use crate::model::letting_go::LettingGo;
use crate::model::limits::{self, LimitName};
use crate::model::look::Platform;
use crate::model::moment::Moment;
use crate::reach::{Answer, Place, Reach, ReachError, Reply, Served};
use crate::sandbox::ca::DirectCa;
use crate::store::feed::{self, FeedRow, Scope};
use crate::store::issuers::{self, IssuerSeed};
use crate::store::{OpenSettings, Store, edges, views};
use crate::vault::distribution::{DistributionKey, Preflight};
use crate::vault::{Context, MasterKey, Vault};

/// Where canonical hosts are, and what they resolve to.
const SUFFIX: &str = "app.example";
pub(super) const FRONT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 80));
/// The one server of all zones.
pub(super) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53));
/// An edge is heard of at least so often: it counts for thirty seconds.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(25);
/// Rows of the outbox that get their number at once.
pub(super) const BATCH: i64 = 1_000;

/// What the edge has taken from the feed.
#[derive(Clone, Default)]
pub(super) struct Front(Arc<Mutex<Shown>>);

#[derive(Default)]
pub(super) struct Shown {
    tokens: HashMap<String, String>,
    serials: HashMap<String, String>,
    pub(super) preflight: Option<Preflight>,
}

impl Front {
    pub(super) fn shown(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Reach for Front {
    async fn served(&self, host: &Hostname, addresses: &[IpAddr]) -> Vec<Answer<Served>> {
        let serial = self.shown().serials.get(host.as_str()).cloned();
        let outcome = || match &serial {
            Some(serial) => Ok(Served { serial: serial.clone(), trusted: true, status: Some(200) }),
            None => Err(ReachError::TimedOut(Duration::from_secs(10))),
        };
        addresses.iter().map(|address| Answer { address: *address, outcome: outcome() }).collect()
    }

    async fn ask(&self, place: &Place, addresses: &[IpAddr]) -> Vec<Answer<Reply>> {
        let token = place.path.rsplit('/').next().unwrap_or_default();
        let shown = self.shown();
        let known = shown.tokens.get(token).cloned();
        let said = known.or_else(|| shown.preflight.as_ref().and_then(|key| key.answer(token)));
        let status = if said.is_some() { 200 } else { 404 };
        let body = said.unwrap_or_default().into_bytes();
        let reply = Reply { status, server: None, sent: None, body, shown: None };
        addresses.iter().map(|address| Answer { address: *address, outcome: Ok(reply.clone()) }).collect()
    }
}

/// The world.
pub(super) struct World {
    pub(super) hand: Hand,
    pub(super) app: App,
    pub(super) queue: HandQueue,
    pub(super) ca: Arc<MoodyCa>,
    pub(super) direct: Arc<DirectCa>,
    pub(super) gate: Gate,
    pub(super) blade: Blade,
    pub(super) zones: ZoneStore,
    pub(super) front: Front,
    pub(super) edge: EdgeId,
    pub(super) cursor: Position,
    heard_at: Moment,
}

impl World {
    /// A world at `start`, all chance from `seed`; the product is told the limits that the CA has.
    pub(super) async fn new(
        seed: u64,
        start: Moment,
        limits: CaLimits,
        latest: Duration,
        odd_percent: u64,
    ) -> Result<World, SimulationError> {
        let hand = Hand::new(start, seed);
        let env = hand.env();
        let store = Store::open(&OpenSettings { url: "sqlite::memory:".to_owned(), connections: 1 }).await?;
        store.migrate().await?;
        let zones = ZoneStore::new();
        zones.add_zone("test", "ns.test", SERVER);
        zones.add_zone(SUFFIX, &format!("ns.{SUFFIX}"), SERVER);
        zones.add(&format!("*.{SUFFIX}. 60 IN A {FRONT}"))?;
        let (gate, blade, front) = (Gate::new(&env), Blade::default(), Front::default());
        let direct = DirectCa::new(&env)?;
        let tokens = front.clone();
        direct.fetch_by(Arc::new(move |_, token| tokens.shown().tokens.get(token).cloned()));
        let ca = Arc::new(MoodyCa::new(Arc::clone(&direct), limits, gate.clone(), &hand, latest, odd_percent));
        let authority: Arc<dyn Authority> = ca.clone();
        let queue = HandQueue::new();
        let app = App {
            env: env.clone(),
            store,
            vault: Arc::new(Vault::new(MasterKey::generate(1, &env), Vec::new())),
            look: Arc::new(ScriptedDns::new(zones.clone())),
            reach: Arc::new(front.clone()),
            authorities: Arc::new(HashMap::from([("simulated".to_owned(), authority)])),
            wake: Arc::new(queue.clone()),
            settings: Arc::new(settings()),
            worker: "worker-0".into(),
            bells: Bells::default(),
            fleet: app::fleet::Snapshots::default(),
            lap: Arc::default(),
            flights: Arc::default(),
            boundary: Arc::new(blade.clone()),
            meters: Arc::default(),
        };
        seed_issuer(&app, limits).await?;
        let epoch = env.now().micros();
        let row = FeedRow { epoch, signing_key: vec![0], tls_key: vec![0], tls_cert: String::new() };
        app.store.execute(feed::create(&row)).await?;
        let key = DistributionKey::generate(&env);
        let id = key.id().to_string();
        let sealed = app.vault.seal(&env, &Context::new("distribution-key", &id), &key.to_secret())?;
        app.store.execute(edges::insert_distribution_key(&id, epoch, sealed.as_bytes(), env.now())).await?;
        front.shown().preflight = Some(Preflight::of(&key));
        let edge = mint!(env, EdgeId);
        app.store.execute(edges::insert(&edge, "edge-1", &[1], &[1], env.now())).await?;
        let cursor = Position { epoch, seq: 0 };
        let mut world = World { heard_at: start, hand, app, queue, ca, direct, gate, blade, zones, front, edge, cursor };
        world.edge_follows().await?;
        Ok(world)
    }

    pub(super) fn now(&self) -> Moment {
        self.app.env.now()
    }

    /// A tenant.
    pub(super) async fn tenant(&self, slug: &str) -> Result<TenantId, SimulationError> {
        let new = app::tenants::NewTenant { slug, name: None };
        Ok(app::tenants::add(&self.app.store, &self.app.env, new, |_| None, "simulation").await?.id)
    }

    /// A zone for names to be in.
    pub(super) fn zone(&self, apex: &str) {
        self.zones.add_zone(apex, &format!("ns.{apex}"), SERVER);
    }

    /// Publishes what the page of a claim says.
    pub(super) async fn publish(&self, id: &DomainId, name: &Hostname) -> Result<(), SimulationError> {
        let mut tx = self.app.store.read().await?;
        if let Some(told) = views::domain(&mut tx, id).await? {
            self.zones.add(&format!("{name}. 60 IN CNAME {}.", told.target))?;
            self.zones.add(&format!("_nameplate-challenge.{name}. 60 IN TXT \"{}\"", told.attempt.value))?;
        }
        Ok(())
    }

    /// What the relay and an edge do when the bell rings: number what was committed, take it, confirm it. What an edge need
    /// not hear of waits for its next heartbeat. How many names are served that were not.
    pub(super) async fn edge_follows(&mut self) -> Result<usize, SimulationError> {
        let store = &self.app.store;
        let heartbeat = self.heartbeat_at() <= self.app.env.now();
        if !feed::changes_wait(store).await? && !heartbeat {
            return Ok(0);
        }
        while feed::waits_for_a_number(store).await? {
            let mut tx = store.begin().await?;
            feed::number(&mut tx, "simulation", self.app.env.now(), BATCH).await?;
            tx.commit().await?;
        }
        let mut tx = store.begin().await?;
        let position = feed::position(&mut tx).await?;
        let scope = Scope::Changes(self.cursor.seq, position.seq);
        let news = position.seq > self.cursor.seq;
        let challenges = if news { feed::challenges(&mut tx, scope).await? } else { Vec::new() };
        let (hosts, certificates) = if news { feed::hosts(&mut tx, scope).await? } else { Default::default() };
        edges::ack(&mut tx, &self.edge, position, &[], self.app.env.now()).await?;
        tx.commit().await?;
        self.cursor = position;
        self.heard_at = self.app.env.now();
        let mut shown = self.front.shown();
        for challenge in challenges {
            match challenge.key_authorization {
                Some(answer) => shown.tokens.insert(challenge.token, answer),
                None => shown.tokens.remove(&challenge.token),
            };
        }
        let before = shown.serials.len();
        for host in hosts {
            let certificate = certificates.iter().find(|c| Some(&c.id) == host.certificate_id.as_ref());
            match certificate.filter(|_| host.action == HostAction::Serve) {
                Some(c) => shown.serials.insert(host.hostname.to_string(), c.serial.clone()),
                None => shown.serials.remove(host.hostname.as_str()),
            };
        }
        Ok(shown.serials.len().saturating_sub(before))
    }

    /// When the edge is to be heard of again.
    pub(super) fn heartbeat_at(&self) -> Moment {
        self.heard_at + HEARTBEAT
    }

    /// The application as another worker has it.
    pub(super) fn worker(&self, name: &str) -> App {
        let mut app = self.app.clone();
        app.worker = name.into();
        app
    }
}

fn settings() -> Settings {
    let platform = Platform {
        suffixes: vec![SUFFIX.to_owned()],
        addresses: vec![FRONT],
        control_names: vec![SUFFIX.to_owned()],
        ..Platform::default()
    };
    Settings {
        platform,
        canonical_suffix: SUFFIX.to_owned(),
        routing_mode: RoutingMode::PerTenant,
        shared_target: None,
        apex_target: None,
        letting_go: LettingGo::default(),
        min_edges: 1,
        preflight: true,
    }
}

async fn seed_issuer(app: &App, limits: CaLimits) -> Result<(), SimulationError> {
    let told = [
        (LimitName::OrdersPerAccount, limits.orders),
        (LimitName::CertificatesPerDomain, limits.registered_domain),
        (LimitName::CertificatesPerName, limits.exact_set),
    ];
    let seed = IssuerSeed {
        name: "simulated".to_owned(),
        directory: "https://ca.test/directory".to_owned(),
        limits: limits::usual().into_iter().chain(told).collect(),
        ..IssuerSeed::default()
    };
    let mut tx = app.store.begin().await?;
    issuers::seed(&mut tx, &[seed], app.env.now(), || mint!(app.env, IssuerId)).await?;
    tx.commit().await?;
    Ok(())
}
