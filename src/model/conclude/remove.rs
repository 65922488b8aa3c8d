//! A tenant (or an operator) removes a domain.

use serde_json::json;

use super::successor;
use crate::model::claim::{Claim, ClaimStep, RefusedStep};
use crate::model::domain::{GrantState, Role, Situation};
use crate::model::moment::Moment;
use crate::model::order::OrderState;
use crate::model::outcome::{Outcome, Write};
use crate::model::plan;

/// What removal leaves behind: before proof nothing remains; after it, route, challenge and open work are gone at once, the
/// name is in quarantine, and key and certificate stay for undo until the grace is over.
pub fn remove(s: &Situation, actor: &str, now: Moment) -> Result<Outcome, RefusedStep> {
    let because = ["the route is gone; the name rests until its DNS has let go of us", "the claim was removed before proof"];
    let_go(s, actor, because, now)
}

/// The same, because the whole tenant has left.
pub(super) fn offboard(s: &Situation, now: Moment) -> Result<Outcome, RefusedStep> {
    let because =
        ["the tenant has left; the name rests until its DNS has let go of us", "the tenant left before the name was proven"];
    let_go(s, "nameplate", because, now)
}

fn let_go(s: &Situation, actor: &str, [rests, ends]: [&str; 2], now: Moment) -> Result<Outcome, RefusedStep> {
    let from = s.domain.claim;
    let to = from.after(ClaimStep::Remove)?;
    let mut out = Outcome::of(s, if to == Claim::Releasing { now + plan::RELEASE_GRACE } else { Moment::NEVER });
    out.domain.claim = to;
    out.domain.claim_since = now;
    out.domain.active_since = None;
    out = end_work(s, out, now).write(Write::Unlink);
    if s.role() != Role::Holder {
        out = successor::withdraw(s, out);
    }
    let detail = json!({"from": from.as_str(), "to": to.as_str()});
    Ok(if to == Claim::Releasing {
        if from == Claim::Live {
            out = out.write(Write::RouteGone);
        }
        out.write(Write::Quarantine).tell("removed", actor, rests, detail)
    } else {
        if s.order.is_none() {
            out = out.write(Write::DestroyKeys);
        }
        out.write(Write::CloseAttempt).tell("withdrawn", actor, ends, detail)
    })
}

/// Ends what is under way at the CA: the order fails, its token is answered no more, a grant in hand goes back.
pub(super) fn end_work(s: &Situation, out: Outcome, now: Moment) -> Outcome {
    let mut out = out;
    if let Some(order) = s.order.as_ref().filter(|o| o.state.is_open()) {
        out = out.order(order, OrderState::Failed, now, |_| {});
        if let Some(id) = &order.challenge_id {
            out = out.write(Write::RemoveChallenge(id.clone()));
        }
    }
    match s.grant.as_ref().filter(|g| g.state == GrantState::Open) {
        Some(grant) => out.write(Write::GrantReturned(grant.id.clone(), GrantState::Open)),
        None => out,
    }
}
