//! What one look concluded, in the form that plan, page, API and log share.

use serde::{Deserialize, Serialize};

use super::moment::Moment;
use super::reason::Reason;

/// The four outcomes of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The check holds now.
    Pass,
    /// Nothing is wrong yet; it is not there yet.
    Wait,
    /// Somebody must change something.
    Fail,
    /// We could not look. Never a permission, never a reason to take a name down.
    Unknown,
}

/// Whose move it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Actor {
    Tenant,
    DnsProvider,
    Platform,
    Ca,
    Nobody,
}

impl Actor {
    /// Everybody, in the order in which an operator asks: whose move it is matters most where it is ours.
    pub const ALL: &'static [Actor] = &[Actor::Platform, Actor::Ca, Actor::DnsProvider, Actor::Tenant, Actor::Nobody];

    /// The word in store and API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Actor::Tenant => "tenant",
            Actor::DnsProvider => "dns_provider",
            Actor::Platform => "platform",
            Actor::Ca => "ca",
            Actor::Nobody => "nobody",
        }
    }

    /// The actor of this word.
    pub fn from_word(word: &str) -> Option<Actor> {
        Actor::ALL.iter().copied().find(|actor| actor.as_str() == word)
    }
}

/// What a reason says of the tie between a name and its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tie {
    /// Positively seen to hold.
    Present,
    /// Positively seen to be gone.
    Gone,
    /// Says nothing either way: silence never releases a name.
    Silent,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// TXT at `_nameplate-challenge.<hostname>`.
    Ownership,
    /// CNAME or addresses of the hostname.
    Routing,
    /// CAA (RFC 8659).
    Caa,
    /// The challenge name `_acme-challenge.<hostname>` leads to us (RFC 8555 §8.4).
    Delegation,
    /// Whether somebody else holds the name; present only when that stands in the way.
    Holding,
    /// Whether requests through the public name reach our edges; tried before an order.
    Preflight,
}

impl Check {
    /// Every check there is.
    pub const ALL: &'static [Check] =
        &[Check::Ownership, Check::Routing, Check::Caa, Check::Delegation, Check::Holding, Check::Preflight];
}

/// A DNS record in the three forms people paste.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Full owner name without the trailing dot.
    pub name: String,
    /// What goes into a panel's host field: relative to the registered domain, `@` for the apex.
    pub host: String,
    /// `TXT`, `CNAME`, `ALIAS`, `A`, `AAAA`, `CAA`.
    pub kind: String,
    /// The value, as a zone file has it but for the quotes around a TXT.
    pub value: String,
    /// Whether it must stay after success, and why.
    pub keep: bool,
}

impl Record {
    /// The line of a zone file (RFC 1035 §5.1).
    pub fn zone_line(&self) -> String {
        match self.kind.as_str() {
            "TXT" => format!("{}. 300 IN TXT \"{}\"", self.name, self.value),
            kind @ ("CNAME" | "ALIAS") => format!("{}. 300 IN {kind} {}.", self.name, self.value.trim_end_matches('.')),
            kind => format!("{}. 300 IN {kind} {}", self.name, self.value),
        }
    }
}

/// What a check found at one moment: pure output of `model::checks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which check.
    pub check: Check,
    /// Why; verdict, actor and tie follow from it.
    pub reason: Reason,
    /// What should be seen, in words with real values.
    pub expected: String,
    /// What was seen, one line per distinct answer.
    pub observed: Vec<String>,
    /// Who saw it: `ns1.example.com`, `resolver own-a`...
    pub seen_by: Vec<String>,
    /// What to do, with real values; empty when there is nothing to do.
    pub advice: String,
    /// CAA: the name at which the relevant set was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_at: Option<String>,
    /// CAA: the owner of the set when an alias led there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_via: Option<String>,
    /// The records to publish to satisfy this check.
    pub record_to_publish: Vec<Record>,
    /// Where the zone is hosted and how its panel wants those records; none while that is not recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_host: Option<DnsHost>,
}

/// Who hosts a zone, as its name servers show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsHost {
    /// The provider's name: `Cloudflare`.
    pub provider: String,
    /// The zone there.
    pub zone: String,
    /// What to enter in its panel: one line for each record to publish, in their order.
    pub steps: Vec<String>,
}

impl Finding {
    /// The verdict of its reason.
    pub fn verdict(&self) -> Verdict {
        self.reason.verdict()
    }
}

/// A finding with its time: what a domain's row keeps, what page, API and hand-off link show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// When the look was made.
    pub looked_at: Moment,
}
