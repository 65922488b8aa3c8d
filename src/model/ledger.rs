//! The arithmetic of what a CA still lets us spend: GCRA with one theoretical arrival time (TAT) per limit and key.
//!
//! A spend whose outcome is not known yet counts as one interval on top of `max(TAT, now)`; once it is answered, or closed at
//! its deadline, it moves the TAT for good: `TAT = max(TAT, that time) + interval`. So however long an answer is delayed and in
//! whatever order answers come, two calls can never be pushed into one slot of the CA's window.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::LimitName;
use super::moment::Moment;

/// A grant that is not used within this goes back.
pub const GRANT_LIFE: Duration = Duration::from_secs(600);
/// A call that was not answered this long after its grant ended never will be: longer than any call can last.
pub const UNANSWERED: Duration = Duration::from_secs(120);

/// A limit: at most `burst` in any `per`, refilled evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// How many may be spent at once.
    pub burst: u32,
    /// In how many seconds an empty bucket is full again.
    pub per_secs: u64,
}

impl Limit {
    /// The time one spend costs.
    pub fn interval(self) -> Duration {
        Duration::from_secs(self.per_secs) / self.burst.max(1)
    }

    /// How far ahead of now the theoretical arrival time may be.
    pub fn tolerance(self) -> Duration {
        self.interval() * (self.burst.max(1) - 1)
    }
}

/// One row of the ledger with its open spends. A key without a row is one that nothing was spent of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The theoretical arrival time.
    pub tat: Moment,
    /// Spends whose outcome is not known.
    pub open: u32,
    /// The CA refuses until then, and has said so: that holds whatever our own numbers are, and where we have none.
    pub closed_until: Moment,
}

impl Bucket {
    /// The earliest moment at which one more may be spent.
    pub fn earliest(self, limit: Limit, now: Moment) -> Moment {
        let ahead = self.tat.max(now) + limit.interval() * self.open;
        (ahead - limit.tolerance()).max(self.closed_until).max(now)
    }

    /// The same under a limit that the CA may be said not to have: its own word holds all the same.
    pub fn opens_at(self, limit: Option<Limit>, now: Moment) -> Moment {
        limit.map_or(self.closed_until.max(now), |limit| self.earliest(limit, now))
    }

    /// The bucket whose open spends are played as if they were answered now.
    #[must_use]
    pub fn as_if_answered(self, limit: Limit, now: Moment) -> Bucket {
        let tat = if self.open == 0 { self.tat } else { self.tat.max(now) + limit.interval().saturating_mul(self.open) };
        Bucket { tat, open: 0, ..self }
    }

    /// How many may be spent now.
    pub fn available(self, limit: Limit, now: Moment) -> u32 {
        if self.closed_until > now {
            return 0;
        }
        let ahead = self.tat.max(now) + limit.interval() * self.open;
        let room = (now + limit.tolerance() + limit.interval()).since(ahead);
        let slots = room.as_micros() / limit.interval().as_micros().max(1);
        u32::try_from(slots).unwrap_or(u32::MAX).min(limit.burst)
    }
}

/// What was spent, by limit and key, read in one look at the store.
pub type Spent = HashMap<(LimitName, String), Bucket>;

/// The TAT after a spend that ended at `at`.
pub fn settle(tat: Moment, at: Moment, limit: Limit) -> Moment {
    tat.max(at) + limit.interval()
}

/// The TAT (at least) after the CA said "not before `until`": nothing can be spent until then, and one at a time from then on.
pub fn paused_until(until: Moment, limit: Limit) -> Moment {
    until + limit.tolerance()
}

/// The TAT of an account that had already spent `spent` when we began to count.
pub fn spent_before(now: Moment, spent: u32, limit: Limit) -> Moment {
    now + limit.interval() * spent.min(limit.burst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LE: Limit = Limit { burst: 300, per_secs: 10_800 };

    #[test]
    fn a_full_bucket_gives_its_burst_and_then_one_an_interval() {
        let now = Moment::from_secs(1_000_000);
        let fresh = Bucket { tat: now, ..Bucket::default() };
        assert_eq!(fresh.available(LE, now), 300);
        assert_eq!(fresh.earliest(LE, now), now);
        let used = Bucket { tat: now, open: 300, ..Bucket::default() };
        assert_eq!(used.available(LE, now), 0);
        assert_eq!(used.earliest(LE, now), now + Duration::from_secs(36));
    }

    #[test]
    fn a_retry_after_closes_the_bucket_until_then() {
        let now = Moment::from_secs(1_000_000);
        let until = now + Duration::from_secs(600);
        let tat = paused_until(until, LE);
        let bucket = Bucket { tat, ..Bucket::default() };
        assert_eq!(bucket.earliest(LE, now), until);
        assert_eq!(bucket.available(LE, until), 1);
    }

    #[test]
    fn what_the_ca_closed_is_closed_whatever_is_configured_by_now() {
        let now = Moment::from_secs(1_000_000);
        let until = now + Duration::from_secs(600);
        // Closed under another limit than the one that is configured since, or under none.
        for tolerance in [Duration::ZERO, LE.tolerance()] {
            let closed = Bucket { tat: until + tolerance, open: 0, closed_until: until };
            for limit in [LE, Limit { burst: 1_000, per_secs: 1 }] {
                assert!(closed.earliest(limit, now) >= until, "{limit:?}");
                assert_eq!(closed.available(limit, until - Duration::from_micros(1)), 0, "{limit:?}");
            }
            assert_eq!(
                (closed.opens_at(None, now), closed.opens_at(None, until + LE.interval())),
                (until, until + LE.interval())
            );
        }
        assert_eq!(Bucket { tat: until, open: 9, ..Bucket::default() }.opens_at(None, now), now, "used up is not closed");
    }

    /// The CA's own counter, fed with the moments at which it happened to count our calls.
    fn ca_accepts(limit: Limit, mut counted: Vec<Moment>) -> bool {
        counted.sort();
        let mut tat = Moment::from_micros(i64::MIN);
        counted.into_iter().all(|at| {
            let ok = Bucket { tat, ..Bucket::default() }.earliest(limit, at) <= at;
            tat = settle(tat, at, limit);
            ok
        })
    }

    proptest! {
        /// Calls are made whenever the ledger allows; the CA counts each at any moment before we hear of it; we hear in any
        /// order. The CA never refuses one.
        #[test]
        fn we_never_spend_what_the_ca_would_refuse(
            delays in proptest::collection::vec((0_u64..20_000, 0_u64..=100, 0_u64..5_000), 1..400),
            burst in 1_u32..20,
        ) {
            let limit = Limit { burst, per_secs: 60 };
            let mut now = Moment::from_secs(1_000_000);
            let mut tat = now;
            let mut open: Vec<(Moment, Moment)> = Vec::new();
            let mut counted = Vec::new();
            for (delay_ms, share, gap_ms) in delays {
                now = now + Duration::from_millis(gap_ms);
                open.sort();
                while let Some(&(heard, at)) = open.first() {
                    if heard > now { break; }
                    open.remove(0);
                    counted.push(at);
                    tat = settle(tat, heard, limit);
                }
                let bucket = Bucket { tat, open: u32::try_from(open.len()).unwrap(), ..Bucket::default() };
                prop_assert_eq!(bucket.available(limit, now) > 0, bucket.earliest(limit, now) <= now);
                if bucket.available(limit, now) > 0 {
                    let heard = now + Duration::from_millis(delay_ms);
                    open.push((heard, now + Duration::from_millis(delay_ms * share / 100)));
                }
            }
            counted.extend(open.iter().map(|(_, at)| *at));
            prop_assert!(ca_accepts(limit, counted));
        }
    }
}
