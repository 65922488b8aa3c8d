//! Changes that need nothing from outside.

use serde_json::json;

use super::remove::{end_work, finished, offboard, untied};
use super::{Draw, ca, holding, successor};
use crate::model::claim::{Claim, ClaimStep};
use crate::model::domain::{GrantState, Situation};
use crate::model::evidence::Check;
use crate::model::id::{GrantId, OrderId};
use crate::model::ledger::GRANT_LIFE;
use crate::model::moment::Moment;
use crate::model::order::{Lane, OrderState, Purpose};
use crate::model::outcome::{Outcome, Write};
use crate::model::pace;
use crate::model::plan::{self, Change};
use crate::model::renewal::Claims;

const GRACE_OVER: &str = "the grace after removal is over; key and certificate are destroyed";
const WENT: &str = "the name has another holder; key and certificate are destroyed";

/// When an order of this domain may be placed at the earliest: after a failure, later.
pub(super) fn eligible_at(s: &Situation, now: Moment) -> Moment {
    if s.domain.failures == 0 { now } else { now + pace::retry_order_in(s.domain.failures).min(plan::urgency(s, now)) }
}

/// What a change leaves behind. `sealed_key` is the drawn and sealed key where the change is [`Change::PrepareKey`].
pub fn change(s: &Situation, change: Change, sealed_key: Option<Vec<u8>>, now: Moment, draw: Draw<'_>) -> Outcome {
    let again = Outcome::of(s, now);
    match (change, &s.order) {
        (Change::Expire, _) => {
            let mut out = again;
            if let Ok(claim) = s.domain.claim.after(ClaimStep::Expire) {
                out.domain.claim = claim;
                out.domain.claim_since = now;
            }
            out.domain.due_at = Moment::NEVER;
            if s.order.is_none() {
                out = out.write(Write::DestroyKeys);
            }
            successor::withdraw(s, out)
                .write(Write::CloseAttempt)
                .note("expired", "the attempt's deadline passed without proof; a new claim opens a new attempt")
        }
        // An open claim can always be let go of; another one rests as it is.
        (Change::Offboard, _) => offboard(s, now).unwrap_or_else(|_| Outcome::of(s, Moment::NEVER)),
        (Change::LetGo, _) => untied(s, now).unwrap_or(again),
        (Change::Hear, _) => holding::hear(s, now),
        (Change::StepBack, _) => successor::overtaken(s, now),
        // Whoever lost the name to another claim may have been about to renew its certificate.
        (Change::FinishRelease, Some(order)) if order.state.is_open() => end_work(s, again, now),
        (Change::FinishRelease, _) => {
            let went = s.holding.as_ref().is_some_and(|h| h.domain_id.as_ref() != Some(&s.domain.id));
            finished(s, now).note("released", if went { WENT } else { GRACE_OVER })
        }
        (Change::OpenOrder, _) if s.domain.claim == Claim::Live => open_renewal(s, now, draw),
        (Change::OpenOrder, _) => {
            let passes = plan::may_order(s) && s.domain.preflight_passed().is_some();
            let eligible = if passes { eligible_at(s, now) } else { Moment::NEVER };
            let id = OrderId::mint(now, draw());
            Outcome::of(s, plan::next_look(s).min(plan::preflight_at(s)))
                .write(Write::OpenOrder {
                    id: id.clone(),
                    purpose: Purpose::First,
                    lane: s.domain.lane,
                    issuer_id: s.issuer.id.clone(),
                    not_before: eligible,
                })
                .tell(
                    "order_opened",
                    "nameplate",
                    "an order waits for its turn",
                    json!({"order": id, "not_before": (eligible != Moment::NEVER).then(|| eligible.rfc3339())}),
                )
        }
        (Change::TakeTurn, Some(order)) => {
            let expires_at = now + GRANT_LIFE;
            let grant = Write::TakeGrant { id: GrantId::mint(now, draw()), order_id: order.id.clone(), expires_at };
            again.order(order, OrderState::Granted, now, |o| o.not_before = now).write(grant)
        }
        (Change::Hurry, Some(order)) => again.write(Write::OrderLane(order.id.clone(), Lane::Renewal)),
        (Change::EndReissue, Some(order)) => {
            let mut out = end_work(s, again, now);
            out.domain.failures = 0;
            out.tell(
                "reissue_ended",
                "operator",
                "the replacement was given up, so the order that only waited ends; the certificate in use stays",
                json!({ "order": order.id }),
            )
        }
        (Change::ForgetFailures, _) => {
            let mut out = again;
            out.domain.failures = 0;
            out
        }
        (Change::PrepareKey, Some(order)) => match sealed_key {
            Some(sealed) => again
                .write(Write::OrderKey { id: order.id.clone(), sealed })
                .note("key_ready", "the key of the certificate is drawn and sealed"),
            None => again,
        },
        (Change::Requeue, Some(order)) => {
            let mut out = again.order(order, OrderState::Waiting, now, |_| {});
            if let Some(grant) = s.grant.as_ref().filter(|g| g.state == GrantState::Open) {
                out = out.write(Write::GrantReturned(grant.id.clone(), GrantState::Open));
            }
            out.domain.due_at = plan::next_look(s);
            out.note("grant_expired", "the grant was not used in time; the order waits for another")
        }
        (Change::LoseOrder, Some(order)) => {
            let mut out = ca::lost(s, order, "the answer to newOrder never came; at most this one grant is gone", now);
            // A turn that took nothing of the budget is not taken again like that: the CA may have counted it.
            out.domain.failures += i64::from(s.grant.as_ref().is_some_and(|g| g.free));
            out
        }
        (Change::GiveUpOrder, Some(order)) => ca::stuck(s, order, now),
        (
            Change::PrepareKey
            | Change::TakeTurn
            | Change::Requeue
            | Change::LoseOrder
            | Change::GiveUpOrder
            | Change::Hurry
            | Change::EndReissue,
            None,
        ) => again,
    }
}

/// The certificate in use is due to be followed. What was seen of the name may be months old: nothing is eligible before it was
/// looked at and asked anew.
fn open_renewal(s: &Situation, now: Moment, draw: Draw<'_>) -> Outcome {
    let mut out = Outcome::of(s, now);
    let Claims::Now(purpose) = s.renewal_claims(now) else { return out };
    out.domain.evidence.retain(|e| e.finding.check != Check::Preflight);
    let id = OrderId::mint(now, draw());
    let cause = match purpose {
        Purpose::Reissue => "an operator asked for another certificate; an order waits for its turn",
        Purpose::First | Purpose::Renew => "the certificate is due for renewal; an order waits for its turn",
    };
    let window = s.renewal.as_ref().and_then(|r| r.schedule.window).map(|w| [w.start.rfc3339(), w.end.rfc3339()]);
    let explanation = s.renewal.as_ref().and_then(|r| r.schedule.explanation.clone());
    let detail = json!({"order": id, "purpose": purpose, "window": window, "explanation": explanation});
    out.write(Write::OpenOrder {
        id,
        purpose,
        lane: s.lane_of(purpose, now),
        issuer_id: s.issuer.id.clone(),
        not_before: Moment::NEVER,
    })
    .tell("order_opened", "nameplate", cause, detail)
}
