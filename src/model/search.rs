//! Finding a hostname by part of it: the words a name is found by, and what somebody typed, folded the same way.
//!
//! A name is found by its beginning at any label down to its registered domain: `support.acme.example` by `supp`, by
//! `acme.ex` and by `support.acme.example`. Names in another script are found in both spellings.

use idna::uts46::{AsciiDenyList, Hyphens, Uts46};

use super::hostname::Hostname;

/// More beginnings than this of one name are not kept: the first ones, and always the registered domain.
const MOST_WORDS: usize = 8;

/// What nobody types to find a name.
const LONGEST_NEEDLE: usize = 1024;

/// The words that a hostname is found by, each once.
pub fn words_of(hostname: &Hostname) -> Vec<String> {
    let registered = hostname.registered_domain();
    let mut words = beginnings(hostname.as_str(), registered.split('.').count());
    let shown = hostname.display();
    if shown != hostname.as_str() {
        words.extend(beginnings(&shown, registered.split('.').count()));
    }
    words.sort();
    words.dedup();
    words
}

/// The name from each of its labels on, down to its last `least` labels.
fn beginnings(name: &str, least: usize) -> Vec<String> {
    let labels: Vec<&str> = name.split('.').collect();
    let last = labels.len().saturating_sub(least);
    (0..=last).filter(|from| *from < MOST_WORDS || *from == last).map(|from| labels[from..].join(".")).collect()
}

/// What somebody typed or pasted, folded to what words begin with; nothing where nothing is left.
pub fn needle(typed: &str) -> Option<String> {
    let mut text = typed.trim();
    if text.len() > LONGEST_NEEDLE || text.chars().any(char::is_control) {
        return None;
    }
    if let Some((_, rest)) = text.split_once("://") {
        text = rest;
    }
    text = text.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    text = text.rsplit('@').next().unwrap_or_default();
    text = text.split(':').next().unwrap_or_default();
    let dotted = text.replace(['。', '．', '｡'], ".");
    let bare = dotted.trim_start_matches("*.").trim_matches('.').trim();
    // Names in another script have words in both spellings, so what is ASCII is looked for as it stands: half an encoded label
    // would be decoded to something else.
    let folded = if bare.is_ascii() {
        bare.to_ascii_lowercase()
    } else {
        let (mapped, valid) = Uts46::new().to_unicode(bare.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
        if valid.is_ok() { mapped.into_owned() } else { bare.to_lowercase() }
    };
    (!folded.is_empty()).then_some(folded)
}

/// The end of the range of words that begin with a needle.
pub fn end_of(needle: &str) -> String {
    format!("{needle}\u{10ffff}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_found_by_its_labels_down_to_the_registered_domain() {
        assert_eq!(words_of(&Hostname::trusted("support.acme.co.uk")), ["acme.co.uk", "support.acme.co.uk"]);
        assert_eq!(words_of(&Hostname::trusted("acme.com")), ["acme.com"]);
        let both = words_of(&Hostname::trusted("shop.xn--bcher-kva.example"));
        assert!(
            both.contains(&"bücher.example".to_owned()) && both.contains(&"xn--bcher-kva.example".to_owned()),
            "{both:?}"
        );
        let deep = format!("{}acme.com", "a.".repeat(60));
        let words = words_of(&Hostname::trusted(&deep));
        assert_eq!(words.len(), MOST_WORDS + 1);
        assert!(words.contains(&"acme.com".to_owned()));
    }

    #[test]
    fn whatever_is_pasted_is_folded() {
        for typed in [
            "support.acme.com",
            " Support.ACME.com. ",
            "https://user:pw@support.acme.com:8443/x?y#z",
            "*.support.acme.com",
            "support。acme．com",
        ] {
            let found = needle(typed);
            assert_eq!(found.as_deref(), Some("support.acme.com"), "{typed}");
        }
        assert_eq!(needle("BÜCHER.example").as_deref(), Some("bücher.example"));
        assert_eq!(needle("XN--bcher-kva.example").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(needle("xn--bch").as_deref(), Some("xn--bch"));
        assert_eq!(needle("Bü").as_deref(), Some("bü"));
        for nothing in ["", "  ", "https://", ".", "a\0b", &"x".repeat(2000)] {
            assert_eq!(needle(nothing), None, "{nothing:?}");
        }
    }

    proptest! {
        #[test]
        fn every_name_is_found_by_each_of_its_spellings(labels in proptest::collection::vec("[a-z]{1,8}", 1..4)) {
            let name = format!("{}.com", labels.join("."));
            let hostname = Hostname::trusted(&name);
            let words = words_of(&hostname);
            for typed in [name.clone(), name.to_uppercase(), format!("https://{name}/"), hostname.registered_domain().to_owned()] {
                let needle = needle(&typed).unwrap();
                prop_assert!(words.iter().any(|w| *w >= needle && *w < end_of(&needle)), "{} in {:?}", needle, words);
            }
        }

        #[test]
        fn no_text_is_too_strange(typed in ".{0,60}") {
            if let Some(needle) = needle(&typed) {
                prop_assert!(!needle.is_empty());
            }
        }
    }
}
