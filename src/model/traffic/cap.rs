//! One cap, and the row that counts against it.

use std::time::Duration;

use crate::model::look::Lane;
use crate::model::moment::Moment;

/// A part of a second's worth that may come together.
const BURST: u32 = 3;

/// How much of one thing may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// In any second; none for as much as comes.
    pub per_second: Option<u32>,
    /// At the same time; none for as much as comes.
    pub at_once: Option<u32>,
}

impl Cap {
    /// So many in any second, and so many at once.
    pub fn new(per_second: u32, at_once: u32) -> Self {
        Cap { per_second: Some(per_second.max(1)), at_once: Some(at_once.max(1)) }
    }

    /// So many in any second, however many at once.
    pub fn per_second(n: u32) -> Self {
        Cap { per_second: Some(n.max(1)), at_once: None }
    }

    /// So many at once, however fast.
    pub fn at_once(n: u32) -> Self {
        Cap { per_second: None, at_once: Some(n.max(1)) }
    }

    /// How many may come together, and how far apart the others are. With bursts of `b` and `n - b` a second after them, no
    /// second holds more than `n`.
    fn shape(per_second: u32) -> (u32, Duration) {
        let burst = (per_second / BURST).max(1);
        let rest = per_second.saturating_sub(burst).max(1);
        (burst, Duration::from_nanos(1_000_000_000_u64.div_ceil(u64::from(rest)).next_multiple_of(1_000)))
    }
}

/// What is known of one thing: its theoretical arrival time, and how many are under way or waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    tat: Moment,
    pub held: u32,
    /// By lane, the most urgent first.
    waiting: [u32; Lane::ALL.len()],
}

impl Row {
    pub fn new() -> Self {
        Row { tat: Moment::from_micros(i64::MIN / 2), held: 0, waiting: [0; Lane::ALL.len()] }
    }

    /// As good as a new one.
    pub fn idle(&self, now: Moment) -> bool {
        self.held == 0 && !self.contended() && self.tat <= now
    }

    /// Whether anybody waits.
    pub fn contended(&self) -> bool {
        self.waiting.iter().any(|n| *n > 0)
    }

    /// Somebody begins to wait.
    pub fn come(&mut self, lane: Lane) {
        self.waiting[lane as usize] += 1;
    }

    /// Somebody waits no longer.
    pub fn gone(&mut self, lane: Lane) {
        let waiting = &mut self.waiting[lane as usize];
        *waiting = waiting.saturating_sub(1);
    }

    /// How long until one more may begin; none while the places are taken, which ends when somebody leaves.
    pub fn opens_in(&self, cap: Cap, now: Moment) -> Option<Duration> {
        if cap.at_once.is_some_and(|n| self.held >= n) {
            return None;
        }
        let Some(n) = cap.per_second else { return Some(Duration::ZERO) };
        let (burst, interval) = Cap::shape(n);
        Some(self.tat.since(now + interval * (burst - 1)))
    }

    /// Counts one more.
    pub fn take(&mut self, cap: Cap, now: Moment) {
        if let Some(n) = cap.per_second {
            self.tat = self.tat.max(now) + Cap::shape(n).1;
        }
    }

    /// About how long one that comes now waits: behind those who are as urgent or more, and behind as many of the others as
    /// their lanes' shares let through meanwhile. `share`: of how many turns one is its own lane's.
    pub fn about(&self, cap: Cap, lane: Lane, share: u32, now: Moment) -> Duration {
        let (before, after) = self.waiting.split_at(lane as usize + 1);
        let own = self.waiting[lane as usize] + 1;
        let ahead = before.iter().sum::<u32>() + after.iter().sum::<u32>().min(own * (share - 1));
        let interval = cap.per_second.map_or(Duration::ZERO, |n| Cap::shape(n).1);
        // Places come free about once in the time that an ordinary look takes.
        let places = cap.at_once.filter(|n| self.held >= *n).map_or(Duration::ZERO, |n| Duration::from_secs(1) / n);
        self.opens_in(cap, now).unwrap_or(places) + interval.max(places) * ahead
    }
}
