//! The tie between a live name and its holder, after proof.
//!
//! With a target of the tenant's own the tie holds while the ownership record is there *or* the name still passes through that
//! target in plain sight. With a target that all tenants share, at an apex, and where only addresses can be seen, a way to us
//! does not say whose it is: the ownership record alone is the tie, and the page says that it must stay.
//!
//! The tie reads what reasons say of it (`present`, `gone`, `silent`), never their verdicts. Silence changes nothing and pauses
//! the clock: only the time over which the tie was positively seen to be lost counts. How to get it wrong: count the time
//! between two looks of which one was silent, or take a way to our addresses for a way to this tenant.

use std::time::Duration;

use super::domain::{Domain, RoutingMode, TieState};
use super::evidence::{Check, Tie};
use super::hostname::Hostname;
use super::moment::Moment;
use super::reason::Reason;

/// A tie that was seen to be lost for so long lets the name go, where the operator says nothing else.
pub const GRACE: Duration = Duration::from_secs(7 * 24 * 3600);
/// How often a name is looked at whose tie is lost, so that the time counts, or whose renewal would be refused.
pub const LOOK_AGAIN: Duration = Duration::from_secs(6 * 3600);
/// Two looks that saw the tie lost stand for the time between them up to this: a look that was missed is not one that saw.
const BETWEEN_LOOKS: Duration = Duration::from_secs(36 * 3600);

/// What the way to us says of the tie; none where it says nothing of this tenant by its nature.
pub(super) fn way(mode: RoutingMode, hostname: &Hostname, reason: Reason) -> Option<Tie> {
    if record_alone(mode, hostname, Some(reason)) {
        return None;
    }
    // Right, by all servers that answer: whether through the tenant's own host this reason does not say.
    Some(if reason == Reason::OkOneServerDown { Tie::Silent } else { reason.tie() })
}

/// Whether the ownership record alone ties the name to its tenant, by its promise and by what is seen of its way.
pub fn by_record_alone(d: &Domain, way: Option<Reason>) -> bool {
    record_alone(d.routing_mode, &d.hostname, way)
}

fn record_alone(mode: RoutingMode, hostname: &Hostname, way: Option<Reason>) -> bool {
    mode == RoutingMode::Shared || hostname.is_apex() || way == Some(Reason::AddressOk)
}

/// Whether the name is still tied to its tenant as far as the last look goes: not lost, and one of what ties it was seen.
pub fn holds(d: &Domain) -> bool {
    let way = || d.evidence_of(Check::Routing).and_then(|e| way(d.routing_mode, &d.hostname, e.finding.reason));
    d.tie != TieState::Lost && (d.owned() || way() == Some(Tie::Present))
}

/// What the last look says of the tie: the state, and whether this look saw it lost.
fn seen(d: &Domain) -> (TieState, bool) {
    let reason = |check| d.evidence_of(check).map(|e| e.finding.reason);
    let record = reason(Check::Ownership).map_or(Tie::Silent, Reason::tie);
    let way = match reason(Check::Routing) {
        Some(reason) => way(d.routing_mode, &d.hostname, reason),
        None => Some(Tie::Silent),
    };
    let before = d.tie;
    match (record, way) {
        (Tie::Gone, None | Some(Tie::Gone)) => (TieState::Lost, true),
        (Tie::Gone, Some(Tie::Present)) | (Tie::Present, Some(Tie::Gone)) => (TieState::Weakened, false),
        (Tie::Present, _) => (TieState::Held, false),
        // Something is missing and the other half cannot be seen: not worse than weakened, and no better than it was.
        (Tie::Gone, Some(Tie::Silent)) | (Tie::Silent, Some(Tie::Gone)) => (before.max(TieState::Weakened), false),
        (Tie::Silent, Some(Tie::Present)) => (before.min(TieState::Weakened), false),
        (Tie::Silent, None | Some(Tie::Silent)) => (before, false),
    }
}

/// Folds the last look into the tie of a live name; the state before, where it is another now.
pub fn fold(d: &mut Domain, now: Moment) -> Option<TieState> {
    let before = d.tie;
    let (state, lost) = seen(d);
    d.tie = state;
    if lost {
        let passed = d.counted_until.map_or(Duration::ZERO, |until| now.since(until).min(BETWEEN_LOOKS));
        d.lost_for_us = d.lost_for_us.saturating_add(i64::try_from(passed.as_micros()).unwrap_or(i64::MAX));
        d.counted_until = Some(now);
    } else {
        d.counted_until = None;
        if state != TieState::Lost {
            d.lost_for_us = 0;
        }
    }
    (state != before).then_some(before)
}

/// For how long the tie was seen to be lost.
pub fn lost_for(d: &Domain) -> Duration {
    Duration::from_micros(u64::try_from(d.lost_for_us).unwrap_or(0))
}

/// Whether the tie was seen to be lost for the whole grace, by the last look too.
pub fn is_over(d: &Domain, grace: Duration) -> bool {
    d.tie == TieState::Lost && d.counted_until.is_some() && d.counted_until == d.looked_at && lost_for(d) >= grace
}

/// What the page says of the tie beside the ownership record; empty where there is nothing to add.
pub fn words(d: &Domain) -> String {
    let way = d.evidence_of(Check::Routing).map(|e| e.finding.reason);
    let record = d.evidence_of(Check::Ownership).map_or(Tie::Silent, |e| e.finding.reason.tie());
    let name = &d.hostname;
    let alone = by_record_alone(d, way);
    match (d.tie, record) {
        (TieState::Held, Tie::Present) if alone => {
            format!("Keep this record: it alone ties {name} to your account.")
        }
        (TieState::Weakened, Tie::Gone) => format!(
            "{name} stays yours because it still points to {}; put this record back, so that the name does not hang on that alone.",
            d.target
        ),
        (TieState::Weakened, Tie::Present) => {
            format!("{name} stays yours because this record is in place, although the name does not lead to us now.")
        }
        (TieState::Lost, _) => format!(
            "Nothing ties {name} to your account any more; put this record back, or the name is not renewed and is let go of."
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
