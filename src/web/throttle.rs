//! How often somebody may try something that fails: so many times a minute and address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::model::moment::Moment;

/// Failures allowed in one [`WINDOW`].
const ALLOWED: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses kept in mind at once.
const MOST: usize = 10_000;

#[derive(Clone, Copy)]
struct Tries {
    since: Moment,
    failed: u32,
}

/// Counts failures by address; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Throttle(Arc<Mutex<HashMap<Option<IpAddr>, Tries>>>);

/// Whoever has an IPv6 address has at least the 64 bits behind it.
fn bucket(client: Option<IpAddr>) -> Option<IpAddr> {
    match client {
        Some(IpAddr::V6(ip)) => Some(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into()),
        other => other,
    }
}

impl Throttle {
    /// Takes one try; after too many the time to wait. [`Throttle::succeeded`] gives it back.
    pub(super) fn attempt(&self, client: Option<IpAddr>, now: Moment) -> Result<(), Duration> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.retain(|_, tries| now.since(tries.since) < WINDOW);
        }
        if all.len() >= MOST {
            // More addresses at once than people have: forget them rather than grow.
            all.clear();
        }
        let tries = all.entry(bucket(client)).or_insert(Tries { since: now, failed: 0 });
        if now.since(tries.since) >= WINDOW {
            *tries = Tries { since: now, failed: 0 };
        }
        if tries.failed >= ALLOWED {
            return Err(WINDOW - now.since(tries.since));
        }
        tries.failed += 1;
        Ok(())
    }

    /// The try was no failure.
    pub(super) fn succeeded(&self, client: Option<IpAddr>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&bucket(client));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_failures_a_minute_and_address() {
        let throttle = Throttle::default();
        let now = Moment::from_secs(1_000);
        let (one, near, other) =
            (Some("2001:db8::1".parse().unwrap()), Some("2001:db8::2".parse().unwrap()), Some("192.0.2.1".parse().unwrap()));
        for _ in 0..10 {
            assert_eq!(throttle.attempt(one, now), Ok(()));
        }
        assert_eq!(throttle.attempt(near, now + Duration::from_secs(20)), Err(Duration::from_secs(40)));
        assert_eq!(throttle.attempt(other, now), Ok(()));
        assert_eq!(throttle.attempt(one, now + WINDOW), Ok(()));
        throttle.succeeded(one);
        assert_eq!(throttle.attempt(near, now + WINDOW), Ok(()));
    }

    #[test]
    fn a_flood_of_addresses_does_not_grow_without_end() {
        let throttle = Throttle::default();
        for n in 0..25_000_u32 {
            let _ = throttle.attempt(Some(IpAddr::V4(n.into())), Moment::from_secs(5));
        }
        assert!(throttle.0.lock().unwrap().len() <= MOST);
    }
}
