//! The catalogue of reasons: against the corpus it is taken from, complete, and as the page for people.
//!
//! `NAMEPLATE_WRITE_REASONS=1 cargo test --test it dns_reasons` writes `docs/reasons.md` anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nameplate::dns::Look;
use nameplate::dns::scripted::ScriptedDns;
use nameplate::model::checks;
use nameplate::model::evidence::{Actor, Finding, Tie, Verdict};
use nameplate::model::reason::Reason;
use serde::Deserialize;

use crate::support::dns_corpus::{self, CASES, MORE, load};

#[derive(Deserialize)]
struct Corpus {
    reason: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    code: String,
    verdict: String,
    acts: String,
}

#[test]
fn the_catalogue_says_what_the_corpus_says() {
    let corpus: Corpus = toml::from_str(include_str!("../cases/dns-cases.toml")).unwrap();
    let text = |v: serde_json::Value| v.as_str().unwrap().to_owned();
    let ours: BTreeMap<&str, (String, String)> = Reason::ALL
        .iter()
        .map(|r| {
            let verdict = text(serde_json::to_value(r.verdict()).unwrap());
            (r.code(), (verdict, text(serde_json::to_value(r.acts()).unwrap())))
        })
        .collect();
    for row in &corpus.reason {
        let expected = (row.verdict.clone(), row.acts.clone());
        assert_eq!(ours.get(row.code.as_str()), Some(&expected), "{}", row.code);
    }
    let theirs: BTreeSet<&str> = corpus.reason.iter().map(|r| r.code.as_str()).collect();
    // What is no DNS situation the corpus cannot know; such a reason says nothing of the tie.
    for reason in Reason::ALL.iter().filter(|r| !theirs.contains(r.code())) {
        let area = reason.code().split('_').next().unwrap_or_default();
        let areas = ["txt", "cname", "address", "caa", "delegation", "dns", "zone"];
        assert!(!areas.contains(&area), "{} is a DNS situation that the corpus does not know", reason.code());
        assert_eq!(reason.tie(), Tie::Silent, "{}", reason.code());
    }
}

#[test]
fn silence_never_releases_a_name() {
    for reason in Reason::ALL {
        let tie = reason.tie();
        if reason.verdict() == Verdict::Unknown || reason.code().starts_with("caa_") {
            assert_eq!(tie, Tie::Silent, "{}", reason.code());
        }
        if tie == Tie::Present {
            assert_eq!(reason.verdict(), Verdict::Pass, "{}", reason.code());
        }
    }
    for silent in ["zone_lame", "dnssec_bogus", "nameserver_not_public", "platform_target_broken", "proxied_by_cdn"] {
        assert_eq!(Reason::try_from(silent.to_owned()).unwrap().tie(), Tie::Silent, "{silent}");
    }
    for gone in ["txt_missing", "txt_value_mismatch", "cname_points_elsewhere", "cname_missing", "address_points_elsewhere"]
    {
        assert_eq!(Reason::try_from(gone.to_owned()).unwrap().tie(), Tie::Gone, "{gone}");
    }
}

const BY_REQUEST: &str = "found out by a request to the name, as the certificate authority makes it";

/// What no look at DNS can come to, and what does: other parts of the product say these.
const NOT_BY_LOOKING: [(Reason, &str); 16] = [
    (Reason::HeldElsewhere, "said by the claims themselves, when another one holds the name"),
    (Reason::HandoverRuns, "said by the claims themselves, while the record of whoever holds the name is gone"),
    (Reason::HandoverDue, "said by the claims themselves, once it has been gone for long enough"),
    (Reason::NameContested, "said to whoever holds the name, while another one's record stands in place of its own"),
    (Reason::Quarantined, "said by the claims themselves, when the name rests after a removal"),
    (Reason::ProxiedReachable, BY_REQUEST),
    (Reason::PreflightOk, BY_REQUEST),
    (Reason::PreflightOff, "said where the operator has switched off that requests are tried before ordering"),
    (Reason::PreflightNoAddress, BY_REQUEST),
    (Reason::PreflightUnreachable, BY_REQUEST),
    (Reason::PreflightAnsweredByAnother, BY_REQUEST),
    (Reason::PreflightRedirected, BY_REQUEST),
    (Reason::PreflightIpv6Elsewhere, BY_REQUEST),
    (Reason::PreflightMixed, BY_REQUEST),
    (Reason::PreflightOwnOutage, BY_REQUEST),
    (
        Reason::IssuerNotReady,
        "said in place of the check of CAA records, while there is no account at the certificate authority",
    ),
];

/// The first finding for each reason over all cases, without sockets.
async fn produced() -> BTreeMap<Reason, Finding> {
    let mut all = BTreeMap::new();
    for file in [CASES, MORE] {
        let corpus = dns_corpus::read(file);
        for case in &corpus.case {
            let ask = case.ask(&corpus.defaults);
            let seen = ScriptedDns::new(load(case, &corpus.defaults).0).look(&ask).await;
            for finding in checks::judge(&ask, &seen) {
                all.entry(finding.reason).or_insert(finding);
            }
        }
    }
    all
}

#[tokio::test]
async fn every_reason_comes_from_some_case_and_is_worded_with_real_values() {
    let produced = produced().await;
    for reason in Reason::ALL {
        let elsewhere = NOT_BY_LOOKING.iter().any(|(r, _)| r == reason);
        let Some(finding) = produced.get(reason) else {
            assert!(elsewhere, "no case comes to {}", reason.code());
            continue;
        };
        assert!(!elsewhere, "{} comes from a case after all: take it off the list", reason.code());
        let advice = &finding.advice;
        assert!(advice.ends_with('.') && advice.len() > 40, "{}: {advice}", reason.code());
        for word in NOT_IN_ADVICE {
            assert!(!advice.to_lowercase().contains(word), "{}: {word}: {advice}", reason.code());
        }
        // Whoever has to act is told about which name; our own outage has none of theirs.
        if *reason != Reason::ResolverUnavailable && reason.acts() != Actor::Platform {
            assert!(advice.contains("example"), "{}: {advice}", reason.code());
        }
        if reason.acts() == Actor::Platform {
            assert!(advice.contains("need not change anything") || advice.contains("by ourselves"), "{advice}");
        }
    }
}

/// Words of the trade that no sentence may use; what it may use the page explains.
const JARGON: [&str; 19] = [
    "apex",
    "authoritative",
    "resolver",
    "vantage",
    "rcode",
    "SERVFAIL",
    "NXDOMAIN",
    "Levenshtein",
    "grammar",
    "RFC",
    "relevant set",
    "issuewild",
    "accounturi",
    "validationmethods",
    "zone",
    "delegat",
    "lookup",
    "prefix",
    "hostname",
];

#[test]
fn sentences_are_plain_and_the_page_explains_their_words() {
    for reason in Reason::ALL {
        let sentence = reason.sentence();
        assert!(sentence.ends_with('.') && sentence.len() <= 140, "{}: {sentence}", reason.code());
        for word in JARGON {
            assert!(!sentence.to_lowercase().contains(&word.to_lowercase()), "{}: {word}: {sentence}", reason.code());
        }
    }
    // A word in capitals, or one of ours, is in the list of words.
    let known: BTreeSet<String> = WORDS.iter().flat_map(|(w, _)| w.split(", ")).map(str::to_lowercase).collect();
    for reason in Reason::ALL {
        for word in reason.sentence().split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 2) {
            if word.chars().filter(|c| c.is_uppercase()).count() > 1 {
                assert!(known.contains(&word.to_lowercase()), "{}: {word} is not explained", reason.code());
            }
        }
    }
}

/// Words of the trade that no advice uses either. What somebody has to enter or to ask for by its name is no such word.
const NOT_IN_ADVICE: [&str; 14] = [
    "resolver",
    "resolves",
    "delegat",
    " zone",
    "lookup",
    "query",
    "queries",
    "authoritative",
    "vantage",
    "rcode",
    "propagat",
    "validation ",
    "tls",
    "grace period",
];

const HEAD: &str = "# What a check can say

Each look at a domain ends, for each check, in one of the reasons below. Page, API, events and logs use the same codes. A code
never changes its meaning; new ones may come.

- **passes**: it is right now. **waits**: it is not there yet, and we keep looking. **fails**: somebody has to change something.
  **unknown**: we could not look; nothing is decided on that, and no name is ever taken down for it.
- **Who acts** is whose move it is: you (whoever runs the domain), your DNS provider, we, or nobody.
- **Tie** is what it says of the bond between the name and the account that holds it: *holds*, *gone*, or *says nothing*. Only
  what is positively seen to be gone can ever cost somebody a name.

The example under each reason is what a person reads in one such case, as the program words it.

## Words

{words}
This page is written from the catalogue that the program uses; a test holds it to that.
";

const WORDS: [(&str, &str); 23] = [
    ("name", "the full name that visitors type, like `support.acme.example`."),
    ("domain", "the name you registered, like `acme.example`; its records are kept at your DNS provider."),
    ("record", "one line of a domain's DNS: a name, a type and a value."),
    ("ownership record", "the TXT record at `_nameplate-challenge.` and the name, which proves that the name is yours."),
    ("TXT", "a record that holds text."),
    ("CNAME", "a record that says: this name is the same as that one. It cannot stand beside other records of its name."),
    ("alias", "another word for a CNAME record."),
    (
        "ALIAS",
        "a record that some DNS providers offer for the top of a domain, where a CNAME record is not allowed; others say ANAME or flattened CNAME.",
    ),
    ("host field", "the field for a record's name at your DNS provider; most of them add the domain to it."),
    ("registrar", "where the domain is registered, and where its name servers are set."),
    ("target", "the name of ours that your CNAME record points to."),
    ("IPv4, IPv6", "the two kinds of internet addresses; records of type A hold the first, of type AAAA the second."),
    (
        "wildcard",
        "a record at `*.acme.example`, which answers for names that have no record of their own; or a certificate for such a name.",
    ),
    ("name servers", "the computers that publish a domain's records to the world."),
    ("CAA", "a record that says which certificate authorities may issue a certificate for a domain."),
    ("certificate authority", "who issues certificates, without which browsers warn your visitors."),
    (
        "challenge name",
        "the name with `_acme-challenge.` in front, at which the certificate authority looks for a sign of ours.",
    ),
    ("DNSSEC", "signatures that protect a domain's records; when they are broken, the records count as forged."),
    (
        "DS record",
        "what your registrar keeps of your domain when it is signed with DNSSEC; without it the signatures count for nothing.",
    ),
    ("NS", "a record that names a domain's name server."),
    ("TCP", "the way in which answers travel that are too long for one packet."),
    ("proxy", "a service that answers visitors in place of the address behind it."),
    ("DNS, HTTPS", "the internet's directory of names; and a kind of record in it that can send browsers to another place."),
];

/// The page, whole.
fn page(produced: &BTreeMap<Reason, Finding>) -> String {
    let words = WORDS.iter().fold(String::new(), |mut out, (word, meaning)| {
        let _ = writeln!(out, "- **{word}**: {meaning}");
        out
    });
    let mut out = HEAD.replace("{words}", &words);
    out += "\n## All reasons\n\n| Code | Verdict | Who acts | Tie | In short |\n|---|---|---|---|---|\n";
    for r in Reason::ALL {
        let (verdict, acts, tie) = told(*r);
        let _ = writeln!(out, "| [`{}`](#{}) | {verdict} | {acts} | {tie} | {} |", r.code(), r.help_anchor(), r.sentence());
    }
    out += "\n## One by one\n";
    for r in Reason::ALL {
        let (verdict, acts, tie) = told(*r);
        let _ =
            write!(out, "\n### `{}`\n\n{}\n\nVerdict: {verdict}. Who acts: {acts}. Tie: {tie}.\n", r.code(), r.sentence());
        match produced.get(r) {
            Some(finding) => {
                let _ = write!(out, "\n> {}\n", escaped(&finding.advice));
            }
            None => {
                let by = NOT_BY_LOOKING.iter().find(|(x, _)| x == r).map_or("", |(_, by)| by);
                let _ = write!(out, "\nNo look at DNS comes to it: it is {by}.\n");
            }
        }
    }
    out
}

fn told(r: Reason) -> (&'static str, &'static str, &'static str) {
    let verdict = match r.verdict() {
        Verdict::Pass => "passes",
        Verdict::Wait => "waits",
        Verdict::Fail => "fails",
        Verdict::Unknown => "unknown",
    };
    let acts = match r.acts() {
        Actor::Tenant => "you",
        Actor::DnsProvider => "your DNS provider",
        Actor::Platform => "we",
        Actor::Ca => "the certificate authority",
        Actor::Nobody => "nobody",
    };
    let tie = match r.tie() {
        Tie::Present => "holds",
        Tie::Gone => "gone",
        Tie::Silent => "says nothing",
    };
    (verdict, acts, tie)
}

/// Text that Markdown shows as it is.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        if "\\`*_<>[]|#".contains(c) {
            out.push('\\');
        }
        out.push(c);
        out
    })
}

#[tokio::test]
async fn the_page_is_written_from_the_catalogue() {
    let told = page(&produced().await);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reasons.md");
    if std::env::var_os("NAMEPLATE_WRITE_REASONS").is_some() {
        std::fs::write(file, &told).unwrap();
    }
    let written = std::fs::read_to_string(file).unwrap_or_default();
    let (stale, missing): (Vec<&str>, Vec<&str>) = (
        written.lines().filter(|line| !told.contains(line)).collect(),
        told.lines().filter(|line| !written.contains(line)).collect(),
    );
    let remedy = "write it anew: NAMEPLATE_WRITE_REASONS=1 cargo test --test it dns_reasons";
    assert!(written == told, "{remedy}\nstale: {stale:#?}\nmissing: {missing:#?}");
}
