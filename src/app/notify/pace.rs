//! How much is under way at once, and to whom: a place that answers quickly gets more, one that is slow or fails gets one thing at
//! a time, and all slow ones together never take more than half of what there is. Who never answered yet may be anything: with the
//! slow ones they leave a quarter to those who are known to be quick, however many they are.
//!
//! Nothing here has to survive a restart: it is about speed alone.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::model::id::WebhookId;

/// Tries under way at the same time, to all places.
pub(super) const ALL: usize = 128;
/// Of these, to places that are slow.
const SLOW: usize = ALL / 2;
/// Of these, to places that are slow or unknown.
const DOUBTFUL: usize = ALL * 3 / 4;
/// To one place.
const EACH: usize = 8;
/// What a place gets of which nothing is known.
const FIRST: usize = 2;
/// An answer that takes longer is slow.
const QUICK: Duration = Duration::from_secs(2);
/// Of more places than these nothing is remembered once all is quiet.
const REMEMBERED: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// It never answered, nor failed.
    Unknown,
    Quick,
    Slow,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    flying: usize,
    at_once: usize,
    pace: Pace,
}

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    places: HashMap<WebhookId, Place>,
    all: usize,
    slow: usize,
    unknown: usize,
}

impl Flights {
    /// How much more may be sent to this place now.
    pub(super) fn room(&self, place: &WebhookId) -> usize {
        let known = self.known(place);
        let of_its_pace = match known.pace {
            Pace::Quick => ALL,
            Pace::Unknown => DOUBTFUL.saturating_sub(self.slow + self.unknown),
            Pace::Slow => SLOW.saturating_sub(self.slow).min(DOUBTFUL.saturating_sub(self.slow + self.unknown)),
        };
        known.at_once.saturating_sub(known.flying).min(of_its_pace).min(ALL.saturating_sub(self.all))
    }

    /// Whether it is others alone who leave it no room.
    pub(super) fn is_crowded_out(&self, place: &WebhookId) -> bool {
        let known = self.known(place);
        known.at_once > known.flying && self.room(place) == 0
    }

    fn known(&self, place: &WebhookId) -> Place {
        self.places.get(place).copied().unwrap_or(Place { flying: 0, at_once: FIRST, pace: Pace::Unknown })
    }

    /// All that is under way to a place counts as what the place is.
    fn counted(&mut self, pace: Pace) -> Option<&mut usize> {
        match pace {
            Pace::Unknown => Some(&mut self.unknown),
            Pace::Slow => Some(&mut self.slow),
            Pace::Quick => None,
        }
    }

    /// Something is sent.
    pub(super) fn begin(&mut self, place: &WebhookId) {
        let mut known = self.known(place);
        known.flying += 1;
        self.all += 1;
        if let Some(count) = self.counted(known.pace) {
            *count += 1;
        }
        self.places.insert(place.clone(), known);
    }

    /// It ended after so long; `well` where it was taken.
    pub(super) fn end(&mut self, place: &WebhookId, took: Duration, well: bool) {
        let mut known = self.known(place);
        self.all = self.all.saturating_sub(1);
        if let Some(count) = self.counted(known.pace) {
            *count = count.saturating_sub(known.flying);
        }
        known.flying = known.flying.saturating_sub(1);
        known.pace = if took > QUICK { Pace::Slow } else { Pace::Quick };
        known.at_once = if well && known.pace == Pace::Quick { (known.at_once * 2).min(EACH) } else { 1 };
        if let Some(count) = self.counted(known.pace) {
            *count += known.flying;
        }
        self.places.insert(place.clone(), known);
        if self.all == 0 && self.places.len() > REMEMBERED {
            self.places.clear();
        }
    }

    /// Whether nothing more can be sent to anybody.
    pub(super) fn full(&self) -> bool {
        self.all >= ALL
    }
}

/// Places that something is due for and that others left no room: whoever waits longest is next, before any who had their turn.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiting: VecDeque<WebhookId>,
    /// After which place the next look begins: where the last one found no room for more; empty when it came to all of them.
    pub(super) after: String,
}

impl Line {
    /// Longer it does not get: whoever is not in it is found once it is shorter.
    const LONGEST: usize = 2 * ALL;

    /// Whether nobody else is to be looked for.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= Self::LONGEST
    }

    /// Somebody has to wait; whoever does already keeps its place. Whether it is in the line.
    pub(super) fn join(&mut self, place: &WebhookId) -> bool {
        let is_in = self.waiting.contains(place);
        if !is_in && !self.is_full() {
            self.waiting.push_back(place.clone());
        }
        is_in || self.waiting.back() == Some(place)
    }

    /// The first for whom there is room by now.
    pub(super) fn next(&mut self, flights: &Flights) -> Option<WebhookId> {
        let at = self.waiting.iter().position(|place| flights.room(place) > 0)?;
        self.waiting.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::moment::Moment;

    fn place(n: u8) -> WebhookId {
        WebhookId::mint(Moment::from_secs(1), [n; 10])
    }

    #[test]
    fn a_quick_place_gets_more_and_a_slow_one_one_at_a_time() {
        let (mut flights, quick, slow) = (Flights::default(), place(1), place(2));
        assert_eq!(flights.room(&quick), FIRST);
        for _ in 0..2 {
            flights.begin(&quick);
            flights.end(&quick, Duration::from_millis(20), true);
        }
        flights.begin(&quick);
        flights.begin(&slow);
        flights.end(&slow, Duration::from_secs(14), true);
        assert_eq!((flights.room(&slow), flights.slow), (1, 0));
        flights.begin(&slow);
        assert_eq!((flights.room(&slow), flights.slow), (0, 1));
    }

    #[test]
    fn slow_places_leave_half_of_it_to_the_others() {
        let mut flights = Flights::default();
        assert_eq!(flights.room(&place(250)), FIRST);
        for n in 0..200 {
            flights.begin(&place(n));
            flights.end(&place(n), Duration::from_secs(15), false);
        }
        let mut taken = 0;
        for n in (0..200).map(place) {
            if flights.room(&n) > 0 {
                flights.begin(&n);
                taken += 1;
            }
        }
        assert_eq!(taken, SLOW);
        assert!(flights.room(&place(250)) == FIRST && !flights.full());
    }

    #[test]
    fn places_that_nobody_knows_leave_a_quarter_to_those_who_are_quick() {
        let (mut flights, quick) = (Flights::default(), place(250));
        flights.begin(&quick);
        flights.end(&quick, Duration::from_millis(20), true);
        for n in (0..200).map(place) {
            for _ in 0..flights.room(&n) {
                flights.begin(&n);
            }
        }
        assert_eq!(flights.all, DOUBTFUL, "however many they are");
        assert!(flights.is_crowded_out(&place(199)) && !flights.is_crowded_out(&quick));
        assert_eq!(flights.room(&quick), 2 * FIRST);
    }

    #[test]
    fn whoever_waits_longest_is_next() {
        let (mut flights, mut line) = (Flights::default(), Line::default());
        for n in 0..100 {
            for _ in 0..flights.room(&place(n)) {
                flights.begin(&place(n));
            }
        }
        for n in [7, 150, 151, 150] {
            assert!(line.join(&place(n)));
        }
        assert_eq!(line.next(&flights), None, "there is no room");
        flights.end(&place(0), Duration::from_millis(20), true);
        assert_eq!(line.next(&flights), Some(place(150)), "the other has all it gets");
        assert_eq!((line.next(&flights), line.next(&flights)), (Some(place(151)), None));
    }

    proptest! {
        #[test]
        fn bounds_hold_whatever_happens(story in proptest::collection::vec((any::<u8>(), any::<bool>(), 0_u64..20), 1..600)) {
            let (mut flights, mut under_way) = (Flights::default(), Vec::new());
            for (n, begins, secs) in story {
                let id = place(n % 40);
                if begins && flights.room(&id) > 0 {
                    flights.begin(&id);
                    under_way.push(id);
                } else if let Some(at) = under_way.iter().position(|one| *one == id) {
                    flights.end(&under_way.swap_remove(at), Duration::from_secs(secs), secs % 3 != 0);
                }
                prop_assert_eq!(flights.all, under_way.len());
                prop_assert!(flights.all <= ALL);
                let of = |pace| flights.places.values().filter(|p| p.pace == pace).map(|p| p.flying).sum::<usize>();
                prop_assert_eq!((flights.slow, flights.unknown), (of(Pace::Slow), of(Pace::Unknown)));
                prop_assert!(flights.places.values().all(|p| p.flying <= EACH));
            }
            prop_assert!(flights.places.values().map(|p| p.flying).sum::<usize>() == under_way.len());
        }
    }
}
