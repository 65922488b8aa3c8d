//! What a look at the records means for the claim.

use serde_json::json;

use super::holding::{Before, Former, awaiting, holders_look};
use super::remove::end_work;
use super::successor;
use super::{Draw, change};
use crate::model::claim::{Claim, ClaimStep};
use crate::model::domain::{GrantState, Role, Situation};
use crate::model::evidence::{Check, Evidence, Finding, Verdict};
use crate::model::moment::Moment;
use crate::model::order::{Order, OrderState};
use crate::model::outcome::{Outcome, Write};
use crate::model::plan;

/// One look.
#[derive(Clone, Debug)]
pub struct Looked {
    /// One finding a check.
    pub findings: Vec<Finding>,
    /// What was seen of the former holder.
    pub former: Former,
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
    let before = Before::of(s);
    let changed = fold(s, looked, now);
    let mut out = match s.domain.claim {
        Claim::AwaitingDns => awaiting(s, looked.former, &before, now, draw),
        Claim::Queued => match successor::look_back(s, looked.former, now) {
            Some(out) => out,
            None => queued(s, now),
        },
        // A name that is live and not yet active goes on with its rollout; else nothing is due before somebody asks.
        Claim::Live if s.domain.active_since.is_none() => Outcome::of(s, now),
        _ => Outcome::of(s, Moment::NEVER),
    };
    if s.domain.claim == Claim::Live {
        out = holders_look(s, now, out);
    }
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

fn queued(s: &Situation, now: Moment) -> Outcome {
    let next = plan::next_look(s);
    if s.domain.proof_gone() {
        return lose_proof(s, now);
    }
    let Some(order) = &s.order else { return Outcome::of(s, now) };
    let pass = plan::may_order(s);
    match order.state {
        OrderState::Waiting if pass && order.not_before == Moment::NEVER => Outcome::of(s, next)
            .order(order, OrderState::Waiting, now, |o| o.not_before = change::eligible_at(s, now))
            .note("order_eligible", "every check passes again; the order waits for its turn"),
        OrderState::Waiting if !pass && order.not_before != Moment::NEVER => hold_back(s, order, now),
        // Only a claim that is to follow another looks while the CA signs.
        OrderState::Granted | OrderState::Finalizing if pass => Outcome::of(s, now),
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
    out = end_work(s, out, now);
    if s.role() == Role::Successor {
        out.domain.evidence.retain(|e| e.finding.check != Check::Holding);
        out = successor::withdraw(s, out);
    } else {
        out = out.write(Write::FreeHolding);
    }
    out.note("proof_lost", "the ownership record is gone before the first certificate; the name is held no longer")
}
