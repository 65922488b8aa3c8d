//! How much of a certificate's life is left, in hundredths of its lifetime.
//!
//! Shares fit every lifetime: with a quarter left a certificate of 90 days has 22, one of 45 days has 11, one of 6 days has one
//! and a half, and each of them should have been renewed by then (at a third; at half where the lifetime is under ten days).

use crate::model::moment::Moment;

/// From when to when a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Its start.
    pub not_before: Moment,
    /// Its end.
    pub not_after: Moment,
}

/// The thresholds, in hundredths of the lifetime, from loose to tight. The end itself, 0, is always one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds(Vec<i64>);

/// With how much left renewals are late at the latest; looser thresholds would tell of what is on its way.
pub const LOOSEST: i64 = 30;

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds(vec![25, 10, 3, 0])
    }
}

impl Thresholds {
    /// From hundredths, in any order; none where one is not between 1 and [`LOOSEST`].
    pub fn new(percents: impl IntoIterator<Item = i64>) -> Option<Self> {
        let mut all: Vec<i64> = percents.into_iter().collect();
        if all.iter().any(|p| !(1..=LOOSEST).contains(p)) {
            return None;
        }
        all.push(0);
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.dedup();
        Some(Thresholds(all))
    }

    /// From loose to tight.
    pub fn all(&self) -> &[i64] {
        &self.0
    }

    /// The loosest.
    pub fn loosest(&self) -> i64 {
        self.0.first().copied().unwrap_or(0)
    }

    /// The tightest one that is crossed at `now`.
    pub fn crossed(&self, life: Life, now: Moment) -> Option<i64> {
        self.0.iter().rev().copied().find(|percent| now >= life.crossing(*percent))
    }

    /// When the next one is crossed; none after the end.
    pub fn next(&self, life: Life, now: Moment) -> Option<Moment> {
        self.0.iter().map(|percent| life.crossing(*percent)).find(|at| *at > now)
    }
}

impl Life {
    fn length(self) -> i128 {
        (i128::from(self.not_after.micros()) - i128::from(self.not_before.micros())).max(0)
    }

    /// When only so many hundredths of the lifetime are left.
    pub fn crossing(self, percent: i64) -> Moment {
        let left = self.length() * i128::from(percent) / 100;
        let at = i128::from(self.not_after.micros()) - left;
        Moment::from_micros(i64::try_from(at).unwrap_or(self.not_after.micros()))
    }

    /// How many hundredths of the lifetime are left, rounded down; 0 once it is over.
    pub fn percent_left(self, now: Moment) -> i64 {
        let left = (i128::from(self.not_after.micros()) - i128::from(now.micros())).max(0);
        match self.length() {
            0 => 0,
            length => i64::try_from(left * 100 / length).unwrap_or(100).min(100),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const DAY: u64 = 86_400;

    fn life(days: u64) -> Life {
        let not_before = Moment::from_secs(1_800_000_000);
        Life { not_before, not_after: not_before + Duration::from_secs(days * DAY) }
    }

    #[test]
    fn lifetimes_of_90_45_and_6_days_all_warn_in_time() {
        for (days, hours) in [(90, [540, 216, 64]), (45, [270, 108, 32]), (6, [36, 14, 4])] {
            let life = life(days);
            for (percent, hours) in [25, 10, 3].into_iter().zip(hours) {
                let left = life.not_after.since(life.crossing(percent)).as_secs() / 3600;
                assert_eq!(left, hours, "{percent} % of {days} days");
            }
            assert_eq!(life.crossing(0), life.not_after);
        }
    }

    #[test]
    fn thresholds_are_sorted_once_each_and_end_with_the_end() {
        assert_eq!(Thresholds::new([3, 25, 10, 25]).unwrap(), Thresholds::default());
        assert_eq!(Thresholds::new([]).unwrap().all(), [0]);
        for wrong in [0, -1, 31, 100] {
            assert_eq!(Thresholds::new([25, wrong]), None, "{wrong}");
        }
    }

    #[test]
    fn a_life_that_is_none_is_over() {
        let at = Moment::from_secs(5);
        let none = Life { not_before: at, not_after: at };
        assert_eq!((none.percent_left(at), Thresholds::default().crossed(none, at)), (0, Some(0)));
        let turned = Life { not_before: Moment::from_secs(9), not_after: at };
        assert_eq!((turned.percent_left(Moment::default()), turned.crossing(25)), (0, at));
    }

    proptest! {
        #[test]
        fn as_time_passes_thresholds_only_get_tighter(hours in 1_u64..20_000, steps in proptest::collection::vec(0_u64..3_000, 1..40)) {
            let not_before = Moment::from_secs(1_000_000);
            let life = Life { not_before, not_after: not_before + Duration::from_secs(hours * 3600) };
            let (thresholds, mut now, mut before) = (Thresholds::default(), not_before, i64::MAX);
            for step in steps {
                now = now + Duration::from_secs(step * 3600);
                let crossed = thresholds.crossed(life, now).unwrap_or(i64::MAX);
                prop_assert!(crossed <= before);
                prop_assert_eq!(crossed == 0, now >= life.not_after);
                if crossed < i64::MAX {
                    prop_assert!(life.percent_left(now) <= crossed);
                } else {
                    prop_assert!(life.percent_left(now) >= thresholds.loosest());
                }
                before = crossed;
                // At the next moment, and not before, something tighter is crossed.
                let next = thresholds.next(life, now);
                prop_assert_eq!(next.is_none(), crossed == 0);
                if let Some(at) = next {
                    prop_assert!(at > now && thresholds.crossed(life, at).unwrap_or(i64::MAX) < crossed);
                    prop_assert_eq!(thresholds.crossed(life, Moment::from_micros(at.micros() - 1)).unwrap_or(i64::MAX), crossed);
                }
            }
        }

        #[test]
        fn no_life_is_too_strange(a: i64, b: i64, now: i64, percent in 0_i64..=30) {
            let life = Life { not_before: Moment::from_micros(a), not_after: Moment::from_micros(b) };
            prop_assert!((0..=100).contains(&life.percent_left(Moment::from_micros(now))));
            prop_assert!(life.crossing(percent) <= life.not_after);
        }
    }
}
