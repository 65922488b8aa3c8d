//! The corpus of DNS situations: every case's zone on a real server, the real look-ups, the real judges.
//!
//! `NAMEPLATE_DNS_CASES=FILE cargo test dns_cases` reads another file of the same schema.

use futures::StreamExt;
use nameplate::dns::Look;
use nameplate::model::checks::{self, caa::CaWould};
use nameplate::model::evidence::Finding;
use nameplate::model::look::{Ask, Seen, name};

use crate::support::dns_corpus::{self, Case, Defaults, load};
use crate::support::dns_world;

/// What a case expects and what was found, as two texts to compare.
pub fn compare(case: &Case, ask: &Ask, seen: &Seen) -> (String, String, Finding) {
    let mut findings = checks::judge(ask, seen);
    assert_eq!(findings.len(), 1, "{}: one check", case.id);
    let finding = findings.remove(0);
    let verdict = serde_json::to_value(finding.verdict()).expect("a verdict is text");
    let mut got = format!("{} {}", verdict.as_str().unwrap_or_default(), finding.reason.code());
    let mut expected = format!("{} {}", case.verdict, case.code);
    if let Some(found_at) = &case.found_at {
        let decision = checks::caa::decide(ask, seen);
        let would = decision.map_or("none", |d| match d.ca_would {
            CaWould::Permit => "permit",
            CaWould::Deny => "deny",
            CaWould::Error => "error",
            CaWould::Unclear => "unclear",
        });
        let shown = |n: Option<&String>| n.map(|n| name::canonical(n)).unwrap_or_default();
        got += &format!(" at={} via={} le={would}", shown(finding.found_at.as_ref()), shown(finding.found_via.as_ref()));
        let le = case.le_result.as_deref().unwrap_or_default();
        expected += &format!(" at={} via={} le={le}", shown(Some(found_at)), shown(case.found_via.as_ref()));
    }
    (expected, got, finding)
}

async fn run(case: &Case, ask: &Ask, defaults: &Defaults) -> (String, String) {
    let (world, servers) = load(case, defaults);
    let dns = dns_world::serve(&world, &servers).await;
    let (expected, got, finding) = compare(case, ask, &dns.observers.look(ask).await);
    if got != expected {
        println!("  observed: {:#?}\n  advice: {}", finding.observed, finding.advice);
    }
    (expected, got)
}

/// How many cases run at a time.
const AT_ONCE: usize = 6;

/// Runs every case of a file, prints a line for each, and fails when one comes to another end than it says.
pub async fn run_file(file: &str) {
    let corpus = dns_corpus::read(file);

    let mut wrong: Vec<&str> = Vec::new();
    let defaults = &corpus.defaults;
    let outcomes = corpus.case.iter().map(|case| async move { (case, run(case, &case.ask(defaults), defaults).await) });
    let mut outcomes = futures::stream::iter(outcomes).buffered(AT_ONCE);
    while let Some((case, (expected, got))) = outcomes.next().await {
        let right = expected == got;
        println!("{} {} [{expected}] [{got}]", if right { "PASS" } else { "FAIL" }, case.id);
        if !right {
            wrong.push(&case.id);
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases are wrong: {wrong:?}", wrong.len(), corpus.case.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dns_cases() {
    let file = std::env::var("NAMEPLATE_DNS_CASES").unwrap_or_else(|_| dns_corpus::CASES.to_owned());
    run_file(&file).await;
}
