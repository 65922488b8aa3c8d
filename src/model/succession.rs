//! The clock of a hand-over: how long the holder's record has been seen gone while another claim's is there.
//!
//! Only time between two looks that both saw it so counts, and never more of it than [`LONGEST_GAP`]: silence, a broken zone or
//! our own outage stop the clock and never move a name.

use std::time::Duration;

use super::id::DomainId;
use super::moment::Moment;

/// The holder's record must be seen gone this long before the name may move.
pub const NOTICE: Duration = Duration::from_secs(72 * 3600);
/// Looks are never further apart than this while a clock runs...
pub const LOOK_WITHIN: Duration = Duration::from_secs(4 * 3600);
/// ...and a gap that is longer than this was not watched.
const LONGEST_GAP: Duration = Duration::from_secs(6 * 3600);
/// A look that ends the clock is not made over and over.
const SHORTEST_WAIT: Duration = Duration::from_secs(15);

/// The claim that is to hold a name next, and its clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Succession {
    /// The claim.
    pub domain_id: DomainId,
    /// When the clock was first started.
    pub since: Moment,
    /// What was counted up to `seen_at`.
    pub counted: Duration,
    /// The last look that saw it so; none while the clock stands.
    pub seen_at: Option<Moment>,
}

impl Succession {
    /// A clock that starts now.
    pub fn begin(domain_id: &DomainId, now: Moment) -> Self {
        Succession { domain_id: domain_id.clone(), since: now, counted: Duration::ZERO, seen_at: Some(now) }
    }

    /// The clock after a look that saw it so.
    #[must_use]
    pub fn seen(&self, now: Moment) -> Self {
        let gap = self.seen_at.map_or(Duration::ZERO, |at| now.since(at)).min(LONGEST_GAP);
        Succession { counted: (self.counted + gap).min(NOTICE), seen_at: Some(now), ..self.clone() }
    }

    /// The clock after a look that could not tell.
    #[must_use]
    pub fn paused(&self) -> Self {
        Succession { seen_at: None, ..self.clone() }
    }

    /// Whether enough was counted.
    pub fn is_over(&self) -> bool {
        self.counted >= NOTICE
    }

    /// When it is over if nothing stops it; none while it stands.
    pub fn ends_at(&self) -> Option<Moment> {
        self.seen_at.map(|at| at + (NOTICE - self.counted))
    }

    /// How soon after a look the next one is due.
    pub fn look_within(&self) -> Duration {
        match NOTICE - self.counted {
            Duration::ZERO => LOOK_WITHIN,
            left => left.clamp(SHORTEST_WAIT, LOOK_WITHIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Moment = Moment::from_secs(1_800_000_000);

    fn clock() -> Succession {
        Succession::begin(&DomainId::mint(START, [1; 10]), START)
    }

    #[test]
    fn the_clock_is_over_after_72_hours_of_looks() {
        let (mut clock, mut now) = (clock(), START);
        while !clock.is_over() {
            now = now + clock.look_within();
            clock = clock.seen(now);
        }
        assert_eq!(now.since(START), NOTICE);
        assert_eq!(clock.ends_at(), Some(now));
        assert_eq!(clock.look_within(), LOOK_WITHIN);
    }

    #[test]
    fn a_gap_that_nobody_watched_counts_for_little() {
        let late = clock().seen(START + Duration::from_secs(30 * 24 * 3600));
        assert_eq!(late.counted, LONGEST_GAP);
        assert!(!late.is_over());
    }

    proptest! {
        /// What is counted is never more than the time during which every look saw it so.
        #[test]
        fn only_seen_time_counts(looks in prop::collection::vec((1..100_000_u64, any::<bool>()), 0..200)) {
            let (mut clock, mut now, mut seen, mut last) = (clock(), START, Duration::ZERO, true);
            for (wait, so) in looks {
                let wait = Duration::from_secs(wait);
                now = now + wait;
                if so && last {
                    seen += wait;
                }
                last = so;
                clock = if so { clock.seen(now) } else { clock.paused() };
                prop_assert!(clock.counted <= seen && clock.counted <= NOTICE);
                prop_assert_eq!(clock.ends_at().is_some(), so);
                prop_assert!(clock.look_within() <= LOOK_WITHIN && !clock.look_within().is_zero());
                prop_assert!(clock.ends_at().is_none_or(|at| at >= now));
            }
        }
    }
}
