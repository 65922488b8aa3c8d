//! The hand-driven twin: a clock that moves when told, draws that a seed repeats, sleepers that wake in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::oneshot;

use super::{Clock, Entropy, Env, Moment, Timer};

struct State {
    now: Moment,
    rng: StdRng,
    /// Sleepers by (wake-up time, order of arrival).
    sleepers: BTreeMap<(Moment, u64), oneshot::Sender<()>>,
    arrivals: u64,
}

/// The hand that drives a manual [`Env`].
#[derive(Clone)]
pub struct Hand(Arc<Mutex<State>>);

impl Hand {
    /// A hand at `start`, all draws from `seed`.
    pub fn new(start: Moment, seed: u64) -> Self {
        Hand(Arc::new(Mutex::new(State {
            now: start,
            rng: StdRng::seed_from_u64(seed),
            sleepers: BTreeMap::new(),
            arrivals: 0,
        })))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The environment this hand drives.
    pub fn env(&self) -> Env {
        Env { clock: Arc::new(self.clone()), entropy: Arc::new(self.clone()), timer: Arc::new(self.clone()) }
    }

    /// Moves the clock on by `step` and wakes who is due.
    pub fn advance(&self, step: Duration) {
        let to = self.state().now + step;
        self.advance_to(to);
    }

    /// Moves the clock on to `to` (never back) and wakes who is due.
    pub fn advance_to(&self, to: Moment) {
        let mut s = self.state();
        s.now = s.now.max(to);
        let later = s.sleepers.split_off(&(to + Duration::from_micros(1), 0));
        for (_, sender) in std::mem::replace(&mut s.sleepers, later) {
            // A sleeper that went away needs no waking.
            let _ = sender.send(());
        }
    }

    /// When the earliest sleeper wants to wake.
    pub fn next_wake(&self) -> Option<Moment> {
        self.state().sleepers.iter().find(|(_, s)| !s.is_closed()).map(|((at, _), _)| *at)
    }

    /// A number below `bound`, from the same seed.
    pub fn below(&self, bound: u64) -> u64 {
        self.state().rng.next_u64() % bound.max(1)
    }
}

impl Clock for Hand {
    fn now(&self) -> Moment {
        self.state().now
    }
}

impl Entropy for Hand {
    fn fill(&self, buf: &mut [u8]) {
        self.state().rng.fill_bytes(buf);
    }
}

#[async_trait]
impl Timer for Hand {
    async fn sleep(&self, wait: Duration) {
        // Nobody has to move time for what has passed.
        if wait.is_zero() {
            return;
        }
        let (sender, receiver) = oneshot::channel();
        {
            let mut s = self.state();
            let at = s.now + wait;
            s.arrivals += 1;
            let key = (at, s.arrivals);
            s.sleepers.insert(key, sender);
        }
        // An error means the hand itself is gone; nobody will move time again.
        let _ = receiver.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleepers_wake_only_when_the_hand_moves() {
        let hand = Hand::new(Moment::from_secs(100), 1);
        let env = hand.env();
        let sleeper = tokio::spawn({
            let env = env.clone();
            async move {
                env.sleep(Duration::from_secs(5)).await;
                env.now()
            }
        });
        while hand.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        hand.advance(Duration::from_secs(4));
        assert!(!sleeper.is_finished());
        hand.advance(Duration::from_secs(1));
        assert_eq!(sleeper.await.unwrap(), Moment::from_secs(105));
        // No time at all has passed already.
        env.sleep(Duration::ZERO).await;
        assert_eq!((env.now(), hand.next_wake()), (Moment::from_secs(105), None));
    }

    #[test]
    fn one_seed_draws_the_same_bytes_twice() {
        let a = Hand::new(Moment::default(), 9).env().draw::<16>();
        let b = Hand::new(Moment::default(), 9).env().draw::<16>();
        assert_eq!(a, b);
    }
}
