//! When in the day a live domain is looked at, and how the walk through all of them goes on.
//!
//! Routine looks are not alarms: a batch walks the slots of the day and reads; only a difference wakes the one door. The slot is
//! the last four hex digits of the id, which are drawn bits, so no column and no hash is needed: [`LAP`] slots in a day.
//!
//! The walk goes round and never back, whoever's clock says that it is earlier. What is due is read off the clock, what is done
//! off the cursor; so a walk that is slower than the day passes nobody over, it only comes round more seldom.

use super::evidence::{Check, Evidence, Finding};
use super::id::DomainId;
use super::moment::Moment;

/// Slots in a day, and steps of the walk once round.
const LAP: i64 = 0x1_0000;
/// Microseconds.
const DAY: i64 = 24 * 3600 * 1_000_000;

/// The slot of a domain.
pub fn slot_of(id: &DomainId) -> u16 {
    let text = id.as_str();
    u16::from_str_radix(&text[text.len() - 4..], 16).unwrap_or(0)
}

/// How far the walk has come: all slots since 1970 before this one are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(i64);

impl Cursor {
    /// Of that day, counted from 1970, so many slots are done.
    pub fn new(day: i64, slots: i64) -> Self {
        Cursor(day.saturating_mul(LAP).saturating_add(slots))
    }

    /// All is done whose turn has come: the slot that a moment lies in is the last of it.
    pub fn due(now: Moment) -> Self {
        Cursor(slot_at(now) + 1)
    }

    /// The day that is being walked.
    pub fn day(self) -> i64 {
        self.0.div_euclid(LAP)
    }

    /// Slots of that day that are done: fewer than all, or it would be the next one.
    pub fn slots(self) -> i64 {
        self.0.rem_euclid(LAP)
    }
}

/// Slots that are to be walked, all of one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    from: Cursor,
    to: Cursor,
}

impl Stretch {
    /// What is to be walked now, beginning with what has waited longest; nothing when all that is due is done.
    ///
    /// After days in which nobody walked, it goes on where it stood in the day, and less than two days are made up for: everybody is
    /// looked at once at least. A cursor that is ahead is waited for: another's clock is ahead of this one, and no look is made
    /// twice for that. Only one that is ahead by more than a day is not believed, and today begins anew.
    pub fn due(done: Cursor, now: Moment) -> Option<Self> {
        let due = Cursor::due(now);
        let behind = due.0.saturating_sub(done.0);
        let from = match behind < -LAP {
            true => Cursor::new(slot_at(now).div_euclid(LAP), 0),
            false => Cursor(done.0 + (behind / LAP - 1).max(0) * LAP),
        };
        let to = due.min(Cursor::new(from.day() + 1, 0));
        (from < to).then_some(Stretch { from, to })
    }

    /// Where it begins.
    pub fn from(self) -> Cursor {
        self.from
    }

    /// What will be done when all of it is.
    pub fn to(self) -> Cursor {
        self.to
    }

    /// Its first slot and its last.
    pub fn slots(self) -> (u16, u16) {
        let slot = |at: Cursor| u16::try_from(at.slots()).unwrap_or(u16::MAX);
        (slot(self.from), slot(Cursor(self.to.0 - 1)))
    }

    /// All of it before a domain's slot is done.
    pub fn before(self, id: &DomainId) -> Cursor {
        Cursor::new(self.from.day(), i64::from(slot_of(id)))
    }
}

/// The slot that a moment lies in, counted from 1970.
fn slot_at(at: Moment) -> i64 {
    let micros = at.micros();
    micros.div_euclid(DAY) * LAP + micros.rem_euclid(DAY) * LAP / DAY
}

/// When a domain is looked at next, after `now`.
pub fn next(id: &DomainId, now: Moment) -> Moment {
    let here = slot_at(now);
    let today = here - here.rem_euclid(LAP) + i64::from(slot_of(id));
    let next = if today > here { today } else { today + LAP };
    let into_day = next.rem_euclid(LAP) * DAY;
    // The first microsecond that is in it.
    Moment::from_micros(next.div_euclid(LAP).saturating_mul(DAY).saturating_add((into_day + LAP - 1) / LAP))
}

/// Whether a routine look saw something else than the evidence says: another verdict, or another word on the tie. A routine
/// look asks fewer observers, so the codes themselves may differ without anything having changed.
pub fn differs(evidence: &[Evidence], seen: &[Finding]) -> bool {
    seen.iter().filter(|f| f.check != Check::Holding).any(|f| {
        let before = evidence.iter().find(|e| e.finding.check == f.check).map(|e| e.finding.reason);
        before.is_none_or(|r| (r.verdict(), r.tie()) != (f.reason.verdict(), f.reason.tie()))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const NOW: Moment = Moment::from_secs(1_800_000_000);

    fn secs(n: i64) -> Moment {
        Moment::from_secs(NOW.secs() + n)
    }

    #[test]
    fn slots_spread_over_the_day_and_come_once_a_day() {
        let mut quarters = [0_u32; 4];
        for n in 0..=255_u8 {
            let id = DomainId::mint(NOW, [n; 10]);
            quarters[usize::from(slot_of(&id) >> 14)] += 1;
            let due = next(&id, NOW);
            assert!(due > NOW && due <= NOW + Duration::from_secs(24 * 3600), "{due}");
            let before = Moment::from_micros(due.micros() - 1);
            let slot = i64::from(slot_of(&id));
            assert_eq!((slot_at(due).rem_euclid(LAP), slot_at(before)), (slot, slot_at(due) - 1));
            assert_eq!(next(&id, due), due + Duration::from_secs(24 * 3600));
        }
        assert!(quarters.iter().all(|n| *n == 64), "{quarters:?}");
    }

    #[test]
    fn a_clock_that_ran_weeks_ahead_leaves_nobody_without_a_look_for_long() {
        let ahead = Cursor::due(secs(40 * 86_400));
        let anew = Stretch::due(ahead, NOW).unwrap();
        assert_eq!((anew.from(), anew.to()), (Cursor::new(NOW.secs() / 86_400, 0), Cursor::due(NOW)));
        // In the last slot of a day all of it is due.
        let evening = Moment::from_secs(NOW.secs().div_euclid(86_400) * 86_400 + 86_399);
        assert_eq!(Stretch::due(ahead, evening).unwrap().slots(), (0, u16::MAX));
    }

    proptest! {
        /// Where a clock stands to the walk, from weeks behind to weeks ahead.
        #[test]
        fn a_cursor_moves_back_for_a_clock_far_ahead_and_for_nothing_else(ahead in -20 * LAP..20 * LAP, at in 0..86_400_i64) {
            let now = secs(at);
            let done = Cursor(Cursor::due(now).0 + ahead);
            let Some(walk) = Stretch::due(done, now) else {
                prop_assert!((0..=LAP).contains(&ahead), "{ahead} slots ahead, and nothing to do");
                return Ok(());
            };
            prop_assert!(walk.from < walk.to && walk.to <= Cursor::due(now));
            prop_assert_eq!(Cursor(walk.to.0 - 1).day(), walk.from.day(), "a stretch is of one day");
            let (first, last) = walk.slots();
            prop_assert_eq!(i64::from(last) - i64::from(first), walk.to.0 - walk.from.0 - 1);
            let back = walk.from < done;
            prop_assert_eq!(back, ahead > LAP);
            if !back {
                // Days that nobody walked are passed over whole: it goes on where it was in the day, and all are looked at.
                prop_assert_eq!(walk.from.slots(), done.slots());
                prop_assert!(walk.from == done || Cursor::due(now).0 - walk.from.0 >= LAP);
                prop_assert!(Cursor::due(now).0 - walk.from.0 < 2 * LAP);
            }
        }

        /// Processes whose clocks are minutes apart, and some of whom die half-way, walk one after the other: every slot once, in its order,
        /// and at the end all that is due by the clock that is ahead.
        #[test]
        fn clocks_that_are_minutes_apart_walk_every_slot_once(
            turns in proptest::collection::vec((0..1_800_i64, -600..600_i64, 0..=100_i64), 1..80),
        ) {
            // An hour before midnight, and fewer than two days from then on: no day is passed over.
            let mut time = 15 * 3600;
            let mut done = Cursor::due(secs(time));
            for (passes, off, percent) in turns {
                time += passes;
                let Some(walk) = Stretch::due(done, secs(time + off)) else {
                    prop_assert!(done >= Cursor::due(secs(time + off)), "something was due");
                    continue;
                };
                prop_assert_eq!(walk.from(), done);
                done = Cursor(done.0 + (walk.to().0 - done.0) * percent / 100);
            }
            while let Some(walk) = Stretch::due(done, secs(time + 600)) {
                prop_assert_eq!(walk.from(), done);
                done = walk.to();
            }
            prop_assert_eq!(done, Cursor::due(secs(time + 600)));
        }

        /// A walk slower than the day, for weeks: nobody is passed over, all come round in turn.
        #[test]
        fn a_walk_that_is_slower_than_the_day_passes_nobody_over(pace in 1..LAP, days in 2..40_i64) {
            let mut done = Cursor::due(NOW);
            let mut slots = done.slots();
            for hour in 1..days * 24 {
                // In an hour it gets so far.
                let mut left = pace / 24;
                while let Some(walk) = Stretch::due(done, secs(hour * 3600)).filter(|_| left > 0) {
                    prop_assert_eq!(walk.from().slots(), slots, "it goes on where it was in the day");
                    let steps = left.min(walk.to().0 - walk.from().0);
                    left -= steps;
                    done = Cursor(walk.from().0 + steps);
                    slots = done.slots();
                }
            }
        }
    }
}
