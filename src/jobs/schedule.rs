//! The loops of one process: started together, started again when one falls over, and finished together.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Step;
use super::pulses::{Beat, Pulses, Rounds};
use super::queue::Queue;
use super::sweep::Sweep;
use crate::env::Env;
use crate::model::alert::loops::Loop;
use crate::model::moment::Moment;
use crate::store::Store;

/// The pause before a loop that ended by itself starts again.
const PAUSE: Duration = Duration::from_secs(1);

/// A task that names a moment long past is not done over and over without a breath.
const LEAST: Duration = Duration::from_millis(20);

/// A task could not do its work, and has told the log why.
#[derive(Clone, Copy, Debug)]
pub struct Failed;

/// How a task ended: when it is to be done again, if it knows.
pub type Round = Result<Option<Moment>, Failed>;

type Body = Arc<dyn Fn(CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>;

/// What runs in this process besides its listeners.
pub struct Schedule {
    env: Env,
    grace: Duration,
    loops: Vec<(&'static str, Body)>,
    rounds: Rounds,
    pulses: Option<Store>,
}

impl Schedule {
    /// Nothing yet. Loops that are still busy this long after the stop are dropped.
    pub fn new(env: &Env, grace: Duration) -> Self {
        Schedule { env: env.clone(), grace, loops: Vec::new(), rounds: Rounds::default(), pulses: None }
    }

    /// Writes down in this store when its loops went round.
    #[must_use]
    pub fn heard_in(mut self, store: &Store) -> Self {
        self.pulses = Some(store.clone());
        self
    }

    /// Adds a loop that returns soon after its token is cancelled, and finishes what it has begun before.
    #[must_use]
    pub fn with<F, Fut>(mut self, name: &'static str, body: F) -> Self
    where
        F: Fn(CancellationToken) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.loops.push((name, Arc::new(move |stop| body(stop).boxed())));
        self
    }

    /// The same for a loop that says itself when it went round.
    #[must_use]
    pub fn with_beat<F, Fut>(self, of: Loop, body: F) -> Self
    where
        F: Fn(CancellationToken, Beat) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let beat = Beat { name: of.name, env: self.env.clone(), rounds: self.rounds.clone() };
        self.with(of.name, move |stop| body(stop, beat.clone()))
    }

    /// Adds a task that is done at the start, whenever `bell` rings, at the moment that it names itself, and at the latest a beat
    /// of its loop after the last time: a bell rings in one process only. It is not cut in the middle before the grace has passed.
    #[must_use]
    pub fn when<F, Fut>(self, of: Loop, bell: Arc<Notify>, task: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Round> + Send + 'static,
    {
        let (env, task, idle) = (self.env.clone(), Arc::new(task), of.every);
        self.with_beat(of, move |stop, beat| {
            let (env, task, bell) = (env.clone(), Arc::clone(&task), Arc::clone(&bell));
            async move {
                while !stop.is_cancelled() {
                    let round = task().await;
                    if round.is_ok() {
                        beat.went_round();
                    }
                    let next = round.unwrap_or(None);
                    let wait = next.map_or(idle, |at| at.since(env.now()).clamp(LEAST.min(idle), idle));
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = bell.notified() => {}
                        () = env.sleep(wait) => {}
                    }
                }
            }
        })
    }

    /// Adds the workers that answer alarms by `step`, and the sweep behind them. The grace grows to what the workers need
    /// to drain.
    #[must_use]
    pub fn with_workers(mut self, queue: Queue, step: Arc<dyn Step>, sweep: Sweep) -> Self {
        let sweep = Arc::new(sweep);
        self.grace = self.grace.max(queue.drain_time() + PAUSE);
        self.with("workers", move |stop| {
            let (queue, step) = (queue.clone(), Arc::clone(&step));
            async move { queue.work(step, stop).await }
        })
        .with("sweep", move |stop| {
            let sweep = Arc::clone(&sweep);
            async move { sweep.run(stop).await }
        })
    }

    /// Runs all loops until `stop`, then waits for them; how many had to be dropped.
    pub async fn run(self, stop: CancellationToken) -> usize {
        let mut running = JoinSet::new();
        if let Some(store) = &self.pulses {
            let runs = self.loops.iter().map(|(name, _)| *name).collect();
            let pulses = Pulses::new(store, &self.env, &self.rounds, runs);
            let stopped = stop.clone();
            running.spawn(async move { pulses.run(stopped).await });
        }
        for (name, body) in self.loops {
            running.spawn(keep(name, body, self.env.clone(), stop.clone()));
        }
        stop.cancelled().await;
        let finish = async { while running.join_next().await.is_some() {} };
        tokio::select! {
            () = finish => {}
            () = self.env.sleep(self.grace) => {}
        }
        let dropped = running.len();
        if dropped > 0 {
            tracing::warn!(dropped, "loops did not end in time; they are dropped");
        }
        running.shutdown().await;
        dropped
    }
}

async fn keep(name: &'static str, body: Body, env: Env, stop: CancellationToken) {
    loop {
        let outcome = AssertUnwindSafe(body(stop.clone())).catch_unwind().await;
        if stop.is_cancelled() {
            return;
        }
        match outcome {
            Ok(()) => tracing::warn!(name, "a loop ended by itself; it starts again"),
            Err(_) => tracing::error!(name, "a loop panicked; it starts again"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = env.sleep(PAUSE) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::env::manual::Hand;
    use crate::model::moment::Moment;

    async fn until(what: &str, condition: impl Fn() -> bool) {
        for _ in 0..100_000 {
            if condition() {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("never happened: {what}");
    }

    /// Counts how often it was called.
    #[derive(Clone, Default)]
    struct Count(Arc<AtomicUsize>);

    impl Count {
        fn add(&self) -> usize {
            self.0.fetch_add(1, Ordering::SeqCst) + 1
        }

        async fn reaches(&self, n: usize) {
            until("the count", || self.0.load(Ordering::SeqCst) == n).await;
        }
    }

    #[tokio::test]
    async fn a_loop_that_panics_starts_again_and_ends_at_the_stop() {
        let hand = Hand::new(Moment::from_secs(100), 1);
        let (falls, stop) = (Count::default(), CancellationToken::new());
        let counted = falls.clone();
        let schedule = Schedule::new(&hand.env(), Duration::from_secs(5)).with("falls", move |_| {
            let falls = counted.clone();
            async move { assert!(falls.add() > 100, "falls over") }
        });
        let running = tokio::spawn(schedule.run(stop.clone()));
        for round in 1..4 {
            falls.reaches(round).await;
            until("the pause", || hand.next_wake().is_some()).await;
            hand.advance(PAUSE);
        }
        stop.cancel();
        assert_eq!(running.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_task_is_done_at_its_bell_at_its_own_moment_and_when_idle_too_long() {
        let hand = Hand::new(Moment::from_secs(100), 1);
        let (rounds, stop, bell) = (Count::default(), CancellationToken::new(), Arc::new(Notify::new()));
        let counted = rounds.clone();
        let task = move || {
            // The second time it names a moment, the others none.
            let next = (counted.add() == 2).then_some(Moment::from_secs(103));
            async move { Ok(next) }
        };
        let schedule = Schedule::new(&hand.env(), Duration::from_secs(5));
        let schedule = schedule.when(EVERY_TEN, Arc::clone(&bell), task);
        let running = tokio::spawn(schedule.run(stop.clone()));
        rounds.reaches(1).await;
        bell.notify_one();
        rounds.reaches(2).await;
        until("its own moment", || hand.next_wake() == Some(Moment::from_secs(103))).await;
        hand.advance(Duration::from_secs(3));
        rounds.reaches(3).await;
        until("the idle time", || hand.next_wake() == Some(Moment::from_secs(113))).await;
        hand.advance(Duration::from_secs(10));
        rounds.reaches(4).await;
        stop.cancel();
        assert_eq!(running.await.unwrap(), 0);
    }

    const EVERY_TEN: Loop = Loop { name: "rounds", every: Duration::from_secs(10), without: "nothing is done" };

    /// A round that failed is none, and is tried again in its time.
    #[tokio::test]
    async fn a_loop_has_a_pulse_by_the_rounds_that_did_their_work() {
        let hand = Hand::new(Moment::from_secs(100), 1);
        let (rounds, stop) = (Count::default(), CancellationToken::new());
        let counted = rounds.clone();
        let task = move || {
            let well = counted.add() % 3 == 0;
            async move { if well { Ok(None) } else { Err(Failed) } }
        };
        let schedule = Schedule::new(&hand.env(), Duration::from_secs(5)).when(EVERY_TEN, Arc::default(), task);
        let heard = schedule.rounds.clone();
        let running = tokio::spawn(schedule.run(stop.clone()));
        for (round, last) in [(1, None), (2, None), (3, Some(120)), (4, Some(120)), (5, Some(120)), (6, Some(150))] {
            rounds.reaches(round).await;
            let again = Moment::from_secs(100) + Duration::from_secs(10) * u32::try_from(round).unwrap();
            until("its next round", || hand.next_wake() == Some(again)).await;
            assert_eq!(heard.all().get("rounds").copied(), last.map(Moment::from_secs), "round {round}");
            hand.advance(Duration::from_secs(10));
        }
        stop.cancel();
        assert_eq!(running.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_loop_that_does_not_end_is_dropped_after_the_grace() {
        let hand = Hand::new(Moment::from_secs(100), 1);
        let stop = CancellationToken::new();
        let schedule = Schedule::new(&hand.env(), Duration::from_secs(5)).with("hangs", |_| std::future::pending());
        let running = tokio::spawn(schedule.run(stop.clone()));
        stop.cancel();
        until("the grace is awaited", || hand.next_wake() == Some(Moment::from_secs(105))).await;
        assert!(!running.is_finished());
        hand.advance(Duration::from_secs(5));
        assert_eq!(running.await.unwrap(), 1);
    }
}
