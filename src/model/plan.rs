//! What comes next for a domain: a pure, level-triggered answer from what is known now.
//!
//! `plan` never looks at how the domain came to where it is. It is called at the start of every step, and again after each
//! observation that was folded in, so a second run at any moment gives the same answer or a later one.

use std::time::Duration;

use super::claim::Claim;
use super::domain::{Effect, Grant, GrantState, Role, Situation, TieState};
use super::evidence::{Check, Evidence, Verdict};
use super::moment::Moment;
use super::order::{Lane, Order, OrderState};
use super::pace;
use super::renewal::Claims;
use super::tenant::TenantStatus;
use super::tie;

/// Evidence older than this is looked at again before a grant is used.
pub const FRESH: Duration = Duration::from_secs(120);
/// A released name can be brought back for this long.
pub const RELEASE_GRACE: Duration = Duration::from_secs(7 * 24 * 3600);
/// An order that made no progress for this long at the CA is given up.
pub const STUCK: Duration = Duration::from_secs(2 * 3600);
/// A CSR was sent: the certificate may exist, so patience is longer.
pub const STUCK_FINALIZING: Duration = Duration::from_secs(24 * 3600);
/// How soon a granted order looks again for an edge.
const NO_EDGE: Duration = Duration::from_secs(5);
/// How soon a waiting order looks again for an edge to be preflighted at.
const NO_EDGE_WAITING: Duration = Duration::from_secs(60);
/// A preflight that said nothing of the tenant (our own outage, no address just then) is made again after this.
const PREFLIGHT_AGAIN: Duration = Duration::from_secs(60);
/// A renewal is not tried more often than this, however near the end: CAs take five failures an hour of one name.
const MOST_URGENT: Duration = Duration::from_secs(15 * 60);
/// After a restore, a name that was not seen to be its tenant's is looked at again after this.
const SIGHT_AGAIN: Duration = Duration::from_secs(3600);
/// After a restore, a name of which edges have not told yet what they remember is thought of again after this.
pub(super) const REMINDED_AGAIN: Duration = Duration::from_secs(30);
/// Edges that did not confirm a token after this long are marked lost.
pub const LAGGARD: Duration = Duration::from_secs(60);

/// Something to observe before anything can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// TXT, routing and CAA, from every vantage point.
    Dns,
    /// Whether requests through the public name reach our edges, as the CA's will.
    Preflight,
    /// Which counted edges answer the challenge.
    ChallengeRollout,
    /// Which counted edges serve the certificate.
    CertificateRollout,
    /// The authorization of the order.
    Authorization,
    /// The order at the CA.
    Order,
    /// The issued chain.
    Chain,
    /// Whether the token is answered at every address of the name.
    Token,
    /// What a request through the public name meets.
    PublicName,
}

/// A change that needs nothing from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The attempt's deadline passed.
    Expire,
    /// The grace after removal is over: destroy key and certificate.
    FinishRelease,
    /// A new order row.
    OpenOrder,
    /// The order takes nothing of the budget, so it is its turn.
    TakeTurn,
    /// The order waits in the lane of renewals: its certificate is due.
    Hurry,
    /// Nobody asks for the order's certificate any more.
    EndReissue,
    /// What failed was of a try that is over, and nothing is due now.
    ForgetFailures,
    /// Draw and seal the key of the order's certificate.
    PrepareKey,
    /// The grant is not ours any more: wait for another.
    Requeue,
    /// The answer to newOrder never came.
    LoseOrder,
    /// The order made no progress for too long.
    GiveUpOrder,
    /// The tenant has left: let go of the name.
    Offboard,
    /// Nothing has tied the name to its tenant for the whole grace: let go of it.
    LetGo,
    /// Somebody else's step left news.
    Hear,
    /// The name is neither held nor to be held by this claim any more.
    StepBack,
}

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until then.
    Rest(Moment),
    /// Look at something.
    Observe(Observe),
    /// Record this.
    Change(Change),
    /// Record the intent, then do this.
    Act(Effect),
}

/// Decides what comes next.
pub fn plan(s: &Situation, now: Moment) -> Next {
    if s.intent.as_ref().is_some_and(|i| i.effect == Effect::NewOrder) {
        return Next::Change(Change::LoseOrder);
    }
    if s.tenant_status == TenantStatus::Deleted && s.domain.claim.is_open() {
        return Next::Change(Change::Offboard);
    }
    if s.notice.is_some() && matches!(s.domain.claim, Claim::AwaitingDns | Claim::Queued | Claim::Live) {
        return Next::Change(Change::Hear);
    }
    match s.domain.claim {
        Claim::Released | Claim::Withdrawn | Claim::Expired => Next::Rest(Moment::NEVER),
        Claim::Releasing => {
            // Once another claim holds the name there is nothing left to come back to.
            let ours = s.holding.as_ref().is_some_and(|h| h.domain_id.as_ref() == Some(&s.domain.id));
            let end = if ours { s.domain.claim_since + RELEASE_GRACE } else { s.domain.claim_since };
            match now >= end {
                // It may have been undone after the copy was made: while edges may serve it, its key is not destroyed there.
                true if ours && s.recovering_since.is_some() => Next::Rest(now + SIGHT_AGAIN),
                true => Next::Change(Change::FinishRelease),
                false => Next::Rest(end),
            }
        }
        Claim::AwaitingDns => {
            if now >= s.attempt.deadline {
                return Next::Change(Change::Expire);
            }
            look_or_rest(s, now, next_look(s).min(s.attempt.deadline))
        }
        Claim::Queued if s.role() == Role::Neither => Next::Change(Change::StepBack),
        Claim::Queued => match &s.order {
            None => Next::Change(Change::OpenOrder),
            Some(order) => plan_order(s, order, now),
        },
        Claim::Live => plan_live(s, now),
    }
}

/// Whether the database was restored and what it says of this name is of before that: until its record, or its tie, was seen again,
/// nothing is ordered for it and edges are told nothing new of it.
pub(super) fn awaits_sight(s: &Situation) -> bool {
    let Some(since) = s.recovering_since else { return false };
    if s.unreminded {
        return true;
    }
    let d = &s.domain;
    let tied = if d.claim == Claim::Live { tie::holds(d) } else { d.owned() };
    !(d.looked_at.is_some_and(|at| at >= since) && tied)
}

/// A look for a name that awaits it; one that did not see it is made again after a while.
fn sight(s: &Situation, now: Moment) -> Next {
    if s.unreminded {
        return Next::Rest(now + REMINDED_AGAIN);
    }
    let looked = s.domain.looked_at.filter(|at| s.recovering_since.is_some_and(|since| *at >= since));
    look_or_rest(s, now, looked.map_or(now, |at| (at + SIGHT_AGAIN).min(next_tie_look(s))))
}

/// When the records are to be looked at next.
pub fn next_look(s: &Situation) -> Moment {
    let d = &s.domain;
    match d.looked_at {
        None => d.created_at,
        Some(at) => {
            let touched_at = || (d.pace_from > d.created_at).then_some(d.pace_from);
            let wait = match d.lane {
                // Nothing comes of a look while the import that brought the name is held.
                Lane::Bulk if s.held.is_some() => s.lap,
                Lane::Bulk => pace::look_at_import_in(touched_at(), at, if in_line(s) { pace::LONGEST_LAP } else { s.lap }),
                Lane::Renewal | Lane::Single => pace::look_again_in(d.pace_from, at),
            };
            let wait = if d.claim == Claim::Live { wait.min(urgency(s, at)) } else { wait };
            let next = at + s.succession().map_or(wait, |clock| wait.min(clock.look_within()));
            // Who waits behind others is in time with those before it once its certificate is due.
            s.hurries_at().map_or(next, |at| next.min(at))
        }
    }
}

/// Whether all that is waited for is the CA's turn. Nobody acts meanwhile, and a full look comes before the order.
fn in_line(s: &Situation) -> bool {
    may_order(s) && s.domain.preflight_passed().is_some()
}

/// The longest wait between two tries at a renewal: shorter the nearer the end of the certificate in use.
pub(super) fn urgency(s: &Situation, now: Moment) -> Duration {
    match &s.certificate {
        Some(c) if s.domain.claim == Claim::Live => (c.not_after.since(now) / 20).max(MOST_URGENT),
        _ => Duration::MAX,
    }
}

fn look_or_rest(s: &Situation, now: Moment, next: Moment) -> Next {
    if s.domain.check_is_owed() || now >= next { Next::Observe(Observe::Dns) } else { Next::Rest(next) }
}

/// Whether every check passes, nobody holds the import that brought the name and, for a claim that is to follow another, the other's
/// record is gone. A live name is renewed by whatever still ties it, and needs no import any more.
pub(super) fn may_order(s: &Situation) -> bool {
    let follows = || s.domain.evidence_of(Check::Holding).is_none_or(|e| e.finding.verdict() == Verdict::Pass);
    let held = s.held.is_some() && s.domain.claim != Claim::Live;
    // While a restored system recovers, what edges serve is not ordered a second time, nor what they may serve.
    let served = s.recovering_since.is_some() && (s.remembered_until.is_some() || s.unreminded);
    !held && !served && s.is_tied() && s.domain.may_be_issued() && follows()
}

fn fresh(s: &Situation, now: Moment) -> bool {
    may_order(s)
        && !awaits_sight(s)
        && !s.domain.check_is_owed()
        && s.domain.looked_at.is_some_and(|at| now.since(at) < FRESH)
}

/// Whether an order has made no progress for longer than anybody should wait.
pub fn is_stuck(order: &Order, now: Moment) -> bool {
    let limit = match order.state {
        OrderState::Waiting | OrderState::Granted => return false,
        OrderState::Finalizing => STUCK_FINALIZING,
        _ => STUCK,
    };
    now.since(order.state_since) > limit
}

/// Whether the CA is asked in the next step: then its answer decides whether it is the last. One that is ready may have been sent its
/// CSR by a worker that died before it could say so: given up unasked, its certificate would be made a second time.
fn is_read_next(order: &Order) -> bool {
    match order.state {
        OrderState::Ready | OrderState::Finalizing => true,
        OrderState::Authorizing => order.announced_at.is_some(),
        _ => false,
    }
}

fn plan_order(s: &Situation, order: &Order, now: Moment) -> Next {
    if is_stuck(order, now) && !is_read_next(order) {
        return Next::Change(Change::GiveUpOrder);
    }
    let at_ca = !matches!(order.state, OrderState::Waiting | OrderState::Granted);
    if at_ca && awaits_sight(s) {
        return sight(s, now);
    }
    match order.state {
        OrderState::Waiting => plan_waiting(s, order, now),
        OrderState::Granted => {
            // A grant of one's own is good as long as what it was taken for is so.
            let good =
                |g: &Grant| g.state == GrantState::Open && now < g.expires_at && (!g.free || s.takes_no_budget(order, now));
            let usable = s.grant.as_ref().is_some_and(good);
            if !usable {
                Next::Change(Change::Requeue)
            } else if s.counted_edges < s.min_edges {
                // Nobody could answer the CA: the grant waits in hand, and goes back by itself.
                Next::Rest(now + NO_EDGE)
            } else if !fresh(s, now) {
                Next::Observe(Observe::Dns)
            } else if s.domain.preflight_passed().is_none_or(|e| now.since(e.looked_at) >= FRESH) {
                Next::Observe(Observe::Preflight)
            } else if order.sealed_key.is_none() {
                Next::Change(Change::PrepareKey)
            } else {
                Next::Act(Effect::NewOrder)
            }
        }
        OrderState::Placed => Next::Observe(Observe::Authorization),
        OrderState::Authorizing if order.announced_at.is_none() => Next::Observe(Observe::ChallengeRollout),
        OrderState::Authorizing => Next::Observe(Observe::Order),
        OrderState::Ready => Next::Act(Effect::Finalize),
        // The certificate takes the name from its holder: what allows that is looked at once more.
        OrderState::Finalizing if s.role() == Role::Successor && !fresh(s, now) => Next::Observe(Observe::Dns),
        OrderState::Finalizing => Next::Observe(Observe::Order),
        OrderState::Issued | OrderState::Failed | OrderState::Lost => Next::Change(Change::OpenOrder),
    }
}

/// When the name is to be preflighted, by what the last look and the last preflight saw: right after a look that passes where
/// there was none or it failed; never again while it waits where it passed, since that is done before the grant is used.
pub fn preflight_at(s: &Situation) -> Moment {
    let Some(looked_at) = s.domain.looked_at.filter(|_| may_order(s)) else { return Moment::NEVER };
    let Some(last) = s.domain.evidence_of(Check::Preflight) else { return looked_at };
    match last.finding.verdict() {
        Verdict::Pass => Moment::NEVER,
        _ if last.looked_at < looked_at => looked_at,
        Verdict::Fail => Moment::NEVER,
        Verdict::Wait | Verdict::Unknown => last.looked_at + PREFLIGHT_AGAIN,
    }
}

/// A name whose preflight does not pass is not eligible: it is found out while the order waits, not when its turn comes.
fn plan_waiting(s: &Situation, order: &Order, now: Moment) -> Next {
    let (next, due) = (next_look(s), preflight_at(s));
    if s.unreminded && now < next {
        return Next::Rest(next.min(now + REMINDED_AGAIN));
    }
    // What it was held back for is over, such as its import that was paused: one look, and it is in line again.
    let freed = order.not_before == Moment::NEVER && in_line(s);
    if freed && fresh(s, now) && s.takes_no_budget(order, now) {
        return Next::Change(Change::TakeTurn);
    }
    if freed || s.domain.check_is_owed() || now >= next {
        Next::Observe(Observe::Dns)
    } else if now < due {
        Next::Rest(next.min(due))
    } else if s.counted_edges < s.min_edges {
        Next::Rest(next.min(now + NO_EDGE_WAITING))
    } else if fresh(s, now) {
        Next::Observe(Observe::Preflight)
    } else {
        Next::Observe(Observe::Dns)
    }
}

/// When a live name is looked at for its tie: where that is lost, the time counts only as far as it is seen; where a part of it is
/// gone, the other may follow.
fn next_tie_look(s: &Situation) -> Moment {
    match (s.domain.tie, s.domain.looked_at) {
        // That look decides at once, while what it saw is fresh.
        (TieState::Lost, Some(at)) if tie::is_over(&s.domain, s.letting_go.tie_grace) => at,
        (TieState::Lost | TieState::Weakened, Some(at)) => at + tie::LOOK_AGAIN,
        _ => Moment::NEVER,
    }
}

/// When a live name is looked at whose renewal would be refused, so that it is soon known to be mended.
fn next_look_at_risk(s: &Situation) -> Moment {
    let refused = |e: &Evidence| {
        matches!(e.finding.check, Check::Routing | Check::Caa)
            && matches!(e.finding.verdict(), Verdict::Fail | Verdict::Wait)
    };
    let at = s.domain.looked_at.filter(|_| s.domain.evidence.iter().any(refused));
    at.map_or(Moment::NEVER, |at| at + tie::LOOK_AGAIN)
}

/// When a live name is looked at because something is wrong with it.
pub fn next_look_at_trouble(s: &Situation) -> Moment {
    next_tie_look(s).min(next_look_at_risk(s))
}

/// When a live name without open work is due again: for a look, its renewal, or to serve what it has.
pub fn next_of_live(s: &Situation, now: Moment) -> Moment {
    next_besides_the_switch(s, now).min(s.switch_at().unwrap_or(Moment::NEVER))
}

/// The same, while the switch to the certificate in use waits for edges and is looked after.
pub fn next_besides_the_switch(s: &Situation, now: Moment) -> Moment {
    let renew_at = match s.renewal_claims(now) {
        Claims::Later(at) => at,
        Claims::Now(_) => now,
        Claims::Not(_) => Moment::NEVER,
    };
    next_look_at_trouble(s).min(renew_at)
}

fn plan_live(s: &Situation, now: Moment) -> Next {
    let seen_lately = || s.domain.looked_at.is_some_and(|at| now.since(at) < FRESH);
    if tie::is_over(&s.domain, s.letting_go.tie_grace) && seen_lately() {
        return Next::Change(Change::LetGo);
    }
    if let Some(order) = &s.order {
        if s.is_given_up(order) {
            return Next::Change(Change::EndReissue);
        }
        if s.hurries_at().is_some_and(|at| at <= now) {
            return Next::Change(Change::Hurry);
        }
        let at_ca = !matches!(order.state, OrderState::Waiting | OrderState::Granted);
        // What is on its way at the CA may take a day; who asks for a look does not wait for it.
        let look = at_ca && s.domain.check_is_owed();
        return if look { Next::Observe(Observe::Dns) } else { plan_order(s, order, now) };
    }
    let claims = s.renewal_claims(now);
    if matches!(claims, Claims::Now(_)) {
        return Next::Change(Change::OpenOrder);
    }
    // What is wrong with a name is looked at in its time, however long edges take.
    let to_look = s.domain.check_is_owed() || now >= next_look_at_trouble(s);
    if s.is_rolling_out() && awaits_sight(s) {
        return sight(s, now);
    }
    if s.is_rolling_out() && !to_look && s.switch_at().is_none_or(|at| at <= now) {
        return Next::Observe(Observe::CertificateRollout);
    }
    if s.domain.failures > 0 && matches!(claims, Claims::Later(_)) && !to_look && !s.is_rolling_out() {
        return Next::Change(Change::ForgetFailures);
    }
    // Daily looks are no alarms: batches read, and only a difference asks for a look here.
    look_or_rest(s, now, next_of_live(s, now))
}
