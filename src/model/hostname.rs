//! Hostnames as they are stored: A-labels, lower case, no trailing dot.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A hostname that passed the one parser.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hostname(String);

impl Hostname {
    /// A name that was parsed before: from our own store, or a test.
    pub fn trusted(ascii: &str) -> Self {
        Hostname(ascii.trim_end_matches('.').to_ascii_lowercase())
    }

    /// The name as text, without trailing dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The registered domain by the public suffix list; the name itself where the list knows none.
    pub fn registered_domain(&self) -> &str {
        psl::domain_str(&self.0).unwrap_or(&self.0)
    }
}

impl fmt::Display for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
