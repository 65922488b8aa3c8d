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

/// An imported name that waits for its records is looked at in a lap, which takes at least this and at most a day.
pub const SHORTEST_LAP: Duration = Duration::from_secs(HOUR);
/// One that waits for nothing but the CA's turn is looked at once a day.
pub const LONGEST_LAP: Duration = Duration::from_secs(DAY);

/// The age at which a name that changed by itself joins the pace: nobody sits before it and waits.
const JOINS_AT: Duration = Duration::from_secs(20 * MINUTE);

/// How long a lap of `names` imported names takes at `per_second` looks. Each name comes once a day, however many there are.
pub fn lap(names: u64, per_second: u32) -> Duration {
    Duration::from_secs(names / u64::from(per_second.max(1))).clamp(SHORTEST_LAP, LONGEST_LAP)
}

/// The wait until the next look at an imported name: a lap, or the usual pace after something happened to it, where that is
/// shorter.
pub fn look_at_import_in(touched: Option<Moment>, now: Moment, lap: Duration) -> Duration {
    touched.map_or(lap, |from| look_again_in(from, now).min(lap))
}

/// From when on an imported name is paced that looked different at `now`, unless that was so a short while ago: a zone that
/// changes with every look is no reason for more of them.
pub fn touched_at(before: Option<Moment>, now: Moment) -> Option<Moment> {
    before.is_none_or(|at| now.since(at) >= LONGEST_LAP).then(|| now - JOINS_AT)
}

/// When an imported name is looked at first: each tenant's names one after the other, at `per_second`.
pub fn first_look_at(last_in_line: Option<Moment>, now: Moment, per_second: u32) -> Moment {
    let next = |last: Moment| last + Duration::from_secs(1) / per_second.max(1);
    last_in_line.map_or(now, |last| next(last).max(now))
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
    fn a_lap_is_as_slow_as_its_names_are_many_but_never_slower_than_a_day() {
        let secs = |names| lap(names, 1).as_secs();
        assert_eq!([secs(0), secs(3_600), secs(10_000), secs(10_000_000)], [3_600, 3_600, 10_000, 86_400]);
        assert_eq!(lap(10_000, 0), lap(10_000, 1));
    }

    #[test]
    fn an_imported_name_leaves_its_lap_when_something_happens_to_it_and_comes_back() {
        let (now, lap) = (Moment::from_secs(1_000_000), Duration::from_secs(10_000));
        assert_eq!(look_at_import_in(None, now, lap), lap);
        let touched = touched_at(None, now).unwrap();
        let at = |secs| look_at_import_in(Some(touched), now + Duration::from_secs(secs), lap).as_secs();
        assert_eq!(
            [at(0), at(5_999), at(6_000), at(80_000), at(90_000), at(900_000)],
            [300, 300, 1_800, 1_800, 10_000, 10_000]
        );
        // A zone that changes all the time has this once a day.
        assert_eq!(touched_at(Some(touched), now + Duration::from_secs(80_000)), None);
        assert!(touched_at(Some(touched), now + Duration::from_secs(86_400)).is_some());
    }

    /// Two days of ten thousand imported names that nobody touches, and of one more import in the middle.
    #[test]
    fn ten_thousand_names_cost_a_first_look_each_and_a_slow_lap() {
        let start = Moment::from_secs(1_800_000_000);
        let mut due: std::collections::BTreeSet<(Moment, u32)> = std::collections::BTreeSet::new();
        let import = |due: &mut std::collections::BTreeSet<(Moment, u32)>, at: Moment, names: std::ops::Range<u32>| {
            let mut last = None;
            for name in names {
                let first = first_look_at(last, at, 10);
                last = Some(first);
                due.insert((first, name));
            }
        };
        import(&mut due, start, 0..10_000);
        let (mut looks, mut last_look) = (Vec::new(), vec![start; 12_000]);
        let (mut longest, mut more) = (Duration::ZERO, true);
        while let Some((at, name)) = due.pop_first().filter(|(at, _)| at.since(start) < Duration::from_secs(2 * DAY)) {
            if more && at.since(start) > Duration::from_secs(DAY) {
                more = false;
                import(&mut due, at, 10_000..12_000);
            }
            let before = std::mem::replace(&mut last_look[name as usize], at);
            longest = longest.max(if name < 10_000 { at.since(before) } else { Duration::ZERO });
            looks.push(at);
            let names = if more { 10_000 } else { 12_000 };
            due.insert((at + look_at_import_in(None, at, lap(names, 1)), name));
        }
        let in_first = |secs| looks.iter().filter(|at| at.since(start) < Duration::from_secs(secs)).count();
        assert_eq!(in_first(1_000), 10_000, "one first look each, in the first thousand seconds");
        assert_eq!(in_first(10_000), 10_000, "and then nothing for the rest of the lap");
        let busiest = looks
            .iter()
            .enumerate()
            .map(|(i, at)| looks[i..].iter().take_while(|t| t.since(*at) < Duration::from_secs(1)).count());
        assert!(busiest.max().unwrap() <= 20, "two imports at once take twice what one does, and the gate half of that");
        // About a look a second, however many names there are.
        assert!((170_000..190_000).contains(&looks.len()), "{}", looks.len());
        assert!(longest <= Duration::from_secs(12_001), "{longest:?}");
    }

    #[test]
    fn first_looks_stand_in_line() {
        let now = Moment::from_secs(1_000_000);
        assert_eq!(first_look_at(None, now, 10), now);
        assert_eq!(first_look_at(Some(now), now, 10), now + Duration::from_millis(100));
        assert_eq!(first_look_at(Some(now - Duration::from_secs(60)), now, 10), now);
    }

    #[test]
    fn waits_grow_and_are_bounded() {
        assert_eq!([1, 2, 3, 4, 99].map(|n| retry_order_in(n).as_secs()), [60, 600, 6000, 86400, 86400]);
        assert_eq!([0, 1, 2, 3, 99].map(|n| ask_again_in(n).as_secs()), [2, 2, 4, 8, 600]);
    }
}
