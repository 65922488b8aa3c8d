//! Signatures: how a broken one is told from a server that is down, and who of our resolvers is believed about it.

use nameplate::dns::Look;
use nameplate::dns::scripted::ScriptedDns;
use nameplate::dns::world::line;
use nameplate::model::checks;
use nameplate::model::evidence::{Finding, Tie};
use nameplate::model::look::{Answer, Ask, Depth, Observer, Outcome};
use nameplate::sandbox::dns::{Fault, How, View, Who, ZoneStore};

use crate::support::dns_ask::{VALUE, caa, finding, ownership, routing, world};
use crate::support::dns_world;

/// The customer's zone, right in every point.
fn right() -> ZoneStore {
    world(&[
        "shop.example.com. 300 IN CNAME edge.platform.example.",
        &format!("_nameplate-challenge.shop.example.com. 300 IN TXT \"{VALUE}\""),
        "example.com. 300 IN CAA 0 issue \"ca.example\"",
    ])
}

fn asks() -> [Ask; 3] {
    [ownership("shop.example.com"), routing("shop.example.com"), caa("shop.example.com")]
}

fn fault(name: &str, how: How) -> Fault {
    Fault { name: name.to_owned(), kind: None, how, below: true }
}

/// Gives one resolver the same world with a fault of its own.
fn at_resolver(world: &ZoneStore, label: &str, fault: Fault) {
    let records = world.records("").iter().map(|l| line::parse(l).unwrap()).collect::<Vec<_>>();
    world.set_view(Who::Resolver(label.to_owned()), Some(View::of(records, vec![fault])));
}

async fn through(resolvers: &[&str], world: &ZoneStore, ask: &Ask) -> Finding {
    let mut dns = ScriptedDns::new(world.clone());
    dns.resolvers = resolvers.iter().map(|r| (*r).to_owned()).collect();
    checks::judge(ask, &dns.look(ask).await).remove(0)
}

/// A routine look goes by one resolver: the first that is not down.
#[tokio::test]
async fn b92_a_routine_look_goes_by_the_next_resolver_where_the_first_is_down() {
    let world = right();
    let mut ask = caa("shop.example.com");
    ask.depth = Depth::Routine;
    let right = through(&["r1", "r2", "r3"], &world, &ask).await.reason;
    for how in [How::Timeout, How::ServFail, How::Refused] {
        at_resolver(&world, "r1", fault("", how));
        assert_eq!(through(&["r1", "r2", "r3"], &world, &ask).await.reason, right, "{how:?}");
        // One that fails on this name alone is up, and says what it says.
        at_resolver(&world, "r1", fault("shop.example.com", how));
        assert_ne!(through(&["r1", "r2", "r3"], &world, &ask).await.reason, right, "{how:?}");
    }
    for resolver in ["r1", "r2", "r3"] {
        at_resolver(&world, resolver, fault("", How::Timeout));
    }
    assert_eq!(through(&["r1", "r2", "r3"], &world, &ask).await.reason.code(), "resolver_unavailable");
}

#[tokio::test]
async fn b17_a_failure_that_goes_away_without_the_check_is_a_broken_signature() {
    let world = right();
    world.set_faults(vec![fault("example.com", How::BogusUnexplained)]);
    for ask in asks() {
        let seen = finding(&world, &ask).await;
        assert_eq!((seen.reason.code(), seen.reason.tie()), ("dnssec_bogus", Tie::Silent));
        assert!(seen.advice.contains("example.com") && seen.advice.contains("DS record"), "{}", seen.advice);
        let shown = seen.observed.join("\n");
        assert!(shown.contains("SERVFAIL"), "{shown}");
        assert!(ask.caa.is_some() || shown.contains("an answer when it is told not to check signatures"), "{shown}");
    }
}

#[tokio::test]
async fn a_failure_of_what_nobody_signs_is_no_broken_signature() {
    let world = right();
    // The resolver fails and then does not: but no registrar vouches for signatures of example.com.
    world.set_faults(vec![fault("shop.example.com", How::BogusUnexplained)]);
    for (ask, code) in asks().iter().zip(["txt_ok", "dns_lookup_failed", "caa_lookup_failed"]) {
        let seen = finding(&world, ask).await;
        assert_eq!((seen.reason.code(), seen.reason.tie() == Tie::Gone), (code, false), "{:?}", seen.observed);
    }
}

#[tokio::test]
async fn a_failure_with_and_without_the_check_is_a_failure() {
    let world = right();
    world.set_faults(vec![fault("example.com", How::ServFail)]);
    for (ask, code) in asks().iter().zip(["dns_lookup_failed", "dns_lookup_failed", "caa_lookup_failed"]) {
        let seen = ScriptedDns::new(world.clone()).look(ask).await;
        assert_eq!(checks::judge(ask, &seen)[0].reason.code(), code);
        assert!(seen.observations.iter().any(|o| matches!(o.probe.observer, Observer::Unchecked(_))), "it was asked again");
    }
}

#[tokio::test]
async fn one_resolver_that_validates_outweighs_two_that_do_not() {
    for how in [How::Bogus, How::BogusUnexplained] {
        let world = right();
        at_resolver(&world, "own-b", fault("example.com", how));
        for ask in asks() {
            assert_eq!(finding(&world, &ask).await.reason.code(), "dnssec_bogus", "{how:?}");
        }
    }
}

#[tokio::test]
async fn the_question_without_the_check_goes_over_the_wire() {
    let world = right();
    world.set_faults(vec![fault("example.com", How::BogusUnexplained)]);
    let servers = [("ns1.dns.example".to_owned(), "192.0.2.1".parse().unwrap())];
    let dns = dns_world::serve(&world, &servers).await;
    for ask in asks() {
        let seen = dns.observers.look(&ask).await;
        let finding = checks::judge(&ask, &seen).remove(0);
        assert_eq!(finding.reason.code(), "dnssec_bogus", "{finding:?}");
    }
}

#[test]
fn an_answer_with_a_remark_about_signatures_is_an_answer() {
    let remarked = Answer { ede: vec![10], ..Answer::bare(Outcome::NoError) };
    assert!(!remarked.bogus());
    assert!(Answer { ede: vec![10], ..Answer::bare(Outcome::ServFail) }.bogus());
    let silent = Answer { ede: vec![22, 22, 999], ..Answer::bare(Outcome::ServFail) };
    assert_eq!(silent.how(), "server failure (SERVFAIL): none of its name servers could be reached, extended error 999");
}

/// A resolver that answers nothing at all.
fn dead(world: &ZoneStore, label: &str) {
    at_resolver(world, label, fault("", How::Timeout));
}

#[tokio::test]
async fn a_resolver_of_ours_that_is_down_does_not_speak_for_the_customer_s_zone() {
    let world = right();
    dead(&world, "own-b");
    for ask in asks() {
        let seen = through(&["own-a", "own-b"], &world, &ask).await;
        assert_eq!(seen.verdict(), nameplate::model::evidence::Verdict::Pass, "{:?} {:?}", seen.reason, seen.observed);
    }
    // Of three, too few are left: that is our outage, and nobody else is told to act.
    dead(&world, "own-c");
    for ask in asks().into_iter().skip(1) {
        let seen = through(&["own-a", "own-b", "own-c"], &world, &ask).await;
        assert_eq!((seen.reason.code(), seen.reason.tie()), ("resolver_unavailable", Tie::Silent), "{:?}", seen.observed);
    }
    // The zone's servers decide the proof, and they are up.
    assert_eq!(through(&["own-a", "own-b", "own-c"], &world, &asks()[0]).await.reason.code(), "txt_ok");
}

#[tokio::test]
async fn a_zone_that_is_down_is_not_our_outage() {
    let world = right();
    world.set_faults(vec![fault("example.com", How::Timeout)]);
    for (ask, code) in asks().iter().zip(["dns_lookup_failed", "dns_lookup_failed", "caa_lookup_failed"]) {
        for resolvers in [&["own-a"][..], &["own-a", "own-b"], &["own-a", "own-b", "own-c"]] {
            assert_eq!(through(resolvers, &world, ask).await.reason.code(), code, "{resolvers:?}");
        }
    }
}

#[tokio::test]
async fn who_checks_signatures_is_said() {
    let world = right();
    world.set_faults(vec![fault("example.com", How::Bogus)]);
    let seen = finding(&world, &routing("shop.example.com")).await;
    assert!(seen.seen_by.contains(&"resolver own-a (checks signatures)".to_owned()), "{:?}", seen.seen_by);
    let dns = dns_world::serve(&world, &[]).await;
    let told = dns.observers.validating().await;
    assert_eq!(told, dns_world::RESOLVERS.map(|r| (r.to_owned(), Some(true))));
    dead(&world, "own-b");
    assert_eq!(dns.observers.validating().await[1], ("own-b".to_owned(), None));
}
