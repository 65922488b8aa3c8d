//! A removal is undone, or its end is forced.

use serde_json::json;

use super::holding::{Former, Presence};
use super::look::Looked;
use super::remove::{end_work, finished};
use crate::model::claim::{Claim, ClaimStep};
use crate::model::domain::{HoldingState, Situation, TieState};
use crate::model::evidence::{Check, Evidence, Finding, Tie, Verdict};
use crate::model::moment::Moment;
use crate::model::outcome::{Outcome, Write};
use crate::model::plan;
use crate::model::tenant::TenantStatus;
use crate::model::tie;

/// Why a removal is not undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedUndo {
    /// It is not on its way out.
    #[error("a claim that is {0} cannot be brought back: only one that is being released can, and only until that is over")]
    NotReleasing(Claim),
    /// The tenant has left.
    #[error("the tenant has left; its names do not come back")]
    TenantLeft,
    /// The name has another holder, or is about to have one.
    #[error("the name went to somebody else meanwhile")]
    WentOn,
    /// What ties the name to the tenant is gone.
    #[error("what ties the name to its tenant is not there any more: {0}")]
    Untied(String),
    /// Could not be looked at.
    #[error("whether the name is still tied to its tenant could not be seen just now; try again")]
    Unseen,
}

/// Whether anything but the records stands in the way; asked before the look.
pub fn may_undo(s: &Situation, now: Moment) -> Result<(), RefusedUndo> {
    if s.domain.claim != Claim::Releasing || now >= s.domain.claim_since + plan::RELEASE_GRACE {
        return Err(RefusedUndo::NotReleasing(s.domain.claim));
    }
    if s.tenant_status == TenantStatus::Deleted {
        return Err(RefusedUndo::TenantLeft);
    }
    let ours = s.holding.as_ref().is_some_and(|h| h.domain_id.as_ref() == Some(&s.domain.id));
    if ours { Ok(()) } else { Err(RefusedUndo::WentOn) }
}

/// A removal is undone when a look sees that what tied the name to its tenant is there: the certificate that was kept is served
/// again, with no new record and no new order. A claim that had none awaits its records, with the value that it had.
pub fn undo(s: &mut Situation, looked: &Looked, actor: &str, now: Moment) -> Result<Outcome, RefusedUndo> {
    may_undo(s, now)?;
    tied(s, looked)?;
    s.domain.evidence = looked.findings.iter().map(|f| Evidence { finding: f.clone(), looked_at: now }).collect();
    s.domain.looked_at = Some(now);
    (s.domain.tie, s.domain.lost_for_us, s.domain.counted_until) = (TieState::Held, 0, None);
    let from = s.domain.claim;
    let kept = s.certificate.as_ref().filter(|c| now < c.not_after).map(|c| c.id.clone());
    let step = if kept.is_some() { ClaimStep::Return } else { ClaimStep::ReturnUnserved };
    let to = from.after(step).map_err(|e| RefusedUndo::NotReleasing(e.from))?;
    if kept.is_some() {
        // How it is tied is folded as by any look of a live name.
        s.domain.claim = to;
        tie::fold(&mut s.domain, now);
    }
    let mut out = Outcome::of(s, now);
    out.domain.claim = to;
    out.domain.claim_since = now;
    out.domain.active_since = None;
    let detail = json!({"from": from.as_str(), "to": to.as_str()});
    Ok(match kept {
        Some(certificate) => out
            .write(Write::TakeHolding { ends_quarantine_of: None })
            .write(Write::RouteServe(certificate))
            .tell("returned", actor, "the removal was undone; the certificate that was kept is served again", detail),
        None => unserved(out).write(Write::FreeHolding).write(Write::DestroyKeys).tell(
            "returned",
            actor,
            "the removal was undone; the records are looked at anew",
            detail,
        ),
    })
}

/// Nothing that was kept can be served.
fn unserved(mut out: Outcome) -> Outcome {
    out.domain.certificate_id = None;
    out
}

fn tied(s: &Situation, looked: &Looked) -> Result<(), RefusedUndo> {
    let of = |check: Check| looked.findings.iter().find(|f| f.check == check);
    let owned = of(Check::Ownership).is_some_and(|f| f.verdict() == Verdict::Pass);
    if owned {
        return Ok(());
    }
    let way = of(Check::Routing);
    let alone = tie::by_record_alone(&s.domain, way.map(|f| f.reason));
    // Somebody else's proof is there: then the record decides, as it does between any two.
    let contested = s.holding.as_ref().is_some_and(|h| h.successor.is_some() || h.state == HoldingState::Free);
    let by_way = way.is_some_and(|f| f.reason.tie() == Tie::Present) && !alone && !contested;
    if by_way {
        return Ok(());
    }
    let silent = |f: Option<&Finding>| f.is_none_or(|f| f.reason.tie() == Tie::Silent);
    if silent(of(Check::Ownership)) || (!alone && !contested && silent(way)) {
        return Err(RefusedUndo::Unseen);
    }
    let said = of(Check::Ownership).map_or(String::new(), |f| f.reason.sentence().to_owned());
    Err(RefusedUndo::Untied(said))
}

/// What a look has to say of a holder before: nothing, when the claim itself is looked at.
pub fn nobody() -> Former {
    Former { value: Presence::Unknown, cname_at_own_host: false }
}

/// Why nothing was forced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedForce {
    /// The claim still stands.
    #[error("the claim is {0}: remove it first; only what is being released, or rests since, can be forced")]
    Stands(Claim),
    /// Nothing is left to end.
    #[error("nothing is left to be ended: the name is free, or somebody else's")]
    Over,
}

/// An operator ends a release: the claim is over and the name free, whatever DNS says. Whoever wants it still proves it.
pub fn force_release(s: &Situation, reason: &str, actor: &str, now: Moment) -> Result<Outcome, RefusedForce> {
    let rests = s
        .holding
        .as_ref()
        .is_some_and(|h| h.state == HoldingState::Quarantined && h.domain_id.as_ref() == Some(&s.domain.id));
    let mut out = match s.domain.claim {
        Claim::Releasing => {
            let mut out = finished(s, now);
            let ended = end_work(s, Outcome::of(s, now), now);
            out.writes.splice(0..0, ended.writes);
            out
        }
        Claim::Released if rests => Outcome::of(s, Moment::NEVER),
        Claim::Released => return Err(RefusedForce::Over),
        other => return Err(RefusedForce::Stands(other)),
    };
    if rests {
        out = out.write(Write::FreeHolding);
    }
    let cause = format!("an operator ended the release: {reason}");
    Ok(out.tell("release_forced", actor, cause, json!({ "reason": reason, "rested": rests })))
}
