//! What a look at the records means for the claim.

use serde_json::json;

use super::holding::{Before, Former, awaiting, holders_look};
use super::remove::end_work;
use super::{Draw, change, preflight, successor};
use crate::model::alert::kinds::EVIDENCE_CHANGED;
use crate::model::claim::{Claim, ClaimStep};
use crate::model::domain::{Domain, GrantState, Role, Situation, TieState};
use crate::model::evidence::{Check, Evidence, Finding, Verdict};
use crate::model::moment::Moment;
use crate::model::order::{Lane, Order, OrderState};
use crate::model::outcome::{Outcome, Write};
use crate::model::pace;
use crate::model::plan;
use crate::model::reason::Reason;
use crate::model::renewal::{Told, at_risk};
use crate::model::tie;

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
        let mut all: Vec<_> = list
            .iter()
            .filter(|e| !matches!(e.finding.check, Check::Holding | Check::Preflight))
            .map(|e| e.finding.reason)
            .collect();
        all.sort();
        all
    };
    let changed = codes(&s.domain.evidence) != codes(&evidence);
    let before = s.domain.evidence.clone();
    s.domain.evidence = evidence;
    // A preflight stands beside the look that came before it, as long as the name leads where it led then.
    let way = |list: &[Evidence]| list.iter().find(|e| e.finding.check == Check::Routing).map(|e| e.finding.reason);
    if matches!(s.domain.claim, Claim::Queued | Claim::Live) && way(&before) == way(&s.domain.evidence) {
        s.domain.evidence.extend(before.into_iter().filter(|e| e.finding.check == Check::Preflight));
    }
    s.domain.looked_at = Some(now);
    changed
}

/// What a look means. The situation is folded too, so that the caller can plan on without a trip to the store.
pub fn look(s: &mut Situation, looked: &Looked, now: Moment, draw: Draw<'_>) -> Outcome {
    let asked_by = s.domain.check_is_owed().then(|| s.domain.check_asked_by.clone()).flatten();
    let before = Before::of(s);
    let looked_before = s.domain.looked_at.is_some();
    let changed = fold(s, looked, now);
    if changed && looked_before && s.domain.lane == Lane::Bulk {
        let touched = (s.domain.pace_from > s.domain.created_at).then_some(s.domain.pace_from);
        s.domain.pace_from = pace::touched_at(touched, now).map_or(s.domain.pace_from, |at| at.max(s.domain.pace_from));
    }
    let mut out = match s.domain.claim {
        Claim::AwaitingDns => awaiting(s, looked.former, &before, now, draw),
        Claim::Queued => match successor::look_back(s, looked.former, now) {
            Some(out) => out,
            None => queued(s, now),
        },
        Claim::Live => {
            let before = tie::fold(&mut s.domain, now);
            let out = live(s, now);
            let out = tell_of_the_tie(s, before, now, out);
            holders_look(s, now, out)
        }
        _ => Outcome::of(s, Moment::NEVER),
    };
    say_the_tie(&mut out.domain);
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
            EVIDENCE_CHANGED,
            "nameplate",
            "a look at the records saw something new",
            json!({ "findings": findings }),
        );
        out.events.splice(0..0, told.events);
    }
    out
}

/// What a look of a live name means for what is under way for it: its rollout, and the order of its next certificate.
fn live(s: &Situation, now: Moment) -> Outcome {
    let Some(order) = &s.order else {
        // A name whose certificate is on its way to the edges goes on with that; else nothing is due before somebody asks, or time
        // counts.
        let due = if s.is_rolling_out() { now } else { plan::next_of_live(s, now) };
        return Outcome::of(s, due);
    };
    if s.domain.tie == TieState::Lost {
        return end_work(s, Outcome::of(s, now), now)
            .note("renewal_stopped", "nothing ties the name to its tenant, so its certificate is not renewed");
    }
    let mut out = ordered(s, order, now);
    if !matches!(order.state, OrderState::Waiting | OrderState::Granted) {
        out.domain.due_at = now;
    }
    out
}

/// Tells what a look changed about the tie, with the day on which that matters where it does.
fn tell_of_the_tie(s: &Situation, before: Option<TieState>, now: Moment, out: Outcome) -> Outcome {
    let Some(before) = before else { return out };
    let (kind, cause) = match s.domain.tie {
        TieState::Held => ("tie_held", "what ties the name to its tenant is in place again"),
        TieState::Weakened => ("tie_weakened", "of what ties the name to its tenant, a part is gone"),
        TieState::Lost => {
            ("tie_lost", "nothing ties the name to its tenant any more; its owner is asked to put the record back")
        }
    };
    let risk = s.renewal.as_ref().zip(s.certificate.as_ref()).and_then(|(renewal, in_use)| {
        at_risk(&Told {
            schedule: &renewal.schedule,
            tie: s.domain.tie,
            evidence: &s.domain.evidence,
            // Only what was seen now.
            failures: 0,
            not_after: in_use.not_after,
            now,
        })
    });
    let cause = risk.map_or_else(|| cause.to_owned(), |risk| format!("{cause}. {risk}"));
    out.tell(kind, "nameplate", cause, json!({"before": before.as_str(), "now": s.domain.tie.as_str()}))
}

/// Says beside the ownership record what it means for the tie, and that it must stay where it is the only one.
fn say_the_tie(d: &mut Domain) {
    let way = d.evidence_of(Check::Routing).map(|e| e.finding.reason);
    let alone = tie::by_record_alone(d, way) || matches!(way, Some(Reason::ProxiedReachable | Reason::ProxiedByCdn));
    let words = if d.claim == Claim::Live { tie::words(d) } else { String::new() };
    for finding in d.evidence.iter_mut().map(|e| &mut e.finding).filter(|f| f.check == Check::Ownership) {
        finding.record_to_publish.iter_mut().for_each(|record| record.keep |= alone);
        if !words.is_empty() {
            finding.advice = format!("{} {words}", finding.advice).trim_start().to_owned();
        }
    }
}

fn queued(s: &Situation, now: Moment) -> Outcome {
    if s.domain.proof_gone() {
        return lose_proof(s, now);
    }
    match &s.order {
        Some(order) => ordered(s, order, now),
        None => Outcome::of(s, now),
    }
}

/// What a look means for an open order, whatever it is for.
fn ordered(s: &Situation, order: &Order, now: Moment) -> Outcome {
    let next = plan::next_look(s).min(plan::preflight_at(s));
    let pass = plan::may_order(s);
    if order.issuer_id != s.issuer.id && matches!(order.state, OrderState::Waiting | OrderState::Granted) {
        return go_elsewhere(s, order, pass, now);
    }
    match order.state {
        OrderState::Waiting if pass && order.not_before == Moment::NEVER && s.domain.preflight_passed().is_some() => {
            preflight::eligible(s, order, now)
        }
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

/// Another issuer was chosen with this look: the order goes there, and waits for its turn as everybody does.
fn go_elsewhere(s: &Situation, order: &Order, pass: bool, now: Moment) -> Outcome {
    let eligible = if pass && s.domain.preflight_passed().is_some() { change::eligible_at(s, now) } else { Moment::NEVER };
    let next = plan::next_look(s).min(plan::preflight_at(s));
    let mut out = Outcome::of(s, next).order(order, OrderState::Waiting, now, |o| {
        o.issuer_id = s.issuer.id.clone();
        o.not_before = eligible;
    });
    if let Some(grant) = s.grant.as_ref().filter(|g| g.state == GrantState::Open) {
        out = out.write(Write::GrantReturned(grant.id.clone(), GrantState::Open));
    }
    out.tell(
        "order_moved",
        "nameplate",
        format!("the order goes to {}: the one before cannot or may not issue for this name now", s.issuer.name),
        json!({ "order": order.id, "issuer": s.issuer.name }),
    )
}

pub(super) fn hold_back(s: &Situation, order: &Order, now: Moment) -> Outcome {
    let failing: Vec<_> =
        s.domain.evidence.iter().filter(|e| e.finding.verdict() != Verdict::Pass).map(|e| e.finding.reason.code()).collect();
    let cause = match () {
        () if !failing.is_empty() => "a check does not pass right now, so no order is spent on the name",
        () if s.held.is_some() => "the import that brought the name is paused or cancelled, so nothing is ordered for it",
        () if s.unreminded => "the database was restored; what edges remember of the name comes first",
        () if s.remembered_until.is_some() => {
            "edges serve the name with a certificate of after the copy, so none is ordered before the recovery ends"
        }
        () => "a check does not pass right now, so no order is spent on the name",
    };
    let soon = if s.unreminded { now + plan::REMINDED_AGAIN } else { Moment::NEVER };
    Outcome::of(s, plan::next_look(s).min(soon))
        .order(order, OrderState::Waiting, now, |o| o.not_before = Moment::NEVER)
        .tell("order_held_back", "nameplate", cause, json!({ "codes": failing }))
}

fn lose_proof(s: &Situation, now: Moment) -> Outcome {
    let mut out = Outcome::of(s, plan::next_look(s));
    if let Ok(claim) = s.domain.claim.after(ClaimStep::LoseProof) {
        out.domain.claim = claim;
        out.domain.claim_since = now;
    }
    out.domain.evidence.retain(|e| e.finding.check != Check::Preflight);
    out = end_work(s, out, now);
    if s.role() == Role::Successor {
        out.domain.evidence.retain(|e| e.finding.check != Check::Holding);
        out = successor::withdraw(s, out);
    } else {
        out = out.write(Write::FreeHolding);
    }
    out.note("proof_lost", "the ownership record is gone before the first certificate; the name is held no longer")
}
