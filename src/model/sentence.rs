//! The one sentence above all axes: visitors are served, or why not and whose move it is.

use serde::{Deserialize, Serialize};

use super::bulk::Hold;
use super::claim::Claim;
use super::evidence::{Actor, Check, Evidence, Verdict};
use super::moment::Moment;
use super::order::OrderState;
use super::standing::{Standing, Stands, blocker, contested, fault, queued_blocker, routing_fault, standing};

/// Who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The tenant whose name it is, or whoever it handed the page to.
    Tenant,
    /// The platform's operator.
    Operator,
}

/// What the sentence is made from.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Who reads it.
    pub reader: Reader,
    /// Where the claim stands.
    pub claim: Claim,
    /// The last look.
    pub evidence: &'a [Evidence],
    /// State of the open order, or of the last one.
    pub order_state: Option<OrderState>,
    /// What the import that brought the name is held by.
    pub held: Option<Hold>,
    /// The order's last problem, in one line.
    pub order_problem: Option<&'a str>,
    /// Orders that failed since the last success.
    pub failures: i64,
    /// End of the certificate in use.
    pub not_after: Option<Moment>,
    /// Edges that count, and how many of them do not have the certificate.
    pub counted: usize,
    /// See `counted`.
    pub behind: usize,
    /// Whether those that are behind serve the certificate before.
    pub renewed: bool,
    /// The present moment.
    pub now: Moment,
}

/// The sentence with what it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sentence {
    /// One or two plain sentences.
    pub text: String,
    /// The same as a list says it, where each row begins and ends alike and nothing stands below.
    pub in_a_list: String,
    /// Whether a visitor who opens the name gets the tenant's page.
    pub serving: bool,
    /// Live, with a valid certificate, on every counted edge.
    pub active: bool,
    /// Whose move it is.
    pub who_acts: Actor,
}

/// What a sentence is put together from.
struct Parts {
    /// Whether it begins with [`NOT_YET`], which a list leaves out.
    not_yet: bool,
    /// What it says.
    said: String,
    /// What a list says instead, where that differs.
    in_a_list: Option<String>,
    /// Whether it ends with what the one who acts is to do.
    ends_with_move: bool,
}

const YOUR_MOVE: &str = "Your move: see below what to change.";
const NOT_YET: &str = "Visitors are not served yet: ";

impl Parts {
    fn of(said: impl Into<String>) -> Parts {
        Parts { not_yet: false, said: said.into(), in_a_list: None, ends_with_move: false }
    }

    /// One that goes on after [`NOT_YET`].
    fn not_yet(said: impl Into<String>) -> Parts {
        Parts { not_yet: true, ..Parts::of(said) }
    }

    fn listed_as(self, said: &str) -> Parts {
        Parts { in_a_list: Some(said.to_owned()), ..self }
    }

    fn with_move(self) -> Parts {
        Parts { ends_with_move: true, ..self }
    }

    fn acted_on_by(self, who_acts: Actor, reader: Reader) -> Sentence {
        let told = if self.ends_with_move { format!(" {}", whose_move(who_acts, reader)) } else { String::new() };
        // The tenant's move is marked in a list, and what to change stands below on the page alone.
        let told_in_list = if who_acts == Actor::Tenant { "" } else { told.as_str() };
        let listed = self.in_a_list.as_ref().unwrap_or(&self.said);
        let listed = if self.not_yet { capital(listed) } else { listed.clone() };
        Sentence {
            text: format!("{}{}{told}", if self.not_yet { NOT_YET } else { "" }, self.said),
            in_a_list: format!("{listed}{told_in_list}"),
            serving: false,
            active: false,
            who_acts,
        }
    }
}

/// The same with a capital at its beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn sentence(text: impl Into<String>, who_acts: Actor) -> Sentence {
    // Without a move at its end it says the same to everybody.
    Parts::of(text).acted_on_by(who_acts, Reader::Tenant)
}

/// Computes the sentence.
pub fn sentence_of(facts: &Facts<'_>) -> Sentence {
    match facts.claim {
        Claim::AwaitingDns => awaiting(facts),
        Claim::Queued => queued(facts),
        Claim::Live => live(facts),
        Claim::Releasing => sentence(
            "Visitors are not served: the domain was removed. Its name is kept back for a while so that nobody else can take it over.",
            Actor::Nobody,
        ),
        Claim::Released => sentence("Visitors are not served: the domain was removed and the name is free.", Actor::Nobody),
        Claim::Expired => sentence(
            "Visitors are not served: the records were not published in time. Claim the name again to get a new value.",
            Actor::Tenant,
        ),
        Claim::Withdrawn => {
            sentence("Visitors are not served: the claim was withdrawn before it was proven.", Actor::Nobody)
        }
    }
}

fn whose_move(who: Actor, reader: Reader) -> &'static str {
    match (who, reader) {
        (Actor::Tenant, Reader::Tenant) => YOUR_MOVE,
        (Actor::Tenant, Reader::Operator) => "The tenant has to act: see below what to change.",
        (Actor::DnsProvider, Reader::Tenant) => "Your DNS provider has to act; we keep looking.",
        (Actor::DnsProvider, Reader::Operator) => "The tenant's DNS provider has to act; we keep looking.",
        (Actor::Platform, Reader::Tenant) => "This is ours to solve; you need not do anything.",
        (Actor::Platform, Reader::Operator) => "This is the platform's to solve.",
        (Actor::Ca, _) => "The certificate authority has to act; we keep trying.",
        (Actor::Nobody, _) => "Nothing to do but wait; we keep looking.",
    }
}

fn blocked(by: &Evidence, reader: Reader) -> Sentence {
    let reason = by.finding.reason;
    let subject = match by.finding.check {
        Check::Ownership => "proof of ownership",
        Check::Routing => "the way to us",
        Check::Caa => "permission for our certificate authority",
        Check::Delegation => "the challenge name",
        Check::Holding => {
            // Whoever holds the name is told apart only for a claim whose own records are right.
            let lead = "Visitors are not served yet. Your records are right; leave them as they are.";
            let rest = if reason.acts() == Actor::Tenant { "" } else { " Nothing to do but wait; we keep looking." };
            return sentence(format!("{lead} {}{rest}", reason.sentence()), reason.acts());
        }
        Check::Preflight => {
            let said = format!("Visitors are not served yet. {}", reason.sentence());
            return Parts::of(said).with_move().acted_on_by(reason.acts(), reader);
        }
    };
    let parts = match reason.verdict() {
        Verdict::Fail => {
            Parts::of(format!("Visitors are not served yet, because {subject} needs a correction. {}", reason.sentence()))
        }
        Verdict::Wait => Parts::not_yet(format!("{subject} is not visible in DNS so far. {}", reason.sentence())),
        Verdict::Unknown | Verdict::Pass => {
            Parts::not_yet(format!("{subject} could not be looked at. {}", reason.sentence()))
        }
    };
    parts.with_move().acted_on_by(reason.acts(), reader)
}

fn awaiting(facts: &Facts<'_>) -> Sentence {
    if facts.evidence.is_empty() {
        return Parts::not_yet("publish the records below. Nobody has looked for them so far; we start at once.")
            .listed_as("publish its records. Nobody has looked for them so far; we start at once.")
            .acted_on_by(Actor::Tenant, facts.reader);
    }
    match blocker(facts.evidence) {
        Some(by) => blocked(by, facts.reader),
        None => {
            sentence("Visitors are not served yet. Every record is right; the claim moves on in a moment.", Actor::Nobody)
        }
    }
}

fn queued(facts: &Facts<'_>) -> Sentence {
    if let Some(by) = queued_blocker(facts.evidence, facts.order_state) {
        return blocked(by, facts.reader);
    }
    let stands = standing(&Stands {
        claim: facts.claim,
        evidence: facts.evidence,
        order: facts.order_state,
        held: facts.held,
        failures: facts.failures,
        certificate: facts.not_after.is_some(),
        rolled_out: false,
    });
    let step = match stands {
        Standing::ImportPaused => {
            return held(
                "is paused, so no certificate is ordered. Let the import go on, or claim the name by itself.",
                stands,
            );
        }
        Standing::ImportPausedByOperator => {
            return held(
                "is paused by the operator, so no certificate is ordered before it goes on. Claim the name by itself if it \
                 cannot wait.",
                stands,
            );
        }
        Standing::ImportCancelled => {
            return held(
                "was cancelled, so no certificate is ordered. Claim the name by itself to have it ordered, or remove it.",
                stands,
            );
        }
        Standing::OrderRetried => "the last order did not succeed and is tried again",
        Standing::OrderPlaced => "the certificate is being ordered",
        Standing::CaValidates => "the certificate authority is checking the name",
        Standing::CaSigns => "the certificate authority is signing",
        Standing::CertificateComes => "the certificate is on its way",
        _ => "the certificate waits for its turn in the order budget",
    };
    let said = match facts.order_problem.filter(|_| stands.acts() == Actor::Ca) {
        Some(problem) => format!("{step}. The certificate authority last answered: {problem}"),
        None => {
            let nobody = if facts.reader == Reader::Tenant { "You need not" } else { "Nobody has to" };
            format!("DNS is right, {step}. {nobody} do anything.")
        }
    };
    Parts::not_yet(said).acted_on_by(stands.acts(), facts.reader)
}

fn held(how: &str, stands: Standing) -> Sentence {
    Parts::not_yet(format!("DNS is right, but the import that brought the name {how}"))
        .acted_on_by(stands.acts(), Reader::Tenant)
}

fn live(facts: &Facts<'_>) -> Sentence {
    let valid = facts.not_after.is_some_and(|end| facts.now < end);
    if !valid {
        let text = match facts.not_after {
            Some(end) => format!("Visitors see a warning: the certificate ended at {end}. This is ours to solve."),
            None => "Visitors are not served: there is no certificate in use. This is ours to solve.".to_owned(),
        };
        return sentence(text, Actor::Platform);
    }
    if facts.counted == 0 {
        return sentence("Visitors are not served: no edge reports to us. This is ours to solve.", Actor::Platform);
    }
    if facts.behind == facts.counted && !facts.renewed {
        return Parts::not_yet("the certificate is on its way to the edges.").acted_on_by(Actor::Nobody, facts.reader);
    }
    let active = facts.behind == 0;
    let contested = contested(facts.evidence);
    if let Some(away) = routing_fault(facts.evidence).filter(|_| contested.is_none()) {
        let reason = away.finding.reason;
        let parts = Parts::of(format!("Visitors do not reach us any more. {}", reason.sentence())).with_move();
        return Sentence { active, ..parts.acted_on_by(reason.acts(), facts.reader) };
    }
    let text = match active || facts.renewed {
        true => "Visitors are served over HTTPS.".to_owned(),
        false => {
            let with = facts.counted - facts.behind;
            format!("Visitors are served by {with} of {} edges; the rest follow.", facts.counted)
        }
    };
    let said = match contested.or_else(|| fault(facts.evidence)) {
        Some(loose) => {
            let reason = loose.finding.reason;
            Parts::of(format!("{text} But: {}", reason.sentence())).with_move().acted_on_by(reason.acts(), facts.reader)
        }
        None => sentence(text, Actor::Nobody),
    };
    Sentence { serving: true, active, ..said }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evidence::Finding;
    use crate::model::reason::Reason;

    fn look(check: Check, reason: Reason) -> Evidence {
        let finding = Finding::bare(check, reason);
        Evidence { finding, looked_at: Moment::from_secs(100) }
    }

    fn facts(claim: Claim, evidence: &[Evidence]) -> Facts<'_> {
        let (now, end) = (Moment::from_secs(200), Moment::from_secs(900));
        Facts {
            reader: Reader::Tenant,
            claim,
            evidence,
            order_state: None,
            held: None,
            order_problem: None,
            failures: 0,
            not_after: Some(end),
            counted: 2,
            behind: 0,
            renewed: false,
            now,
        }
    }

    #[test]
    fn a_fault_is_told_before_what_is_not_there_yet() {
        let seen = [look(Check::Ownership, Reason::TxtMissing), look(Check::Routing, Reason::CnamePointsElsewhere)];
        let s = sentence_of(&facts(Claim::AwaitingDns, &seen));
        assert!(s.text.contains(Reason::CnamePointsElsewhere.sentence()), "{}", s.text);
        assert_eq!((s.serving, s.who_acts), (false, Actor::Tenant));
    }

    #[test]
    fn a_list_leaves_out_what_every_row_would_say() {
        let nobody_looked = sentence_of(&facts(Claim::AwaitingDns, &[]));
        assert!(nobody_looked.text.contains("publish the records below"), "{}", nobody_looked.text);
        assert_eq!(nobody_looked.in_a_list, "Publish its records. Nobody has looked for them so far; we start at once.");
        let seen = [look(Check::Ownership, Reason::TxtMissing), look(Check::Routing, Reason::CnamePointsElsewhere)];
        let fault = sentence_of(&facts(Claim::AwaitingDns, &seen));
        assert!(fault.text.ends_with(YOUR_MOVE) && !fault.in_a_list.contains("Your move"), "{fault:?}");
        let live = sentence_of(&facts(Claim::Live, &[]));
        assert_eq!((live.text.as_str(), live.text.as_str()), ("Visitors are served over HTTPS.", live.in_a_list.as_str()));
        // What others said is never cut, whatever it says.
        let said = format!("the records below {YOUR_MOVE} {NOT_YET}");
        let retried = Facts { failures: 1, order_problem: Some(&said), ..facts(Claim::Queued, &[]) };
        assert!(sentence_of(&retried).in_a_list.ends_with(&said), "{}", sentence_of(&retried).in_a_list);
    }

    #[test]
    fn an_operator_is_told_who_must_act_and_never_that_it_is_his_move() {
        let seen = [look(Check::Ownership, Reason::TxtMissing)];
        for reason in Reason::ALL {
            for check in [Check::Ownership, Check::Routing, Check::Caa, Check::Preflight] {
                let found = [look(check, *reason)];
                for claim in [Claim::AwaitingDns, Claim::Queued, Claim::Live] {
                    let told = sentence_of(&Facts { reader: Reader::Operator, ..facts(claim, &found) }).text;
                    assert!(!told.contains("Your move") && !told.contains("you need not"), "{told}");
                    assert!(!told.contains("Your DNS provider has to act"), "{told}");
                }
            }
        }
        let told = sentence_of(&Facts { reader: Reader::Operator, ..facts(Claim::AwaitingDns, &seen) });
        assert!(told.text.contains("The tenant has to act") && told.who_acts == Actor::Tenant, "{told:?}");
    }

    #[test]
    fn a_name_whose_import_is_held_is_not_told_that_nothing_need_be_done() {
        for (hold, acts, how) in [
            (Hold::ByTenant, Actor::Tenant, "Let the import go on"),
            (Hold::ByOperator, Actor::Platform, "paused by the operator"),
            (Hold::Cancelled, Actor::Tenant, "cancelled"),
        ] {
            let s = sentence_of(&Facts { held: Some(hold), ..facts(Claim::Queued, &[]) });
            assert!(!s.text.contains("need not do anything") && s.text.contains(how), "{}", s.text);
            assert!(s.text.contains("laim the name by itself"), "{}", s.text);
            assert_eq!(s.who_acts, acts);
        }
    }

    #[test]
    fn silence_never_blames_the_tenant() {
        let seen = [look(Check::Ownership, Reason::ResolverUnavailable)];
        let s = sentence_of(&facts(Claim::AwaitingDns, &seen));
        assert_eq!(s.who_acts, Actor::Platform);
        let s = sentence_of(&facts(Claim::Live, &seen));
        assert_eq!((s.text.as_str(), s.serving, s.active), ("Visitors are served over HTTPS.", true, true));
    }

    #[test]
    fn a_live_domain_is_active_only_on_every_counted_edge_with_a_valid_certificate() {
        let whole = facts(Claim::Live, &[]);
        assert!(sentence_of(&whole).active);
        let some = sentence_of(&Facts { behind: 1, ..whole.clone() });
        assert_eq!((some.serving, some.active), (true, false));
        let none = sentence_of(&Facts { behind: 2, ..whole.clone() });
        assert_eq!((none.serving, none.active), (false, false));
        let renewed = sentence_of(&Facts { behind: 2, renewed: true, ..whole.clone() });
        assert_eq!((renewed.serving, renewed.active), (true, false), "edges serve the one before: {}", renewed.text);
        let dead = sentence_of(&Facts { counted: 0, ..whole.clone() });
        assert_eq!((dead.serving, dead.who_acts), (false, Actor::Platform));
        let ended = sentence_of(&Facts { now: Moment::from_secs(900), ..whole });
        assert_eq!((ended.serving, ended.who_acts), (false, Actor::Platform));
        let away = [look(Check::Routing, Reason::CnamePointsElsewhere)];
        assert!(!sentence_of(&facts(Claim::Live, &away)).serving);
    }

    #[test]
    fn a_claim_that_waits_for_the_name_is_told_that_its_records_are_right() {
        for (reason, waits) in [(Reason::Quarantined, true), (Reason::HeldElsewhere, false)] {
            let seen =
                [look(Check::Ownership, Reason::TxtOk), look(Check::Routing, Reason::CnameOk), look(Check::Holding, reason)];
            let s = sentence_of(&facts(Claim::AwaitingDns, &seen));
            assert!(s.text.contains("Your records are right") && !s.text.contains("publish"), "{}", s.text);
            assert_eq!(s.text.contains("Nothing to do but wait"), waits, "{}", s.text);
        }
    }

    #[test]
    fn every_state_has_a_sentence_and_only_live_serves() {
        for claim in Claim::ALL {
            let s = sentence_of(&facts(*claim, &[]));
            assert!(s.text.starts_with("Visitors "), "{}", s.text);
            assert_eq!(s.serving, *claim == Claim::Live);
            assert_eq!(claim.as_str().parse(), Ok(*claim));
        }
    }
}
