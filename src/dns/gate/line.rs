//! Waiting for a turn: the tables of `model::traffic`, and whoever sleeps until theirs comes.
//!
//! Nobody runs the line: whoever enters, leaves or wakes lets those go whose turn it is. One of those who wait is on watch and
//! sleeps until the next cap opens; the others sleep until they are rung. Who leaves the watch rings the next.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::env::Env;
use crate::model::look::Lane;
use crate::model::traffic::{Entered, Request, Traffic};

/// The longest and the shortest sleep.
const LONGEST: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_micros(500);

/// Whoever finds no room comes back after this at the earliest, which is longer than a worker keeps a domain in hand, and at the
/// latest after this.
const SENT_AWAY: Duration = Duration::from_millis(2_500);
const LONGEST_AWAY: Duration = Duration::from_secs(60);

pub(super) struct Line<K> {
    inner: Mutex<Inner<K>>,
    env: Env,
    /// How many may wait in a lane who may be put off.
    room: u32,
}

struct Inner<K> {
    traffic: Traffic<K>,
    bells: HashMap<u64, Arc<Notify>>,
    watch: Option<u64>,
    /// About how many of each lane were sent away for want of room, and have not come back: the line goes on outside.
    outside: HashMap<Lane, u32>,
}

/// A place: in the line, and then past it. Given back when dropped, wherever it is.
pub(super) struct Place<K: Clone + Eq + Hash> {
    line: Arc<Line<K>>,
    lane: Lane,
    number: u64,
}

impl<K: Clone + Eq + Hash> Line<K> {
    /// A line in which whoever likes may wait.
    pub fn new(env: &Env) -> Self {
        let inner = Inner { traffic: Traffic::default(), bells: HashMap::new(), watch: None, outside: HashMap::new() };
        Line { inner: Mutex::new(inner), env: env.clone(), room: u32::MAX }
    }

    /// The same with room for so many in each lane; more are put off at once until about their turn, unless nothing may put
    /// them off.
    pub fn with_room(self, room: u32) -> Self {
        Line { room, ..self }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<K>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn rows(&self) -> usize {
        self.inner().traffic.rows()
    }

    /// Waits for a turn; about how long it would take, when that is more than the patience there is.
    pub async fn enter(self: &Arc<Self>, request: Request<K>, patience: Option<Duration>) -> Result<Place<K>, Duration> {
        let (env, lane) = (&self.env, request.lane);
        let began = env.now();
        let bell = Arc::new(Notify::new());
        let (place, waits) = {
            let mut inner = self.inner();
            let (number, entered) = inner.traffic.enter(request, began);
            if entered != Entered::Now {
                inner.bells.insert(number, Arc::clone(&bell));
                inner.ring_watch();
            }
            // Whoever may go with the next turn is in nobody's way, and waits for nothing.
            inner.give(env);
            let waits = match entered {
                Entered::Waits(about) if inner.traffic.waits(lane, number) => {
                    let full = patience.is_some() && inner.traffic.waiting(lane) > self.room as usize;
                    Some((about, full.then(|| inner.turn_outside(lane, about, self.room))))
                }
                _ => None,
            };
            if !matches!(waits, Some((_, Some(_)))) {
                inner.came_in(lane);
            }
            (Place { line: Arc::clone(self), lane, number }, waits)
        };
        match (waits, patience) {
            (None, _) => return Ok(place),
            (Some((about, _)), Some(patience)) if about > patience => return Err(about),
            (Some((_, Some(turn))), _) => return Err(turn),
            _ => {}
        }
        loop {
            let nap = {
                let mut inner = self.inner();
                let now = env.now();
                inner.give(env);
                if !inner.traffic.waits(lane, place.number) {
                    return Ok(place);
                }
                let left = patience.map_or(LONGEST, |p| p.saturating_sub(now.since(began)));
                if left.is_zero() {
                    let about = inner.traffic.opens_in(lane, place.number, now).unwrap_or_default();
                    return Err(about.max(patience.unwrap_or_default()));
                }
                let on_watch = *inner.watch.get_or_insert(place.number) == place.number;
                let opening = if on_watch { inner.traffic.next_opening(now) } else { None };
                opening.unwrap_or(LONGEST).clamp(SHORTEST, LONGEST).min(left)
            };
            tokio::select! {
                () = bell.notified() => {}
                () = env.sleep(nap) => {}
            }
        }
    }
}

impl<K: Clone + Eq + Hash> Inner<K> {
    /// Lets those go whose turn it is.
    fn give(&mut self, env: &Env) {
        for number in self.traffic.give(env.now()) {
            if let Some(bell) = self.bells.remove(&number) {
                bell.notify_one();
            }
            self.leave_watch(number);
        }
    }

    /// When about the turn of one comes who finds no room: after all who are outside already, as many in `about` as there is
    /// room for.
    fn turn_outside(&mut self, lane: Lane, about: Duration, room: u32) -> Duration {
        let outside = self.outside.entry(lane).or_default();
        *outside = outside.saturating_add(1);
        let turn = about.saturating_add(about.saturating_mul(*outside) / room.max(1));
        turn.clamp(SENT_AWAY, LONGEST_AWAY)
    }

    /// One more of a lane is inside. Those who never come back are forgotten when nobody waits.
    fn came_in(&mut self, lane: Lane) {
        if self.bells.is_empty() {
            self.outside.clear();
        } else if let Some(outside) = self.outside.get_mut(&lane) {
            *outside = outside.saturating_sub(1);
        }
    }

    /// Whoever is on watch looks at the clock again: something has come that may open earlier.
    fn ring_watch(&self) {
        if let Some(bell) = self.watch.and_then(|number| self.bells.get(&number)) {
            bell.notify_one();
        }
    }

    /// Another one of those who wait takes the watch.
    fn leave_watch(&mut self, number: u64) {
        if self.watch == Some(number) {
            self.watch = self.bells.keys().next().copied();
            self.ring_watch();
        }
    }
}

impl<K: Clone + Eq + Hash> Place<K> {
    /// Whether one more piece of the same may begin now.
    pub fn again(&self) -> bool {
        self.line.inner().traffic.again(self.number, self.line.env.now())
    }
}

impl<K: Clone + Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut inner = self.line.inner();
        inner.bells.remove(&self.number);
        inner.traffic.leave(self.lane, self.number);
        inner.leave_watch(self.number);
        inner.give(&self.line.env);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::manual::Hand;
    use crate::model::moment::Moment;
    use crate::model::traffic::Cap;

    fn request(lane: Lane, cap: Cap) -> Request<&'static str> {
        Request { lane, tenant: None, caps: vec![("all", cap)] }
    }

    async fn settle() {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_line_moves_by_itself_and_the_urgent_go_first() {
        let hand = Hand::new(Moment::from_secs(1_000), 1);
        let line = Arc::new(Line::new(&hand.env()));
        let went = Arc::new(Mutex::new(Vec::new()));
        let cap = Cap::per_second(3);
        let mut tasks = Vec::new();
        for (n, lane) in [(0, Lane::Bulk), (1, Lane::Bulk), (2, Lane::Bulk), (3, Lane::CheckNow)] {
            let (line, went, env) = (line.clone(), went.clone(), hand.env());
            tasks.push(tokio::spawn(async move {
                let place = line.enter(request(lane, cap), None).await.unwrap();
                went.lock().unwrap().push((n, env.now().micros() / 1_000 % 1_000_000));
                drop(place);
            }));
            settle().await;
        }
        for _ in 0..40 {
            hand.advance(Duration::from_millis(100));
            settle().await;
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*went.lock().unwrap(), [(0, 0), (3, 500), (1, 1_000), (2, 1_500)]);
    }

    #[tokio::test]
    async fn whoever_has_no_patience_is_told_how_long_it_would_be() {
        let hand = Hand::new(Moment::from_secs(1_000), 1);
        let line = Arc::new(Line::new(&hand.env()));
        let cap = Cap::per_second(1);
        let _first = line.enter(request(Lane::Single, cap), None).await.unwrap();
        let patience = Some(Duration::from_millis(1_500));
        let waiting = tokio::spawn({
            let line = line.clone();
            async move { line.enter(request(Lane::Single, cap), patience).await.map(|_| ()) }
        });
        settle().await;
        // A second and a half is enough for the second in the line, not for the third.
        assert_eq!(line.enter(request(Lane::Bulk, cap), patience).await.err(), Some(Duration::from_secs(2)));
        while !waiting.is_finished() {
            hand.advance(Duration::from_millis(250));
            settle().await;
        }
        assert_eq!(waiting.await.unwrap(), Ok(()));
        assert_eq!(hand.env().now(), Moment::from_secs(1_001));
    }

    #[tokio::test]
    async fn places_of_those_who_went_away_are_given_on() {
        let hand = Hand::new(Moment::from_secs(1_000), 1);
        let line = Arc::new(Line::new(&hand.env()));
        let cap = Cap::at_once(1);
        let first = line.enter(request(Lane::Single, cap), None).await.unwrap();
        let gone = tokio::spawn({
            let line = line.clone();
            async move { line.enter(request(Lane::CheckNow, cap), None).await.map(|_| ()) }
        });
        settle().await;
        let second = tokio::spawn({
            let line = line.clone();
            async move { line.enter(request(Lane::Bulk, cap), None).await.map(|_| ()) }
        });
        settle().await;
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        drop(first);
        settle().await;
        assert!(second.is_finished(), "the place went to somebody who is gone");
        hand.advance(Duration::from_secs(1));
        let _third = line.enter(request(Lane::Bulk, cap), Some(Duration::ZERO)).await.unwrap();
        let inner = line.inner();
        assert!(inner.bells.is_empty() && inner.watch.is_none(), "{} bells, {:?} on watch", inner.bells.len(), inner.watch);
    }

    /// Who waits holds a worker, so that they must not be many.
    #[tokio::test]
    async fn a_lane_with_too_many_waiting_puts_off_who_may_be_put_off() {
        let hand = Hand::new(Moment::from_secs(1_000), 1);
        let line = Arc::new(Line::new(&hand.env()).with_room(2));
        let cap = Cap::at_once(1);
        let first = line.enter(request(Lane::Single, cap), None).await.unwrap();
        let patience = Some(Duration::from_secs(8));
        let wait = |lane, patience| {
            let line = line.clone();
            tokio::spawn(async move { line.enter(request(lane, cap), patience).await.map(|_| ()) })
        };
        let waiting = [wait(Lane::Single, patience), wait(Lane::Single, patience)];
        settle().await;
        let sent_away = line.enter(request(Lane::Single, cap), patience).await.err();
        assert!(sent_away.is_some_and(|wait| (SENT_AWAY..=LONGEST_AWAY).contains(&wait)), "{sent_away:?}");
        // Each lane has its own room, and who cannot go on without it waits all the same.
        let (other, must) = (wait(Lane::CheckNow, patience), wait(Lane::Single, None));
        settle().await;
        assert!(!other.is_finished() && !must.is_finished());
        drop(first);
        for task in waiting.into_iter().chain([other, must]) {
            assert_eq!(task.await.unwrap(), Ok(()));
        }
        assert!(line.enter(request(Lane::Single, cap), Some(Duration::ZERO)).await.is_ok(), "the line is empty again");
    }

    /// Each of those who find no room is told a later turn, and the line is as long as it was once they have come back.
    #[tokio::test]
    async fn who_finds_no_room_comes_back_when_their_turn_may_be() {
        let hand = Hand::new(Moment::from_secs(1_000), 1);
        let line = Arc::new(Line::new(&hand.env()).with_room(5));
        let patience = Some(Duration::from_secs(8));
        let cap = Cap::per_second(1);
        let _first = line.enter(request(Lane::Single, cap), patience).await.unwrap();
        let inside: Vec<_> = (0..5)
            .map(|_| {
                let line = line.clone();
                tokio::spawn(async move { line.enter(request(Lane::Single, cap), patience).await.map(drop) })
            })
            .collect();
        settle().await;
        let mut turns = Vec::new();
        for _ in 0..10 {
            turns.push(line.enter(request(Lane::Single, cap), patience).await.err().unwrap());
        }
        assert!(turns.is_sorted() && turns[9] > turns[0] + Duration::from_secs(8), "{turns:?}");
        for _ in 0..80 {
            hand.advance(Duration::from_millis(100));
            settle().await;
        }
        for task in inside {
            task.await.unwrap().ok();
        }
        drop(line.enter(request(Lane::Single, cap), None).await.unwrap());
        assert!(line.inner().outside.is_empty(), "nobody waits, nobody is outside");
    }

    /// Nobody may sleep through their turn because whoever was to wake them has gone.
    #[tokio::test]
    async fn the_watch_is_handed_on_and_looks_again_when_somebody_comes() {
        let hand = Hand::new(Moment::from_secs(1_000), 1);
        let line = Arc::new(Line::new(&hand.env()));
        let enter = |key: &'static str, cap: Cap| {
            let line = line.clone();
            tokio::spawn(async move {
                let request = Request { lane: Lane::Single, tenant: None, caps: vec![(key, cap)] };
                line.enter(request, None).await.map(|_| ())
            })
        };
        let (slow, quick) = (Cap::per_second(1), Cap::per_second(11));
        for (key, cap) in [("slow", slow), ("quick", quick), ("quick", quick), ("quick", quick)] {
            enter(key, cap).await.unwrap().unwrap();
        }
        let on_watch = enter("slow", slow);
        settle().await;
        let later = enter("quick", quick);
        settle().await;
        hand.advance(Duration::from_millis(130));
        settle().await;
        assert!(later.is_finished(), "the watch slept for the slow one");
        let (second, third) = (enter("slow", slow), enter("slow", slow));
        settle().await;
        on_watch.abort();
        settle().await;
        hand.advance(Duration::from_millis(870));
        settle().await;
        assert!(second.is_finished() && !third.is_finished());
        hand.advance(Duration::from_secs(1));
        settle().await;
        assert!(third.is_finished());
    }
}
