//! What the template of a domain reads.

use askama::Template;
use serde_json::Value;

use super::when::{absolute, relative};
use crate::app::show::{CheckView, DomainView, EventView};
use crate::model::claim::Claim;
use crate::model::evidence::{Actor, Check, Verdict};
use crate::model::moment::Moment;

/// The page.
#[derive(Template)]
#[template(path = "domain.html")]
pub(super) struct DomainPage<'a> {
    pub(super) view: &'a DomainView,
    pub(super) now: Moment,
    pub(super) csrf: String,
    pub(super) asked: bool,
}

/// One step of the way, as the page's progress list shows it.
struct Step {
    name: &'static str,
    /// `done`, `now` or `later`.
    state: &'static str,
}

impl DomainPage<'_> {
    /// The tone of the whole: `good`, `wait`, `act` or `off`.
    fn tone(&self) -> &'static str {
        match self.view.claim {
            Claim::Releasing | Claim::Released | Claim::Withdrawn => "off",
            _ if self.view.who_acts == Actor::Tenant => "act",
            _ if self.view.serving => "good",
            _ => "wait",
        }
    }

    fn claim(&self) -> &'static str {
        match self.view.claim {
            Claim::AwaitingDns => "Waiting for DNS",
            Claim::Queued => "Certificate under way",
            Claim::Live => "Live",
            Claim::Releasing => "Being released",
            Claim::Released => "Released",
            Claim::Expired => "Ran out of time",
            Claim::Withdrawn => "Withdrawn",
        }
    }

    fn who_acts(&self) -> &'static str {
        who(self.view.who_acts)
    }

    fn steps(&self) -> Vec<Step> {
        let done = match self.view.claim {
            Claim::AwaitingDns => 1,
            Claim::Queued => 2,
            Claim::Live if self.view.active => 4,
            Claim::Live => 3,
            Claim::Releasing | Claim::Released | Claim::Expired | Claim::Withdrawn => return vec![],
        };
        let names = ["Claimed", "DNS", "Certificate", "Edges"];
        let state = |i: usize| {
            if i < done {
                "done"
            } else if i == done {
                "now"
            } else {
                "later"
            }
        };
        names.iter().enumerate().map(|(i, name)| Step { name, state: state(i) }).collect()
    }

    /// Whether records are to be published or kept.
    fn wants_records(&self) -> bool {
        matches!(self.view.claim, Claim::AwaitingDns | Claim::Queued | Claim::Live)
    }

    fn records_title(&self) -> &'static str {
        if self.view.claim == Claim::Live { "Records to keep" } else { "Records to publish" }
    }

    fn can_remove(&self) -> bool {
        matches!(self.view.claim, Claim::AwaitingDns | Claim::Queued | Claim::Live | Claim::Expired)
    }

    fn ago(&self, at: &Moment) -> String {
        relative(*at, self.now)
    }

    fn full(&self, at: &Moment) -> String {
        absolute(*at)
    }

    fn machine(&self, at: &Moment) -> String {
        at.rfc3339()
    }

    fn check_name(&self, check: &CheckView) -> &'static str {
        match check.check {
            Check::Ownership => "Proof of ownership",
            Check::Routing => "The way to us",
            Check::Caa => "Permission for our certificate authority",
            Check::Delegation => "The challenge name",
            Check::Holding => "Nobody else holds the name",
        }
    }

    fn verdict(&self, check: &CheckView) -> &'static str {
        match check.verdict {
            Verdict::Pass => "Right",
            Verdict::Wait => "Not there yet",
            Verdict::Fail => "Needs a change",
            Verdict::Unknown => "Could not look",
        }
    }

    fn is_right(&self, check: &CheckView) -> bool {
        check.verdict == Verdict::Pass
    }

    fn mark(&self, check: &CheckView) -> &'static str {
        match check.verdict {
            Verdict::Pass => "good",
            Verdict::Wait => "wait",
            Verdict::Fail => "act",
            Verdict::Unknown => "off",
        }
    }

    fn check_actor(&self, check: &CheckView) -> &'static str {
        who(check.who_acts)
    }

    fn event_name(&self, event: &EventView) -> String {
        let mut words = event.kind.replace('_', " ");
        if let Some(first) = words.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        words
    }

    /// An event's particulars that are plain to read: what a look found, and single values with their names.
    fn particulars(&self, event: &EventView) -> Vec<String> {
        let Value::Object(fields) = &event.detail else { return vec![] };
        let findings = fields.get("findings").and_then(Value::as_array).into_iter().flatten().filter_map(finding);
        let plain = fields.iter().filter_map(|(name, value)| Some(format!("{}: {}", name.replace('_', " "), plain(value)?)));
        findings.chain(plain).collect()
    }

    fn serving_edges(&self) -> usize {
        self.view.rollout.counted.saturating_sub(self.view.rollout.behind.len())
    }

    /// The certificate authority's last problem, in readable lines.
    fn problem(&self) -> Option<String> {
        let problem = self.view.order.as_ref()?.problem.as_ref()?;
        Some(serde_json::to_string_pretty(problem).unwrap_or_default())
    }
}

fn who(actor: Actor) -> &'static str {
    match actor {
        Actor::Tenant => "Your move",
        Actor::DnsProvider => "Your DNS provider’s move",
        Actor::Platform => "Our move",
        Actor::Ca => "The certificate authority’s move",
        Actor::Nobody => "Nothing to do",
    }
}

/// One finding of a look: `ownership: txt_ok — seen a, b`.
fn finding(found: &Value) -> Option<String> {
    let (check, code) = (found.get("check")?.as_str()?, found.get("code")?.as_str()?);
    let observed = found.get("observed").and_then(Value::as_array).into_iter().flatten();
    let seen: Vec<&str> = observed.filter_map(Value::as_str).collect();
    let seen = if seen.is_empty() { String::new() } else { format!(" — seen {}", seen.join(", ")) };
    Some(format!("{check}: {code}{seen}"))
}

/// A single value, or a list of texts; what is built of more is for programs and left to the API.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(if *flag { "yes" } else { "no" }.to_owned()),
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join(", "))
        }
        Value::Null | Value::Object(_) => None,
    }
}
