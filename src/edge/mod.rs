//! The edge: where visitors arrive. It answers CAs, ends TLS, knows whose a hostname is, and hands requests to the origin.
//!
//! **Owns** the two listeners and everything between them and the upstream: accepting and drain ([`listen`]), a connection's
//! protocol and bounds ([`connection`], [`framing`]), challenge answers and redirects on the plain port ([`plain`]), the choice
//! of certificate ([`certificates`]), Host checking ([`host`]), header hygiene ([`headers`]), proxying ([`proxy`]), streaming
//! bodies ([`body`]), upgrades ([`tunnel`]), proof to the origin ([`proof`]), what is counted and written of a request
//! ([`exchange`], [`access_log`]), the probe of its own listener ([`probe`]). **May import** the reader's side of `feed`,
//! `vault::distribution` through it, `config`, `telemetry`, `env` and `model`: an edge runs without a database and outlives a
//! dead control plane.
//!
//! **Always holds**: a certificate is shown for its own server name only, to nobody without one; a CA is answered before
//! anything else is decided; what says whose a request is comes from the feed, never from the request; without a book the edge
//! refuses, since an empty one would say 404 for everyone; upstreams come from the operator's settings only; nothing that a
//! visitor or the origin does holds anything for longer, or makes it larger, than the settings say.
//!
//! **To fake it**: start one on loopback listeners; it is a library on the caller's runtime. **To get it wrong**: look a
//! hostname up before it passed [`host`]; forward a header because it looks harmless; answer from an upstream's 421.

pub mod certificates;
pub mod headers;
pub mod host;
pub mod probe;
pub mod proof;

mod access_log;
mod answer;
mod ask;
mod body;
mod connection;
mod exchange;
mod framing;
mod listen;
mod plain;
mod proxy;
mod tunnel;
mod view;

pub use view::EdgeView;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::config::EdgeLimits;
use crate::env::Env;
use crate::feed::follow::{FollowError, Follower};
use crate::feed::replica::Replica;
use crate::model::secret::Secret;
use crate::telemetry::metrics::EdgeMeters;
use access_log::{AccessLog, Written};
use certificates::CertificateBook;
use proxy::{NotAnUpstream, Upstream};

/// How an edge is set up.
#[derive(Clone, Debug)]
pub struct EdgeSettings {
    /// Its key, its credential and its last good copy; nobody else may read it.
    pub state_dir: PathBuf,
    /// The name it enrols under.
    pub name: String,
    /// The origin, `http://host:port`.
    pub upstream: String,
    /// The port visitors use for https, for redirects; 443 is left out of them.
    pub https_port: u16,
    /// What lets it in, the first time.
    pub join_token: Option<Secret>,
    /// How long running requests may take once it is told to stop.
    pub drain: Duration,
    /// What visitors and the origin may ask of it.
    pub limits: EdgeLimits,
    /// The file (or `stdout`) that gets a line for one request of so many.
    pub access_log: Option<(PathBuf, u32)>,
    /// The secret that proves its words to the origin.
    pub proof_secret: Option<Secret>,
}

/// The listeners of an edge, bound by the caller.
pub struct EdgeListeners {
    /// Port 80 to the world.
    pub plain: TcpListener,
    /// Port 443 to the world.
    pub tls: TcpListener,
}

/// Why an edge does not start.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// The feed's side.
    #[error("the edge cannot read the feed")]
    Follow(#[from] FollowError),
    /// The operator's setting.
    #[error("the edge's upstream cannot be used")]
    Upstream(#[from] NotAnUpstream),
    /// TLS.
    #[error("the edge cannot offer TLS")]
    Tls(#[from] rustls::Error),
    /// A listener.
    #[error("the edge's listener has no address")]
    Listener(#[source] std::io::Error),
    /// The access log.
    #[error("edge.access_log is {path:?}, which cannot be written")]
    AccessLog {
        /// The setting.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// An edge, opened and not yet serving.
pub struct Edge {
    settings: EdgeSettings,
    env: Env,
    follower: Follower,
    upstream: Upstream,
    view: EdgeView,
    log: Option<(AccessLog, Written)>,
}

/// What every connection shares.
struct Shared {
    env: Env,
    replica: Arc<Replica>,
    upstream: Upstream,
    https_port: u16,
    drain: Duration,
    ask: ask::Ask,
    limits: EdgeLimits,
    /// Room at the origin: HTTP/2 lets one connection ask for very many things.
    requests: Arc<Semaphore>,
    meters: Arc<EdgeMeters>,
    log: Option<AccessLog>,
    proof: Option<proof::Proof>,
    /// Told to stop: nothing new is begun.
    stop: CancellationToken,
    /// Out of patience: what still runs ends now.
    cut: CancellationToken,
    /// Connections and tunnels, for the drain to wait for.
    tasks: TaskTracker,
}

impl Edge {
    /// Opens the state directory and the last good copy.
    pub fn open(settings: EdgeSettings, env: Env) -> Result<Edge, EdgeError> {
        let upstream = Upstream::parse(&settings.upstream, &settings.limits)?;
        let token = settings.join_token.as_ref().and_then(Secret::expose_str);
        let follower = Follower::open(&settings.state_dir, token, env.clone())?;
        let meters = Arc::<EdgeMeters>::default();
        let opened = settings.access_log.as_ref().map(|(path, sample)| {
            AccessLog::open(path, *sample, Arc::clone(&meters))
                .map_err(|source| EdgeError::AccessLog { path: path.clone(), source })
        });
        let log = opened.transpose()?;
        let view = EdgeView::new(follower.replica(), meters, env.clone());
        Ok(Edge { settings, env, follower, upstream, view, log })
    }

    /// A view of how it is doing, good while it runs.
    pub fn view(&self) -> EdgeView {
        self.view.clone()
    }

    /// Serves until told to stop, then drains.
    pub async fn run(self, listeners: EdgeListeners, stop: CancellationToken) -> Result<(), EdgeError> {
        let Edge { settings, env, follower, upstream, view, log } = self;
        let replica = follower.replica();
        let book = Arc::new(CertificateBook::new(Arc::clone(&replica)));
        let tls = Arc::new(server_config(Arc::clone(&book))?);
        let own = reachable(listeners.tls.local_addr().map_err(EdgeError::Listener)?);
        let prober = Arc::new(probe::Prober::new(own, Arc::clone(&replica), book, env.clone())?);
        let ask = ask::Ask::new(follower.client(), env.clone());
        let (log, written) = log.unzip();
        let shared = Arc::new(Shared {
            env,
            replica,
            upstream,
            https_port: settings.https_port,
            drain: settings.drain,
            ask,
            requests: Arc::new(Semaphore::new(usize::try_from(settings.limits.requests).unwrap_or(Semaphore::MAX_PERMITS))),
            limits: settings.limits,
            meters: view.meters(),
            log,
            proof: settings.proof_secret.as_ref().map(proof::Proof::new),
            stop: stop.clone(),
            cut: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        // A future that is dropped instead of finishing cuts everything off: nothing outlives the edge.
        let _cut = shared.cut.clone().drop_guard();
        // A task of its own: writing the copy may block, and connections must not wait for it. It ends at once when told to
        // stop: a listener that drains would look broken to its own probe.
        let stopped = stop.clone();
        let following = tokio::spawn(async move { follower.run(&settings.name, prober, stopped).await });
        let _following = AbortOnDropHandle::new(following);
        let listening = async {
            tokio::join!(
                listen::plain(listeners.plain, Arc::clone(&shared)),
                listen::tls(listeners.tls, tls, Arc::clone(&shared)),
            )
        };
        let draining = async {
            stop.cancelled().await;
            view.drains();
        };
        tokio::join!(listening, draining);
        listen::drain(&shared).await;
        let env = shared.env.clone();
        drop(shared);
        if let Some(written) = written {
            tokio::select! {
                () = written.wait() => {}
                () = env.sleep(LOG_WRITTEN) => {}
            }
        }
        Ok(())
    }
}

/// How long the last lines of the access log may take.
const LOG_WRITTEN: Duration = Duration::from_secs(1);

fn server_config(book: Arc<CertificateBook>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(certificates::provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(book);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Where a listener can be reached from this machine.
fn reachable(mut own: SocketAddr) -> SocketAddr {
    if own.ip().is_unspecified() {
        own.set_ip(if own.is_ipv4() { std::net::Ipv4Addr::LOCALHOST.into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    own
}
