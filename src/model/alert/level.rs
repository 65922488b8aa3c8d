//! From a condition that is looked at every few seconds to one rise and one end.

use std::time::Duration;

use crate::model::moment::Moment;

/// A condition that comes back within this was never gone.
pub const SETTLES: Duration = Duration::from_secs(5 * 60);

/// What to do with the alert of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Raise it.
    Raise,
    /// It is there still: forget that it seemed to be gone.
    Stay,
    /// It is not seen any more; remember since when.
    Clear,
    /// It has not been seen for long enough: it is over.
    Resolve,
}

/// The step. `open` is there while the alert is, with the moment since when the condition is not seen any more.
pub fn step(holds: bool, open: Option<Option<Moment>>, now: Moment) -> Step {
    match (holds, open) {
        (true, None) => Step::Raise,
        (true, Some(Some(_))) => Step::Stay,
        (false, Some(None)) => Step::Clear,
        (false, Some(Some(since))) if now.since(since) >= SETTLES => Step::Resolve,
        _ => Step::Rest,
    }
}

/// Whether a count has grown so much that it is told again: tenfold, so that no outage tells more than a handful of times.
pub fn grown(told: i64, now: i64) -> bool {
    now >= told.max(1).saturating_mul(10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_condition_that_flaps_is_one_alert(holds in proptest::collection::vec(any::<bool>(), 1..400)) {
            // Looked at every 20 s: whatever it does, ends lie five minutes apart.
            let (mut open, mut now, mut ended) = (None, Moment::from_secs(1_000), Vec::new());
            let mut raised = 0;
            for holds in holds {
                match step(holds, open, now) {
                    Step::Rest => {}
                    Step::Raise => { raised += 1; open = Some(None) }
                    Step::Stay => open = Some(None),
                    Step::Clear => open = Some(Some(now)),
                    Step::Resolve => { ended.push(now); open = None }
                }
                prop_assert!(!holds || open == Some(None));
                now = now + Duration::from_secs(20);
            }
            prop_assert!(raised <= ended.len() + 1);
            prop_assert!(ended.windows(2).all(|pair| pair[1].since(pair[0]) > SETTLES));
        }
    }

    #[test]
    fn a_growing_count_is_told_a_handful_of_times() {
        let (mut told, mut times) = (1, 1);
        for n in 1..=10_000 {
            if grown(told, n) {
                (told, times) = (n, times + 1);
            }
        }
        assert_eq!((told, times), (10_000, 5));
    }
}
