//! Hostnames as they are stored: A-labels, lower case, no trailing dot.
//!
//! [`Hostname::parse`] is the one parser for API, page and command line. It takes what people paste and either gives back the
//! name that DNS, the certificate, SNI and the CAA walk will all use, or says what it saw and what to type instead.

mod parse;
mod refusal;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use refusal::{HostnameError, invisible};

/// A hostname that passed the one parser.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hostname(String);

/// What this installation adds to the rules that hold everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameRules {
    /// The platform's own zones (A-labels): names in them are nobody's custom domain.
    pub reserved_zones: Vec<String>,
    /// Suffixes accepted although the public suffix list does not know them, such as `test` in the sandbox.
    pub extra_suffixes: Vec<String>,
}

impl Hostname {
    /// Reads what somebody typed.
    pub fn parse(input: &str, rules: &NameRules) -> Result<Self, HostnameError> {
        parse::parse(input, rules).map(Hostname)
    }

    /// A name that was parsed before: from our own store, or a test.
    pub fn trusted(ascii: &str) -> Self {
        Hostname(ascii.trim_end_matches('.').to_ascii_lowercase())
    }

    /// The name as text, without trailing dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as its readers write it (U-labels). For the eye only: nothing is looked up or compared by it.
    pub fn display(&self) -> String {
        parse::to_unicode(&self.0).unwrap_or_else(|| self.0.clone())
    }

    /// The registered domain by the public suffix list; the name itself where the list knows none.
    pub fn registered_domain(&self) -> &str {
        psl::domain_str(&self.0).unwrap_or(&self.0)
    }

    /// Whether the name is its own registered domain: there a CNAME cannot be used (RFC 1034 §3.6.2).
    pub fn is_apex(&self) -> bool {
        self.registered_domain() == self.0
    }

    /// The names above this one, the nearest first, down to its registered domain and never past it.
    pub fn above(&self) -> Vec<Hostname> {
        let registered = self.registered_domain();
        let mut above = Vec::new();
        let mut rest = self.0.as_str();
        while rest != registered
            && let Some((_, parent)) = rest.split_once('.')
        {
            above.push(Hostname(parent.to_owned()));
            rest = parent;
        }
        above
    }

    /// The other half of a pair that visitors expect together: `www.` for an apex, the apex for its `www.`. A public suffix, which
    /// is nobody's to claim, has none: what is below it is somebody else's.
    pub fn partner(&self) -> Option<Hostname> {
        if self.is_apex() {
            return psl::domain_str(&self.0).map(|_| Hostname(format!("www.{}", self.0)));
        }
        let rest = Hostname(self.0.strip_prefix("www.")?.to_owned());
        rest.is_apex().then_some(rest)
    }

    /// What a DNS panel's host field wants: the part in front of the registered domain, `@` at the apex.
    pub fn relative_to_registered(&self) -> &str {
        match self.0.strip_suffix(self.registered_domain()) {
            Some("") | None => "@",
            Some(front) => front.trim_end_matches('.'),
        }
    }
}

impl fmt::Display for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
