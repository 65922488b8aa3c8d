//! What one look concluded, in the form that plan, page, API and log share.

use std::time::Duration;

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

    /// The word in store and API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Check::Ownership => "ownership",
            Check::Routing => "routing",
            Check::Caa => "caa",
            Check::Delegation => "delegation",
            Check::Holding => "holding",
            Check::Preflight => "preflight",
        }
    }
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
        super::zone_file::line(self)
    }
}

/// What one server or resolver said, where they did not all say the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// Who: `ns1.example.com`, `resolver own-a`.
    pub observer: String,
    /// What it said, in one line.
    pub said: String,
    /// For how many seconds those who asked it may keep that; none where it said nothing.
    pub ttl: Option<u32>,
    /// Whether it is what is expected.
    pub as_expected: bool,
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
    /// Everybody's word side by side, where they did not all say the same; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<View>,
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
    /// What a check found, and nothing beside it.
    pub fn bare(check: Check, reason: Reason) -> Finding {
        Finding {
            check,
            reason,
            expected: String::new(),
            observed: Vec::new(),
            seen_by: Vec::new(),
            views: Vec::new(),
            advice: String::new(),
            found_at: None,
            found_via: None,
            record_to_publish: Vec::new(),
            dns_host: None,
        }
    }

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

/// How long anybody keeps an answer, whatever its TTL says: caches cap it at a week (RFC 8767 §4).
const LONGEST_KEPT: u32 = 7 * 24 * 3600;

impl Evidence {
    /// When the last copy of an answer that is not as expected is gone, if every server says what is expected by then. None while
    /// nobody says what is expected, or nobody says anything else.
    pub fn old_until(&self) -> Option<Moment> {
        let views = &self.finding.views;
        let old = views.iter().filter(|v| !v.as_expected).filter_map(|v| v.ttl).max()?;
        let kept = Duration::from_secs(u64::from(old.min(LONGEST_KEPT)));
        views.iter().any(|v| v.as_expected).then(|| self.looked_at + kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(views: &[(bool, Option<u32>)]) -> Evidence {
        let mut row = serde_json::json!({
            "check": "ownership", "reason": "txt_propagating", "expected": "", "observed": [], "seen_by": [], "advice": "",
            "record_to_publish": [], "looked_at": 1_000_000,
        });
        let views = views.iter().map(|(as_expected, ttl)| {
            serde_json::json!({ "observer": "ns1.example.com", "said": "…", "ttl": ttl, "as_expected": as_expected })
        });
        if views.len() > 0 {
            row["views"] = views.collect();
        }
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn a_check_has_one_word() {
        for check in Check::ALL {
            assert_eq!(serde_json::json!(check), check.as_str());
        }
    }

    #[test]
    fn a_row_from_before_there_were_views_is_read_and_written_as_it_was() {
        let row = evidence(&[]);
        assert!(row.finding.views.is_empty());
        assert_eq!(row.old_until(), None);
        assert!(!serde_json::to_string(&row).unwrap().contains("views"));
    }

    #[test]
    fn old_answers_are_gone_when_the_longest_kept_of_them_is() {
        let until = |views: &[(bool, Option<u32>)]| evidence(views).old_until().map(Moment::secs);
        assert_eq!(until(&[(true, Some(9_000)), (false, Some(300)), (false, Some(60)), (false, None)]), Some(301));
        assert_eq!(until(&[(true, Some(9_000)), (false, Some(u32::MAX))]), Some(1 + 7 * 86_400));
        assert_eq!(until(&[(false, Some(300)), (false, Some(60))]), None, "there is no new answer yet");
        assert_eq!(until(&[(true, Some(300)), (false, None)]), None, "nobody holds an old one");
    }
}
