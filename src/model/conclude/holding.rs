//! Who may hold a name, and what a look of a claim that does not hold it comes to.
//!
//! Nothing here is said to a claim before its own ownership record was seen: until then a held name looks like a free one. From
//! then on both sides are told, each by hostname only. How to get it wrong: let silence run the clock, or word anything by a
//! tenant's name.

use serde_json::json;

use super::Draw;
use super::remove::revoked;
use super::successor::{self, leave_clock, quarantine_or_held};
use crate::model::claim::ClaimStep;
use crate::model::domain::{HoldingState, Role, RoutingMode, Situation};
use crate::model::evidence::{Check, Evidence, Finding, Verdict};
use crate::model::id::{DomainId, OrderId};
use crate::model::moment::Moment;
use crate::model::notice::{NewNotice, NoticeKind};
use crate::model::order::Purpose;
use crate::model::outcome::{Outcome, Write};
use crate::model::plan;
use crate::model::reason::Reason;
use crate::model::succession::Succession;

/// Whether something was seen at all authorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Seen.
    Present,
    /// Positively not there.
    Absent,
    /// Could not be learnt.
    Unknown,
}

/// What was seen of whoever holds the name, or held it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Former {
    /// The holder's ownership value.
    pub value: Presence,
    /// Whether a visible CNAME passes through this tenant's own host.
    pub cname_at_own_host: bool,
}

/// What was known before this look.
#[derive(Clone, Debug)]
pub(super) struct Before {
    /// Why this claim was not the holder.
    pub holding: Option<Evidence>,
    /// Whether its ownership record was seen.
    pub proven: bool,
}

impl Before {
    /// Of a situation that the look was not folded into yet.
    pub(super) fn of(s: &Situation) -> Before {
        Before { holding: s.domain.evidence_of(Check::Holding).cloned(), proven: is_proven(s) }
    }

    fn was(&self, reason: Reason) -> bool {
        self.holding.as_ref().is_some_and(|e| e.finding.reason == reason)
    }
}

/// Whether this claim may become holder.
enum Hold {
    Free,
    EndsQuarantine,
    /// The other's record is there.
    Stands,
    /// Whether it is could not be learnt.
    Unclear,
    /// Another claim is ahead of this one.
    Behind,
    /// The other's record is gone: this clock says for how long.
    Runs(Succession),
}

fn may_hold(s: &Situation, former: Former, now: Moment) -> Hold {
    let Some(holding) = &s.holding else { return Hold::Free };
    if holding.domain_id.as_ref() == Some(&s.domain.id) || holding.state == HoldingState::Free {
        return Hold::Free;
    }
    let quarantined = holding.state == HoldingState::Quarantined;
    // The former tenant's own re-claim does not need its old value gone.
    if quarantined && holding.tenant_id.as_ref() == Some(&s.domain.tenant_id) {
        return Hold::EndsQuarantine;
    }
    match former.value {
        Presence::Present => Hold::Stands,
        Presence::Unknown => Hold::Unclear,
        Presence::Absent => {
            let own_cname = s.domain.routing_mode == RoutingMode::PerTenant && former.cname_at_own_host;
            let own = s.succession();
            if quarantined && own_cname {
                return Hold::EndsQuarantine;
            }
            if holding.successor.is_some() && own.is_none() {
                return Hold::Behind;
            }
            let clock = own.map_or_else(|| Succession::begin(&s.domain.id, now), |clock| clock.seen(now));
            if quarantined && clock.is_over() { Hold::EndsQuarantine } else { Hold::Runs(clock) }
        }
    }
}

/// Whether the ownership record was seen when last looked.
pub(super) fn is_proven(s: &Situation) -> bool {
    s.domain.evidence_of(Check::Ownership).is_some_and(|e| e.finding.verdict() == Verdict::Pass)
}

/// A look of a claim that awaits its records.
pub(super) fn awaiting(s: &mut Situation, former: Former, before: &Before, now: Moment, draw: Draw<'_>) -> Outcome {
    if !is_proven(s) {
        return unproven(s, before, now);
    }
    let hold = may_hold(s, former, now);
    let all_pass = s.domain.all_pass();
    let out = match hold {
        Hold::Free | Hold::EndsQuarantine if all_pass => {
            // Whoever let it go may still keep a certificate for the case that it comes back.
            let former = s.holding.as_ref().and_then(|h| h.domain_id.clone()).filter(|id| *id != s.domain.id);
            prove(s, former, before, now, draw)
        }
        Hold::Free | Hold::EndsQuarantine => rest(s),
        Hold::Runs(clock) => {
            leave_clock(s, clock.clone());
            if clock.is_over() && all_pass {
                successor::queue(s, clock, before, now, draw)
            } else {
                runs(s, clock, before, now)
            }
        }
        Hold::Stands => stands(s, before, now),
        Hold::Behind => {
            let (reason, _) = quarantine_or_held(s);
            refuse(s, reason, "another claim that has proved the name, too, is ahead", before, now)
        }
        Hold::Unclear => unclear(s, before, now),
    };
    tell_above(s, before, out)
}

/// Nothing to decide before the next look.
fn rest(s: &Situation) -> Outcome {
    Outcome::of(s, plan::next_look(s).min(s.attempt.deadline))
}

/// The claim's own record is not there: a clock that ran on it ends, or stands while nobody can tell.
fn unproven(s: &mut Situation, before: &Before, now: Moment) -> Outcome {
    let Some(clock) = s.succession().cloned() else { return rest(s) };
    if s.domain.proof_gone() {
        let out = rest(s);
        return successor::end(s, out, "the claim's own ownership record is gone; the name does not move");
    }
    pause(s, clock, before, now)
}

fn unclear(s: &mut Situation, before: &Before, now: Moment) -> Outcome {
    if let Some(clock) = s.succession().cloned() {
        return pause(s, clock, before, now);
    }
    let (reason, there) = quarantine_or_held(s);
    refuse(s, reason, there, before, now)
}

fn pause(s: &mut Situation, clock: Succession, before: &Before, now: Moment) -> Outcome {
    let clock = clock.paused();
    leave_clock(s, clock.clone());
    runs(s, clock, before, now)
}

/// The holder's record is there, or there again.
fn stands(s: &mut Situation, before: &Before, now: Moment) -> Outcome {
    let ran = s.succession().is_some() || before.was(Reason::HandoverRuns);
    let (reason, there) = quarantine_or_held(s);
    if !ran {
        return refuse(s, reason, there, before, now);
    }
    // The event that follows says so; no second one for the reason.
    let again = Before { holding: Some(holding_evidence(s, reason, there, now)), proven: before.proven };
    let out = refuse(s, reason, there, &again, now);
    successor::end(s, out, "the holder's ownership record is there again; the 72 hours begin anew once it is gone")
}

/// The clock runs or stands.
fn runs(s: &Situation, clock: Succession, before: &Before, now: Moment) -> Outcome {
    let (reason, _) = quarantine_or_held(s);
    let held = reason == Reason::HeldElsewhere;
    let reason = if held { Reason::HandoverRuns } else { reason };
    let said = match clock.ends_at() {
        None => "whether the other record is gone could not be seen just now; the 72 hours stand still".to_owned(),
        Some(_) if clock.is_over() => {
            "the other record has been gone for 72 hours; the name moves once every check passes".to_owned()
        }
        Some(at) => format!("the other record is gone; the name can move on {}", at.in_words()),
    };
    let begins = clock.counted.is_zero() && clock.seen_at == Some(clock.since) && clock.since == now;
    let holder = s.holding.as_ref().and_then(|h| h.domain_id.clone());
    let mut out = refuse(s, reason, &said, before, now);
    // Somebody else may have got ahead, or the holder changed: then this claim waits like any other.
    let plain = if held { Reason::HeldElsewhere } else { Reason::Quarantined };
    out.otherwise = Some(Box::new(refuse(s, plain, "another claim is ahead", before, now)));
    if let Some(holder) = holder {
        if begins && held {
            let notice = successor::notice(s, NoticeKind::HandoverBegan, &clock);
            out = leave(out, notice);
        }
        out = out.write(Write::Succeed { holder, clock });
    }
    out
}

/// This claim waits for whoever has the name: said in its evidence, and told once.
fn refuse(s: &Situation, reason: Reason, observed: &str, before: &Before, now: Moment) -> Outcome {
    let mut out = rest(s);
    out.domain.evidence.push(holding_evidence(s, reason, observed, now));
    if before.was(reason) {
        return out;
    }
    let out = out.note(reason.code(), reason.sentence());
    leave(out, proved_elsewhere(s))
}

/// The holder of the very name hears once that somebody else has proved it.
fn proved_elsewhere(s: &Situation) -> NewNotice {
    NewNotice {
        to_holder_of: s.domain.hostname.clone(),
        kind: NoticeKind::ProvedElsewhere,
        about: s.domain.id.to_string(),
        hostname: s.domain.hostname.clone(),
    }
}

/// Holders of names above hear once that this one has been proved.
fn tell_above(s: &Situation, before: &Before, mut out: Outcome) -> Outcome {
    if before.proven {
        return out;
    }
    for above in s.domain.hostname.above() {
        let notice = NewNotice {
            to_holder_of: above,
            kind: NoticeKind::ClaimBeneath,
            about: s.domain.id.to_string(),
            hostname: s.domain.hostname.clone(),
        };
        if let Some(otherwise) = out.otherwise.take() {
            out.otherwise = Some(Box::new(leave(*otherwise, notice.clone())));
        }
        out = leave(out, notice);
    }
    out
}

/// Leaves a notice; all of an outcome's are one write.
pub(super) fn leave(mut out: Outcome, notice: NewNotice) -> Outcome {
    for write in &mut out.writes {
        if let Write::Leave(notices) = write {
            notices.push(notice);
            return out;
        }
    }
    out.write(Write::Leave(vec![notice]))
}

pub(super) fn holding_evidence(s: &Situation, reason: Reason, observed: &str, now: Moment) -> Evidence {
    let expected = match s.role() {
        Role::Holder => format!("{} is yours as long as your ownership record stays", s.domain.hostname),
        Role::Successor | Role::Neither => format!("{} is nobody else's", s.domain.hostname),
    };
    let finding = Finding {
        expected,
        observed: vec![observed.to_owned()],
        advice: reason.sentence().to_owned(),
        ..Finding::bare(Check::Holding, reason)
    };
    Evidence { finding, looked_at: now }
}

const FIRST: &str = "another claim became holder first";

fn prove(s: &Situation, ends_quarantine_of: Option<DomainId>, before: &Before, now: Moment, draw: Draw<'_>) -> Outcome {
    let mut out = proven(s, now, draw);
    if let Some(former) = &ends_quarantine_of {
        out = revoked(s, out, former);
    }
    out = out
        .write(Write::TakeHolding { ends_quarantine_of })
        .note("proven", "ownership, routing and permission passed; this claim now holds the name");
    out.otherwise = Some(Box::new(refuse(s, Reason::HeldElsewhere, FIRST, before, now)));
    out
}

/// The claim is proven and waits for its first certificate.
pub(super) fn proven(s: &Situation, now: Moment, draw: Draw<'_>) -> Outcome {
    // Due at once: the order becomes eligible with the preflight.
    let mut out = Outcome::of(s, now);
    // `awaiting_dns` always allows it; anything else would be a fault of `look`.
    if let Ok(claim) = s.domain.claim.after(ClaimStep::Prove) {
        out.domain.claim = claim;
        out.domain.claim_since = now;
    }
    out.write(Write::ProveAttempt).write(Write::OpenOrder {
        id: OrderId::mint(now, draw()),
        purpose: Purpose::First,
        lane: s.domain.lane,
        issuer_id: s.issuer.id.clone(),
        not_before: Moment::NEVER,
    })
}

/// A look of the holder: its record back ends what another claim began; until then it is told that the name may go.
pub(super) fn holders_look(s: &mut Situation, now: Moment, out: Outcome) -> Outcome {
    let Some(clock) = s.holding.as_ref().filter(|_| s.role() == Role::Holder).and_then(|h| h.successor.clone()) else {
        return out;
    };
    let mut out = out;
    if is_proven(s) {
        return out.write(Write::EndSuccession { of: clock.domain_id }).tell(
            NoticeKind::HandoverEnded.as_str(),
            "nameplate",
            format!("your ownership record is there; {} stays here", s.domain.hostname),
            json!({ "hostname": s.domain.hostname }),
        );
    }
    out.domain.evidence.extend(contested(s, now));
    out
}

/// What the holder's page says while another claim's clock runs.
fn contested(s: &Situation, now: Moment) -> Option<Evidence> {
    let clock = s.holding.as_ref().filter(|_| s.role() == Role::Holder)?.successor.as_ref()?;
    let when = match clock.ends_at() {
        Some(at) => format!("the name can move on {}", at.in_words()),
        None => "the name can move once the record has been seen gone for 72 hours".to_owned(),
    };
    let said = format!("since {} your record is gone and somebody else's is there; {when}", clock.since.in_words());
    let mut evidence = holding_evidence(s, Reason::NameContested, &said, now);
    evidence.finding.advice =
        format!("To keep the name, publish your ownership record again; its value is {}.", s.attempt.value);
    Some(evidence)
}

/// News from somebody else's step goes into the history.
pub(super) fn hear(s: &Situation, now: Moment) -> Outcome {
    let mut out = Outcome::of(s, now);
    let Some(notice) = &s.notice else { return out };
    if s.role() == Role::Holder {
        out.domain.evidence.retain(|e| e.finding.check != Check::Holding);
        out.domain.evidence.extend(contested(s, now));
    }
    out.events.push(notice.event());
    out.write(Write::Heard(notice.id.clone()))
}
