//! An order's own limits: its registered domain and its name. Who finds room there is offered it and competes for the account;
//! who finds none waits in that limit's line.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::time::Duration;

use super::Waiting;
use crate::model::ledger::{Bucket, Limit, Spent, settle};
use crate::model::limits::{LimitName, Limits};
use crate::model::moment::Moment;
use crate::model::order::Lane;

/// One key of one limit.
struct Key {
    name: LimitName,
    /// None where configuration says that the CA has no such limit, and the CA refused for it.
    limit: Option<Limit>,
    bucket: Bucket,
    /// Orders that compete for the account with room here set aside for them.
    offered: u32,
    /// Orders that wait for room here.
    line: BTreeSet<(Lane, Moment, usize)>,
}

impl Key {
    fn has_room(&self, at: Moment) -> bool {
        match self.limit {
            Some(limit) => self.bucket.available(limit, at) > self.offered,
            None => self.bucket.closed_until <= at,
        }
    }

    /// Whether the room there is is somebody else's, who waits for it already and comes first.
    fn is_spoken_for(&self, place: (Lane, Moment, usize)) -> bool {
        self.line.first().is_some_and(|first| *first < place)
    }

    /// When there is room for one more than was offered; nothing while all there can be is offered: a spend tells then.
    fn next_room(&self) -> Option<Moment> {
        let Some(limit) = self.limit else { return Some(self.bucket.closed_until) };
        let ahead = limit.interval() * self.offered;
        let room = || (self.bucket.tat + ahead - limit.tolerance()).max(self.bucket.closed_until);
        (self.offered < limit.burst).then(room)
    }
}

/// One order.
struct Item {
    /// Where it stands in a line: its lane, and when the certificate ends that it renews.
    rank: (Lane, Moment),
    keys: Vec<usize>,
    held_by: Option<LimitName>,
    room_at: Moment,
}

pub(super) struct OwnLimits {
    keys: Vec<Key>,
    items: Vec<Item>,
    refills: BinaryHeap<Reverse<(Moment, usize)>>,
}

impl OwnLimits {
    pub(super) fn new(waiting: &[Waiting], limits: &Limits, spent: &Spent, now: Moment) -> Self {
        let own = || LimitName::ALL.iter().copied().filter(|name| *name != LimitName::OrdersPerAccount);
        let mut keys: Vec<Key> = Vec::new();
        let mut known: HashMap<(LimitName, &str), usize> = HashMap::new();
        let mut items = Vec::with_capacity(waiting.len());
        // Almost no key has a row: those that have are found by their text alone, without a copy of it for each question.
        let mut rows: HashMap<(LimitName, &str), Bucket> = HashMap::new();
        rows.extend(spent.iter().map(|((limit, key), bucket)| ((*limit, key.as_str()), *bucket)));
        for w in waiting {
            let of_order = own().filter_map(|name| {
                let (limit, key) = (limits.get(&name).copied(), name.key(&w.name));
                // A limit that is not there holds nobody, unless the CA said otherwise.
                if limit.is_none() && rows.get(&(name, key)).is_none_or(|row| row.closed_until <= now) {
                    return None;
                }
                Some(*known.entry((name, key)).or_insert_with(|| {
                    let row = rows.get(&(name, key)).copied().unwrap_or_default();
                    let bucket = limit.map_or(row, |limit| row.as_if_answered(limit, now));
                    keys.push(Key { name, limit, bucket, offered: 0, line: BTreeSet::new() });
                    keys.len() - 1
                }))
            });
            let of_order: Vec<usize> = of_order.collect();
            let held_by = of_order.iter().map(|k| &keys[*k]).find(|key| !key.has_room(now)).map(|key| key.name);
            items.push(Item { rank: (w.lane, w.ends), keys: of_order, held_by, room_at: Moment::default() });
        }
        OwnLimits { keys, items, refills: BinaryHeap::new() }
    }

    /// Whether the order has room under all its limits, which is then set aside; else it waits in the line of the limit that
    /// has room last. Who comes in the moment in which there is room again comes after those who waited for it.
    pub(super) fn admit(&mut self, n: usize, at: Moment) -> bool {
        let (lane, ends) = self.items[n].rank;
        let taken = |key: &Key| !key.has_room(at) || key.is_spoken_for((lane, ends, n));
        let full = self.items[n].keys.iter().copied().filter(|k| taken(&self.keys[*k]));
        let last = full.max_by_key(|k| self.keys[*k].next_room().unwrap_or(Moment::NEVER));
        let item = &mut self.items[n];
        let Some(k) = last else {
            item.room_at = at;
            for k in &item.keys {
                self.keys[*k].offered += 1;
            }
            return true;
        };
        item.held_by = item.held_by.or(Some(self.keys[k].name));
        self.keys[k].line.insert((lane, ends, n));
        self.await_room(k, at);
        false
    }

    /// Looks at the line again when there can be room, which is later than `at`.
    fn await_room(&mut self, k: usize, at: Moment) {
        if let Some(room) = self.keys[k].next_room() {
            self.refills.push(Reverse((room.max(at + Duration::from_micros(1)), k)));
        }
    }

    /// When somebody in a line may have room.
    pub(super) fn next_at(&self) -> Option<Moment> {
        self.refills.peek().map(|Reverse((at, _))| *at)
    }

    /// Orders in lines that have room now.
    pub(super) fn freed(&mut self, at: Moment) -> Vec<usize> {
        let mut freed = Vec::new();
        while let Some(Reverse((_, k))) = self.refills.peek().copied().filter(|Reverse((when, _))| *when <= at) {
            self.refills.pop();
            while self.keys[k].has_room(at)
                && let Some((.., n)) = self.keys[k].line.pop_first()
            {
                if self.admit(n, at) {
                    freed.push(n);
                }
            }
            if !self.keys[k].line.is_empty() {
                self.await_room(k, at);
            }
        }
        freed
    }

    /// The order got its grant at `at`.
    pub(super) fn spend(&mut self, n: usize, at: Moment) {
        for i in 0..self.items[n].keys.len() {
            let k = self.items[n].keys[i];
            let key = &mut self.keys[k];
            key.offered -= 1;
            if let Some(limit) = key.limit {
                key.bucket.tat = settle(key.bucket.tat, at, limit);
            }
            if !key.line.is_empty() {
                self.await_room(k, at);
            }
        }
    }

    /// The limit that had no room for the order when it came, and when it had.
    pub(super) fn held(&self, n: usize) -> Option<(LimitName, Moment)> {
        let item = &self.items[n];
        item.held_by.map(|limit| (limit, item.room_at))
    }
}
