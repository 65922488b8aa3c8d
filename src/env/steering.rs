//! How a clock follows another one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Correction, Moment};

/// Less is what asking takes.
const AGREED: Duration = Duration::from_secs(2);
/// Once there is work under way, time is set forward by no more than a machine may have slept, ...
const FORWARD: Duration = Duration::from_secs(7 * 86_400);
/// ... and stands still, where it was ahead, for no longer than this.
const BACK: Duration = Duration::from_secs(60);

/// By how much a clock is corrected, and what it has shown.
#[derive(Debug, Default)]
pub(super) struct Steering(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Microseconds to add.
    by: i64,
    shown: Moment,
    corrected: bool,
}

impl Steering {
    /// What is shown where the clock itself says `own`.
    pub(super) fn shown(&self, own: Moment) -> Moment {
        let mut s = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        s.shown = s.shown.max(Moment::from_micros(own.micros().saturating_add(s.by)));
        s.shown
    }

    /// The clock says `own` where the other says `at`. The first time, before there is any work, the other is followed wherever it is.
    pub(super) fn correct(&self, own: Moment, at: Moment) -> Correction {
        let mut s = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = !std::mem::replace(&mut s.corrected, true);
        let ours = Moment::from_micros(own.micros().saturating_add(s.by));
        let (forward, back) = (at.since(ours), ours.since(at));
        if forward.max(back) <= AGREED {
            return Correction::None;
        }
        let off = (at.micros() - ours.micros()) / 1_000_000;
        if !first && (forward > FORWARD || back > BACK) {
            return Correction::Refused(off);
        }
        s.by = at.micros() - own.micros();
        if first {
            s.shown = at;
        }
        Correction::Made(off)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);
    const NOW: Moment = Moment::from_secs(1_800_000_000);

    #[test]
    fn b53_a_process_that_starts_with_a_wrong_clock_takes_the_right_one() {
        for wrong in [NOW + 40 * DAY, NOW - 40 * DAY] {
            let clock = Steering::default();
            assert_eq!(clock.shown(wrong), wrong);
            assert!(matches!(clock.correct(wrong, NOW), Correction::Made(_)));
            assert_eq!(clock.shown(wrong + DAY), NOW + DAY, "and goes on with it");
            assert_eq!(clock.correct(wrong + DAY, NOW + DAY + AGREED), Correction::None);
        }
    }

    #[test]
    fn b53_a_jump_of_the_other_clock_renews_nothing_and_puts_nothing_off() {
        let clock = Steering::default();
        assert_eq!(clock.correct(NOW, NOW), Correction::None);
        assert_eq!(clock.correct(NOW, NOW + 40 * DAY), Correction::Refused(40 * 86_400));
        assert_eq!(clock.correct(NOW, NOW - DAY), Correction::Refused(-86_400));
        assert_eq!(clock.shown(NOW), NOW);
        // A machine that slept is set right; one that is a little ahead waits for the others.
        assert_eq!(clock.correct(NOW, NOW + DAY), Correction::Made(86_400));
        assert_eq!(clock.shown(NOW), NOW + DAY);
        assert_eq!(clock.correct(NOW, NOW + DAY - BACK), Correction::Made(-60));
        assert_eq!(clock.shown(NOW), NOW + DAY, "never back");
        assert_eq!(clock.shown(NOW + BACK * 2), NOW + DAY + BACK);
    }

    proptest! {
        #[test]
        fn after_the_first_correction_time_never_goes_back(says in proptest::collection::vec((0_u64..100_000, -200_000_i64..800_000), 1..60)) {
            let clock = Steering::default();
            clock.correct(NOW, NOW);
            let (mut own, mut last) = (NOW, NOW);
            for (step, off) in says {
                own = own + Duration::from_secs(step);
                clock.correct(own, Moment::from_micros(own.micros() + off * 1_000_000));
                let shown = clock.shown(own);
                prop_assert!(shown >= last);
                last = shown;
            }
        }
    }
}
