//! The same situations over other people's servers: BIND and Knot as authorities, Unbound as a resolver that validates.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::StreamExt;
use nameplate::dns::{AddressMap, Limits, Look, Observers, Settings};
use nameplate::env::Env;
use nameplate::model::checks;
use nameplate::model::evidence::Finding;
use nameplate::model::look::{Ask, Kind, Observer, Seen};
use nameplate::sandbox::dns::{Fault, How, ZoneStore};

use crate::dns_cases::compare;
use crate::support::dns_ask::{VALUE, caa, code, ownership, routing, world};
use crate::support::dns_corpus::{self, CASES, Case, Defaults, MORE, load};
use crate::support::dns_real::{
    self, MasterFile, Product, RealServer, Signed, Validating, root, serve, server_addresses, sign, try_sign, zones,
};
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
        return Ran::NotLoaded(OBSERVERS.to_owned());
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

/// Why a case is left out that needs a server to fail, or to tell each observer something else.
const OBSERVERS: &str = "observers differ, or look-ups fail";
/// Why a case is left out whose zone no server loads.
const BESIDE_CNAME: &str = "has a CNAME beside";

/// Why a case is left out of Unbound whose circle is seen only by asking for each alias: it takes one that a signed DNAME makes
/// for forged, when it is asked for by type. The look ends in `dns_lookup_failed` then, which blames nobody.
const BY_TYPE: &str = "an alias that a DNAME makes is rejected when asked for by type";

/// How many cases of both files are left out for each of these reasons; a case that is left out for no reason is one too many.
const LEFT_OUT: [(&str, usize); 2] = [(OBSERVERS, 53), (BESIDE_CNAME, 3)];

async fn every_case(who: &str, reasons: &[(&str, usize)], run: impl AsyncFn(&Case, &Defaults) -> Ran) {
    let (mut right, mut wrong, mut left_out) = (0, Vec::new(), Vec::new());
    for file in [CASES, MORE] {
        let corpus = dns_corpus::read(file);
        let (run, defaults) = (&run, &corpus.defaults);
        let outcomes = corpus.case.iter().map(|case| async move { (case, run(case, defaults).await) });
        let mut outcomes = futures::stream::iter(outcomes).buffered(AT_ONCE);
        while let Some((case, outcome)) = outcomes.next().await {
            match outcome {
                Ran::Right => right += 1,
                Ran::Wrong(how) => wrong.push(how),
                Ran::NotLoaded(why) => left_out.push(format!("{}: {why}", case.id)),
            }
        }
    }
    println!("{who}: {right} cases; left out: {left_out:#?}");
    assert!(wrong.is_empty(), "{who} leads {} cases astray: {}", wrong.len(), wrong.join("\n"));
    for (why, count) in reasons {
        let these = left_out.iter().filter(|line| line.contains(why)).count();
        assert_eq!(these, *count, "cases left out of {who}, because: {why}");
    }
    assert_eq!(left_out.len(), reasons.iter().map(|(_, n)| n).sum::<usize>(), "{left_out:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bind_serves_the_cases() {
    every_case("BIND", &LEFT_OUT, async |case, defaults| run(Product::Bind, case, defaults).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn knot_serves_the_cases() {
    every_case("Knot", &LEFT_OUT, async |case, defaults| run(Product::Knot, case, defaults).await).await;
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

/// Looks through Unbound, which trusts `anchor`, at these zones served by BIND.
async fn looks(files: &[MasterFile], anchor: &str, explains: bool, asks: &[Ask]) -> Vec<(Finding, Seen)> {
    let bind = serve(Product::Bind, files).await;
    let stubs: Vec<String> = files.iter().map(|f| f.apex.clone()).collect();
    let unbound = dns_real::unbound(bind.at, Validating { zone: "example.com", anchor, explains }, &stubs).await;
    let table: Vec<(IpAddr, SocketAddr)> = server_addresses(&right()).into_iter().map(|a| (a, bind.at)).collect();
    let observers = through(&[&unbound], &table);
    let mut all = Vec::new();
    for ask in asks {
        let seen = observers.look(ask).await;
        let finding = checks::judge(ask, &seen).remove(0);
        println!("{} {:?}", finding.reason.code(), finding.observed);
        all.push((finding, seen));
    }
    all
}

fn through(resolvers: &[&RealServer], table: &[(IpAddr, SocketAddr)]) -> Observers {
    let limits = Limits { per_query: Duration::from_secs(3), time: Duration::from_secs(30), ..Limits::default() };
    let resolvers = dns_world::RESOLVERS.iter().zip(resolvers).map(|(l, r)| ((*l).to_owned(), r.at)).collect();
    let servers = AddressMap::table(table.iter().copied());
    Observers::new(Settings { resolvers, servers, limits }, Env::real())
}

/// The codes of the three checks, and what was seen.
async fn through_unbound(files: &[MasterFile], anchor: &str) -> (Vec<&'static str>, Vec<Seen>) {
    looks(files, anchor, true, &asks()).await.into_iter().map(|(f, seen)| (f.reason.code(), seen)).unzip()
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_the_signatures_is_said_as_far_as_the_resolver_says_it() {
    let (early, early_key) = signed("now+86400", "now+172800");
    let (old, old_key) = signed("now-864000", "now-86400");
    let dropped = zones(&right()).unwrap();
    for (files, anchor) in [(&early, &early_key.anchor), (&old, &old_key.anchor), (&dropped, &old_key.anchor)] {
        for (finding, seen) in looks(files, anchor, true, &asks()).await {
            assert_eq!(finding.reason.code(), "dnssec_bogus", "{seen:#?}");
            let what = finding.advice.strip_prefix("example.com is signed with DNSSEC, but ").unwrap_or_default();
            let told = what.split(", so").next().unwrap_or_default();
            // How much Unbound says depends on its version, and on what it knows of the zone's keys already.
            let resolvers = seen.observations.iter().filter(|o| matches!(o.probe.observer, Observer::Resolver(_)));
            let said: Vec<u16> = resolvers.flat_map(|o| o.answer.ede.clone()).collect();
            let kinds: Vec<&str> = said.iter().filter_map(|code| kind(*code)).collect();
            let no_more = said.contains(&BOGUS) && told == "its signatures do not fit";
            assert!(kinds.contains(&told) || no_more, "{told}: {said:?}");
        }
    }
}

/// That a resolver found signatures wrong, and no more (RFC 8914 §4.7).
const BOGUS: u16 = 6;

/// What a resolver says is wrong with signatures (RFC 8914 §4.8 to §4.13), in words.
fn kind(code: u16) -> Option<&'static str> {
    match code {
        7 => Some("its signatures have expired"),
        8 => Some("its signatures are not valid at this time"),
        9 => Some("the DS record at your registrar names a key that is not in use"),
        10 | 11 => Some("its answers come without valid signatures"),
        12 => Some("the proof that a record does not exist is missing"),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resolver_that_does_not_say_why_it_fails_is_asked_without_the_check() {
    let (mut files, signed) = signed("now-864000", "now-86400");
    // The registrar's word, as it stands in the zone above.
    let com = files.iter_mut().find(|f| f.apex == "com").unwrap();
    com.text.push_str(&signed.anchor);
    for (finding, seen) in looks(&files, &signed.anchor, false, &asks()).await {
        assert!(seen.observations.iter().all(|o| o.answer.ede.is_empty()));
        assert_eq!(finding.reason.code(), "dnssec_bogus", "{:?}", finding.observed);
    }
    // Without it nothing says that there should be signatures at all.
    let com = files.iter_mut().find(|f| f.apex == "com").unwrap();
    com.text = com.text.replace(&signed.anchor, "");
    let all = looks(&files, &signed.anchor, false, &asks()).await;
    let codes: Vec<&str> = all.iter().map(|(f, _)| f.reason.code()).collect();
    assert_eq!(codes, ["txt_ok", "dns_lookup_failed", "caa_lookup_failed"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zone_that_cannot_prove_absences_is_bogus_where_something_is_absent() {
    let (mut files, signed) = signed("now-3600", "now+86400");
    let zone = files.iter_mut().find(|f| f.apex == "example.com").unwrap();
    // Each proof says a little more than was signed.
    let proof = |line: &str| line.split_whitespace().nth(3) == Some("NSEC");
    assert!(zone.text.lines().any(proof), "{}", zone.text);
    let bent = |line: &str| if proof(line) { format!("{line} HINFO\n") } else { format!("{line}\n") };
    zone.text = zone.text.lines().map(bent).collect();
    let asks = [routing("shop.example.com"), caa("www.example.com")];
    let all = looks(&files, &signed.anchor, true, &asks).await;
    let codes: Vec<&str> = all.iter().map(|(f, _)| f.reason.code()).collect();
    assert_eq!(codes, ["cname_ok", "dnssec_bogus"], "{:?}", all[1].0.observed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_that_nobody_can_check_count_as_none() {
    let (files, _) = signed("now-864000", "now-86400");
    // An algorithm that does not exist, and nobody who vouches: both make the zone one without signatures (RFC 4035 §5.2).
    let unknown = format!("example.com. IN DS 12345 200 2 {}\n", "AB".repeat(32));
    for anchor in [unknown.as_str(), ""] {
        let (codes, seen) = through_unbound(&files, anchor).await;
        assert_eq!(codes, in_process(false).await, "{anchor}");
        assert!(seen.iter().flat_map(|s| &s.observations).all(|o| !o.answer.validated && !o.answer.bogus()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_validates_is_found_out_at_the_root() {
    let signed = sign(&root(), "now-3600", "now+86400");
    let bind = serve(Product::Bind, &[signed.zone]).await;
    let stubs = [String::new()];
    let how = |anchor| Validating { zone: "", anchor, explains: true };
    let (checks, trusts) =
        (dns_real::unbound(bind.at, how(&signed.anchor), &stubs).await, dns_real::unbound(bind.at, how(""), &stubs).await);
    let told = through(&[&checks, &trusts], &[]).validating().await;
    let told: Vec<Option<bool>> = told.into_iter().map(|(_, who)| who).collect();
    assert_eq!(told, [Some(true), Some(false)]);
}

/// The case with the customer's zone signed, through Unbound, which validates it.
async fn validated(case: &Case, defaults: &Defaults) -> Ran {
    if !case.view.is_empty() || !case.fail.is_empty() {
        return Ran::NotLoaded(OBSERVERS.to_owned());
    }
    let (world, servers) = load(case, defaults);
    let mut files = match zones(&world) {
        Ok(files) => files,
        Err(why) => return Ran::NotLoaded(why),
    };
    let ask = case.ask(defaults);
    let mut anchor = String::new();
    if let Some(zone) = files.iter_mut().find(|f| f.apex == ask.registered_domain) {
        match try_sign(zone, "now-3600", "now+86400") {
            Ok(signed) => (*zone, anchor) = (signed.zone, signed.anchor),
            Err(why) => return Ran::NotLoaded(why),
        }
    }
    files.push(root());
    let bind = serve(Product::Bind, &files).await;
    let stubs: Vec<String> = files.iter().map(|f| f.apex.clone()).collect();
    let how = Validating { zone: &ask.registered_domain, anchor: &anchor, explains: true };
    let unbound = dns_real::unbound(bind.at, how, &stubs).await;
    let table: Vec<(IpAddr, SocketAddr)> = servers.iter().map(|(_, address)| (*address, bind.at)).collect();
    let (expected, got, finding) = compare(case, &ask, &through(&[&unbound; 3], &table).look(&ask).await);
    let by_dname = world.records("").iter().any(|line| line.contains(" IN DNAME "));
    if expected == got {
        Ran::Right
    } else if by_dname && got == "unknown dns_lookup_failed" {
        Ran::NotLoaded(BY_TYPE.to_owned())
    } else {
        Ran::Wrong(format!("{}: [{expected}] [{got}] {:#?}", case.id, finding.observed))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unbound_validates_the_cases() {
    let reasons = [LEFT_OUT[0], LEFT_OUT[1], (BY_TYPE, 2)];
    every_case("Unbound", &reasons, async |case, defaults| validated(case, defaults).await).await;
}
