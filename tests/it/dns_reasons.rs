//! The catalogue of reasons against the corpus it is taken from.

use std::collections::{BTreeMap, BTreeSet};

use nameplate::model::evidence::{Tie, Verdict};
use nameplate::model::reason::Reason;
use serde::Deserialize;

#[derive(Deserialize)]
struct Corpus {
    reason: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    code: String,
    verdict: String,
    acts: String,
    meaning: String,
}

#[test]
fn the_catalogue_says_what_the_corpus_says() {
    let corpus: Corpus = toml::from_str(include_str!("../cases/dns-cases.toml")).unwrap();
    let text = |v: serde_json::Value| v.as_str().unwrap().to_owned();
    let ours: BTreeMap<&str, (String, String, &str)> = Reason::ALL
        .iter()
        .map(|r| {
            let verdict = text(serde_json::to_value(r.verdict()).unwrap());
            (r.code(), (verdict, text(serde_json::to_value(r.acts()).unwrap()), r.sentence()))
        })
        .collect();
    for row in &corpus.reason {
        let expected = (row.verdict.clone(), row.acts.clone(), row.meaning.as_str());
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
