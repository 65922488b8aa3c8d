//! Where time and chance come in. Nothing outside this folder reads a clock, draws a number or sleeps (clippy enforces it).
//!
//! [`Env`] is handed down from the composition root. The real one is [`Env::real`]; tests hold a [`manual::Hand`], whose clock
//! moves only when told, whose draws come from a seed and whose sleepers wake in order of their time. How to get it wrong:
//! keep an `Instant` of your own, call `tokio::time::sleep`, or cache a moment across an await and call it "now".

mod steering;
mod system;

pub mod manual;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::model::moment::Moment;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The present moment. Never goes backwards within one process, but for a first correction.
    fn now(&self) -> Moment;

    /// Another clock, which counts more than this one, says that it is `at`. A clock that is moved by hand is its own.
    fn correct(&self, at: Moment) -> Correction {
        let _ = at;
        Correction::None
    }
}

/// What became of a correction; with the seconds by which the other clock was ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// They agree well enough.
    None,
    /// The other's time is ours from now on.
    Made(i64),
    /// The other one jumped: no clock is followed so far in the middle of work.
    Refused(i64),
}

/// Draws bytes nobody can predict (the real one) or that a seed repeats (the test one).
pub trait Entropy: Send + Sync + 'static {
    /// Fills `buf`.
    fn fill(&self, buf: &mut [u8]);
}

/// Waits.
#[async_trait]
pub trait Timer: Send + Sync + 'static {
    /// Returns when `wait` has passed on this timer's clock.
    async fn sleep(&self, wait: Duration);
}

/// Clock, entropy and timer, cheap to clone.
#[derive(Clone)]
pub struct Env {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of chance.
    pub entropy: Arc<dyn Entropy>,
    /// The timer.
    pub timer: Arc<dyn Timer>,
}

impl Env {
    /// The operating system's time and randomness.
    pub fn real() -> Self {
        system::real()
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Another clock, which counts more than ours, says that it is `at`.
    pub fn correct(&self, at: Moment) -> Correction {
        self.clock.correct(at)
    }

    /// Waits.
    pub async fn sleep(&self, wait: Duration) {
        self.timer.sleep(wait).await;
    }

    /// `N` drawn bytes.
    pub fn draw<const N: usize>(&self) -> [u8; N] {
        let mut buf = [0; N];
        self.entropy.fill(&mut buf);
        buf
    }

    /// `n` drawn bytes as lower-case hex.
    pub fn draw_hex(&self, n: usize) -> String {
        let mut buf = vec![0; n];
        self.entropy.fill(&mut buf);
        buf.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The chance part of a new id.
    pub fn id_bytes(&self) -> [u8; 10] {
        self.draw()
    }
}

/// Mints an id of any kind: `mint!(env, DomainId)`.
#[macro_export]
macro_rules! mint {
    ($env:expr, $kind:ident) => {
        $kind::mint($env.now(), $env.id_bytes())
    };
}
