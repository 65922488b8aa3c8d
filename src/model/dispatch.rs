//! Who gets the next grant: a pure choice over all orders that wait at one issuer.
//!
//! Lanes have guaranteed shares of the turns (renewals 5, single claims 3, bulk 2 of 10); a lane with nothing to do gives its
//! turn to the next. Inside a lane tenants take turns, each with its oldest order first. The same walk that gives grants gives
//! every order that must wait its position and the time it can expect, so what a page says is what will happen.

use std::collections::{BTreeMap, VecDeque};

use super::id::{OrderId, TenantId};
use super::ledger::{Bucket, Limit};
use super::moment::Moment;
use super::order::Lane;

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

/// Ten turns: which lane is asked first.
const TURNS: [Lane; 10] = [
    Lane::Renewal,
    Lane::Single,
    Lane::Renewal,
    Lane::Bulk,
    Lane::Renewal,
    Lane::Single,
    Lane::Renewal,
    Lane::Bulk,
    Lane::Renewal,
    Lane::Single,
];

/// One lane: tenants in turn, each with its orders oldest first.
#[derive(Default)]
struct Queue {
    turns: VecDeque<TenantId>,
    orders: BTreeMap<TenantId, VecDeque<Waiting>>,
}

impl Queue {
    fn push(&mut self, w: &Waiting) {
        let orders = self.orders.entry(w.tenant_id.clone()).or_default();
        if orders.is_empty() {
            self.turns.push_back(w.tenant_id.clone());
        }
        orders.push_back(w.clone());
    }

    fn pop(&mut self) -> Option<Waiting> {
        let tenant = self.turns.pop_front()?;
        let orders = self.orders.get_mut(&tenant)?;
        let next = orders.pop_front();
        if orders.is_empty() {
            self.orders.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        next
    }
}

/// Gives grants. `waiting` is sorted by age (order ids sort so), `turn` counts the grants given so far.
pub fn dispatch(waiting: &[Waiting], bucket: Bucket, limit: Limit, turn: u64, now: Moment) -> Dispatched {
    let mut lanes: BTreeMap<Lane, Queue> = BTreeMap::new();
    let mut later: Vec<&Waiting> = Vec::new();
    for w in waiting {
        if w.not_before <= now {
            lanes.entry(w.lane).or_default().push(w);
        } else {
            later.push(w);
        }
    }
    let mut out = Dispatched::default();
    let mut free = bucket.available(limit, now);
    let mut given = 0_u32;
    let mut position = 0_u32;
    for turn in turn.. {
        let Some(next) = next_in_turn(&mut lanes, turn) else { break };
        if free > 0 {
            free -= 1;
            given += 1;
            out.grants.push(next.order_id);
        } else {
            position += 1;
            let ahead = Bucket { tat: bucket.tat, open: bucket.open + given + position - 1 };
            out.places.push(Place { order_id: next.order_id, position, eta: ahead.earliest(limit, now) });
        }
    }
    later.sort_by_key(|w| w.not_before);
    for w in later {
        position += 1;
        let ahead = Bucket { tat: bucket.tat, open: bucket.open + given + position - 1 };
        out.places.push(Place { order_id: w.order_id.clone(), position, eta: ahead.earliest(limit, now).max(w.not_before) });
    }
    out.places.sort_by_key(|p| (p.eta, p.position));
    for (place, position) in out.places.iter_mut().zip(1..) {
        place.position = position;
    }
    out
}

fn next_in_turn(lanes: &mut BTreeMap<Lane, Queue>, turn: u64) -> Option<Waiting> {
    let preferred = TURNS[usize::try_from(turn % 10).unwrap_or(0)];
    let mut order = vec![preferred];
    order.extend(Lane::ALL.iter().copied().filter(|l| *l != preferred));
    order.into_iter().find_map(|lane| lanes.get_mut(&lane).and_then(Queue::pop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const LIMIT: Limit = Limit { burst: 10, per_secs: 100 };

    fn waiting(n: u8, tenant: u8, lane: Lane, not_before: Moment) -> Waiting {
        let at = Moment::from_secs(i64::from(n));
        Waiting {
            order_id: OrderId::mint(at, [n; 10]),
            tenant_id: TenantId::mint(Moment::default(), [tenant; 10]),
            lane,
            not_before,
        }
    }

    #[test]
    fn lanes_share_turns_and_tenants_take_turns() {
        let now = Moment::from_secs(1_000);
        let mut all: Vec<Waiting> = (0..20).map(|n| waiting(n, 1, Lane::Bulk, now)).collect();
        all.push(waiting(20, 2, Lane::Bulk, now));
        all.push(waiting(21, 1, Lane::Single, now));
        let d = dispatch(&all, Bucket { tat: now, open: 0 }, LIMIT, 1, now);
        assert_eq!(d.grants.len(), 10);
        assert_eq!(d.grants[0], all[21].order_id, "the single claim is not kept waiting by an import");
        assert_eq!(d.grants[2], all[20].order_id, "the second tenant comes second in its lane");
        assert_eq!(d.places[0].eta, now + Duration::from_secs(10));
        assert_eq!(d.places[1].eta, now + Duration::from_secs(20));
        assert_eq!(d.places[0].position, 1);
    }

    #[test]
    fn an_order_that_may_not_run_yet_takes_no_slot() {
        let now = Moment::from_secs(1_000);
        let later = now + Duration::from_secs(500);
        let d = dispatch(&[waiting(1, 1, Lane::Single, later)], Bucket { tat: now, open: 0 }, LIMIT, 0, now);
        assert!(d.grants.is_empty());
        assert_eq!(d.next_at(), Some(later));
    }

    proptest! {
        #[test]
        fn every_order_is_granted_or_placed_once_and_never_beyond_the_bucket(
            kinds in proptest::collection::vec((0_u8..4, 0_usize..3, 0_i64..3), 0..60),
            open in 0_u32..15, turn in 0_u64..50,
        ) {
            let now = Moment::from_secs(1_000);
            let all: Vec<Waiting> = kinds.iter().enumerate().map(|(i, (t, l, nb))| {
                waiting(u8::try_from(i).unwrap(), *t, Lane::ALL[*l], Moment::from_secs(999 + nb))
            }).collect();
            let bucket = Bucket { tat: now, open };
            let d = dispatch(&all, bucket, LIMIT, turn, now);
            prop_assert!(d.grants.len() <= usize::try_from(bucket.available(LIMIT, now)).unwrap());
            let mut seen: Vec<_> = d.grants.iter().chain(d.places.iter().map(|p| &p.order_id)).cloned().collect();
            seen.sort();
            let mut want: Vec<_> = all.iter().map(|w| w.order_id.clone()).collect();
            want.sort();
            prop_assert_eq!(seen, want);
            prop_assert!(d.places.windows(2).all(|w| w[0].eta <= w[1].eta));
            prop_assert!(d.places.iter().all(|p| p.eta >= now));
        }
    }
}
