//! The sandbox's DNS server, asked by somebody else's client.

use std::net::{IpAddr, Ipv4Addr};

use hickory_resolver::Resolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use nameplate::sandbox::dns::{DnsServer, EditError, Sockets, Who, ZoneStore};

use crate::support::dns_ask::world;

async fn ask(world: &ZoneStore, name: &str, kind: &str) -> Vec<String> {
    let sockets = Sockets::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).await.unwrap();
    let server = DnsServer::start(world.clone(), Who::Resolver("any".to_owned()), sockets).unwrap();
    let mut upstream = NameServerConfig::udp_and_tcp(server.address().ip());
    for connection in &mut upstream.connections {
        connection.port = server.address().port();
    }
    let config = ResolverConfig::from_name_servers(vec![upstream]);
    let resolver = Resolver::builder_with_config(config, TokioRuntimeProvider::default()).build().unwrap();
    let answers = resolver.lookup(name, kind.parse().unwrap()).await.unwrap();
    answers.answers().iter().map(|r| r.data.to_string()).collect()
}

#[tokio::test]
async fn another_client_reads_every_kind_of_answer() {
    let world = world(&[
        "shop.example.com. 300 IN CNAME edge.platform.example.",
        "example.com. 300 IN CAA 0 issue \"ca.example\"",
        "*.wild.example.com. 300 IN TXT \"covered\"",
    ]);
    assert_eq!(ask(&world, "shop.example.com.", "A").await.last().unwrap(), "203.0.113.10");
    assert!(ask(&world, "example.com.", "CAA").await[0].contains("ca.example"));
    assert_eq!(ask(&world, "x.wild.example.com.", "TXT").await, ["covered"]);
    // More than fits into a packet: the client comes back by TCP.
    for i in 0..40 {
        world.add(&format!("big.example.com. 300 IN TXT \"{i:0200}\"")).unwrap();
    }
    assert_eq!(ask(&world, "big.example.com.", "TXT").await.len(), 40);
}

#[test]
fn the_provider_refuses_what_no_provider_takes() {
    let world = world(&["shop.example.com. 300 IN A 203.0.113.10"]);
    let refused = |line: &str| world.add(line).unwrap_err();
    assert!(matches!(refused("shop.example.com. IN CNAME edge.platform.example."), EditError::Conflict { .. }));
    assert!(matches!(refused("shop.elsewhere.test. IN A 192.0.2.1"), EditError::NoZone { .. }));
    assert!(matches!(refused("shop.example.com. IN A nonsense"), EditError::Line(_)));
    assert!(matches!(world.remove("shop.example.com. IN A 192.0.2.9").unwrap_err(), EditError::NotThere(_)));
    world.add("new.example.com. 60 IN A 203.0.113.10").unwrap();
    let listed = world.records("example.com");
    assert!(listed[0].contains(" SOA ") && listed[1].contains(" NS "), "{listed:?}");
    assert!(listed.contains(&"new.example.com. 60 IN A 203.0.113.10".to_owned()), "{listed:?}");
    world.remove("new.example.com. IN A 203.0.113.10").unwrap();
    assert!(!world.records("example.com").iter().any(|l| l.starts_with("new.")));
}
