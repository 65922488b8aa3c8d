//! When what could not be delivered is tried again: soon, then less and less often, for days.

use std::time::Duration;

use super::moment::Moment;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Seconds between the tries of one delivery: four days in all.
const WAITS: [u64; 11] =
    [5, 30, 5 * MINUTE, 15 * MINUTE, HOUR, 2 * HOUR, 5 * HOUR, 10 * HOUR, 20 * HOUR, 24 * HOUR, 36 * HOUR];

/// The longest that a receiver's `Retry-After` is believed.
const LONGEST_ASKED: Duration = Duration::from_secs(24 * HOUR);
/// A place that is out of order is left alone for this long at most, so that it is noticed soon when it is back.
const LONGEST_PAUSE: u64 = 10 * MINUTE;
/// After a day of that, for longer.
const SLOWER_AFTER: i64 = 150;
/// For so long then.
const LONGEST_LATER: u64 = HOUR;

/// When to try again after the try of this number, counted from one; none when it is given up. A receiver may ask for more
/// time; the wait never shrinks for it.
pub fn next_try(tries: i64, asked: Option<Duration>, now: Moment) -> Option<Moment> {
    let at = usize::try_from(tries.max(1) - 1).unwrap_or(usize::MAX);
    let wait = Duration::from_secs(*WAITS.get(at)?);
    Some(now + asked.map_or(wait, |asked| wait.max(asked.min(LONGEST_ASKED))))
}

/// After so many refusals something is given up.
pub const REFUSALS: i64 = 12;

/// How long mail waits for a server that is away, after so many tries: as ever, but an hour at most, and it is not given up.
pub fn pause_for_server(tries: i64) -> Duration {
    let at = usize::try_from(tries.max(1) - 1).unwrap_or(usize::MAX).min(WAITS.len() - 1);
    Duration::from_secs(WAITS[at].min(HOUR))
}

/// How long a place is left alone after so many failures in a row.
pub fn pause_after(failures: i64) -> Duration {
    let doublings = u32::try_from(failures.clamp(1, 30) - 1).unwrap_or(0);
    let longest = if failures > SLOWER_AFTER { LONGEST_LATER } else { LONGEST_PAUSE };
    Duration::from_secs(5_u64.saturating_mul(1 << doublings).min(longest))
}

/// From so many failures in a row on, all that waits for a place is due at once when it is back.
pub const OUT_OF_ORDER: i64 = 3;

/// Between two tries of a place no more than this counts for how long it has failed: a process that stood still, or a clock that
/// jumped, is no failure of the receiver's.
pub const COUNTED: Duration = Duration::from_secs(2 * LONGEST_LATER);

/// Whether an answer says that the place is out of order, and not that it will not have what was sent: no answer at all, or one
/// of whoever stands before it.
pub fn is_out_of_order(status: Option<u16>) -> bool {
    matches!(status, None | Some(429 | 502..=504))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_spread_over_days_and_then_end() {
        let (mut now, mut tries) = (Moment::from_secs(0), 1);
        while let Some(next) = next_try(tries, None, now) {
            assert!(next > now);
            (now, tries) = (next, tries + 1);
        }
        assert_eq!(tries, 12);
        let days = now.secs() / 86_400;
        assert!((3..=5).contains(&days), "{days}");
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_but_not_for_ever() {
        let now = Moment::from_secs(0);
        assert_eq!(next_try(1, Some(Duration::from_secs(90)), now), Some(Moment::from_secs(90)));
        assert_eq!(next_try(3, Some(Duration::from_secs(1)), now), Some(Moment::from_secs(300)));
        assert_eq!(next_try(1, Some(Duration::MAX), now), Some(Moment::from_secs(86_400)));
        assert_eq!(next_try(i64::MIN, None, now), Some(Moment::from_secs(5)));
        assert_eq!(next_try(i64::MAX, None, now), None);
    }

    #[test]
    fn the_last_try_is_the_one_after_which_there_is_none() {
        let now = Moment::from_secs(0);
        assert!(next_try(REFUSALS - 1, None, now).is_some() && next_try(REFUSALS, None, now).is_none());
        let secs = |n| pause_for_server(n).as_secs();
        assert_eq!([secs(i64::MIN), secs(1), secs(2), secs(5), secs(6), secs(i64::MAX)], [5, 5, 30, 3600, 3600, 3600]);
    }

    #[test]
    fn a_place_that_fails_is_left_alone_for_minutes() {
        let secs = |n| pause_after(n).as_secs();
        assert_eq!([secs(0), secs(1), secs(2), secs(7), secs(8), secs(150)], [5, 5, 10, 320, 600, 600]);
        assert_eq!([secs(151), secs(i64::MAX)], [3600, 3600]);
    }
}
