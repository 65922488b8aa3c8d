//! When the worker looks for alarms: at once when one was set in this process, and once a second for all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use apalis::prelude::{PollSnapshot, PollStrategy};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;

use crate::env::Env;

/// A look that was under way when an alarm became visible may have missed it, and is followed by another after this time.
const ECHO: Duration = Duration::from_millis(20);

/// Rung after an alarm's transaction is durable.
#[derive(Default)]
pub(super) struct Bell {
    rung: AtomicBool,
    listener: AtomicWaker,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.listener.wake();
    }

    /// Whether it rang since the last call; else the caller is woken when it does.
    fn heard(&self, cx: &Context<'_>) -> bool {
        self.listener.register(cx.waker());
        self.rung.swap(false, Ordering::AcqRel)
    }
}

/// The poll strategy. apalis's own ones let a timer go unarmed when a look takes longer than the interval; here both are
/// polled each time and so are always armed.
pub(super) struct Listen {
    env: Env,
    bell: Arc<Bell>,
    tick: BoxFuture<'static, ()>,
    echo: Option<BoxFuture<'static, ()>>,
}

impl Listen {
    pub(super) fn new(env: Env, bell: Arc<Bell>) -> Self {
        let tick = next_second(env.clone());
        Listen { env, bell, tick, echo: None }
    }
}

/// An alarm's time is a whole second in the queue's table; to look right after each loses the least time.
fn next_second(env: Env) -> BoxFuture<'static, ()> {
    let into = env.now().micros().rem_euclid(1_000_000).unsigned_abs();
    let wait = Duration::from_micros(1_000_000 - into) + Duration::from_millis(2);
    async move { env.sleep(wait).await }.boxed()
}

impl PollStrategy for Listen {
    fn poll_drive(&mut self, cx: &mut Context<'_>, _: &PollSnapshot) -> Poll<Option<()>> {
        let mut look = false;
        while self.tick.poll_unpin(cx).is_ready() {
            look = true;
            self.tick = next_second(self.env.clone());
        }
        if self.echo.as_mut().is_some_and(|echo| echo.poll_unpin(cx).is_ready()) {
            look = true;
            self.echo = None;
        }
        if self.bell.heard(cx) {
            look = true;
            let env = self.env.clone();
            let mut echo = async move { env.sleep(ECHO).await }.boxed();
            // Polled once, so that it is armed; should it be over already, it was not needed.
            self.echo = echo.poll_unpin(cx).is_pending().then_some(echo);
        }
        if look { Poll::Ready(Some(())) } else { Poll::Pending }
    }
}
