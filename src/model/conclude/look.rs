//! What a look at the records means for the claim.

use std::time::Duration;

use serde_json::json;

use super::{Draw, change};
use crate::model::claim::{Claim, ClaimStep};
use crate::model::domain::{GrantState, HoldingState, RoutingMode, Situation};
use crate::model::evidence::{Check, Evidence, Finding, Verdict};
use crate::model::id::{DomainId, OrderId};
use crate::model::moment::Moment;
use crate::model::order::{Order, OrderState, Purpose};
use crate::model::outcome::{Outcome, Write};
use crate::model::plan;
use crate::model::reason::Reason;

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

/// What was seen of whoever held the name before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Former {
    /// The former holder's ownership value.
    pub value: Presence,
    /// Whether a visible CNAME passes through this tenant's own host.
    pub cname_at_own_host: bool,
}

/// One look.
#[derive(Clone, Debug)]
pub struct Looked {
    /// One finding a check.
    pub findings: Vec<Finding>,
    /// What was seen of the former holder.
    pub former: Former,
}

/// The former holder's record must be gone this long where no CNAME shows the new tenant's host.
const QUARANTINE_WITHOUT_CNAME: Duration = Duration::from_secs(72 * 3600);

/// What the evidence says while a name rests and the former's record is gone: from then on the 72 h count.
const FORMER_GONE: &str = "the former tenant's record is gone; the name rests for 72 hours from when that was first seen";
const FORMER_THERE: &str = "the name was let go by another tenant, whose record may still be there";

/// Whether this claim may become holder.
enum Hold {
    Free,
    EndsQuarantine,
    Elsewhere,
    /// Not yet; since when the former's record is seen gone, if it is.
    InQuarantine(Option<Moment>),
}

/// `gone_since`: since when looks of this claim saw the former's record gone.
fn may_hold(s: &Situation, former: Former, gone_since: Option<Moment>, now: Moment) -> Hold {
    let Some(holding) = &s.holding else { return Hold::Free };
    if holding.domain_id.as_ref() == Some(&s.domain.id) || holding.state == HoldingState::Free {
        return Hold::Free;
    }
    if holding.state == HoldingState::Held {
        return Hold::Elsewhere;
    }
    // The former tenant's own re-claim does not need its old value gone.
    if holding.tenant_id.as_ref() == Some(&s.domain.tenant_id) {
        return Hold::EndsQuarantine;
    }
    let own_cname = s.domain.routing_mode == RoutingMode::PerTenant && former.cname_at_own_host;
    if former.value != Presence::Absent {
        return Hold::InQuarantine(None);
    }
    let since = gone_since.unwrap_or(now);
    if own_cname || now.since(since) >= QUARANTINE_WITHOUT_CNAME {
        Hold::EndsQuarantine
    } else {
        Hold::InQuarantine(Some(since))
    }
}

/// Folds a look into the situation's evidence; `true` when a reason differs from before.
fn fold(s: &mut Situation, looked: &Looked, now: Moment) -> bool {
    let evidence: Vec<Evidence> = looked.findings.iter().map(|f| Evidence { finding: f.clone(), looked_at: now }).collect();
    let codes = |list: &[Evidence]| {
        let mut all: Vec<_> = list.iter().filter(|e| e.finding.check != Check::Holding).map(|e| e.finding.reason).collect();
        all.sort();
        all
    };
    let changed = codes(&s.domain.evidence) != codes(&evidence);
    s.domain.evidence = evidence;
    s.domain.looked_at = Some(now);
    changed
}

/// What a look means. The situation is folded too, so that the caller can plan on without a trip to the store.
pub fn look(s: &mut Situation, looked: &Looked, now: Moment, draw: Draw<'_>) -> Outcome {
    let asked_by = s.domain.check_is_owed().then(|| s.domain.check_asked_by.clone()).flatten();
    let refused_before = s.domain.evidence_of(Check::Holding).cloned();
    let changed = fold(s, looked, now);
    let mut out = match s.domain.claim {
        Claim::AwaitingDns => awaiting(s, looked.former, refused_before.as_ref(), now, draw),
        Claim::Queued => queued(s, now),
        // A name that is live and not yet active goes on with its rollout; else nothing is due before somebody asks.
        Claim::Live if s.domain.active_since.is_none() => Outcome::of(s, now),
        _ => Outcome::of(s, Moment::NEVER),
    };
    if let Some(actor) = asked_by {
        let told = Outcome::of(s, now).tell("check_asked", &actor, "a look was asked for and made", json!({}));
        out.events.splice(0..0, told.events);
    }
    if changed {
        let findings: Vec<_> = s
            .domain
            .evidence
            .iter()
            .map(|e| json!({"check": e.finding.check, "code": e.finding.reason.code(), "observed": e.finding.observed}))
            .collect();
        let told = Outcome::of(s, now).tell(
            "evidence_changed",
            "nameplate",
            "a look at the records saw something new",
            json!({ "findings": findings }),
        );
        out.events.splice(0..0, told.events);
    }
    out
}

/// `before`: why an earlier look could not make this claim the holder.
fn awaiting(s: &Situation, former: Former, before: Option<&Evidence>, now: Moment, draw: Draw<'_>) -> Outcome {
    let rest = Outcome::of(s, plan::next_look(s).min(s.attempt.deadline));
    if !s.domain.all_pass() {
        return rest;
    }
    let refused = |reason: Reason, observed: &str, since: Moment| {
        let first = before.is_none_or(|e| e.finding.reason != reason);
        let mut rest = rest.clone();
        rest.domain.evidence.push(Evidence { finding: holding_finding(s, reason, observed), looked_at: since });
        if first { rest.note(reason.code(), reason.sentence()) } else { rest }
    };
    let gone_since = before
        .filter(|e| e.finding.reason == Reason::Quarantined && e.finding.observed == [FORMER_GONE])
        .map(|e| e.looked_at);
    match may_hold(s, former, gone_since, now) {
        Hold::Free => prove(s, None, now, draw, refused(Reason::HeldElsewhere, FIRST, now)),
        Hold::EndsQuarantine => {
            let former = s.holding.as_ref().and_then(|h| h.domain_id.clone());
            prove(s, former, now, draw, refused(Reason::HeldElsewhere, FIRST, now))
        }
        Hold::Elsewhere => refused(Reason::HeldElsewhere, "another claim holds the name", now),
        Hold::InQuarantine(None) => refused(Reason::Quarantined, FORMER_THERE, now),
        Hold::InQuarantine(Some(since)) => refused(Reason::Quarantined, FORMER_GONE, since),
    }
}

fn holding_finding(s: &Situation, reason: Reason, observed: &str) -> Finding {
    Finding {
        check: Check::Holding,
        reason,
        expected: format!("{} is nobody else's", s.domain.hostname),
        observed: vec![observed.to_owned()],
        seen_by: Vec::new(),
        advice: reason.sentence().to_owned(),
        found_at: None,
        found_via: None,
        record_to_publish: Vec::new(),
        dns_host: None,
    }
}

const FIRST: &str = "another claim became holder first";

fn prove(s: &Situation, ends_quarantine_of: Option<DomainId>, now: Moment, draw: Draw<'_>, otherwise: Outcome) -> Outcome {
    let mut out = Outcome::of(s, plan::next_look(s));
    // `awaiting_dns` always allows it; anything else would be a fault of `look`.
    if let Ok(claim) = s.domain.claim.after(ClaimStep::Prove) {
        out.domain.claim = claim;
        out.domain.claim_since = now;
    }
    let mut out = out
        .write(Write::TakeHolding { ends_quarantine_of })
        .write(Write::ProveAttempt)
        .write(Write::OpenOrder {
            id: OrderId::mint(now, draw()),
            purpose: Purpose::First,
            lane: s.domain.lane,
            issuer_id: s.issuer.id.clone(),
            not_before: now,
        })
        .note("proven", "ownership, routing and permission passed; this claim now holds the name");
    out.otherwise = Some(Box::new(otherwise));
    out
}

fn queued(s: &Situation, now: Moment) -> Outcome {
    let next = plan::next_look(s);
    if s.domain.proof_gone() {
        return lose_proof(s, now);
    }
    let Some(order) = &s.order else { return Outcome::of(s, now) };
    let pass = s.domain.all_pass();
    match order.state {
        OrderState::Waiting if pass && order.not_before == Moment::NEVER => Outcome::of(s, next)
            .order(order, OrderState::Waiting, now, |o| o.not_before = change::eligible_at(s, now))
            .note("order_eligible", "every check passes again; the order waits for its turn"),
        OrderState::Waiting if !pass && order.not_before != Moment::NEVER => hold_back(s, order, now),
        OrderState::Granted if pass => Outcome::of(s, now),
        OrderState::Granted => {
            let mut out = hold_back(s, order, now);
            if let Some(grant) = s.grant.as_ref().filter(|g| g.state == GrantState::Open) {
                out = out.write(Write::GrantReturned(grant.id.clone(), GrantState::Open));
            }
            out
        }
        _ => Outcome::of(s, next),
    }
}

fn hold_back(s: &Situation, order: &Order, now: Moment) -> Outcome {
    let failing: Vec<_> =
        s.domain.evidence.iter().filter(|e| e.finding.verdict() != Verdict::Pass).map(|e| e.finding.reason.code()).collect();
    Outcome::of(s, plan::next_look(s)).order(order, OrderState::Waiting, now, |o| o.not_before = Moment::NEVER).tell(
        "order_held_back",
        "nameplate",
        "a check does not pass right now, so no order is spent on the name",
        json!({ "codes": failing }),
    )
}

fn lose_proof(s: &Situation, now: Moment) -> Outcome {
    let mut out = Outcome::of(s, plan::next_look(s));
    if let Ok(claim) = s.domain.claim.after(ClaimStep::LoseProof) {
        out.domain.claim = claim;
        out.domain.claim_since = now;
    }
    out = out.write(Write::FreeHolding);
    if let Some(order) = &s.order {
        out = out.order(order, OrderState::Failed, now, |_| {});
    }
    if let Some(grant) = s.grant.as_ref().filter(|g| g.state == GrantState::Open) {
        out = out.write(Write::GrantReturned(grant.id.clone(), GrantState::Open));
    }
    out.note("proof_lost", "the ownership record is gone before the first certificate; the name is held no longer")
}
