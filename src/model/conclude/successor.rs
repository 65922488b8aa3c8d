//! A claim that is to follow the holder: proven, the holder's record gone for long enough, its own certificate under way. The
//! holder serves the name until holder, route and certificate change in one moment.

use super::Draw;
use super::holding::{Before, Former, Presence, holding_evidence, leave, proven};
use super::remove::{end_work, revoked};
use crate::model::claim::{Claim, ClaimStep};
use crate::model::domain::{HoldingState, Role, Situation};
use crate::model::evidence::Check;
use crate::model::moment::Moment;
use crate::model::notice::{NewNotice, NoticeKind};
use crate::model::outcome::{Outcome, Write};
use crate::model::plan;
use crate::model::reason::Reason;
use crate::model::succession::Succession;

const GONE: &str = "the former holder's record has been gone for 72 hours";
const BACK: &str = "the holder's ownership record is there again; the 72 hours begin anew once it is gone";
const OVERTAKEN: &str = "the name is not about to come to this claim any more";

/// Why a claim without a clock waits, and what is said of the other's record: a name at rest, or one that is held.
pub(super) fn quarantine_or_held(s: &Situation) -> (Reason, &'static str) {
    match s.holding.as_ref().map(|h| h.state) {
        Some(HoldingState::Quarantined) => {
            (Reason::Quarantined, "the name was let go by another tenant, whose record may still be there")
        }
        _ => (Reason::HeldElsewhere, "another claim holds the name"),
    }
}

/// Folds the clock into the situation, so that the next look is planned by it.
pub(super) fn leave_clock(s: &mut Situation, clock: Succession) {
    if let Some(holding) = &mut s.holding {
        holding.successor = Some(clock);
    }
}

/// News of this claim's clock for the holder.
pub(super) fn notice(s: &Situation, kind: NoticeKind, clock: &Succession) -> NewNotice {
    NewNotice {
        to_holder_of: s.domain.hostname.clone(),
        kind,
        about: format!("{} {}", clock.domain_id, clock.since.micros()),
        hostname: s.domain.hostname.clone(),
    }
}

/// Ends this claim's succession with an outcome, and tells both sides.
pub(super) fn end(s: &Situation, out: Outcome, why: &str) -> Outcome {
    withdraw(s, out).note(NoticeKind::HandoverEnded.as_str(), why)
}

/// Ends it, and tells the holder.
pub(super) fn withdraw(s: &Situation, out: Outcome) -> Outcome {
    let Some(clock) = s.succession() else { return out };
    let told = notice(s, NoticeKind::HandoverEnded, clock);
    leave(out.write(Write::EndSuccession { of: s.domain.id.clone() }), told)
}

/// The clock is over and every check passes: the claim waits for its certificate beside the holder.
pub(super) fn queue(s: &Situation, clock: Succession, before: &Before, now: Moment, draw: Draw<'_>) -> Outcome {
    let Some(holder) = s.holding.as_ref().and_then(|h| h.domain_id.clone()) else { return Outcome::of(s, now) };
    let mut out = proven(s, now, draw).write(Write::Succeed { holder, clock }).note(
        "succession_proven",
        "the holder's record has been gone for 72 hours; a certificate is ordered before the name moves",
    );
    out.domain.evidence.push(holding_evidence(s, Reason::HandoverDue, GONE, now));
    let mut otherwise = Outcome::of(s, plan::next_look(s));
    otherwise.domain.evidence.extend(before.holding.clone());
    out.otherwise = Some(Box::new(otherwise));
    out
}

/// What a look of a queued successor says of the holder: the outcome where the claim has to step back.
pub(super) fn look_back(s: &mut Situation, former: Former, now: Moment) -> Option<Outcome> {
    if s.role() != Role::Successor || s.domain.claim != Claim::Queued {
        return None;
    }
    let said = match former.value {
        Presence::Present => {
            let (reason, there) = quarantine_or_held(s);
            s.domain.evidence.push(holding_evidence(s, reason, there, now));
            return Some(end(s, step_back(s, now), BACK));
        }
        Presence::Unknown => (
            Reason::HandoverRuns,
            "whether the other record is still gone could not be seen just now; nothing moves until it can",
        ),
        Presence::Absent => (Reason::HandoverDue, GONE),
    };
    s.domain.evidence.push(holding_evidence(s, said.0, said.1, now));
    None
}

/// A queued claim awaits its records again: open work ends.
fn step_back(s: &Situation, now: Moment) -> Outcome {
    let mut out = Outcome::of(s, plan::next_look(s));
    if let Ok(claim) = s.domain.claim.after(ClaimStep::LoseProof) {
        out.domain.claim = claim;
        out.domain.claim_since = now;
    }
    out.domain.evidence.retain(|e| e.finding.check != Check::Preflight);
    end_work(s, out, now)
}

/// The name is neither held nor to be held by this queued claim any more.
pub(super) fn overtaken(s: &Situation, now: Moment) -> Outcome {
    let mut out = step_back(s, now).note(NoticeKind::HandoverEnded.as_str(), OVERTAKEN);
    // What stands in its way is looked at anew.
    out.domain.due_at = now;
    out.domain.looked_at = None;
    out
}

/// The certificate is there: it takes the name from its holder together with holding and route.
pub(super) fn take_over(s: &Situation, out: Outcome, now: Moment) -> Outcome {
    let Some(from) = s.holding.as_ref().and_then(|h| h.domain_id.clone()).filter(|_| s.role() == Role::Successor) else {
        return out;
    };
    let mut out = revoked(s, out, &from).write(Write::TakeOver { from });
    out.domain.evidence.retain(|e| e.finding.reason != Reason::HandoverDue);
    out.otherwise = Some(Box::new(overtaken(s, now)));
    out
}
