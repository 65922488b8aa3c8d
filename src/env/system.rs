//! The real clock, entropy and timer. The only file that may touch the operating system's time.
#![expect(clippy::disallowed_methods, reason = "this file is where the real clock, entropy and timer come in")]

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;

use super::steering::Steering;
use super::{Clock, Correction, Entropy, Env, Moment, Timer};

/// Wall time read once at start, carried on by the monotonic clock: a stepped host clock neither renews everything nor
/// pushes what is due out of reach.
struct SystemClock {
    started: Moment,
    since: Instant,
    steering: Steering,
}

impl SystemClock {
    fn own(&self) -> Moment {
        self.started + self.since.elapsed()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        self.steering.shown(self.own())
    }

    fn correct(&self, at: Moment) -> Correction {
        self.steering.correct(self.own(), at)
    }
}

struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, buf: &mut [u8]) {
        // The provider fails only when the kernel has no randomness at all; going on would make guessable keys.
        aws_lc_rs::rand::fill(buf).expect("the operating system has no randomness");
    }
}

struct TokioTimer;

#[async_trait]
impl Timer for TokioTimer {
    async fn sleep(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
    }
}

pub(super) fn real() -> Env {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Env {
        clock: Arc::new(SystemClock {
            started: Moment::default() + wall,
            since: Instant::now(),
            steering: Steering::default(),
        }),
        entropy: Arc::new(SystemEntropy),
        timer: Arc::new(TokioTimer),
    }
}
