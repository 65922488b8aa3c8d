//! Who gets the next grant: a pure choice over the orders that wait at one issuer.
//!
//! The walk plays the future. An order first needs room under its *own* limits (its registered domain, its name); one that has
//! none waits there and keeps nobody else waiting. Those that have room share what the *account* may spend: lanes have
//! guaranteed shares of the turns (renewals 5, single claims 3, bulk 2 of 10), a lane with nothing to do gives its turn to the
//! next, and inside a lane the tenant that was served longest ago comes first, with its oldest order. Renewals go by the end of what
//! they replace: of a tenant the one that ends first; among tenants, what ends on an earlier day of the coming week goes before what
//! ends later, and tenants take turns within a day and beyond the week. What the walk gives at
//! its first moment are the grants; what it gives later are the places and times of all others. So what a page says is what
//! will happen, if nothing else comes.

mod lanes;
mod own;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::hostname::Hostname;
use super::id::{OrderId, TenantId};
use super::ledger::{Bucket, Limit, Spent, settle};
use super::limits::{ACCOUNT, LimitName, Limits};
use super::moment::Moment;
use super::order::Lane;
use lanes::LaneQueues;
pub use lanes::nearness;
use own::OwnLimits;

/// An order that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The order.
    pub order_id: OrderId,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// Its lane.
    pub lane: Lane,
    /// Not eligible before.
    pub not_before: Moment,
    /// When the certificate ends that it renews; never, where it renews none.
    pub ends: Moment,
    /// The turn in which its tenant was last served in this lane; 0 for never.
    pub served: u64,
    /// The name, by which its own limits are kept.
    pub name: Hostname,
}

/// Where an order stands in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The order.
    pub order_id: OrderId,
    /// 1 for the next to be granted.
    pub position: u32,
    /// When its grant can be expected.
    pub eta: Moment,
    /// The limit of its own that has no room for it now, if one has none, and when there will be.
    pub held: Option<(LimitName, Moment)>,
}

/// What the dispatcher decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dispatched {
    /// Orders that get a grant now.
    pub grants: Vec<OrderId>,
    /// The others, in the order in which they will be granted if nothing else comes.
    pub places: Vec<Place>,
}

impl Dispatched {
    /// When to dispatch again, if nothing new arrives.
    pub fn next_at(&self) -> Option<Moment> {
        self.places.first().map(|p| p.eta)
    }
}

/// What the account may spend.
struct Account {
    bucket: Bucket,
    limit: Option<Limit>,
}

impl Account {
    fn earliest(&self, now: Moment) -> Moment {
        self.bucket.opens_at(self.limit, now)
    }

    fn spend(&mut self, at: Moment) {
        if let Some(limit) = self.limit {
            self.bucket.tat = settle(self.bucket.tat, at, limit);
        }
    }
}

/// Gives grants. `waiting` is sorted by age (order ids sort so), `turn` counts the grants given so far. An order that may never
/// be placed as things are (`not_before` is never) gets neither a grant nor a place.
pub fn dispatch(waiting: &[Waiting], limits: &Limits, spent: &Spent, turn: u64, now: Moment) -> Dispatched {
    let of_account = limits.get(&LimitName::OrdersPerAccount).copied();
    let row = spent.get(&(LimitName::OrdersPerAccount, ACCOUNT.to_owned())).copied().unwrap_or_default();
    let bucket = of_account.map_or(row, |limit| row.as_if_answered(limit, now));
    let mut account = Account { bucket, limit: of_account };
    let mut own = OwnLimits::new(waiting, limits, spent, now);
    let mut lanes = LaneQueues::default();
    // What may not be placed yet, soonest first; of equals the nearer lane, then what ends first, then the older order.
    let mut later: BinaryHeap<Reverse<(Moment, Lane, Moment, usize)>> = waiting
        .iter()
        .enumerate()
        .filter(|(_, w)| w.not_before != Moment::NEVER)
        .map(|(n, w)| Reverse((w.not_before.max(now), w.lane, w.ends, n)))
        .collect();
    let mut out = Dispatched::default();
    let (mut at, mut turn) = (now, turn);
    loop {
        while let Some(Reverse((.., n))) = later.peek().copied().filter(|Reverse((when, ..))| *when <= at) {
            later.pop();
            if own.admit(n, at) {
                lanes.push(n, &waiting[n], at);
            }
        }
        for n in own.freed(at) {
            lanes.push(n, &waiting[n], at);
        }
        if lanes.is_empty() {
            let next = later.peek().map(|Reverse((when, ..))| *when).into_iter().chain(own.next_at()).min();
            let Some(next) = next else { break };
            at = at.max(next);
            continue;
        }
        let slot = account.earliest(at);
        if slot > at {
            at = slot;
            continue;
        }
        let Some(n) = lanes.pop(turn, at) else { break };
        turn += 1;
        account.spend(at);
        own.spend(n, at);
        let order_id = waiting[n].order_id.clone();
        if at <= now {
            out.grants.push(order_id);
        } else {
            let position = u32::try_from(out.places.len() + 1).unwrap_or(u32::MAX);
            out.places.push(Place { order_id, position, eta: at, held: own.held(n) });
        }
    }
    out
}
