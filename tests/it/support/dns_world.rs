//! A DNS world on loopback: the sandbox's server in every role, and observers that look at it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use nameplate::dns::{AddressMap, Limits, Observers, Settings};
use nameplate::env::Env;
use nameplate::sandbox::dns::{DnsServer, Sockets, Who, ZoneStore};

/// The labels of the resolvers, as the cases name them.
pub const RESOLVERS: [&str; 3] = ["own-a", "own-b", "own-c"];

/// Running servers and who looks at them.
pub struct LoopbackDns {
    pub observers: Observers,
    _servers: Vec<DnsServer>,
}

async fn start(world: &ZoneStore, role: Who) -> (DnsServer, SocketAddr) {
    let sockets = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
    let server = DnsServer::start(world.clone(), role, sockets).unwrap();
    let at = server.address();
    (server, at)
}

/// Serves `world` as three resolvers and as every server in `servers` (name and the address its zone gives it).
pub async fn serve(world: &ZoneStore, servers: &[(String, IpAddr)]) -> LoopbackDns {
    let limits = Limits { per_query: Duration::from_secs(2), time: Duration::from_secs(30), ..Limits::default() };
    serve_with(world, servers, &[], limits).await
}

/// As [`serve`], with servers that run elsewhere beside them.
pub async fn serve_with(
    world: &ZoneStore,
    servers: &[(String, IpAddr)],
    elsewhere: &[(IpAddr, SocketAddr)],
    limits: Limits,
) -> LoopbackDns {
    let mut running = Vec::new();
    let mut resolvers = Vec::new();
    for label in RESOLVERS {
        let (server, at) = start(world, Who::Resolver(label.to_owned())).await;
        running.push(server);
        resolvers.push((label.to_owned(), at));
    }
    let mut table: HashMap<IpAddr, SocketAddr> = elsewhere.iter().copied().collect();
    for (host, address) in servers {
        let (server, at) = start(world, Who::Server(host.clone())).await;
        running.push(server);
        table.insert(*address, at);
    }
    let settings = Settings { resolvers, servers: AddressMap::table(table), limits };
    LoopbackDns { observers: Observers::new(settings, Env::real()), _servers: running }
}
