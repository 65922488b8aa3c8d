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
use super::queue::Queue;
use super::sweep::Sweep;
use crate::env::Env;
use crate::model::moment::Moment;

/// The pause before a loop that ended by itself starts again.
const PAUSE: Duration = Duration::from_secs(1);

/// A task that names a moment long past is not done over and over without a breath.
const LEAST: Duration = Duration::from_millis(20);

type Body = Arc<dyn Fn(CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>;

/// What runs in this process besides its listeners.
pub struct Schedule {
    env: Env,
    grace: Duration,
    loops: Vec<(&'static str, Body)>,
}

impl Schedule {
    /// Nothing yet. Loops that are still busy this long after the stop are dropped.
    pub fn new(env: &Env, grace: Duration) -> Self {
        Schedule { env: env.clone(), grace, loops: Vec::new() }
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

    /// Adds a task that is done at the start, whenever `bell` rings, at the moment that it names itself, and at the latest
    /// `idle` after the last time: a bell rings in one process only. It is not cut in the middle before the grace has passed.
    #[must_use]
    pub fn when<F, Fut>(self, name: &'static str, bell: Arc<Notify>, idle: Duration, task: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Moment>> + Send + 'static,
    {
        let (env, task) = (self.env.clone(), Arc::new(task));
        self.with(name, move |stop| {
            let (env, task, bell) = (env.clone(), Arc::clone(&task), Arc::clone(&bell));
            async move {
                while !stop.is_cancelled() {
                    let next = task().await;
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
            async move { next }
        };
        let schedule = Schedule::new(&hand.env(), Duration::from_secs(5));
        let schedule = schedule.when("rounds", Arc::clone(&bell), Duration::from_secs(10), task);
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
