//! A tenant (or an operator) removes a domain.

use serde_json::json;

use super::successor;
use crate::model::claim::{Claim, ClaimStep, RefusedStep};
use crate::model::domain::{GrantState, Role, Situation};
use crate::model::id::DomainId;
use crate::model::letting_go::Revoke;
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

/// The same, because nothing has tied the name to its tenant for the whole grace.
pub(super) fn untied(s: &Situation, now: Moment) -> Result<Outcome, RefusedStep> {
    let because = "nothing has tied the name to its tenant for the whole grace; it is served no longer and rests";
    let_go(s, "nameplate", [because, because], now)
}

/// The same, because edges were told so after the copy was made that the database was restored from.
pub fn remembered_gone(s: &Situation, now: Moment) -> Result<Outcome, RefusedStep> {
    let because =
        "edges were told after the copy was made that the name is not served any more; it was let go of, and is again";
    let_go(s, "nameplate", [because, because], now)
}

/// The same, because edges were told so after the copy was made that the name is served for another tenant. They are not told of this:
/// they would take it for news, and serve the name for nobody.
pub fn remembered_elsewhere(s: &Situation, now: Moment) -> Result<Outcome, RefusedStep> {
    let because = "edges were told after the copy was made that the name is served for somebody else; it was handed over, and is \
                   again";
    let mut out = let_go(s, "nameplate", [because, because], now)?;
    out.writes.retain(|write| *write != Write::RouteGone);
    Ok(out)
}

/// The claim is over: nothing of it can come back.
pub(super) fn finished(s: &Situation, now: Moment) -> Outcome {
    let mut out = Outcome::of(s, Moment::NEVER);
    if let Ok(claim) = s.domain.claim.after(ClaimStep::Finish) {
        out.domain.claim = claim;
        out.domain.claim_since = now;
    }
    out.domain.released_at = Some(now);
    out.domain.certificate_id = None;
    if s.letting_go.revoke == Revoke::Always {
        out = out.write(Write::Revoke { of: s.domain.id.clone() });
    }
    out.write(Write::DestroyKeys).write(Write::CloseAttempt).write(Write::Unlink)
}

/// The name has another holder: whoever held it may have a certificate that is still good.
pub(super) fn revoked(s: &Situation, out: Outcome, former: &DomainId) -> Outcome {
    let same_tenant = s.holding.as_ref().is_some_and(|h| h.tenant_id.as_ref() == Some(&s.domain.tenant_id));
    match s.letting_go.revoke {
        Revoke::OnHandover | Revoke::Always if !same_tenant => out.write(Write::Revoke { of: former.clone() }),
        _ => out,
    }
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
    // A restored database may not know that edges serve the name for this tenant.
    if from == Claim::Live || s.remembered_until.is_some() {
        out = out.write(Write::RouteGone);
    }
    Ok(if to == Claim::Releasing {
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
