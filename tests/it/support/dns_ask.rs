//! Asks about `shop.example.com`, and a small world for it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use nameplate::dns::Look;
use nameplate::dns::scripted::ScriptedDns;
use nameplate::model::checks;
use nameplate::model::evidence::Finding;
use nameplate::model::hostname::Hostname;
use nameplate::model::look::{Ask, CaaAsk, OwnershipAsk, Platform, RoutingAsk};
use nameplate::sandbox::dns::ZoneStore;

pub const VALUE: &str = "nameplate-verify=3f9ac1d27b604e58a1c0d4e6b7f82935";
pub const ACCOUNT: &str = "https://ca.example/acct/1";

/// The zones `example.com` and `platform.example` with our target, and these lines.
pub fn world(lines: &[&str]) -> ZoneStore {
    let world = ZoneStore::new();
    world.add_zone("example.com", "ns1.dns.example", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    world.add_zone("platform.example", "ns1.platform.example", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));
    for line in ["edge.platform.example. 60 IN A 203.0.113.10"].iter().chain(lines) {
        world.add(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    world
}

pub fn ask(hostname: &str) -> Ask {
    let platform = Platform {
        suffixes: vec!["platform.example.".to_owned()],
        addresses: vec![IpAddr::V4(Ipv4Addr::new(203, 0, 113, 10))],
        control_names: vec!["edge.platform.example".to_owned()],
        ..Platform::default()
    };
    Ask::new(Hostname::trusted(hostname), platform)
}

pub fn ownership(hostname: &str) -> Ask {
    let mut ask = ask(hostname);
    ask.ownership = Some(OwnershipAsk {
        name: format!("_nameplate-challenge.{hostname}"),
        value: VALUE.to_owned(),
        prefix: "nameplate-verify=".to_owned(),
        superseded: vec!["nameplate-verify=00000000000000000000000000000000".to_owned()],
        age: Some(Duration::from_secs(60)),
        max_age: Duration::from_secs(30 * 86_400),
        other_servers: Vec::new(),
    });
    ask
}

pub fn routing(hostname: &str) -> Ask {
    let mut ask = ask(hostname);
    ask.routing = Some(RoutingAsk {
        accepted_targets: vec!["edge.platform.example.".to_owned()],
        target_for_record: "edge.platform.example".to_owned(),
        max_chain: 10,
        ..RoutingAsk::default()
    });
    ask
}

/// A look at CAA by the CA `ca.example`; `*.` asks for a wildcard.
pub fn caa(name: &str) -> Ask {
    let base = name.strip_prefix("*.");
    let mut ask = ask(base.unwrap_or(name));
    ask.caa = Some(CaaAsk {
        issuers: vec!["ca.example".to_owned()],
        account_uri: Some(ACCOUNT.to_owned()),
        method: "http-01".to_owned(),
        wildcard: base.is_some(),
        max_age: Duration::from_secs(25_200),
        ..CaaAsk::default()
    });
    ask
}

/// Looks by script and judges; the ask must name one check.
pub async fn finding(world: &ZoneStore, ask: &Ask) -> Finding {
    let seen = ScriptedDns::new(world.clone()).look(ask).await;
    let mut findings = checks::judge(ask, &seen);
    assert_eq!(findings.len(), 1, "one check is asked for");
    findings.remove(0)
}

/// The code that a look comes to.
pub async fn code(world: &ZoneStore, ask: &Ask) -> &'static str {
    finding(world, ask).await.reason.code()
}
