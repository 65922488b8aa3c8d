//! The face of a domain: the words and marks that its page, its hand-off page and its history choose for what the document says.

use serde_json::Value;

use super::when::{absolute, relative};
use crate::app::show::{CheckView, DomainView, EventView};
use crate::model::claim::Claim;
use crate::model::evidence::{Actor, Check, Record, Verdict};
use crate::model::moment::Moment;
use crate::web::visible;

/// A domain's document with its texts made visible, at a moment.
pub(super) struct Face {
    pub(super) view: DomainView,
    pub(super) now: Moment,
    /// The names in the certificate in use.
    pub(super) names: Vec<String>,
}

/// One step of the way, as the page's progress list shows it.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// `done`, `now` or `later`.
    pub(super) state: &'static str,
}

/// How much of a certificate's time is over.
pub(super) struct Lifetime {
    pub(super) days: u64,
    pub(super) used: u64,
}

/// So many characters of an event's particulars are shown.
const PARTICULARS: usize = 600;
/// The events on the domain's own page; the rest is a page away.
const LATEST: usize = 8;

impl Face {
    /// Of a document as the store gives it.
    pub(super) fn new(view: &DomainView, names: Vec<String>, now: Moment) -> serde_json::Result<Face> {
        Ok(Face { view: visible::document(view)?, names: names.iter().map(|name| visible::visible(name)).collect(), now })
    }

    /// How the certificate's days are spent.
    pub(super) fn lifetime(&self) -> Option<Lifetime> {
        let certificate = self.view.certificate.as_ref()?;
        let days = ((certificate.not_after.since(certificate.not_before).as_secs() + 43_200) / 86_400).max(1);
        Some(Lifetime { days, used: (self.now.since(certificate.not_before).as_secs() / 86_400).min(days) })
    }

    /// The latest events.
    pub(super) fn latest(&self) -> &[EventView] {
        self.view.events.get(..LATEST).unwrap_or(&self.view.events)
    }

    /// Whether there are more events than the latest.
    pub(super) fn has_history(&self) -> bool {
        self.view.events.len() > LATEST
    }

    /// The zone that the records go into.
    pub(super) fn zone(&self) -> &str {
        self.view.hostname.registered_domain()
    }

    /// Whether something goes on by itself, so that the page is worth being looked at again.
    pub(super) fn is_moving(&self) -> bool {
        matches!(self.view.claim, Claim::AwaitingDns | Claim::Queued | Claim::Live | Claim::Releasing)
    }

    /// Whether a route of ours is known to the public, so that a removal takes something from visitors.
    pub(super) fn was_proven(&self) -> bool {
        matches!(self.view.claim, Claim::Queued | Claim::Live)
    }

    /// The tone of the whole: `good`, `wait`, `act` or `off`.
    pub(super) fn tone(&self) -> &'static str {
        tone(self.view.claim, self.view.who_acts, self.view.serving)
    }

    pub(super) fn claim(&self) -> &'static str {
        claim_words(self.view.claim)
    }

    pub(super) fn who_acts(&self) -> &'static str {
        who(self.view.who_acts)
    }

    pub(super) fn steps(&self) -> Vec<Step> {
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
    pub(super) fn wants_records(&self) -> bool {
        matches!(self.view.claim, Claim::AwaitingDns | Claim::Queued | Claim::Live)
    }

    pub(super) fn records_title(&self) -> &'static str {
        if self.view.claim == Claim::Live { "Records to keep" } else { "Records to publish" }
    }

    pub(super) fn can_remove(&self) -> bool {
        matches!(self.view.claim, Claim::AwaitingDns | Claim::Queued | Claim::Live | Claim::Expired)
    }

    pub(super) fn ago(&self, at: &Moment) -> String {
        relative(*at, self.now)
    }

    pub(super) fn full(&self, at: &Moment) -> String {
        absolute(*at)
    }

    pub(super) fn machine(&self, at: &Moment) -> String {
        at.rfc3339()
    }

    pub(super) fn check_name(&self, check: &CheckView) -> &'static str {
        match check.check {
            Check::Ownership => "Proof of ownership",
            Check::Routing => "The way to us",
            Check::Caa => "Permission for our certificate authority",
            Check::Delegation => "The challenge name",
            Check::Holding => "Nobody else holds the name",
            Check::Preflight => "Requests reach us",
        }
    }

    pub(super) fn verdict(&self, check: &CheckView) -> &'static str {
        match check.verdict {
            Verdict::Pass => "Right",
            Verdict::Wait => "Not there yet",
            Verdict::Fail => "Needs a change",
            Verdict::Unknown => "Could not look",
        }
    }

    pub(super) fn is_right(&self, check: &CheckView) -> bool {
        check.verdict == Verdict::Pass
    }

    pub(super) fn mark(&self, check: &CheckView) -> &'static str {
        match check.verdict {
            Verdict::Pass => "good",
            Verdict::Wait => "wait",
            Verdict::Fail => "act",
            Verdict::Unknown => "off",
        }
    }

    pub(super) fn check_actor(&self, check: &CheckView) -> &'static str {
        who(check.who_acts)
    }

    pub(super) fn event_name(&self, event: &EventView) -> String {
        let mut words = visible::cut(&event.kind, 60).replace('_', " ");
        if let Some(first) = words.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        words
    }

    /// What a record is for.
    pub(super) fn record_purpose(&self, record: &Record) -> &'static str {
        if record.kind == "TXT" { "proves that the name is yours" } else { "leads visitors to us" }
    }

    /// Who did it, without the id that only a log needs.
    pub(super) fn actor_name(&self, event: &EventView) -> String {
        match event.actor.split_once(' ') {
            Some(("tenant", by)) if by.starts_with("ses_") => "you, in the portal".to_owned(),
            Some(("tenant", by)) if by.starts_with("tok_") => "your application".to_owned(),
            Some(("operator", by)) if by.starts_with("tok_") => "the operator".to_owned(),
            _ => visible::cut(&event.actor, 80),
        }
    }

    /// Why it happened.
    pub(super) fn event_cause(&self, event: &EventView) -> String {
        visible::cut(&event.cause, 300)
    }

    /// An event's particulars that are plain to read: what a look found, and single values with their names.
    pub(super) fn particulars(&self, event: &EventView) -> Vec<String> {
        let Value::Object(fields) = &event.detail else { return vec![] };
        let findings = fields.get("findings").and_then(Value::as_array).into_iter().flatten().filter_map(finding);
        let plain = fields.iter().filter_map(|(name, value)| Some(format!("{}: {}", name.replace('_', " "), plain(value)?)));
        let mut room = PARTICULARS;
        let mut lines = Vec::new();
        for line in findings.chain(plain) {
            let line = visible::cut(&line, room);
            room = room.saturating_sub(line.chars().count());
            lines.push(line);
            if room == 0 {
                break;
            }
        }
        lines
    }

    pub(super) fn serving_edges(&self) -> usize {
        self.view.rollout.counted.saturating_sub(self.view.rollout.behind.len())
    }

    /// The certificate authority's last problem, in readable lines.
    pub(super) fn problem(&self) -> Option<String> {
        let problem = self.view.order.as_ref()?.problem.as_ref()?;
        Some(serde_json::to_string_pretty(problem).unwrap_or_default())
    }
}

/// The tone in which a domain's state is shown; its words say the same.
pub(super) fn tone(claim: Claim, who_acts: Actor, serving: bool) -> &'static str {
    match claim {
        Claim::Releasing | Claim::Released | Claim::Withdrawn => "off",
        _ if who_acts == Actor::Tenant => "act",
        _ if serving => "good",
        _ => "wait",
    }
}

/// A claim's state in words.
pub(super) fn claim_words(claim: Claim) -> &'static str {
    match claim {
        Claim::AwaitingDns => "Waiting for DNS",
        Claim::Queued => "Certificate under way",
        Claim::Live => "Live",
        Claim::Releasing => "Being released",
        Claim::Released => "Released",
        Claim::Expired => "Ran out of time",
        Claim::Withdrawn => "Withdrawn",
    }
}

/// Whose move it is, in words.
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
