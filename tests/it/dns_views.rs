//! Observers that see different things: who decides what, and how much agreement is enough.

use std::net::{IpAddr, Ipv4Addr};

use nameplate::dns::Look;
use nameplate::dns::world::line;
use nameplate::model::checks;
use nameplate::model::evidence::{Finding, Tie, View as EvidenceView};
use nameplate::model::look::{Observer, Rr};
use nameplate::sandbox::dns::{Fault, How, View, Who, ZoneStore};

use crate::support::dns_ask::{VALUE, caa, code, finding, ownership, routing, world};
use crate::support::dns_world;

const ALIAS: &str = "shop.example.com. 300 IN CNAME edge.platform.example.";
const TARGET: &str = "edge.platform.example. 60 IN A 203.0.113.10";

fn proof(value: &str) -> String {
    format!("_nameplate-challenge.shop.example.com. 300 IN TXT \"{value}\"")
}

fn records(lines: &[&str]) -> Vec<Rr> {
    lines.iter().map(|l| line::parse(l).unwrap()).collect()
}

/// Gives one resolver a world of its own.
fn resolver_sees(world: &ZoneStore, label: &str, lines: &[&str]) {
    let zone = [
        "example.com. 300 IN SOA ns1.dns.example. h.dns.example. 1 7200 900 1209600 60",
        "example.com. 300 IN NS ns1.dns.example.",
        "ns1.dns.example. 300 IN A 192.0.2.1",
        TARGET,
    ];
    let view = View::of(records(&[&zone, lines].concat()), Vec::new());
    world.set_view(Who::Resolver(label.to_owned()), Some(view));
}

/// A second server of the zone, with records of its own, or silent.
fn second_server(world: &ZoneStore, lines: &[&str], silent: bool) {
    world.add_zone("dns.example", "ns0.dns.example", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9)));
    for line in ["example.com. 300 IN NS ns2.dns.example.", "ns2.dns.example. 300 IN A 192.0.2.3"] {
        world.add(line).unwrap();
    }
    let zone = [
        "example.com. 300 IN SOA ns1.dns.example. h.dns.example. 1 7200 900 1209600 60",
        "example.com. 300 IN NS ns2.dns.example.",
    ];
    let mute = Fault { name: "example.com".to_owned(), kind: None, how: How::Timeout, below: true };
    let view = View::of(records(&[&zone, lines].concat()), if silent { vec![mute] } else { Vec::new() });
    world.set_view(Who::Server("ns2.dns.example".to_owned()), Some(view));
}

#[tokio::test]
async fn one_dissenting_resolver_of_three_does_not_stop_an_order_and_two_do() {
    let permit = "example.com. 300 IN CAA 0 issue \"ca.example\"";
    let deny = "example.com. 300 IN CAA 0 issue \"other.example\"";
    let (world, ask) = (world(&[ALIAS, permit]), caa("shop.example.com"));
    resolver_sees(&world, "own-b", &[ALIAS, deny]);
    assert_eq!(code(&world, &ask).await, "caa_permits");
    resolver_sees(&world, "own-a", &[ALIAS, deny]);
    assert_eq!(code(&world, &ask).await, "caa_vantage_disagree");
    resolver_sees(&world, "own-c", &[ALIAS, deny]);
    assert_eq!(code(&world, &ask).await, "caa_excludes_ca");
}

#[tokio::test]
async fn routing_needs_all_resolvers_but_one() {
    let (world, ask) = (world(&[ALIAS]), routing("shop.example.com"));
    let old = "shop.example.com. 300 IN CNAME old.example.net.";
    resolver_sees(&world, "own-a", &[old]);
    assert_eq!(code(&world, &ask).await, "cname_ok");
    resolver_sees(&world, "own-b", &[old]);
    let split = finding(&world, &ask).await;
    assert_eq!((split.reason.code(), split.reason.tie()), ("cname_propagating", Tie::Silent));
}

#[tokio::test]
async fn the_zone_s_servers_decide_the_proof_and_resolvers_do_not() {
    let ask = ownership("shop.example.com");
    let there = world(&[&proof(VALUE)]);
    for label in ["own-a", "own-b", "own-c"] {
        resolver_sees(&there, label, &[]);
    }
    assert_eq!(code(&there, &ask).await, "txt_ok");
    let absent = world(&[]);
    for label in ["own-a", "own-b", "own-c"] {
        resolver_sees(&absent, label, &[&proof(VALUE)]);
    }
    assert_eq!(code(&absent, &ask).await, "txt_missing");
}

#[tokio::test]
async fn servers_must_agree_and_a_silent_one_is_reported() {
    let ask = ownership("shop.example.com");
    let world = world(&[&proof(VALUE)]);
    second_server(&world, &[], false);
    let split = finding(&world, &ask).await;
    assert_eq!((split.reason.code(), split.reason.tie()), ("txt_propagating", Tie::Silent));
    second_server(&world, &[&proof(VALUE)], false);
    assert_eq!(code(&world, &ask).await, "txt_ok");
    second_server(&world, &[], true);
    let one = finding(&world, &ask).await;
    assert_eq!((one.reason.code(), one.reason.tie()), ("ok_one_server_down", Tie::Present));
    assert!(one.advice.contains("ns2.dns.example"), "{}", one.advice);
    world.set_faults(vec![Fault { name: "example.com".to_owned(), kind: None, how: How::Timeout, below: true }]);
    let none = finding(&world, &ask).await;
    assert_eq!((none.reason.code(), none.reason.tie()), ("dns_lookup_failed", Tie::Silent));
}

#[tokio::test]
async fn a_server_is_not_believed_about_other_zones() {
    let world = world(&["_nameplate-challenge.shop.example.com. 300 IN CNAME proof.example.net."]);
    world.add_zone("example.net", "ns1.net.example", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
    // The customer's server adds what it says of example.net; the servers there say nothing of the kind.
    let lines = [
        "example.com. 300 IN SOA ns1.dns.example. h.dns.example. 1 7200 900 1209600 60",
        "example.com. 300 IN NS ns1.dns.example.",
        "_nameplate-challenge.shop.example.com. 300 IN CNAME proof.example.net.",
        &format!("proof.example.net. 300 IN TXT \"{VALUE}\""),
    ];
    let view = View::of(records(&lines), Vec::new());
    world.set_view(Who::Server("ns1.dns.example".to_owned()), Some(view));
    assert_eq!(code(&world, &ownership("shop.example.com")).await, "wrong_record_type");
    world.add(&format!("proof.example.net. 300 IN TXT \"{VALUE}\"")).unwrap();
    assert_eq!(code(&world, &ownership("shop.example.com")).await, "txt_ok");
}

#[tokio::test]
async fn a_proof_that_comes_from_our_own_zones_is_none() {
    let world = world(&[
        "_nameplate-challenge.shop.example.com. 300 IN CNAME edge.platform.example.",
        &format!("edge.platform.example. 300 IN TXT \"{VALUE}\""),
    ]);
    assert_eq!(code(&world, &ownership("shop.example.com")).await, "wrong_record_type");
}

#[tokio::test]
async fn a_broken_signature_spoils_even_a_right_value() {
    let world = world(&[&proof(VALUE), ALIAS]);
    world.set_faults(vec![Fault { name: "example.com".to_owned(), kind: None, how: How::Bogus, below: true }]);
    let seen = finding(&world, &ownership("shop.example.com")).await;
    assert_eq!((seen.reason.code(), seen.reason.tie()), ("dnssec_bogus", Tie::Silent));
}

#[tokio::test]
async fn a_server_at_a_private_address_is_never_asked() {
    let world = world(&["shop.example.com. 300 IN NS ns1.shop.example.com.", "ns1.shop.example.com. 300 IN A 127.0.0.1"]);
    let servers = [("ns1.dns.example".to_owned(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)))];
    let dns = dns_world::serve(&world, &servers).await;
    let ask = ownership("shop.example.com");
    let seen = dns.observers.look(&ask).await;
    assert!(!seen.observations.is_empty());
    for o in &seen.observations {
        if let Observer::Server { address, .. } = o.probe.observer {
            assert!(checks::is_public(address), "{:?}", o.probe);
        }
    }
    assert_eq!(checks::judge(&ask, &seen)[0].reason.code(), "nameserver_not_public");
}

#[tokio::test]
async fn a_name_behind_a_proxy_is_no_departure() {
    let world = world(&["shop.example.com. 300 IN CNAME shop.cdn.example.net.", TARGET]);
    world.add_zone("example.net", "ns1.net.example", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
    world.add("shop.cdn.example.net. 300 IN A 198.51.100.80").unwrap();
    let mut ask = routing("shop.example.com");
    assert_eq!(code(&world, &ask).await, "cname_points_elsewhere");
    ask.platform.cdn_prefixes = vec!["198.51.100.80/29".to_owned()];
    let seen = finding(&world, &ask).await;
    assert_eq!((seen.reason.code(), seen.reason.tie()), ("proxied_by_cdn", Tie::Silent));
}

#[tokio::test]
async fn another_tenant_s_own_target_is_recognised_by_its_zone() {
    let world = world(&["shop.example.com. 300 IN CNAME other.tenants.platform.example."]);
    world.add("*.tenants.platform.example. 60 IN CNAME edge.platform.example.").unwrap();
    let mut ask = routing("shop.example.com");
    let route = ask.routing.as_mut().unwrap();
    route.accepted_targets = vec!["acme.tenants.platform.example".to_owned()];
    route.tenant_zone = Some("tenants.platform.example".to_owned());
    assert_eq!(code(&world, &ask).await, "cname_wrong_tenant_target");
    ask.routing.as_mut().unwrap().accepted_targets = vec!["other.tenants.platform.example".to_owned()];
    assert_eq!(code(&world, &ask).await, "cname_ok");
}

/// Observer, word, TTL and whether it is as expected, a line each.
fn side_by_side(finding: &Finding) -> Vec<String> {
    let line = |v: &EvidenceView| format!("{} | {} | {:?} | {}", v.observer, v.said, v.ttl, v.as_expected);
    finding.views.iter().map(line).collect()
}

#[tokio::test]
async fn servers_that_disagree_on_the_proof_stand_side_by_side_with_their_ttls() {
    let ask = ownership("shop.example.com");
    let world = world(&[&proof(VALUE)]);
    assert_eq!(side_by_side(&finding(&world, &ask).await), [""; 0], "nobody differs");
    second_server(&world, &["_nameplate-challenge.shop.example.com. 7200 IN TXT \"an older one\""], false);
    let name = "_nameplate-challenge.shop.example.com";
    let new = format!("ns1.dns.example | TXT {name} = \"{VALUE}\" | Some(300) | true");
    let old = format!("ns2.dns.example | TXT {name} = \"an older one\" | Some(7200) | false");
    assert_eq!(side_by_side(&finding(&world, &ask).await), [new.clone(), old]);
    // An absence lives as long as the zone says absences live.
    second_server(&world, &[], false);
    let absent = format!("ns2.dns.example | TXT {name}: no such name (NXDOMAIN) | Some(60) | false");
    assert_eq!(side_by_side(&finding(&world, &ask).await), [new, absent]);
    second_server(&world, &[], true);
    assert_eq!(side_by_side(&finding(&world, &ask).await), [""; 0], "silence contradicts nobody");
}

#[tokio::test]
async fn resolvers_and_servers_that_disagree_on_the_alias_stand_side_by_side() {
    let ask = routing("shop.example.com");
    let world = world(&[ALIAS]);
    assert_eq!(side_by_side(&finding(&world, &ask).await), [""; 0], "nobody differs");
    resolver_sees(&world, "own-b", &["shop.example.com. 900 IN CNAME old.example.net."]);
    second_server(&world, &["shop.example.com. 3600 IN A 198.51.100.7"], false);
    assert_eq!(
        side_by_side(&finding(&world, &ask).await),
        [
            "resolver own-a | CNAME edge.platform.example | Some(300) | true",
            "resolver own-b | CNAME old.example.net | Some(900) | false",
            "resolver own-c | CNAME edge.platform.example | Some(300) | true",
            "ns1.dns.example | CNAME edge.platform.example | Some(300) | true",
            "ns2.dns.example | A 198.51.100.7 | Some(3600) | false",
        ]
    );
}

#[tokio::test]
async fn resolvers_that_disagree_on_the_permission_stand_side_by_side() {
    let (world, ask) = (world(&[ALIAS, "example.com. 300 IN CAA 0 issue \"ca.example\""]), caa("shop.example.com"));
    assert_eq!(side_by_side(&finding(&world, &ask).await), [""; 0], "nobody differs");
    for label in ["own-a", "own-b"] {
        resolver_sees(&world, label, &[ALIAS, "example.com. 5000 IN CAA 0 issue \"other.example\""]);
    }
    assert_eq!(
        side_by_side(&finding(&world, &ask).await),
        [
            "resolver own-a | example.com CAA 0 issue \"other.example\" | Some(5000) | false",
            "resolver own-b | example.com CAA 0 issue \"other.example\" | Some(5000) | false",
            "resolver own-c | example.com CAA 0 issue \"ca.example\" | Some(300) | true",
        ]
    );
}

#[tokio::test]
async fn a_zone_decides_neither_how_many_views_are_kept_nor_how_long_they_are() {
    let ask = ownership("shop.example.com");
    let world = world(&[&proof(VALUE)]);
    let long: Vec<String> =
        (0..40).map(|i| format!("_nameplate-challenge.shop.example.com. 300 IN TXT \"{i:0200}\"")).collect();
    second_server(&world, &long.iter().map(String::as_str).collect::<Vec<_>>(), false);
    let seen = finding(&world, &ask).await;
    assert_eq!(seen.views.len(), 2);
    assert!(seen.views.iter().all(|v| v.said.chars().count() <= 601), "{:?}", seen.views);
}
