//! Slugs: the label under which a tenant's canonical host lives. One is bound to its tenant for ever.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Labels the platform keeps for itself, or that would let a tenant pose as it.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "www", "api", "admin", "administrator", "login", "logon", "signin", "signup", "sso", "oauth", "auth", "account", "accounts",
    "billing", "payment", "payments", "pay", "support", "help", "status", "security", "abuse", "postmaster", "hostmaster", "webmaster",
    "root", "mail", "email", "smtp", "imap", "pop", "ftp", "ns", "ns1", "ns2", "ns3", "ns4", "dns", "mx", "autoconfig", "autodiscover",
    "wpad", "isatap", "localhost", "internal", "intranet", "vpn", "static", "assets", "cdn", "edge", "proxy", "app", "apps", "portal",
    "dashboard", "console", "docs", "blog", "www1", "www2", "dev", "staging", "test", "demo", "nameplate", "apex", "shared", "custom",
    "google", "apple", "microsoft", "amazon", "facebook", "paypal", "github", "visa", "mastercard", "netflix", "instagram",
];

/// A slug: one LDH label of 1 to 40 characters, lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slug(String);

/// Why a text is no slug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlugError {
    /// Wrong length.
    #[error("the slug is {0} characters long; it must have 1 to 40")]
    Length(usize),
    /// A character that a DNS label may not hold.
    #[error("the slug holds {0:?}; it may hold the letters a to z, digits and hyphens between them")]
    Character(char),
    /// A hyphen in a place where a label may have none.
    #[error("the slug {0:?} begins or ends with a hyphen, or has them in the third and fourth place; put them elsewhere")]
    Hyphen(String),
    /// Only digits would read as an address.
    #[error("the slug {0:?} is only digits, which reads as an address; add a letter")]
    Digits(String),
    /// Kept for the platform.
    #[error("the slug {0:?} is reserved; choose another")]
    Reserved(String),
}

impl Slug {
    /// Reads a slug in any letter case.
    pub fn parse(input: &str) -> Result<Self, SlugError> {
        let slug = input.trim_matches(|c: char| c.is_ascii_whitespace()).to_ascii_lowercase();
        let length = slug.chars().count();
        if !(1..=40).contains(&length) {
            return Err(SlugError::Length(length));
        }
        if let Some(c) = slug.chars().find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-')) {
            return Err(SlugError::Character(c));
        }
        if slug.starts_with('-') || slug.ends_with('-') || slug.get(2..4) == Some("--") {
            return Err(SlugError::Hyphen(slug));
        }
        if slug.bytes().all(|b| b.is_ascii_digit()) {
            return Err(SlugError::Digits(slug));
        }
        if RESERVED.contains(&slug.as_str()) {
            return Err(SlugError::Reserved(slug));
        }
        Ok(Slug(slug))
    }

    /// Reads a slug for somebody new: also refuses what could be mistaken for a reserved one, such as `paypa1` or `a-p-i`.
    pub fn parse_new(input: &str) -> Result<Self, SlugError> {
        let slug = Slug::parse(input)?;
        let skeleton = slug.skeleton();
        match RESERVED.iter().any(|kept| fold(kept) == skeleton) {
            true => Err(SlugError::Reserved(slug.0)),
            false => Ok(slug),
        }
    }

    /// What all spellings of this slug fold to that people could mistake for it: without hyphens, 0 as o, 1 as l. Two slugs of
    /// one skeleton never exist beside or after each other. Letter case and other scripts fold away earlier: a slug is a
    /// lower-case label of ASCII, and `xn--` is none. The migration that made the column folds the same way.
    pub fn skeleton(&self) -> String {
        fold(&self.0)
    }

    /// The slug as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn fold(slug: &str) -> String {
    slug.chars()
        .filter(|c| *c != '-')
        .map(|c| match c {
            '0' => 'o',
            '1' => 'l',
            other => other,
        })
        .collect()
}

impl FromStr for Slug {
    type Err = SlugError;
    fn from_str(s: &str) -> Result<Self, SlugError> {
        Slug::parse(s)
    }
}

impl TryFrom<String> for Slug {
    type Error = SlugError;
    fn try_from(s: String) -> Result<Self, SlugError> {
        Slug::parse(&s)
    }
}

impl From<Slug> for String {
    fn from(slug: Slug) -> Self {
        slug.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slug_is_one_plain_label() {
        assert_eq!(Slug::parse(" Acme ").unwrap().as_str(), "acme");
        assert_eq!(Slug::parse(&"a".repeat(40)).unwrap().as_str().len(), 40);
        assert!(matches!(Slug::parse(""), Err(SlugError::Length(0))));
        assert!(matches!(Slug::parse(&"a".repeat(41)), Err(SlugError::Length(41))));
        assert!(matches!(Slug::parse("a.b"), Err(SlugError::Character('.'))));
        assert!(matches!(Slug::parse("bücher"), Err(SlugError::Character('ü'))));
        for hyphened in ["-a", "a-", "xn--a", "ab--c"] {
            assert!(matches!(Slug::parse(hyphened), Err(SlugError::Hyphen(_))), "{hyphened}");
        }
        assert!(matches!(Slug::parse("42"), Err(SlugError::Digits(_))));
        for kept in ["www", "API", "admin", "login", "paypal"] {
            assert!(matches!(Slug::parse(kept), Err(SlugError::Reserved(_))), "{kept}");
        }
    }

    #[test]
    fn spellings_that_look_alike_have_one_skeleton_and_reserved_words_are_kept_in_all_of_theirs() {
        let skeleton = |slug: &str| Slug::parse(slug).unwrap().skeleton();
        for alike in ["acmelo", "ACME-LO", "acme-10", "acme1o", "a-c-m-e-l-0"] {
            assert_eq!(skeleton(alike), "acmelo", "{alike}");
        }
        assert_ne!(skeleton("acme-2"), skeleton("acme-3"));
        for kept in ["paypa1", "PayPal", "pay-pal", "a-p-i", "g00gle", "goog1e", "ns-1", "adm-in"] {
            assert!(matches!(Slug::parse_new(kept), Err(SlugError::Reserved(_))), "{kept}");
        }
        // What stands in the store stays readable.
        assert!(Slug::parse("a-p-i").is_ok() && Slug::parse_new("paypals").is_ok() && Slug::parse_new("admin1").is_ok());
    }

    proptest! {
        #[test]
        fn a_skeleton_survives_case_hyphens_and_look_alikes(slug in "[a-z][a-z0-9]{0,8}", at in 1..8usize, swap in any::<bool>()) {
            let Ok(plain) = Slug::parse(&slug) else { return Ok(()) };
            let mut other = if swap { slug.replace('o', "0").replace('l', "1") } else { slug.to_ascii_uppercase() };
            if at < other.len() && at != 2 && at != 3 {
                other.insert(at, '-');
            }
            if let Ok(other) = Slug::parse(&other) {
                prop_assert_eq!(other.skeleton(), plain.skeleton());
            }
        }

        #[test]
        fn parsing_is_idempotent_and_never_panics(input in any::<String>()) {
            if let Ok(slug) = Slug::parse(&input) {
                prop_assert_eq!(Slug::parse(slug.as_str()), Ok(slug));
            }
        }

        #[test]
        fn every_slug_is_a_dns_label(input in "[A-Za-z0-9-]{0,44}") {
            if let Ok(slug) = Slug::parse(&input) {
                let host = crate::model::hostname::Hostname::parse(&format!("{slug}.example.com"), &Default::default());
                prop_assert_eq!(host.map(|h| h.to_string()), Ok(format!("{slug}.example.com")));
            }
        }
    }
}
