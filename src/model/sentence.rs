//! The one sentence above all axes: visitors are served, or why not and whose move it is.

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::evidence::{Actor, Check, Evidence, Verdict};
use super::moment::Moment;
use super::order::OrderState;
use super::standing::{Standing, Stands, blocker, contested, fault, queued_blocker, routing_fault, standing};

/// What the sentence is made from.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Where the claim stands.
    pub claim: Claim,
    /// The last look.
    pub evidence: &'a [Evidence],
    /// State of the open order, or of the last one.
    pub order_state: Option<OrderState>,
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
    /// Whether a visitor who opens the name gets the tenant's page.
    pub serving: bool,
    /// Live, with a valid certificate, on every counted edge.
    pub active: bool,
    /// Whose move it is.
    pub who_acts: Actor,
}

fn sentence(text: impl Into<String>, who_acts: Actor) -> Sentence {
    Sentence { text: text.into(), serving: false, active: false, who_acts }
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

const YOUR_MOVE: &str = "Your move: see below what to change.";
const NOT_YET: &str = "Visitors are not served yet: ";

/// The sentence as a list says it, where each row begins and ends alike and nothing stands below.
pub fn in_a_list(text: &str) -> String {
    let text = text.replace(&format!(" {YOUR_MOVE}"), "").replace("the records below", "its records");
    let Some(rest) = text.strip_prefix(NOT_YET) else { return text };
    let mut letters = rest.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn whose_move(who: Actor) -> &'static str {
    match who {
        Actor::Tenant => YOUR_MOVE,
        Actor::DnsProvider => "Your DNS provider has to act; we keep looking.",
        Actor::Platform => "This is ours to solve; you need not do anything.",
        Actor::Ca => "The certificate authority has to act; we keep trying.",
        Actor::Nobody => "Nothing to do but wait; we keep looking.",
    }
}

fn blocked(by: &Evidence) -> Sentence {
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
            let text = format!("Visitors are not served yet. {} {}", reason.sentence(), whose_move(reason.acts()));
            return sentence(text, reason.acts());
        }
    };
    let lead = match reason.verdict() {
        Verdict::Fail => format!("Visitors are not served yet, because {subject} needs a correction."),
        Verdict::Wait => format!("Visitors are not served yet: {subject} is not visible in DNS so far."),
        Verdict::Unknown | Verdict::Pass => format!("Visitors are not served yet: {subject} could not be looked at."),
    };
    sentence(format!("{lead} {} {}", reason.sentence(), whose_move(reason.acts())), reason.acts())
}

fn awaiting(facts: &Facts<'_>) -> Sentence {
    if facts.evidence.is_empty() {
        let text =
            "Visitors are not served yet: publish the records below. Nobody has looked for them so far; we start at once.";
        return sentence(text, Actor::Tenant);
    }
    match blocker(facts.evidence) {
        Some(by) => blocked(by),
        None => {
            sentence("Visitors are not served yet. Every record is right; the claim moves on in a moment.", Actor::Nobody)
        }
    }
}

fn queued(facts: &Facts<'_>) -> Sentence {
    if let Some(by) = queued_blocker(facts.evidence, facts.order_state) {
        return blocked(by);
    }
    let stands = standing(&Stands {
        claim: facts.claim,
        evidence: facts.evidence,
        order: facts.order_state,
        failures: facts.failures,
        certificate: facts.not_after.is_some(),
        rolled_out: false,
    });
    let step = match stands {
        Standing::OrderRetried => "the last order did not succeed and is tried again",
        Standing::OrderPlaced => "the certificate is being ordered",
        Standing::CaValidates => "the certificate authority is checking the name",
        Standing::CaSigns => "the certificate authority is signing",
        Standing::CertificateComes => "the certificate is on its way",
        _ => "the certificate waits for its turn in the order budget",
    };
    let text = match facts.order_problem.filter(|_| stands.acts() == Actor::Ca) {
        Some(problem) => {
            format!("Visitors are not served yet: {step}. The certificate authority last answered: {problem}")
        }
        None => format!("Visitors are not served yet: DNS is right, {step}. You need not do anything."),
    };
    sentence(text, stands.acts())
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
        return sentence("Visitors are not served yet: the certificate is on its way to the edges.", Actor::Nobody);
    }
    let active = facts.behind == 0;
    let contested = contested(facts.evidence);
    if let Some(away) = routing_fault(facts.evidence).filter(|_| contested.is_none()) {
        let reason = away.finding.reason;
        let text = format!("Visitors do not reach us any more. {} {}", reason.sentence(), whose_move(reason.acts()));
        return Sentence { active, ..sentence(text, reason.acts()) };
    }
    let (mut text, mut who_acts) = ("Visitors are served over HTTPS.".to_owned(), Actor::Nobody);
    if !active && !facts.renewed {
        text =
            format!("Visitors are served by {} of {} edges; the rest follow.", facts.counted - facts.behind, facts.counted);
    }
    if let Some(loose) = contested.or_else(|| fault(facts.evidence)) {
        let reason = loose.finding.reason;
        text = format!("{text} But: {} {}", reason.sentence(), whose_move(reason.acts()));
        who_acts = reason.acts();
    }
    Sentence { text, serving: true, active, who_acts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evidence::Finding;
    use crate::model::reason::Reason;

    fn look(check: Check, reason: Reason) -> Evidence {
        let finding = Finding {
            check,
            reason,
            expected: String::new(),
            observed: vec![],
            seen_by: vec![],
            views: vec![],
            advice: String::new(),
            found_at: None,
            found_via: None,
            record_to_publish: vec![],
            dns_host: None,
        };
        Evidence { finding, looked_at: Moment::from_secs(100) }
    }

    fn facts(claim: Claim, evidence: &[Evidence]) -> Facts<'_> {
        let (now, end) = (Moment::from_secs(200), Moment::from_secs(900));
        Facts {
            claim,
            evidence,
            order_state: None,
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
        let nobody_looked = sentence_of(&facts(Claim::AwaitingDns, &[])).text;
        assert_eq!(
            in_a_list(&nobody_looked),
            "Publish its records. Nobody has looked for them so far; we start at once.",
            "{nobody_looked}"
        );
        let seen = [look(Check::Ownership, Reason::TxtMissing), look(Check::Routing, Reason::CnamePointsElsewhere)];
        let fault = sentence_of(&facts(Claim::AwaitingDns, &seen)).text;
        assert!(fault.ends_with(YOUR_MOVE) && !in_a_list(&fault).contains("Your move"), "{fault}");
        assert_eq!(in_a_list("Visitors are served over HTTPS."), "Visitors are served over HTTPS.");
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
