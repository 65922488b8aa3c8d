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

pub(super) struct Line<K> {
    inner: Mutex<Inner<K>>,
    env: Env,
    /// How many may wait in a lane who may be put off.
    room: usize,
}

struct Inner<K> {
    traffic: Traffic<K>,
    bells: HashMap<u64, Arc<Notify>>,
    watch: Option<u64>,
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
        let inner = Inner { traffic: Traffic::default(), bells: HashMap::new(), watch: None };
        Line { inner: Mutex::new(inner), env: env.clone(), room: usize::MAX }
    }

    /// The same with room for so many in each lane; more are put off at once, unless nothing may put them off.
    pub fn with_room(self, room: usize) -> Self {
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
                    Some((about, inner.traffic.waiting(lane) > self.room))
                }
                _ => None,
            };
            (Place { line: Arc::clone(self), lane, number }, waits)
        };
        match (waits, patience) {
            (None, _) => return Ok(place),
            (Some((about, _)), Some(patience)) if about > patience => return Err(about),
            (Some((about, true)), Some(patience)) => return Err(about.max(patience)),
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
        assert_eq!(line.enter(request(Lane::Single, cap), patience).await.err(), patience);
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
