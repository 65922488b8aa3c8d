//! A whole sandbox: the outside, a control plane and an edge, on loopback, in this process.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::api::Api;
use super::config::{Places, text};
use super::dns::ZoneStore;
use super::home::{Home, HomeError};
use super::issuer::{Choice, IssuerError};
use super::outside::{Outside, OutsideError, OutsidePorts, PLATFORM_ZONE, TENANT_ZONE};
use super::ports::Ports;
use super::visitor::Visitor;
use crate::app::imports::{self, Files, ImportError};
use crate::app::tokens::{self, Principal};
use crate::config::{Config, ConfigError, Role, Sources};
use crate::edge::EdgeListeners;
use crate::env::Env;
use crate::model::secret::Secret;
use crate::roles::{ControlPlane, ServeListeners, StartError, run_edge};
use crate::store::StoreError;
use crate::telemetry::Chain;

/// The tenant's zone, as it was when the sandbox stopped.
const ZONE_FILE: &str = "acme.test.zone";
/// The file with the roots that visitors trust.
const VISITORS_ROOTS: &str = "ca-root.pem";
/// How long the edge's join token is good: it is used at once.
const JOIN: Duration = Duration::from_secs(600);

/// How often the tenant's zone is looked at for changes to write down.
const KEEP: Duration = Duration::from_millis(250);

/// How long visitors' running requests hold up the end: whoever pressed Ctrl-C is waiting.
const EDGE_DRAIN: Duration = Duration::from_secs(2);

/// How a sandbox is set up.
pub struct WorldSettings {
    /// Where its files stay; without it, nowhere.
    pub data: Option<PathBuf>,
    /// Which CA issues.
    pub ca: Choice,
    /// Its listeners.
    pub ports: Ports,
}

/// A sandbox does not start.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The files.
    #[error("the sandbox has no place for its files")]
    Home(#[from] HomeError),
    /// A listener.
    #[error("the sandbox cannot listen")]
    Listen(#[from] io::Error),
    /// The outside.
    #[error("the sandbox's outside cannot be set up")]
    Outside(#[from] OutsideError),
    /// The configuration it wrote itself.
    #[error("the sandbox's own configuration is refused")]
    Config(#[from] ConfigError),
    /// A role.
    #[error("the sandbox's Nameplate does not start")]
    Start(#[from] StartError),
    /// The tokens.
    #[error("the sandbox's tokens could not be made")]
    Store(#[from] StoreError),
    /// The feed's token.
    #[error("the sandbox's edge cannot be let in")]
    Feed(#[from] crate::feed::FeedError),
    /// The platform's certificate.
    #[error("the sandbox's own wildcard certificate is refused")]
    Import(#[from] ImportError),
    /// A visitor.
    #[error("the sandbox's own requests cannot be set up")]
    Http(#[from] reqwest::Error),
}

/// A role, and what stops it.
type RunningRole = (CancellationToken, JoinHandle<Result<(), StartError>>);

/// A running sandbox.
pub struct World {
    /// What is not Nameplate.
    pub outside: Outside,
    /// An operator's token, new with each start.
    pub operator: Secret,
    /// The configuration's file, for the command line.
    pub config_file: PathBuf,
    /// The file of the roots that visitors trust.
    pub roots_file: PathBuf,
    web: SocketAddr,
    tls: SocketAddr,
    env: Env,
    /// In the order in which they stop.
    roles: Vec<RunningRole>,
    _keeping: AbortOnDropHandle<()>,
    // Last, so that everything has ended when its files go.
    home: Home,
}

impl World {
    /// Starts everything; it serves when this returns, and the edge is on its way.
    pub async fn start(settings: WorldSettings, env: &Env) -> Result<World, WorldError> {
        let home = Home::open(settings.data.as_deref(), env)?;
        let ports = settings.ports;
        let (web, feed) = (ports.web.local_addr()?, ports.feed.local_addr()?);
        let (plain, tls) = (ports.plain.local_addr()?, ports.tls.local_addr()?);
        let outside_ports = OutsidePorts {
            provider: ports.provider,
            origin: ports.origin,
            ca: ports.ca,
            mail: ports.mail,
            edge_plain: plain.port(),
        };
        let outside = Outside::start(outside_ports, &settings.ca, home.dir(), env).await?;
        for line in home.read(ZONE_FILE).unwrap_or_default().lines() {
            outside.zones.add(line).map_err(OutsideError::Zone)?;
        }
        let roots_file = home.add_root(VISITORS_ROOTS, outside.issuer.issuing_root())?;
        let text = text(
            &Places {
                database: format!("sqlite:{}", home.path("nameplate.db").display()),
                master_key: &home.master_key(env)?,
                ca_roots: &home.write("acme-root.pem", outside.issuer.directory_root())?,
                directory: outside.issuer.directory(&env.draw_hex(4)),
                web,
                feed,
                plain,
                tls,
                edge_state: &home.path("edge"),
            },
            &outside,
        );
        let config_file = home.write("nameplate.toml", &text)?;
        let mut config = Config::read(Sources::none().file(config_file.display().to_string(), text))?;
        let control = ControlPlane::open(&config, Role::Serve, env).await?;
        let operator = tokens::mint(control.store(), env, &Principal::Operator, "sandbox", None).await?.text;
        let join = control.feed().mint_join_token(&format!("https://{feed}"), "sandbox", JOIN).await?;
        config.edge.join_token = Some(join);
        import_platform_certificate(&control, &outside, env).await?;
        let (stop_control, stop_edge) = (CancellationToken::new(), CancellationToken::new());
        let serving = tokio::spawn({
            let (stop, listeners) = (stop_control.clone(), ServeListeners { web: ports.web, feed: ports.feed });
            async move { control.serve(listeners, stop).await }
        });
        let edge = tokio::spawn({
            let (env, stop, listeners) =
                (env.clone(), stop_edge.clone(), EdgeListeners { plain: ports.plain, tls: ports.tls });
            async move { run_edge(&config, &env, Some(listeners), EDGE_DRAIN, stop).await }
        });
        let roles = vec![(stop_control, serving), (stop_edge, edge)];
        let keeping =
            AbortOnDropHandle::new(tokio::spawn(keep_zone(outside.zones.clone(), home.path(ZONE_FILE), env.clone())));
        Ok(World { outside, operator, config_file, roots_file, web, tls, env: env.clone(), roles, _keeping: keeping, home })
    }

    /// Time and chance.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The API's and the pages' origin.
    pub fn url(&self) -> String {
        format!("http://{}", self.web)
    }

    /// The port that stands for 443.
    pub fn https_port(&self) -> u16 {
        self.tls.port()
    }

    /// The API, with the operator's token.
    pub fn api(&self) -> Result<Api, reqwest::Error> {
        Api::new(self.url(), self.operator.clone())
    }

    /// A visitor who trusts the CA's root and nothing else.
    pub fn visitor(&self) -> Visitor {
        Visitor::new(self.outside.issuer.issuing_root().to_owned(), self.tls)
    }

    /// Resolves when a role ended by itself, with what it said.
    pub async fn broken(&mut self) -> Result<(), StartError> {
        let (ended, at, _) = futures::future::select_all(self.roles.iter_mut().map(|(_, role)| role)).await;
        self.roles.remove(at);
        ended.unwrap_or_else(|panic| Err(StartError::Web(io::Error::other(panic))))
    }

    /// Stops the control plane, then the edge: the other way round it would see its own name served no more, and write that down.
    pub async fn drain(self) -> Result<(), StartError> {
        let mut said = Ok(());
        for (stop, role) in self.roles {
            stop.cancel();
            said = said.and(role.await.unwrap_or_else(|panic| Err(StartError::Web(io::Error::other(panic)))));
        }
        // A sandbox that starts again on the same files finds its tenant's records as they were.
        if let Err(error) = self.home.write(ZONE_FILE, &(self.outside.zones.records(TENANT_ZONE).join("\n") + "\n")) {
            tracing::warn!(error = %Chain(&error), "the tenant's zone could not be kept");
        }
        said
    }
}

/// The certificate of the tenants' canonical hosts, imported as an operator would.
async fn import_platform_certificate(control: &ControlPlane, outside: &Outside, env: &Env) -> Result<(), WorldError> {
    let names = [format!("*.{PLATFORM_ZONE}")];
    let (chain, key) =
        outside.issuer.platform_certificate(&names, env).map_err(IssuerError::from).map_err(OutsideError::from)?;
    let files = Files { chain: &chain, key: &Secret::from(key), force: false };
    imports::import(control.store(), env, control.vault(), PLATFORM_ZONE, files, "sandbox").await?;
    Ok(())
}

/// Writes the tenant's zone down whenever it changed: a sandbox that was killed finds its records, too.
async fn keep_zone(zones: ZoneStore, file: PathBuf, env: Env) {
    let mut kept = Vec::new();
    loop {
        env.sleep(KEEP).await;
        let now = zones.records(TENANT_ZONE);
        if now == kept {
            continue;
        }
        match tokio::fs::write(&file, now.join("\n") + "\n").await {
            Ok(()) => kept = now,
            Err(error) => tracing::warn!(%error, "the tenant's zone could not be kept"),
        }
    }
}

/// Whether a path can be printed inside a command without quotes.
pub(super) fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
