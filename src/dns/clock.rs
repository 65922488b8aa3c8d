//! A look's own clock: it runs while anything of the look is on its way, and stands while all of it waits at the gate.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::env::Env;
use crate::model::moment::Moment;

/// The clock of one look.
#[derive(Debug, Default)]
pub(super) struct LookClock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Exchanges that are not over.
    open: usize,
    /// Those of them that wait at the gate.
    waiting: usize,
    /// How long it has stood so far, and since when it stands now.
    stood: Duration,
    stands_since: Option<Moment>,
}

impl State {
    fn turn(&mut self, now: Moment) {
        let stands = self.open > 0 && self.waiting == self.open;
        match (stands, self.stands_since) {
            (true, None) => self.stands_since = Some(now),
            (false, Some(since)) => {
                self.stood += now.since(since);
                self.stands_since = None;
            }
            _ => {}
        }
    }
}

impl LookClock {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `exchange` as one that counts.
    pub(super) async fn exchange<T>(&self, env: &Env, exchange: impl Future<Output = T>) -> T {
        self.change(env, |s| s.open += 1);
        let done = exchange.await;
        self.change(env, |s| s.open -= 1);
        done
    }

    /// Runs `wait`, which is no time of the look's.
    pub(super) async fn wait<T>(&self, env: &Env, wait: impl Future<Output = T>) -> T {
        self.change(env, |s| s.waiting += 1);
        let done = wait.await;
        self.change(env, |s| s.waiting -= 1);
        done
    }

    fn change(&self, env: &Env, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.turn(env.now());
    }

    /// How long it has stood.
    pub(super) fn stood(&self, now: Moment) -> Duration {
        let state = self.state();
        state.stood + state.stands_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Returns once it has run for `time`.
    pub(super) async fn run_out(&self, time: Duration, env: &Env) {
        let began = env.now();
        loop {
            let now = env.now();
            let ran = now.since(began).saturating_sub(self.stood(now));
            match time.checked_sub(ran) {
                Some(left) if !left.is_zero() => env.sleep(left).await,
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::manual::Hand;

    #[tokio::test]
    async fn it_stands_only_while_everything_waits() {
        let hand = Hand::new(Moment::from_secs(100), 1);
        let (env, clock) = (hand.env(), LookClock::default());
        let pass = |seconds| hand.advance(Duration::from_secs(seconds));
        let stood = || clock.stood(env.now()).as_secs();
        clock.exchange(&env, async { pass(3) }).await;
        assert_eq!(stood(), 0);
        clock
            .exchange(&env, async {
                clock.wait(&env, async { pass(5) }).await;
                pass(1);
                // Another exchange is on its way: its time is the look's.
                clock.exchange(&env, async { clock.wait(&env, async { pass(7) }).await }).await;
            })
            .await;
        assert_eq!(stood(), 5);
        clock.exchange(&env, clock.wait(&env, async { pass(2) })).await;
        assert_eq!(stood(), 7);
    }

    #[tokio::test]
    async fn time_spent_waiting_is_added_to_the_end() {
        let hand = Hand::new(Moment::from_secs(100), 1);
        let (env, clock) = (hand.env(), std::sync::Arc::new(LookClock::default()));
        let end = tokio::spawn({
            let (env, clock) = (env.clone(), clock.clone());
            async move { clock.run_out(Duration::from_secs(10), &env).await }
        });
        while hand.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        clock.exchange(&env, clock.wait(&env, async { hand.advance(Duration::from_secs(8)) })).await;
        for (step, over) in [(2, false), (7, false), (1, true)] {
            hand.advance(Duration::from_secs(step));
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            assert_eq!(end.is_finished(), over, "after {step} s more");
        }
    }
}
