//! The face of a domain: the words and marks that its page, its hand-off page and its history choose for what the document says.

use serde_json::Value;

use super::lights::{self, Light};
use super::panel::{self, Entered, Panel};
use super::when::{absolute, relative};
use crate::app::show::{CheckView, DomainView, EventView, HeldView};
use crate::model::bulk::Hold;
use crate::model::claim::Claim;
use crate::model::evidence::{Actor, Check, Record, Verdict};
use crate::model::moment::Moment;
use crate::web::texts as t;
use crate::web::visible;

/// A domain's document with its texts made visible, at a moment.
pub(super) struct Face {
    pub(super) view: DomainView,
    pub(super) now: Moment,
    /// The names in the certificate in use.
    pub(super) names: Vec<String>,
    /// Where its order stands in the queue.
    pub(super) turn: Option<Turn>,
    /// A DNS provider that enters the records itself.
    pub(super) connect: Option<Connected>,
}

/// A place in the queue, as far as it is its tenant's to know.
pub(super) struct Turn {
    /// How many are before it that cannot all go at once; 0: it goes in the coming round.
    pub(super) position: u32,
    /// When it is expected to go.
    pub(super) expected_at: Option<Moment>,
}

/// A link to a DNS provider that enters the records itself.
pub(super) struct Connected {
    /// What it calls itself.
    pub(super) provider: String,
    /// The host that the link leads to.
    pub(super) host: String,
    /// The link.
    pub(super) link: String,
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
        let names = names.iter().map(|name| visible::visible(name)).collect();
        Ok(Face { view: visible::document(view)?, names, now, turn: None, connect: None })
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
        if self.view.is_young(self.now) {
            return "wait";
        }
        tone(self.view.claim, self.view.who_acts, self.view.serving)
    }

    pub(super) fn claim(&self) -> &'static str {
        let held = self.view.checks.iter().any(|c| c.check == Check::Holding && c.verdict != Verdict::Pass);
        if self.view.claim == Claim::AwaitingDns && held && self.records_are_right() {
            return t::awaiting_name();
        }
        claim_words(self.view.claim)
    }

    /// What holds the import that brought the name, in words.
    pub(super) fn held(&self, held: &HeldView) -> &'static str {
        match held.by {
            Hold::ByTenant => t::import_paused(),
            Hold::ByOperator => t::import_paused_by_operator(),
            Hold::Cancelled => t::import_cancelled(),
        }
    }

    pub(super) fn who_acts(&self) -> &'static str {
        who(self.view.who_acts)
    }

    /// The four lights.
    pub(super) fn lights(&self) -> Vec<Light<'_>> {
        lights::lights(self)
    }

    /// The records as they are entered.
    pub(super) fn entered(&self) -> Vec<Entered<'_>> {
        panel::entered(&self.view)
    }

    /// Who hosts the zone, where that is known.
    pub(super) fn panel(&self) -> Option<Panel<'_>> {
        panel::panel(&self.view)
    }

    /// Whether the last look found every record that the tenant publishes.
    pub(super) fn records_are_right(&self) -> bool {
        self.view.records_are_right()
    }

    /// Whether records are to be published or kept.
    pub(super) fn wants_records(&self) -> bool {
        self.view.wants_records()
    }

    pub(super) fn records_title(&self) -> &'static str {
        match self.view.claim {
            Claim::Live => t::records_to_keep(),
            _ if self.records_are_right() => t::records_in_place(),
            _ => t::records_to_publish(),
        }
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

    /// Whose move a check is, in words.
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
        match record.kind.as_str() {
            "TXT" => t::proves(),
            "CAA" => t::permits(),
            _ => t::leads(),
        }
    }

    /// Who did it, without the id that only a log needs.
    pub(super) fn actor_name(&self, event: &EventView) -> String {
        match event.actor.split_once(' ') {
            Some(("tenant", by)) if by.starts_with("ses_") => t::you_in_portal().to_owned(),
            Some(("tenant", by)) if by.starts_with("tok_") => t::your_application().to_owned(),
            Some(("operator", by)) if by.starts_with("tok_") => t::the_operator().to_owned(),
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
        Claim::AwaitingDns => t::awaiting_dns(),
        Claim::Queued => t::queued(),
        Claim::Live => t::live(),
        Claim::Releasing => t::releasing(),
        Claim::Released => t::released(),
        Claim::Expired => t::expired(),
        Claim::Withdrawn => t::withdrawn(),
    }
}

/// Whose move it is, in words.
pub(super) fn who(actor: Actor) -> &'static str {
    match actor {
        Actor::Tenant => t::your_move(),
        Actor::DnsProvider => t::providers_move(),
        Actor::Platform => t::our_move(),
        Actor::Ca => t::cas_move(),
        Actor::Nobody => t::nothing_to_do(),
    }
}

/// One finding of a look: `ownership: txt_ok — seen a, b`.
fn finding(found: &Value) -> Option<String> {
    let (check, code) = (found.get("check")?.as_str()?, found.get("code")?.as_str()?);
    let observed = found.get("observed").and_then(Value::as_array).into_iter().flatten();
    let seen: Vec<&str> = observed.filter_map(Value::as_str).collect();
    let alone = || format!("{check}: {code}");
    Some(if seen.is_empty() { alone() } else { t::found_seen(check, code, seen.join(", ")).plain() })
}

/// A single value, or a list of texts; what is built of more is for programs and left to the API.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(if *flag { t::yes() } else { t::no() }.to_owned()),
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join(", "))
        }
        Value::Null | Value::Object(_) => None,
    }
}
