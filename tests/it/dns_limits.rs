//! What a look may cost, whatever a zone does.

use std::net::{IpAddr, Ipv4Addr};

use nameplate::dns::Look;
use nameplate::dns::scripted::ScriptedDns;
use nameplate::model::checks;
use nameplate::model::look::{Ask, Depth};
use nameplate::sandbox::dns::ZoneStore;

use crate::support::dns_ask::{VALUE, caa, ownership, routing, world};
use crate::support::dns_world;

/// All three checks at once.
fn everything(hostname: &str) -> Ask {
    let mut ask = ownership(hostname);
    ask.routing = routing(hostname).routing;
    ask.caa = caa(hostname).caa;
    ask
}

fn hostile() -> ZoneStore {
    let world =
        world(&["loop.example.com. 300 IN CNAME again.example.com.", "again.example.com. 300 IN CNAME loop.example.com."]);
    // A chain that never ends where it is followed, for traffic and for the proof, from zone to zone.
    for i in 0..40u8 {
        let (zone, next) = (format!("z{i}.example"), format!("z{}.example", i + 1));
        world.add_zone(&zone, &format!("ns1.{zone}"), IpAddr::V4(Ipv4Addr::new(198, 51, 100, i)));
        for label in ["a", "t"] {
            world.add(&format!("{label}.{zone}. 300 IN CNAME {label}.{next}.")).unwrap();
        }
    }
    for (owner, to) in [
        ("long.example.com", "a.z0.example"),
        ("_nameplate-challenge.long.example.com", "t.z0.example"),
        ("_nameplate-challenge.loop.example.com", "_nameplate-challenge.loop2.example.com"),
        ("_nameplate-challenge.loop2.example.com", "_nameplate-challenge.loop.example.com"),
    ] {
        world.add(&format!("{owner}. 300 IN CNAME {to}.")).unwrap();
    }
    // Thirty servers for one zone.
    world.add_zone("many.example.com", "ns0.many.example.com", IpAddr::V4(Ipv4Addr::new(198, 51, 100, 100)));
    for i in 1..30u8 {
        world.add(&format!("many.example.com. 300 IN NS ns{i}.many.example.com.")).unwrap();
        world.add(&format!("ns{i}.many.example.com. 300 IN A 198.51.100.{}", 100 + i)).unwrap();
    }
    world
}

#[tokio::test]
async fn a_hostile_zone_cannot_make_a_look_expensive() {
    let dns = ScriptedDns::new(hostile());
    for (hostname, codes) in [
        ("loop.example.com", ["wrong_record_type", "cname_loop", "caa_lookup_failed"]),
        ("long.example.com", ["", "cname_chain_too_long", ""]),
        ("x.many.example.com", ["txt_missing", "cname_missing", "caa_absent"]),
        ("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.example.com", ["", "", ""]),
    ] {
        let ask = everything(hostname);
        let seen = dns.look(&ask).await;
        assert!(seen.observations.len() <= 64, "{hostname}: {} questions", seen.observations.len());
        let findings = checks::judge(&ask, &seen);
        assert_eq!(findings.len(), 3, "{hostname}");
        for (finding, code) in findings.iter().zip(codes) {
            let got = finding.reason.code();
            assert!(code.is_empty() || got == code, "{hostname}: expected {code}, got {got}: {:?}", finding.observed);
            if let Some(why) = seen.cut_short.as_ref().filter(|_| finding.observed.iter().any(|o| o.contains("ended early")))
            {
                assert!(why.contains("64"), "{why}");
                assert_eq!(finding.reason.tie(), nameplate::model::evidence::Tie::Silent);
            }
        }
    }
}

#[tokio::test]
async fn an_ordinary_look_is_cheap_and_a_routine_one_cheaper() {
    let world = world(&[
        "shop.example.com. 300 IN CNAME edge.platform.example.",
        &format!("_nameplate-challenge.shop.example.com. 300 IN TXT \"{VALUE}\""),
    ]);
    let dns = ScriptedDns::new(world);
    let mut ask = everything("shop.example.com");
    let full = dns.look(&ask).await;
    ask.depth = Depth::Routine;
    let routine = dns.look(&ask).await;
    let codes: Vec<&str> = checks::judge(&ask, &routine).iter().map(|f| f.reason.code()).collect();
    assert_eq!(codes, ["txt_ok", "cname_ok", "caa_absent"]);
    assert!(full.observations.len() <= 30, "{} questions", full.observations.len());
    assert!(routine.observations.len() <= 12, "{} questions", routine.observations.len());
}

#[tokio::test]
async fn the_same_loops_end_on_the_wire() {
    let world = hostile();
    let servers = vec![("ns1.dns.example".to_owned(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)))];
    let dns = dns_world::serve(&world, &servers).await;
    let ask = everything("loop.example.com");
    let seen = dns.observers.look(&ask).await;
    let codes: Vec<&str> = checks::judge(&ask, &seen).iter().map(|f| f.reason.code()).collect();
    assert_eq!(codes, ["wrong_record_type", "cname_loop", "caa_lookup_failed"]);
}
