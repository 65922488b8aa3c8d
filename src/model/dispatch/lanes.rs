//! The turns of the account: lanes with guaranteed shares, tenants in turn inside a lane, and what ends first before what ends later.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::Waiting;
use crate::model::id::TenantId;
use crate::model::moment::Moment;
use crate::model::order::Lane;

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

const DAY: Duration = Duration::from_secs(86_400);

/// Beyond so many days ends are alike: there is time for everybody's turn.
const NEAR_DAYS: u32 = 7;

/// On which of the coming days a certificate ends: 0 where it has ended, 1 for the next 24 hours. Whatever lifetime it had, a day is
/// a day to the budget that must renew it.
pub fn nearness(ends: Moment, at: Moment) -> u32 {
    let days = ends.since(at).as_micros().div_ceil(DAY.as_micros());
    u32::try_from(days).unwrap_or(u32::MAX).min(NEAR_DAYS + 1)
}

/// Where a tenant stands in a lane: by the nearness of its first order, then by when it was served last; of those alike, by the end
/// and the age of that order.
type Rank = (u32, u64, Moment, usize, TenantId);

/// One tenant in a lane: its orders, what ends first and then the oldest first, by their number in the list.
#[derive(Default)]
struct Line {
    served: u64,
    orders: BTreeSet<(Moment, usize)>,
    rank: Option<Rank>,
}

/// One lane. The tenant served longest ago comes first, unless another's first order ends on an earlier day.
#[derive(Default)]
struct Queue {
    lines: HashMap<TenantId, Line>,
    turns: BTreeSet<Rank>,
    /// When the first order of a tenant comes a day nearer to its end.
    nearer: BTreeSet<(Moment, TenantId)>,
}

impl Queue {
    /// Puts a tenant where it belongs at this moment.
    fn rank(&mut self, tenant: &TenantId, at: Moment) {
        let Some(line) = self.lines.get_mut(tenant) else { return };
        if let Some(old) = line.rank.take() {
            self.turns.remove(&old);
        }
        let Some((ends, n)) = line.orders.first().copied() else { return };
        let near = nearness(ends, at);
        if near > 0 && ends != Moment::NEVER {
            self.nearer.insert((ends - DAY * (near - 1), tenant.clone()));
        }
        let rank = (near, line.served, ends, n, tenant.clone());
        line.rank = Some(rank.clone());
        self.turns.insert(rank);
    }

    fn push(&mut self, n: usize, w: &Waiting, at: Moment) {
        let line = self.lines.entry(w.tenant_id.clone()).or_insert_with(|| Line { served: w.served, ..Line::default() });
        line.orders.insert((w.ends, n));
        self.rank(&w.tenant_id, at);
    }

    fn pop(&mut self, turn: u64, at: Moment) -> Option<usize> {
        while self.nearer.first().is_some_and(|(when, _)| *when <= at) {
            let Some((_, tenant)) = self.nearer.pop_first() else { break };
            self.rank(&tenant, at);
        }
        let (.., tenant) = self.turns.first()?.clone();
        let line = self.lines.get_mut(&tenant)?;
        let (_, n) = line.orders.pop_first()?;
        // Kept when empty: who comes back was served in this turn.
        line.served = turn + 1;
        self.rank(&tenant, at);
        Some(n)
    }
}

/// All lanes.
#[derive(Default)]
pub(super) struct LaneQueues {
    lanes: BTreeMap<Lane, Queue>,
    waiting: usize,
}

impl LaneQueues {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    pub(super) fn push(&mut self, n: usize, w: &Waiting, at: Moment) {
        self.lanes.entry(w.lane).or_default().push(n, w, at);
        self.waiting += 1;
    }

    /// The order that is served in this turn.
    pub(super) fn pop(&mut self, turn: u64, at: Moment) -> Option<usize> {
        let preferred = TURNS[usize::try_from(turn % 10).unwrap_or(0)];
        let others = Lane::ALL.iter().copied().filter(|l| *l != preferred);
        let mut order = std::iter::once(preferred).chain(others);
        let n = order.find_map(|lane| self.lanes.get_mut(&lane).and_then(|q| q.pop(turn, at)))?;
        self.waiting -= 1;
        Some(n)
    }
}
