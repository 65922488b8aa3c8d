//! Readers of what DNS servers send and people write about records.

use std::net::{IpAddr, Ipv4Addr};

use nameplate::dns::wire;
use nameplate::dns::world::line;
use nameplate::model::checks::{self, caa_value};
use nameplate::model::look::{Answer, Data, Kind, Observation, Outcome, Rr, Seen, name};
use nameplate::model::providers;

use super::Reader;
use crate::support::dns_ask::{VALUE, caa, ownership, routing};

const NAME: &str = "shop.example.com";

const LINES: [&str; 14] = [
    "shop.example.com. 60 IN CNAME edge.platform.example.",
    "shop.example.com. 60 IN CNAME https\\:\\/\\/edge.platform.example.",
    "edge.platform.example. 60 IN A 203.0.113.10",
    "shop.example.com. 60 IN AAAA 2001:db8::1",
    "example.com. 60 IN DNAME example.net.",
    "example.com. 60 IN CAA 0 issue \"ca.example; accounturi=https://ca.example/acct/1\"",
    "shop.example.com. 60 IN HTTPS 1 pool.example.",
    "example.com. 60 IN MX 10 mail.example.",
    "example.com. 60 IN NS ns1.dns.example.",
    "ns1.dns.example. 60 IN A 192.0.2.1",
    "_nameplate-challenge.shop.example.com. 60 IN TXT \"one\" \"\\\"two\\\" \\255\"",
    "_nameplate-challenge.shop.example.com. 60 IN TXT \"nameplate-verify=3f9ac1d27b604e58a1c0d4e6b7f82935\"",
    "example.com. 60 IN SOA ns1.example. host.example. 7 7200 900 1209600 300",
    "*.example.com. 300 IN TXT \"\"",
];

fn records() -> Vec<Rr> {
    LINES.iter().map(|l| line::parse(l).unwrap()).collect()
}

/// Answers as servers write them: all kinds of records in all sections, short and long, good and bad.
fn answers() -> Vec<Vec<u8>> {
    let asked = wire::asked(&wire::query(7, NAME, Kind::A, true).unwrap()).unwrap();
    let all = records();
    let soa = all.iter().filter(|rr| rr.data.kind() == Kind::Soa).cloned().collect();
    let some = [
        Answer { records: all.clone(), ede: vec![6], ..Answer::bare(Outcome::NoError) },
        Answer { records: all[..3].to_vec(), authoritative: true, ..Answer::bare(Outcome::NoError) },
        Answer { authority: soa, authoritative: true, ..Answer::bare(Outcome::NxDomain) },
        Answer { authority: all[8..9].to_vec(), additional: all[9..10].to_vec(), ..Answer::bare(Outcome::NoError) },
        Answer { ede: vec![22, 7], ..Answer::bare(Outcome::ServFail) },
    ];
    some.iter().map(|a| wire::reply(&asked, a, true, 65_535).unwrap()).collect()
}

fn plain(text: &str) -> bool {
    text.bytes().all(|b| (0x20..=0x7e).contains(&b))
}

fn read_answer(octets: &[u8]) -> Option<Answer> {
    let id = octets.first_chunk::<2>().map_or(0, |id| u16::from_be_bytes(*id));
    let (answer, _) = wire::answer(octets, id, NAME, Kind::A).ok()?;
    for rr in answer.records.iter().chain(&answer.authority).chain(&answer.additional) {
        assert!(name::labels(&rr.name).is_some() || rr.name.is_empty(), "{}", rr.name);
        assert_eq!(name::canonical(&rr.name), rr.name);
        assert!(plain(&rr.to_string()), "{rr}");
    }
    assert!(answer.aliases(NAME).len() <= 24);
    Some(answer)
}

/// A whole look at which every question gets this answer.
fn judged(answer: &Answer) {
    let mut ask = ownership(NAME);
    ask.routing = routing(NAME).routing;
    ask.caa = caa(NAME).caa;
    let mut seen = Seen { resolvers: vec!["own-a".to_owned(), "own-b".to_owned()], ..Seen::default() };
    for _ in 0..6 {
        let open = checks::wanted(&ask, &seen);
        if open.is_empty() {
            break;
        }
        seen.observations.extend(open.into_iter().take(64).map(|probe| Observation { probe, answer: answer.clone() }));
    }
    let findings = checks::judge(&ask, &seen);
    assert_eq!(findings.len(), 3);
    for finding in findings {
        assert!(finding.observed.len() <= 25 && finding.views.len() <= 24, "{finding:?}");
        let lines = finding.observed.iter().chain(finding.views.iter().map(|v| &v.said)).chain([&finding.advice]);
        for line in lines {
            assert!(line.chars().count() <= 601, "{line}");
            assert!(line.chars().all(|c| matches!(c, ' '..='~' | '→' | '…')), "{line}");
        }
    }
}

pub fn readers() -> Vec<Reader> {
    let questions: Vec<Vec<u8>> = [Kind::A, Kind::Caa, Kind::Other(43)]
        .iter()
        .flat_map(|k| [wire::query(7, NAME, *k, false).unwrap(), wire::query_unchecked(7, NAME, *k).unwrap()])
        .chain([wire::query_plain(9, "", Kind::Soa, true).unwrap()])
        .collect();
    let texts = [VALUE, " \"nameplate-verify=ABC\" ", "\u{a0}x"];
    vec![
        Reader::octets("an answer on the wire", answers(), |octets| read_answer(octets).is_some()),
        Reader::octets("a look at such answers", answers(), |octets| {
            let answer = read_answer(octets);
            if let Some(answer) = &answer {
                judged(answer);
            }
            answer.is_some()
        }),
        Reader::octets("a question on the wire", questions, |octets| {
            let Some(asked) = wire::asked(octets) else { return false };
            assert_eq!(name::canonical(&asked.name), asked.name);
            assert!(wire::cut(&asked, true).is_ok_and(|reply| reply.len() <= asked.udp_limit()));
            true
        }),
        Reader::text("a line of a zone", &LINES, |text| {
            let Ok(rr) = line::parse(text) else { return false };
            assert_eq!(line::parse(&rr.to_string()).as_ref(), Ok(&rr), "{rr}");
            true
        }),
        Reader::text("a domain name", &["shop.example.com", "a\\.b.example", "\\000x.example", "."], |text| {
            let canonical = name::canonical(text);
            assert_eq!(name::canonical(&canonical), canonical);
            assert!(name::climb(&canonical).count() <= canonical.len() + 1);
            name::labels(text).is_some()
        }),
        Reader::text("a TXT value", &texts, |text| {
            let octets = text.as_bytes();
            let strings: Vec<Vec<u8>> = octets.chunks(255).map(<[u8]>::to_vec).collect();
            let joined = checks::joined(&strings);
            let once = checks::normalised(&joined);
            assert!(once.len() <= joined.len() && !once.bytes().any(|b| b.is_ascii_uppercase()), "{once}");
            assert!(plain(&Data::Txt(strings).to_string()));
            true
        }),
        Reader::octets(
            "a CAA value",
            ["ca.example; accounturi=https://ca.example/acct/1; validationmethods=dns-01,http-01", ";", "ca.example", "%%%"]
                .iter()
                .map(|s| s.as_bytes().to_vec())
                .collect(),
            |octets| match caa_value::parse(octets) {
                caa_value::IssueValue::Issuer { domain, parameters } => {
                    assert!(!domain.is_empty() && plain(&domain), "{domain:?}");
                    assert!(parameters.iter().all(|(k, v)| plain(k) && plain(v)), "{parameters:?}");
                    true
                }
                caa_value::IssueValue::Nobody | caa_value::IssueValue::Malformed(_) => false,
            },
        ),
        Reader::text(
            "name servers of a provider",
            &["kate.ns.cloudflare.com", "ns-1.awsdns-00.co.uk", "ns1.nobody.example"],
            |text| {
                let servers: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
                providers::recognise(&servers);
                true
            },
        ),
        Reader::text("an address of the internet", &["9.9.9.9", "::ffff:10.0.0.1", "2001:db8::1"], |text| {
            let Ok(address) = text.trim().parse::<IpAddr>() else { return false };
            let mapped = match address {
                IpAddr::V4(a) => IpAddr::V6(a.to_ipv6_mapped()),
                IpAddr::V6(a) => a.to_ipv4_mapped().map_or(address, IpAddr::V4),
            };
            assert_eq!(checks::is_public(address), checks::is_public(mapped), "{address} and {mapped} are one");
            assert!(!checks::is_public(IpAddr::V4(Ipv4Addr::LOCALHOST)));
            true
        }),
    ]
}
