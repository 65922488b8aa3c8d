//! Everything that is not Nameplate: DNS with its provider's page, a CA, and the application behind the edge.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::dns::{DnsServer, EditError, Sockets, Who, ZoneStore};
use super::issuer::{Choice, Issuer, IssuerError, Sight};
use super::mailbox::Mailbox;
use super::pebble::PebbleSettings;
use super::{misbehave, origin, provider};
use crate::dns::{AddressMap, Limits, Observers, Settings};
use crate::env::Env;

/// The tenant's zone, at the pretend provider.
pub const TENANT_ZONE: &str = "acme.test";
/// The platform's zone of canonical hosts.
pub const PLATFORM_ZONE: &str = "app.example";

/// The world's zones: apex, name server, the address that DNS gives the server (reserved for documentation, RFC 5737).
const ZONES: [(&str, &str, [u8; 4]); 4] = [
    ("test", "ns.registry.test", [192, 0, 2, 1]),
    ("example", "ns.registry.example", [192, 0, 2, 2]),
    (TENANT_ZONE, "ns1.acme.test", [192, 0, 2, 53]),
    (PLATFORM_ZONE, "ns1.app.example", [192, 0, 2, 54]),
];

/// The resolvers that Nameplate asks.
const RESOLVERS: [&str; 3] = ["one", "two", "three"];

/// The outside could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    /// A port.
    #[error("the sandbox's servers cannot listen")]
    Listen(#[from] io::Error),
    /// A zone.
    #[error("the sandbox's zones cannot be made")]
    Zone(#[from] EditError),
    /// The CA.
    #[error("the sandbox has no CA")]
    Issuer(#[from] IssuerError),
}

/// The listeners of the outside, and where the edge's plain port will be.
pub struct OutsidePorts {
    /// The pretend DNS provider's page.
    pub provider: TcpListener,
    /// The application behind the edge.
    pub origin: TcpListener,
    /// The test CA.
    pub ca: TcpListener,
    /// The mailbox.
    pub mail: TcpListener,
    /// The port that stands for 80.
    pub edge_plain: u16,
}

/// The outside, running until it is dropped.
pub struct Outside {
    /// The zones, for whoever edits them without the page.
    pub zones: ZoneStore,
    /// The CA.
    pub issuer: Issuer,
    /// Where the pretend provider's page is.
    pub provider: SocketAddr,
    /// Where the application is.
    pub origin: SocketAddr,
    /// Where mail is taken.
    pub mail: SocketAddr,
    /// What was taken; the pretend provider's server shows it at `/mail`.
    pub mailbox: Mailbox,
    /// The recursive resolvers.
    pub resolvers: Vec<SocketAddr>,
    /// Where the zones' own servers are, by the address that DNS gives them.
    pub servers: BTreeMap<IpAddr, SocketAddr>,
    _dns: Vec<DnsServer>,
    _pages: [AbortOnDropHandle<()>; 3],
}

impl Outside {
    /// Starts it. Pebble keeps its files in `workdir`.
    pub async fn start(ports: OutsidePorts, ca: &Choice, workdir: &Path, env: &Env) -> Result<Outside, OutsideError> {
        let zones = zones()?;
        let mut dns = Vec::new();
        let mut resolvers = Vec::new();
        for label in RESOLVERS {
            resolvers.push(serve(&zones, Who::Resolver(label.to_owned()), &mut dns).await?);
        }
        let mut servers = BTreeMap::new();
        for (_, host, address) in ZONES {
            let at = serve(&zones, Who::Server(host.to_owned()), &mut dns).await?;
            servers.insert(IpAddr::from(address), at);
        }
        let issuer = match ca {
            Choice::Test => {
                let settings = Settings {
                    resolvers: resolvers.iter().map(|at| (at.to_string(), *at)).collect(),
                    servers: AddressMap::table(servers.iter().map(|(address, at)| (*address, *at))),
                    limits: Limits::default(),
                };
                let observers = Observers::new(settings, env.clone());
                let sight = Sight { zones: zones.clone(), observers, http_port: ports.edge_plain };
                Issuer::test(ports.ca, sight, env).await?
            }
            Choice::Pebble(program) => {
                drop(ports.ca);
                let settings = PebbleSettings {
                    program: program.clone(),
                    ..PebbleSettings::new(workdir, resolvers[0], ports.edge_plain)
                };
                Issuer::pebble(&settings, env).await?
            }
        };
        let (provider, origin) = (ports.provider.local_addr()?, ports.origin.local_addr()?);
        let (mail, mailbox) = (ports.mail.local_addr()?, Mailbox::default());
        let mut beside = provider::router(zones.clone(), TENANT_ZONE).merge(mailbox.page());
        if let Some(script) = issuer.script() {
            beside = beside.merge(misbehave::router(script));
        }
        let pages = [page(ports.provider, beside), page(ports.origin, origin::router()), post(ports.mail, mailbox.clone())];
        Ok(Outside { zones, issuer, provider, origin, mail, mailbox, resolvers, servers, _dns: dns, _pages: pages })
    }
}

fn zones() -> Result<ZoneStore, EditError> {
    let zones = ZoneStore::new();
    for (apex, server, address) in ZONES {
        zones.add_zone(apex, server, IpAddr::from(address));
    }
    // Every tenant's canonical host leads to the edge.
    zones.add(&format!("*.{PLATFORM_ZONE}. 60 IN A 127.0.0.1"))?;
    Ok(zones)
}

async fn serve(zones: &ZoneStore, role: Who, running: &mut Vec<DnsServer>) -> io::Result<SocketAddr> {
    let sockets = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await?;
    let server = DnsServer::start(zones.clone(), role, sockets)?;
    let at = server.address();
    running.push(server);
    Ok(at)
}

fn post(listener: TcpListener, mailbox: Mailbox) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = mailbox.serve(listener, None).await {
            tracing::error!(%error, "the sandbox's mailbox takes no mail any more");
        }
    }))
}

fn page(listener: TcpListener, router: axum::Router) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "a page of the sandbox is no longer served");
        }
    }))
}
