//! How much is under way at once, and to whom: a place that answers quickly gets more, one that is slow or fails gets one thing at
//! a time, and all slow ones together never take more than half of what there is.
//!
//! Nothing here has to survive a restart: it is about speed alone.

use std::collections::HashMap;
use std::time::Duration;

use crate::model::id::WebhookId;

/// Tries under way at the same time, to all places.
pub(super) const ALL: usize = 128;
/// Of these, to places that are slow.
const SLOW: usize = ALL / 2;
/// To one place.
const EACH: usize = 8;
/// What a place gets of which nothing is known.
const FIRST: usize = 2;
/// An answer that takes longer is slow.
const QUICK: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
struct Place {
    flying: usize,
    at_once: usize,
    slow: bool,
}

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    places: HashMap<WebhookId, Place>,
    all: usize,
    slow: usize,
}

impl Flights {
    /// How much more may be sent to this place now.
    pub(super) fn room(&self, place: &WebhookId) -> usize {
        let known = self.known(place);
        let all = if known.slow { SLOW.saturating_sub(self.slow) } else { ALL - self.all };
        known.at_once.saturating_sub(known.flying).min(all).min(ALL - self.all)
    }

    fn known(&self, place: &WebhookId) -> Place {
        self.places.get(place).copied().unwrap_or(Place { flying: 0, at_once: FIRST, slow: false })
    }

    /// Something is sent.
    pub(super) fn begin(&mut self, place: &WebhookId) {
        let mut known = self.known(place);
        known.flying += 1;
        self.all += 1;
        self.slow += usize::from(known.slow);
        self.places.insert(place.clone(), known);
    }

    /// It ended after so long; `well` where it was taken.
    pub(super) fn end(&mut self, place: &WebhookId, took: Duration, well: bool) {
        let mut known = self.known(place);
        self.all = self.all.saturating_sub(1);
        // All that is under way to a place counts as what the place is.
        self.slow = self.slow.saturating_sub(if known.slow { known.flying } else { 0 });
        known.flying = known.flying.saturating_sub(1);
        known.slow = took > QUICK;
        known.at_once = if well && !known.slow { (known.at_once * 2).min(EACH) } else { 1 };
        self.slow += if known.slow { known.flying } else { 0 };
        if known.flying == 0 && known.at_once == EACH {
            // The memory of who is well costs nothing: they are soon as quick again.
            self.places.remove(place);
        } else {
            self.places.insert(place.clone(), known);
        }
        if self.all == 0 && self.places.len() > 10_000 {
            self.places.clear();
        }
    }

    /// Whether nothing more can be sent to anybody.
    pub(super) fn full(&self) -> bool {
        self.all >= ALL
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
                let slow: usize = flights.places.values().filter(|p| p.slow).map(|p| p.flying).sum();
                prop_assert_eq!(flights.slow, slow);
                prop_assert!(flights.places.values().all(|p| p.flying <= EACH));
            }
            prop_assert!(flights.places.values().map(|p| p.flying).sum::<usize>() == under_way.len());
        }
    }
}
