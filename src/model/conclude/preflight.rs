//! What a preflight means for the order that waits for it.

use serde_json::json;

use super::change;
use super::look::hold_back;
use crate::model::domain::{GrantState, Situation};
use crate::model::evidence::{Check, Evidence, Finding, Verdict};
use crate::model::moment::Moment;
use crate::model::order::{Order, OrderState};
use crate::model::outcome::{Outcome, Write};
use crate::model::plan;

/// A preflight was made. What passes makes a waiting order eligible, or lets a granted one go on; what does not gives a grant
/// back, so that a name the CA would refuse holds no slot.
pub fn preflight(s: &mut Situation, order: &Order, finding: &Finding, now: Moment) -> Outcome {
    let before = s.domain.evidence_of(Check::Preflight).map(|e| e.finding.reason);
    s.domain.evidence.retain(|e| e.finding.check != Check::Preflight);
    s.domain.evidence.push(Evidence { finding: finding.clone(), looked_at: now });
    let passes = finding.verdict() == Verdict::Pass;
    let mut out = match order.state {
        OrderState::Waiting if passes && plan::may_order(s) && order.not_before == Moment::NEVER => eligible(s, order, now),
        OrderState::Waiting if !passes && order.not_before != Moment::NEVER => hold_back(s, order, now),
        OrderState::Granted if passes => Outcome::of(s, now),
        OrderState::Granted => {
            let mut out = hold_back(s, order, now);
            if let Some(grant) = s.grant.as_ref().filter(|g| g.state == GrantState::Open) {
                out = out.write(Write::GrantReturned(grant.id.clone(), GrantState::Open));
            }
            out
        }
        _ => Outcome::of(s, plan::next_look(s)),
    };
    if !passes {
        // Our own outage is over in a minute rather than in a day.
        out.domain.due_at = plan::next_look(s).min(plan::preflight_at(s));
    }
    if before == Some(finding.reason) || passes && before.is_none() {
        return out;
    }
    let (kind, cause) = match finding.verdict() {
        Verdict::Pass => ("preflight_passed", "a request through the public name reached an edge of ours"),
        Verdict::Unknown => ("preflight_unknown", "our own name did not answer either, so nothing is said of the tenant's"),
        Verdict::Wait | Verdict::Fail => ("preflight_failed", "a request through the public name did not reach us"),
    };
    let detail = json!({"code": finding.reason.code(), "observed": finding.observed});
    let told = Outcome::of(s, now).tell(kind, "nameplate", cause, detail);
    out.events.splice(0..0, told.events);
    out
}

/// Everything passes: the order waits for its turn.
pub(super) fn eligible(s: &Situation, order: &Order, now: Moment) -> Outcome {
    if s.takes_no_budget(order, now) {
        return Outcome::of(s, now);
    }
    let out = Outcome::of(s, plan::next_look(s))
        .order(order, OrderState::Waiting, now, |o| o.not_before = change::eligible_at(s, now));
    // What waits from its first moment on is no news.
    if now.since(order.state_since) < plan::FRESH && s.domain.failures == 0 {
        return out;
    }
    out.note("order_eligible", "every check passes again; the order waits for its turn")
}
