//! How fast one process asks one CA, however much there is to ask.
//!
//! CAs turn away what comes faster than a front door of theirs allows, by address and with a plain 503: Let's Encrypt lets
//! through 20 `newNonce` a second and 250 of everything else. Several processes behind one address share that, so each keeps
//! to a part of it. The arithmetic is the ledger's.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::model::ledger::{Bucket, Limit, settle};
use crate::model::moment::Moment;

/// How fast one process asks one CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paces {
    /// All requests.
    pub requests: Limit,
    /// Those for a nonce, which are few: answers bring them.
    pub new_nonces: Limit,
}

impl Default for Paces {
    fn default() -> Self {
        Paces { requests: Limit { burst: 60, per_secs: 1 }, new_nonces: Limit { burst: 5, per_secs: 1 } }
    }
}

impl Paces {
    /// As fast as it can, for a CA that nobody else asks.
    pub fn open() -> Self {
        let all = Limit { burst: 1_000_000, per_secs: 1 };
        Paces { requests: all, new_nonces: all }
    }
}

/// One pace, in the memory of one process.
pub(super) struct Pace {
    limit: Limit,
    tat: Mutex<Moment>,
}

impl Pace {
    pub(super) fn new(limit: Limit) -> Self {
        Pace { limit, tat: Mutex::new(Moment::from_micros(0)) }
    }

    /// A place of one's own, and how long it is until then: in order of asking.
    pub(super) fn place(&self, now: Moment) -> Duration {
        let mut tat = self.tat.lock().unwrap_or_else(PoisonError::into_inner);
        let at = Bucket { tat: *tat, ..Bucket::default() }.earliest(self.limit, now);
        *tat = settle(*tat, at, self.limit);
        at.since(now)
    }

    /// Whether one may go now, whose place it then is; else how long it is until one may.
    pub(super) fn now(&self, now: Moment) -> Result<(), Duration> {
        let mut tat = self.tat.lock().unwrap_or_else(PoisonError::into_inner);
        let at = Bucket { tat: *tat, ..Bucket::default() }.earliest(self.limit, now);
        if at > now {
            return Err(at.since(now));
        }
        *tat = settle(*tat, now, self.limit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_at_once_is_spread_in_order_of_asking() {
        let pace = Pace::new(Limit { burst: 5, per_secs: 1 });
        let now = Moment::from_secs(1_000);
        let waits: Vec<u128> = (0..8).map(|_| pace.place(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 200, 400, 600]);
        // Those places are taken: the next is after them, and a second later there is room for what refilled.
        assert_eq!(pace.now(now), Err(Duration::from_millis(800)));
        assert_eq!(pace.now(now + Duration::from_millis(800)), Ok(()));
        assert_eq!(pace.now(now + Duration::from_millis(800)), Err(Duration::from_millis(200)));
    }
}
