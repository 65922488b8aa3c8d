//! The zones that are looked at: each tenant's own, at one of a few hosters, with everything published as it should be.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use super::server::Counting;
use crate::dns::world::{EditError, Who, ZoneStore};
use crate::dns::{AddressMap, Limits, Settings};
use crate::model::hostname::Hostname;
use crate::model::id::TenantId;
use crate::model::look::{Ask, CaaAsk, Depth, OwnershipAsk, Platform, RoutingAsk, Turn};
use crate::model::moment::Moment;

/// Hosters, each with one name server that serves many zones.
const HOSTERS: u8 = 8;
const RESOLVERS: [&str; 3] = ["a", "b", "c"];
const SUFFIX: &str = "app.example";
const PREFIX: &str = "nameplate-verify=";

/// A world that runs.
pub(super) struct Zones {
    domains: usize,
    resolvers: Vec<Counting>,
    servers: Vec<Counting>,
}

fn value(n: usize) -> String {
    format!("{PREFIX}{n:032x}")
}

fn hostname(n: usize) -> String {
    format!("support.customer-{n}.test")
}

fn address(hoster: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1 + hoster))
}

/// The world with so many domains.
pub(super) fn world(domains: usize) -> Result<ZoneStore, EditError> {
    let world = ZoneStore::new();
    world.add_zone("test", "ns.registry.test", address(HOSTERS));
    world.add_zone(SUFFIX, "ns1.app.example", address(HOSTERS));
    world.add(&format!("*.{SUFFIX}. 300 IN A 203.0.113.10"))?;
    for hoster in 0..HOSTERS {
        world.add_zone(&format!("hoster-{hoster}.test"), &format!("ns1.hoster-{hoster}.test"), address(hoster));
    }
    for n in 0..domains {
        let hoster = u8::try_from(n % usize::from(HOSTERS)).unwrap_or(0);
        world.add_zone(&format!("customer-{n}.test"), &format!("ns1.hoster-{hoster}.test"), address(hoster));
        let name = hostname(n);
        world.add(&format!("{name}. 300 IN CNAME tenant-{n}.{SUFFIX}."))?;
        world.add(&format!("_nameplate-challenge.{name}. 300 IN TXT \"{}\"", value(n)))?;
    }
    Ok(world)
}

impl Zones {
    pub async fn start(world: &ZoneStore, domains: usize) -> io::Result<Self> {
        let (mut resolvers, mut servers) = (Vec::new(), Vec::new());
        for label in RESOLVERS {
            resolvers.push(Counting::start(world, Who::Resolver(label.to_owned())).await?);
        }
        for hoster in 0..HOSTERS {
            servers.push(Counting::start(world, Who::Server(format!("ns1.hoster-{hoster}.test"))).await?);
        }
        servers.push(Counting::start(world, Who::Server("ns1.app.example".to_owned())).await?);
        Ok(Zones { domains, resolvers, servers })
    }

    /// How they are looked at, by the product's own limits.
    pub fn settings(&self) -> Settings {
        let at = |(n, server): (u8, &Counting)| (address(n), server.at);
        Settings {
            resolvers: RESOLVERS.iter().zip(&self.resolvers).map(|(l, r)| ((*l).to_owned(), r.at)).collect(),
            servers: AddressMap::table((0..).zip(&self.servers).map(at)),
            limits: Limits::default(),
        }
    }

    /// Packets that came so far, to resolvers and servers.
    pub fn packets(&self) -> u64 {
        self.resolvers.iter().chain(&self.servers).map(Counting::packets).sum()
    }

    /// The `n`-th look, as the product would ask.
    pub fn ask(&self, n: usize, depth: Depth) -> Ask {
        let n = n % self.domains;
        let platform = Platform {
            suffixes: vec![SUFFIX.to_owned()],
            addresses: vec![IpAddr::V4(Ipv4Addr::new(203, 0, 113, 10))],
            control_names: vec![SUFFIX.to_owned()],
            ..Platform::default()
        };
        let name = hostname(n);
        let mut ask = Ask::new(Hostname::trusted(&name), platform);
        ask.depth = depth;
        let mut drawn = [0; 10];
        drawn[2..].copy_from_slice(&(n as u64).to_be_bytes());
        ask.turn = Turn { tenant: Some(TenantId::mint(Moment::default(), drawn)), ..Turn::default() };
        ask.ownership = Some(OwnershipAsk {
            name: format!("_nameplate-challenge.{name}"),
            value: value(n),
            prefix: PREFIX.to_owned(),
            ..OwnershipAsk::default()
        });
        let target = format!("tenant-{n}.{SUFFIX}");
        ask.routing = Some(RoutingAsk {
            accepted_targets: vec![target.clone()],
            target_for_record: target,
            tenant_zone: Some(SUFFIX.to_owned()),
            was_live: depth == Depth::Routine,
            max_chain: 10,
            ..RoutingAsk::default()
        });
        ask.caa = Some(CaaAsk {
            issuers: vec!["ca.example".to_owned()],
            account_uri: Some("https://ca.example/account/1".to_owned()),
            method: "http-01".to_owned(),
            max_age: std::time::Duration::from_secs(7 * 3600),
            ..CaaAsk::default()
        });
        ask
    }
}
