//! A control plane's feed on loopback over a SQLite file, with hands to write what use cases would write.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nameplate::config::{Config, Sources};
use nameplate::edge::{Edge, EdgeListeners, EdgeSettings, EdgeView};
use nameplate::env::Env;
use nameplate::feed::Feed;
use nameplate::mint;
use nameplate::model::conclude::Rollout;
use nameplate::model::feed::HostAction;
use nameplate::model::id::{CertificateId, ChallengeId, DomainId, EventId, IssuerId, OrderId, TenantId};
use nameplate::model::moment::Moment;
use nameplate::model::secret::Secret;
use nameplate::store::rollout::rollout;
use nameplate::store::{OpenSettings, Store, outbox, sql};
use nameplate::vault::{Context, MasterKey, Vault};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::services::postgres_url;

pub use super::stores::until;

pub struct World {
    pub env: Env,
    pub store: Store,
    pub vault: Arc<Vault>,
    pub feed: Feed,
    pub written: Arc<Notify>,
    pub url: String,
    pub tenant: TenantId,
    pub dir: TempDir,
    pub ca: TestCa,
    pub address: SocketAddr,
    served: Option<(CancellationToken, JoinHandle<()>, JoinHandle<()>)>,
    order: OrderId,
}

/// A root that signs leaves.
pub struct TestCa {
    issuer: Issuer<'static, KeyPair>,
    pub root: rustls::pki_types::CertificateDer<'static>,
}

impl TestCa {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Of the same name, a leaf would look signed by itself.
        params.distinguished_name.push(rcgen::DnType::CommonName, "The test's root");
        let root = params.self_signed(&key).unwrap().der().clone();
        TestCa { issuer: Issuer::new(params, key), root }
    }

    /// A leaf's PEM and its PKCS#8 key.
    pub fn leaf(&self, name: &str) -> (String, Vec<u8>) {
        self.leaf_of(&[name])
    }

    /// The same for several names.
    pub fn leaf_of(&self, names: &[&str]) -> (String, Vec<u8>) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>()).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_der())
    }
}

impl World {
    /// Over a SQLite file.
    pub async fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("np.db").display());
        World::over(url, dir).await
    }

    /// Over a PostgreSQL database of its own.
    pub async fn on_postgres() -> World {
        let base = postgres_url();
        let name = format!("feed_{}", Env::real().draw_hex(8));
        let mut postgres = PgConnection::connect(&base).await.unwrap();
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut postgres).await.unwrap();
        let (server, parameters) = base.split_once('?').map_or((base.as_str(), ""), |(s, p)| (s, p));
        let server = server.rsplit_once('/').unwrap().0;
        World::over(format!("{server}/{name}?{parameters}"), tempfile::tempdir().unwrap()).await
    }

    async fn over(url: String, dir: TempDir) -> World {
        let env = Env::real();
        let store = Store::open(&OpenSettings { url, connections: 4 }).await.unwrap();
        store.migrate().await.unwrap();
        let vault = Arc::new(Vault::new(MasterKey::generate(1, &env), vec![]));
        let written = Arc::<Notify>::default();
        let feed = Feed::open(store.clone(), Arc::clone(&vault), env.clone(), Arc::clone(&written)).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tenant = mint!(env, TenantId);
        let order = mint!(env, OrderId);
        let mut world = World {
            url: format!("https://{address}"),
            ca: TestCa::new(),
            served: None,
            env,
            store,
            vault,
            feed,
            written,
            tenant,
            dir,
            address,
            order,
        };
        world.seed().await;
        world.start(listener);
        world
    }

    async fn seed(&self) {
        let (tenant, now) = (self.tenant.as_str(), self.env.now());
        let (issuer, domain) = (mint!(self.env, IssuerId), mint!(self.env, DomainId));
        for stmt in [
            sql("INSERT INTO tenants (id, slug, name, region, stamp, shard, tier, status, version, created_at) \
                 VALUES ($1, 'acme', 'Acme', 'eu', 'eu-1', 0, 'standard', 'active', 1, $2)")
            .bind(tenant)
            .bind(now),
            sql("INSERT INTO issuers (id, name, directory, preference, limits, caa_identities, spent_before, lease_until, term, \
                 granted, not_before, created_at) VALUES ($1, 'test', 'https://ca.test/', 0, '{}', '[]', 0, 0, 0, 0, 0, $2)")
            .bind(issuer.as_str())
            .bind(now),
            sql("INSERT INTO domains (id, tenant_id, hostname, claim, claim_since, routing_mode, target, attempt_id, evidence, \
                 pace_from, tie, lost_for_us, due_at, lease_until, generation, settled, failures, event_seq, nudged, created_at) \
                 VALUES ($1, $2, 'support.acme.test', 'queued', $3, 'shared', 't', 'a', '{}', 0, 'held', 0, 0, 0, 0, 0, 0, 0, 0, $3)")
            .bind(domain.as_str())
            .bind(tenant)
            .bind(now),
            sql("INSERT INTO orders (id, domain_id, purpose, lane, issuer_id, state, state_since, not_before, created_at) \
                 VALUES ($1, $2, 'first', 'single', $3, 'authorizing', $4, 0, $4)")
            .bind(self.order.as_str())
            .bind(domain.as_str())
            .bind(issuer.as_str())
            .bind(now),
        ] {
            self.store.execute(stmt).await.unwrap();
        }
        self.announce("tenant", tenant, 1).await;
    }

    fn start(&mut self, listener: TcpListener) {
        let stop = CancellationToken::new();
        let (feed, stopped) = (self.feed.clone(), stop.clone());
        let serve = tokio::spawn(async move { feed.serve(listener, stopped).await });
        let (feed, stopped) = (self.feed.clone(), stop.clone());
        let relay = tokio::spawn(async move { feed.run_relay(stopped, || ()).await });
        self.served = Some((stop, serve, relay));
    }

    /// Takes the control plane down.
    pub async fn down(&mut self) {
        if let Some((stop, serve, relay)) = self.served.take() {
            stop.cancel();
            serve.await.unwrap();
            relay.await.unwrap();
        }
    }

    /// Brings it up again at the same address, as a new process would.
    pub async fn up(&mut self) {
        self.feed = Feed::open(self.store.clone(), Arc::clone(&self.vault), self.env.clone(), Arc::clone(&self.written))
            .await
            .unwrap();
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.start(listener);
    }

    pub async fn announce(&self, kind: &str, subject: &str, version: i64) {
        let id = mint!(self.env, EventId);
        self.store.execute(outbox::insert(id.as_str(), kind, subject, version, self.env.now())).await.unwrap();
        self.written.notify_one();
    }

    /// Stores a certificate without telling anybody.
    pub async fn store_certificate(&self, name: &str, chain: &str, key: Vec<u8>) -> CertificateId {
        self.store_certificate_until(name, chain, key, self.env.now() + Duration::from_secs(90 * 86_400)).await
    }

    /// In one transaction, as use cases do: a snapshot that is taken meanwhile sees all of it or nothing.
    async fn store_certificate_until(&self, name: &str, chain: &str, key: Vec<u8>, until: Moment) -> CertificateId {
        let id = mint!(self.env, CertificateId);
        let sealed = self.vault.seal(&self.env, &Context::new("certificate-key", id.as_str()), &Secret::new(key)).unwrap();
        let now = self.env.now();
        let mut tx = self.store.begin().await.unwrap();
        for stmt in [
            sql("INSERT INTO certificates (id, source, serial, fingerprint, chain, sealed_key, not_before, not_after, stored_at) \
                 VALUES ($1, 'order', '01', 'f', $2, $3, $4, $5, $4)")
            .bind(id.as_str())
            .bind(chain)
            .bind(sealed.as_bytes())
            .bind(now)
            .bind(until),
            sql("INSERT INTO certificate_names (certificate_id, name) VALUES ($1, $2)").bind(id.as_str()).bind(name),
        ] {
            tx.execute(stmt).await.unwrap();
        }
        tx.commit().await.unwrap();
        id
    }

    /// A certificate that the feed says expires then; announced.
    pub async fn certificate_until(&self, name: &str, until: Moment) -> CertificateId {
        let (chain, key) = self.ca.leaf(name);
        let id = self.store_certificate_until(name, &chain, key, until).await;
        self.announce("certificate", id.as_str(), 1).await;
        id
    }

    /// Stores a good certificate for a name and announces it.
    pub async fn certificate(&self, name: &str) -> CertificateId {
        let (chain, key) = self.ca.leaf(name);
        let id = self.store_certificate(name, &chain, key).await;
        self.announce("certificate", id.as_str(), 1).await;
        id
    }

    pub async fn route(&self, name: &str, action: HostAction, certificate: Option<&CertificateId>, version: i64) {
        let put = sql(
            "INSERT INTO routes (hostname, tenant_id, term, action, certificate_id, version) VALUES ($1, $2, 1, $3, $4, $5) \
             ON CONFLICT (hostname) DO UPDATE SET action = excluded.action, certificate_id = excluded.certificate_id, \
             version = excluded.version",
        )
        .bind(name)
        .bind(self.tenant.as_str())
        .bind(if action == HostAction::Serve { "serve" } else { "gone" })
        .bind(certificate.map(CertificateId::as_str))
        .bind(version);
        assert_eq!(self.store.execute(put).await.unwrap(), 1);
        self.announce("host", name, version).await;
    }

    /// A name with a certificate of its own, served.
    pub async fn serve(&self, name: &str) -> CertificateId {
        let id = self.certificate(name).await;
        self.route(name, HostAction::Serve, Some(&id), 1).await;
        id
    }

    /// Publishes a challenge; the outbox hears of it when `announced`.
    pub async fn challenge(&self, token: &str, announced: bool) -> ChallengeId {
        let id = mint!(self.env, ChallengeId);
        let stmt = sql("INSERT INTO challenges (id, order_id, hostname, token, key_authorization, published_at) \
             VALUES ($1, $2, 'support.acme.test', $3, $4, $5)");
        let answer = format!("{token}.thumbprint");
        let stmt = stmt.bind(id.as_str()).bind(self.order.as_str()).bind(token).bind(answer).bind(self.env.now());
        self.store.execute(stmt).await.unwrap();
        if announced {
            self.announce("challenge", id.as_str(), 1).await;
        }
        id
    }

    /// Ends a challenge.
    pub async fn end_challenge(&self, id: &ChallengeId) {
        let stmt = sql("UPDATE challenges SET removed_at = $2 WHERE id = $1").bind(id.as_str()).bind(self.env.now());
        self.store.execute(stmt).await.unwrap();
        self.announce("challenge", id.as_str(), 2).await;
    }

    pub async fn rollout(&self, kind: &str, subject: &str) -> Rollout {
        let mut tx = self.store.read().await.unwrap();
        rollout(&mut tx, kind, subject, self.env.now(), Duration::from_secs(30)).await.unwrap()
    }

    pub async fn rolled_out(&self, kind: &str, subject: &str) {
        until("the rollout", || async { self.rollout(kind, subject).await.complete(1) }).await;
    }

    pub async fn join_token(&self) -> Secret {
        self.feed.mint_join_token(&self.url, "test", Duration::from_secs(60)).await.unwrap()
    }

    /// Starts an edge with its state under `name`.
    pub async fn edge(&self, name: &str, upstream: SocketAddr) -> RunningEdge {
        let token = self.join_token().await;
        RunningEdge::start(&self.dir.path().join(name), name, upstream, Some(token)).await
    }

    /// The same with other settings.
    pub async fn edge_with(&self, name: &str, upstream: SocketAddr, change: impl FnOnce(&mut EdgeSettings)) -> RunningEdge {
        let token = self.join_token().await;
        RunningEdge::start_with(&self.dir.path().join(name), name, upstream, Some(token), change).await
    }
}

pub struct RunningEdge {
    pub plain: SocketAddr,
    pub tls: SocketAddr,
    pub view: EdgeView,
    pub stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningEdge {
    pub async fn start(dir: &Path, name: &str, upstream: SocketAddr, join_token: Option<Secret>) -> RunningEdge {
        RunningEdge::start_with(dir, name, upstream, join_token, |_| {}).await
    }

    pub async fn start_with(
        dir: &Path,
        name: &str,
        upstream: SocketAddr,
        join_token: Option<Secret>,
        change: impl FnOnce(&mut EdgeSettings),
    ) -> RunningEdge {
        let mut settings = EdgeSettings {
            state_dir: dir.to_owned(),
            name: name.to_owned(),
            upstream: format!("http://{upstream}"),
            https_port: 8443,
            join_token,
            drain: Duration::from_secs(20),
            limits: Config::read(Sources::none()).unwrap().edge.limits,
            access_log: None,
            proof_secret: None,
        };
        change(&mut settings);
        let edge = Edge::open(settings, Env::real()).unwrap();
        let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tls = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (plain_at, tls_at) = (plain.local_addr().unwrap(), tls.local_addr().unwrap());
        let (view, stop) = (edge.view(), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move { edge.run(EdgeListeners { plain, tls }, stopped).await.unwrap() });
        RunningEdge { plain: plain_at, tls: tls_at, view, stop, task }
    }

    /// Ends it without a word, as a crash does.
    pub async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}
