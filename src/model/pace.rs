//! How often we look, and how long we wait after a failure.

use std::time::Duration;

use super::moment::Moment;

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// Steps of the pace: until this age (seconds after "saved") the wait between looks is that long (seconds).
const STEPS: [(u64, u64); 5] =
    [(2 * MINUTE, 15), (20 * MINUTE, 60), (2 * HOUR, 5 * MINUTE), (24 * HOUR, 30 * MINUTE), (7 * DAY, 4 * HOUR)];

/// The wait until the next look at records that were announced as saved at `from`.
pub fn look_again_in(from: Moment, now: Moment) -> Duration {
    let age = now.since(from).as_secs();
    let wait = STEPS.iter().find(|(until, _)| age < *until).map_or(DAY, |(_, wait)| *wait);
    Duration::from_secs(wait)
}

/// The wait after the `failures`-th failure in a row at a CA: 1, 10, 100 minutes, then daily (the retry advice of the
/// Let's Encrypt integration guide).
pub fn retry_order_in(failures: i64) -> Duration {
    Duration::from_secs(match failures {
        i64::MIN..=1 => MINUTE,
        2 => 10 * MINUTE,
        3 => 100 * MINUTE,
        _ => DAY,
    })
}

/// The wait after the `failures`-th time in a row that a question at the CA was not answered: doubles from 2 s to 10 min.
pub fn ask_again_in(failures: i64) -> Duration {
    let doublings = u32::try_from(failures.clamp(1, 10)).unwrap_or(10) - 1;
    Duration::from_secs((2_u64 << doublings).min(10 * MINUTE))
}

/// The wait until the state of something in progress is read again: short at first, longer the longer it lasts.
pub fn poll_again_in(since: Moment, now: Moment) -> Duration {
    let age = now.since(since);
    (age / 4).clamp(Duration::from_millis(100), Duration::from_secs(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_slows_down_as_documented() {
        let saved = Moment::from_secs(1_000_000);
        let at = |secs| look_again_in(saved, saved + Duration::from_secs(secs)).as_secs();
        assert_eq!([at(0), at(119), at(120), at(1199), at(1200), at(7199)], [15, 15, 60, 60, 300, 300]);
        assert_eq!([at(7200), at(86399), at(86400), at(604_799), at(604_800)], [1800, 1800, 14400, 14400, 86400]);
    }

    #[test]
    fn waits_grow_and_are_bounded() {
        assert_eq!([1, 2, 3, 4, 99].map(|n| retry_order_in(n).as_secs()), [60, 600, 6000, 86400, 86400]);
        assert_eq!([0, 1, 2, 3, 99].map(|n| ask_again_in(n).as_secs()), [2, 2, 4, 8, 600]);
    }
}
