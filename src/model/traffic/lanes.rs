//! Those who wait, and whose turn it is.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use super::cap::{Cap, Row};
use crate::model::id::TenantId;
use crate::model::look::Lane;
use crate::model::moment::Moment;

/// The lanes' shares of ten turns. A lane with nobody whose caps are open gives its turn to the most urgent that has somebody.
const TURNS: [Lane; 10] = [
    Lane::CheckNow,
    Lane::CheckNow,
    Lane::Single,
    Lane::CheckNow,
    Lane::Routine,
    Lane::CheckNow,
    Lane::Single,
    Lane::CheckNow,
    Lane::Bulk,
    Lane::Single,
];

/// Tenants whose last turn is remembered while anybody waits.
const REMEMBERED: usize = 10_000;

/// Rows below this number are not worth a look for idle ones.
const FEW: usize = 1024;

/// Somebody who wants to go.
#[derive(Clone, Debug)]
pub struct Request<K> {
    /// In this lane.
    pub lane: Lane,
    /// For this tenant.
    pub tenant: Option<TenantId>,
    /// Under all of these caps.
    pub caps: Vec<(K, Cap)>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// It may go at once.
    Now,
    /// It waits, about so long.
    Waits(Duration),
}

/// The two tables.
#[derive(Debug)]
pub struct Traffic<K> {
    rows: HashMap<K, Row>,
    waiting: BTreeMap<(Lane, u64), Request<K>>,
    under_way: HashMap<u64, Vec<(K, Cap)>>,
    /// When each tenant that has somebody waiting was last served, in grants.
    served: HashMap<Option<TenantId>, u64>,
    entered: u64,
    granted: u64,
    look_for_idle_at: usize,
}

impl<K> Default for Traffic<K> {
    fn default() -> Self {
        Traffic {
            rows: HashMap::new(),
            waiting: BTreeMap::new(),
            under_way: HashMap::new(),
            served: HashMap::new(),
            entered: 0,
            granted: 0,
            look_for_idle_at: FEW,
        }
    }
}

impl<K: Clone + Eq + Hash> Traffic<K> {
    /// Somebody comes; the number by which they are known, and whether they may go.
    pub fn enter(&mut self, request: Request<K>, now: Moment) -> (u64, Entered) {
        self.forget_idle(now);
        self.entered += 1;
        let number = self.entered;
        let nobody_waits = |k: &K| !self.rows.get(k).is_some_and(Row::contended);
        if request.caps.iter().all(|(k, _)| nobody_waits(k)) && self.open(&request, now) {
            self.go(number, request, now);
            return (number, Entered::Now);
        }
        let about = self.about(&request, now);
        for (k, _) in &request.caps {
            self.rows.entry(k.clone()).or_insert_with(Row::new).come(request.lane);
        }
        self.waiting.insert((request.lane, number), request);
        (number, Entered::Waits(about))
    }

    /// About how long somebody who comes now waits.
    pub fn about(&self, request: &Request<K>, now: Moment) -> Duration {
        let own = TURNS.iter().filter(|lane| **lane == request.lane).count().max(1);
        let share = u32::try_from(TURNS.len().div_ceil(own)).unwrap_or(1);
        let row =
            |(k, cap): &(K, Cap)| self.rows.get(k).map_or(Duration::ZERO, |row| row.about(*cap, request.lane, share, now));
        request.caps.iter().map(row).max().unwrap_or_default()
    }

    /// Those who may go now, and now are under way.
    pub fn give(&mut self, now: Moment) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(key) = self.next(now) {
            let Some(request) = self.waiting.remove(&key) else { break };
            self.count_out(&request);
            self.served.insert(request.tenant.clone(), self.granted + 1);
            self.go(key.1, request, now);
            all.push(key.1);
        }
        if self.waiting.is_empty() || self.served.len() > REMEMBERED {
            self.served.clear();
        }
        all
    }

    /// One who is under way begins another piece of the same, if every rate is open and nobody waits for it.
    pub fn again(&mut self, number: u64, now: Moment) -> bool {
        let Some(caps) = self.under_way.get(&number) else { return false };
        let rate_only = |cap: &Cap| Cap { at_once: None, ..*cap };
        let open = caps.iter().all(|(k, cap)| {
            self.rows.get(k).is_none_or(|row| !row.contended() && row.opens_in(rate_only(cap), now) == Some(Duration::ZERO))
        });
        if open {
            for (k, cap) in caps {
                if let Some(row) = self.rows.get_mut(k) {
                    row.take(*cap, now);
                }
            }
        }
        open
    }

    /// Whether somebody still waits.
    pub fn waits(&self, lane: Lane, number: u64) -> bool {
        self.waiting.contains_key(&(lane, number))
    }

    /// How long until the caps of one who waits may be open; none when that is for somebody else to say, by leaving.
    pub fn opens_in(&self, lane: Lane, number: u64, now: Moment) -> Option<Duration> {
        self.waiting.get(&(lane, number)).and_then(|request| self.wait_of(request, now))
    }

    /// How long until the first of those who wait may go.
    pub fn next_opening(&self, now: Moment) -> Option<Duration> {
        self.waiting.values().filter_map(|request| self.wait_of(request, now)).min()
    }

    fn wait_of(&self, request: &Request<K>, now: Moment) -> Option<Duration> {
        request.caps.iter().try_fold(Duration::ZERO, |longest, (k, cap)| {
            let wait = self.rows.get(k).map_or(Some(Duration::ZERO), |row| row.opens_in(*cap, now))?;
            Some(longest.max(wait))
        })
    }

    /// Somebody is through, or waits no longer.
    pub fn leave(&mut self, lane: Lane, number: u64) {
        if let Some(request) = self.waiting.remove(&(lane, number)) {
            self.count_out(&request);
        } else {
            for (k, _) in self.under_way.remove(&number).unwrap_or_default() {
                if let Some(row) = self.rows.get_mut(&k) {
                    row.held = row.held.saturating_sub(1);
                }
            }
        }
    }

    /// How many wait in a lane.
    pub fn waiting(&self, lane: Lane) -> usize {
        self.waiting.range((lane, 0)..=(lane, u64::MAX)).count()
    }

    /// How many rows are kept.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    fn open(&self, request: &Request<K>, now: Moment) -> bool {
        let open = |(k, cap): &(K, Cap)| self.rows.get(k).is_none_or(|row| row.opens_in(*cap, now) == Some(Duration::ZERO));
        request.caps.iter().all(open)
    }

    fn next(&self, now: Moment) -> Option<(Lane, u64)> {
        if self.waiting.is_empty() {
            return None;
        }
        let turn = usize::try_from(self.granted % TURNS.len() as u64).unwrap_or(0);
        let lanes = std::iter::once(TURNS[turn]).chain(Lane::ALL.iter().copied());
        for lane in lanes {
            let open = self.waiting.range((lane, 0)..=(lane, u64::MAX)).filter(|(_, r)| self.open(r, now));
            let first = open.min_by_key(|(key, r)| (self.served.get(&r.tenant).copied().unwrap_or(0), key.1));
            if let Some((key, _)) = first {
                return Some(*key);
            }
        }
        None
    }

    fn go(&mut self, number: u64, request: Request<K>, now: Moment) {
        self.granted += 1;
        for (k, cap) in &request.caps {
            let row = self.rows.entry(k.clone()).or_insert_with(Row::new);
            row.take(*cap, now);
            row.held += 1;
        }
        self.under_way.insert(number, request.caps);
    }

    fn count_out(&mut self, request: &Request<K>) {
        for (k, _) in &request.caps {
            if let Some(row) = self.rows.get_mut(k) {
                row.gone(request.lane);
            }
        }
    }

    fn forget_idle(&mut self, now: Moment) {
        if self.rows.len() >= self.look_for_idle_at {
            self.rows.retain(|_, row| !row.idle(now));
            self.look_for_idle_at = (self.rows.len() * 2).max(FEW);
        }
    }
}
