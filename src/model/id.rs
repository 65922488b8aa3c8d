//! One id type per kind of thing, so that two kinds can never be swapped. Ids are text: `dom_` and 32 hex digits.
//!
//! The digits are a UUID of version 7 (RFC 9562): the first 48 bits are the time of making, so that ids of one table sort by
//! age and new rows land next to each other in an index; 74 bits are drawn by whoever mints the id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::moment::Moment;

/// A text that is not an id of the kind asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen:?} is not an id of this kind: expected {prefix:?} and 32 lower-case hex digits")]
pub struct NotAnId {
    /// What was given, cut to 64 characters.
    pub seen: String,
    /// What it should begin with.
    pub prefix: &'static str,
}

fn text(prefix: &str, at: Moment, drawn: [u8; 10]) -> String {
    let millis = u64::try_from(at.micros() / 1000).unwrap_or(0);
    format!("{prefix}{}", uuid::Builder::from_unix_timestamp_millis(millis, &drawn).into_uuid().simple())
}

fn check(prefix: &'static str, s: &str) -> Result<String, NotAnId> {
    let rest = s.strip_prefix(prefix);
    match rest {
        Some(r) if r.len() == 32 && r.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) => Ok(s.to_owned()),
        _ => Err(NotAnId { seen: s.chars().take(64).collect(), prefix }),
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// What every id of this kind begins with.
            pub const PREFIX: &'static str = $prefix;

            /// A new id from the time and ten drawn bytes (see `env::Env::id_bytes`).
            pub fn mint(at: Moment, drawn: [u8; 10]) -> Self {
                Self(text($prefix, at, drawn))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(s: &str) -> Result<Self, NotAnId> {
                check($prefix, s).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NotAnId;
            fn try_from(s: String) -> Result<Self, NotAnId> {
                s.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// A customer of the SaaS.
    TenantId = "ten_";
    /// One claim by one tenant on one hostname.
    DomainId = "dom_";
    /// One try at proving a claim.
    AttemptId = "att_";
    /// A CA account at one ACME directory.
    IssuerId = "iss_";
    /// One order at a CA.
    OrderId = "ord_";
    /// One grant of the dispatcher.
    GrantId = "gra_";
    /// One certificate with its key.
    CertificateId = "crt_";
    /// One challenge that edges answer.
    ChallengeId = "cha_";
    /// An edge node.
    EdgeId = "edg_";
    /// An event of a domain's history.
    EventId = "evt_";
    /// An address to which a tenant's mail goes.
    ContactId = "con_";
    /// A token for the API, or a join token of an edge.
    TokenId = "tok_";
    /// A link into the portal, or a hand-off link.
    LinkId = "lnk_";
    /// A session of the pages.
    SessionId = "ses_";
    /// A bulk import of names.
    ImportId = "imp_";
    /// A replacement of certificates out of turn.
    ReissueId = "rei_";
    /// Something that somebody should know of, until it is over.
    AlertId = "alr_";
    /// A place that events are sent to.
    WebhookId = "whk_";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_sort_by_age_and_refuse_other_kinds() {
        let a = DomainId::mint(Moment::from_secs(1_000), [7; 10]);
        let b = DomainId::mint(Moment::from_secs(2_000), [0; 10]);
        assert!(a < b);
        assert_eq!(a.as_str().parse::<DomainId>().unwrap(), a);
        assert!(a.as_str().parse::<OrderId>().is_err());
        assert!("dom_XYZ".parse::<DomainId>().is_err());
    }
}
