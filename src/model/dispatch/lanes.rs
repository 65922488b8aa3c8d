//! The turns of the account: lanes with guaranteed shares, tenants in turn inside a lane.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Waiting;
use crate::model::id::TenantId;
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

/// One tenant in a lane: its orders, oldest first, by their number in the list.
#[derive(Default)]
struct Line {
    served: u64,
    orders: BTreeSet<usize>,
}

/// One lane. The tenant served longest ago comes first; of those never served, the one with the oldest order.
#[derive(Default)]
struct Queue {
    lines: HashMap<TenantId, Line>,
    turns: BTreeSet<(u64, usize, TenantId)>,
}

impl Queue {
    fn key(tenant: &TenantId, line: &Line) -> Option<(u64, usize, TenantId)> {
        Some((line.served, *line.orders.first()?, tenant.clone()))
    }

    fn push(&mut self, n: usize, w: &Waiting) {
        let line = self.lines.entry(w.tenant_id.clone()).or_insert_with(|| Line { served: w.served, ..Line::default() });
        if let Some(old) = Queue::key(&w.tenant_id, line) {
            self.turns.remove(&old);
        }
        line.orders.insert(n);
        self.turns.extend(Queue::key(&w.tenant_id, line));
    }

    fn pop(&mut self, turn: u64) -> Option<usize> {
        let (_, n, tenant) = self.turns.pop_first()?;
        let line = self.lines.get_mut(&tenant)?;
        line.orders.remove(&n);
        // Kept when empty: who comes back was served in this turn.
        line.served = turn + 1;
        self.turns.extend(Queue::key(&tenant, line));
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

    pub(super) fn push(&mut self, n: usize, w: &Waiting) {
        self.lanes.entry(w.lane).or_default().push(n, w);
        self.waiting += 1;
    }

    /// The order that is served in this turn.
    pub(super) fn pop(&mut self, turn: u64) -> Option<usize> {
        let preferred = TURNS[usize::try_from(turn % 10).unwrap_or(0)];
        let others = Lane::ALL.iter().copied().filter(|l| *l != preferred);
        let mut order = std::iter::once(preferred).chain(others);
        let n = order.find_map(|lane| self.lanes.get_mut(&lane).and_then(|q| q.pop(turn)))?;
        self.waiting -= 1;
        Some(n)
    }
}
