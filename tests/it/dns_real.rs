//! The same situations over other people's servers: BIND and Knot as authorities, Unbound as a resolver that validates.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::StreamExt;
use nameplate::dns::{AddressMap, Limits, Look, Observers, Settings};
use nameplate::env::Env;
use nameplate::model::checks;
use nameplate::model::look::{Ask, Kind, Observer, Seen};
use nameplate::sandbox::dns::{Fault, How, ZoneStore};

use crate::dns_cases::compare;
use crate::support::dns_ask::{VALUE, caa, code, ownership, routing, world};
use crate::support::dns_corpus::{self, CASES, Case, Defaults, MORE, load};
use crate::support::dns_real::{self, MasterFile, Product, Signed, serve, server_addresses, sign, zones};
use crate::support::dns_world;

/// How many servers run at a time, on two processors.
const AT_ONCE: usize = 3;

enum Ran {
    Right,
    Wrong(String),
    NotLoaded(String),
}

async fn run(product: Product, case: &Case, defaults: &Defaults) -> Ran {
    // One server stands for all of them, so it can neither fail for one name nor show each observer something else.
    if !case.view.is_empty() || !case.fail.is_empty() {
        return Ran::NotLoaded("observers differ, or look-ups fail".to_owned());
    }
    let (world, servers) = load(case, defaults);
    let files = match zones(&world) {
        Ok(files) => files,
        Err(why) => return Ran::NotLoaded(why),
    };
    let real = serve(product, &files).await;
    let at: Vec<(IpAddr, SocketAddr)> = servers.iter().map(|(_, address)| (*address, real.at)).collect();
    let limits = Limits { per_query: Duration::from_secs(3), time: Duration::from_secs(30), ..Limits::default() };
    let dns = dns_world::serve_with(&world, &[], &at, limits).await;
    let ask = case.ask(defaults);
    let (expected, got, finding) = compare(case, &ask, &dns.observers.look(&ask).await);
    if expected == got {
        Ran::Right
    } else {
        Ran::Wrong(format!("{}: [{expected}] [{got}] {:#?}", case.id, finding.observed))
    }
}

async fn every_case(product: Product) {
    let (mut right, mut wrong) = (0, Vec::new());
    for file in [CASES, MORE] {
        let corpus = dns_corpus::read(file);
        let defaults = &corpus.defaults;
        let outcomes = corpus.case.iter().map(|case| async move { (case, run(product, case, defaults).await) });
        let mut outcomes = futures::stream::iter(outcomes).buffered(AT_ONCE);
        while let Some((case, outcome)) = outcomes.next().await {
            match outcome {
                Ran::Right => right += 1,
                Ran::Wrong(how) => wrong.push(how),
                Ran::NotLoaded(why) => println!("not loaded: {}: {why}", case.id),
            }
        }
    }
    println!("{product:?}: {right} cases");
    assert!(wrong.is_empty(), "{product:?} leads {} cases astray: {}", wrong.len(), wrong.join("\n"));
    assert!(right >= 120, "only {right} cases ran over {product:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bind_serves_the_cases() {
    every_case(Product::Bind).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn knot_serves_the_cases() {
    every_case(Product::Knot).await;
}

/// The customer's zone, right in every point.
fn right() -> ZoneStore {
    let world = world(&[
        "shop.example.com. 300 IN CNAME edge.platform.example.",
        &format!("_nameplate-challenge.shop.example.com. 300 IN TXT \"{VALUE}\""),
        "example.com. 300 IN CAA 0 issue \"ca.example\"",
    ]);
    world.add_zone("dns.example", "ns1.dns.example", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
    for top in ["net", "example", "com"] {
        world.add_zone(top, "ns1.registry.net", IpAddr::V4(Ipv4Addr::new(192, 0, 2, 3)));
    }
    world
}

fn asks() -> [Ask; 3] {
    [ownership("shop.example.com"), routing("shop.example.com"), caa("shop.example.com")]
}

/// Looks through Unbound, which trusts `anchor`, at these zones served by BIND: the codes of the three checks, and what was seen.
async fn through_unbound(files: &[MasterFile], anchor: &str) -> (Vec<&'static str>, Vec<Seen>) {
    let bind = serve(Product::Bind, files).await;
    let stubs: Vec<String> = files.iter().map(|f| f.apex.clone()).collect();
    let unbound = dns_real::unbound(bind.at, "example.com", anchor, &stubs).await;
    let table: Vec<(IpAddr, SocketAddr)> = server_addresses(&right()).into_iter().map(|a| (a, bind.at)).collect();
    let limits = Limits { per_query: Duration::from_secs(3), time: Duration::from_secs(30), ..Limits::default() };
    let resolvers = vec![("own-a".to_owned(), unbound.at)];
    let observers = Observers::new(Settings { resolvers, servers: AddressMap::table(table), limits }, Env::real());
    let (mut codes, mut all) = (Vec::new(), Vec::new());
    for ask in asks() {
        let seen = observers.look(&ask).await;
        let finding = checks::judge(&ask, &seen).remove(0);
        println!("{} {:?}", finding.reason.code(), finding.observed);
        codes.push(finding.reason.code());
        all.push(seen);
    }
    (codes, all)
}

/// What the in-process server leads to, with the zone's signatures broken or not.
async fn in_process(bogus: bool) -> Vec<&'static str> {
    let world = right();
    if bogus {
        world.set_faults(vec![Fault { name: "example.com".to_owned(), kind: None, how: How::Bogus, below: true }]);
    }
    let mut codes = Vec::new();
    for ask in asks() {
        codes.push(code(&world, &ask).await);
    }
    codes
}

/// All zones, with the customer's signed.
fn signed(from: &str, until: &str) -> (Vec<MasterFile>, Signed) {
    let mut files = zones(&right()).unwrap();
    let at = files.iter().position(|f| f.apex == "example.com").unwrap();
    let signed = sign(&files[at], from, until);
    files[at] = signed.zone.clone();
    (files, signed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_zone_passes_through_a_validating_resolver() {
    let (files, signed) = signed("now-3600", "now+86400");
    let (codes, seen) = through_unbound(&files, &signed.anchor).await;
    assert_eq!(codes, in_process(false).await);
    assert_eq!(codes, ["txt_ok", "cname_ok", "caa_permits"]);
    let validated = |o: &nameplate::model::look::Observation| {
        matches!(o.probe.observer, Observer::Resolver(_)) && o.probe.kind == Kind::Txt && o.answer.validated
    };
    assert!(seen[0].observations.iter().any(validated), "{:#?}", seen[0].observations);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_signatures_are_bogus_and_say_so() {
    let (files, signed) = signed("now-864000", "now-86400");
    let (codes, seen) = through_unbound(&files, &signed.anchor).await;
    assert_eq!(codes, in_process(true).await);
    assert_eq!(codes, ["dnssec_bogus"; 3]);
    assert!(seen.iter().flat_map(|s| &s.observations).any(|o| o.answer.bogus()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zone_signed_by_another_key_is_bogus() {
    let (files, _) = signed("now-3600", "now+86400");
    let (_, other) = signed("now-3600", "now+86400");
    let (codes, _) = through_unbound(&files, &other.anchor).await;
    assert_eq!(codes, in_process(true).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_record_changed_after_signing_spoils_its_own_check_alone() {
    let mut files = zones(&right()).unwrap();
    let at = files.iter().position(|f| f.apex == "example.com").unwrap();
    // Signed with another value; then ours was put in its place, right but for its signature.
    files[at].text = files[at].text.replace(VALUE, &VALUE.replace('3', "4"));
    let signed = sign(&files[at], "now-3600", "now+86400");
    files[at] = signed.zone;
    files[at].text = files[at].text.replace(&VALUE.replace('3', "4"), VALUE);
    assert!(files[at].text.contains(VALUE));
    let (codes, _) = through_unbound(&files, &signed.anchor).await;
    assert_eq!(codes, ["dnssec_bogus", "cname_ok", "caa_permits"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zone_whose_signatures_were_dropped_is_bogus() {
    let (_, signed) = signed("now-3600", "now+86400");
    let (codes, _) = through_unbound(&zones(&right()).unwrap(), &signed.anchor).await;
    assert_eq!(codes, in_process(true).await);
}
