//! What one look may cost, and the loop that keeps to it.
//!
//! Everything counts: a question that is sent again or comes back by TCP is one more, and octets count when they are taken in,
//! whether or not they turn out to be an answer. So no zone can make a look dearer than its limits, whatever it sends. Only the
//! time in which all that is left of a look waits for its turn at the gate is not the zone's, and does not count.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::clock::LookClock;
use super::gate::Running;
use crate::env::Env;
use crate::model::checks::wanted;
use crate::model::look::{Answer, Ask, Observation, Probe, Seen};

/// What one look may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Questions sent, those sent again included.
    pub queries: usize,
    /// Octets received.
    pub octets: usize,
    /// Time in all.
    pub time: Duration,
    /// Time for one exchange, TCP included.
    pub per_query: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { queries: 64, octets: 1_000_000, time: Duration::from_secs(10), per_query: Duration::from_secs(3) }
    }
}

/// What is left of the limits while a look runs.
pub(super) struct Budget {
    queries: AtomicUsize,
    octets: AtomicUsize,
    /// Its time.
    pub(super) clock: LookClock,
    /// Its place among the looks, where they are counted.
    pub(super) running: Option<Running>,
    put_off: OnceLock<Duration>,
}

impl Budget {
    pub(super) fn new(limits: Limits, running: Option<Running>) -> Self {
        Budget {
            queries: AtomicUsize::new(limits.queries),
            octets: AtomicUsize::new(limits.octets),
            clock: LookClock::default(),
            running,
            put_off: OnceLock::new(),
        }
    }

    /// The look cannot go on for so long.
    pub(super) fn put_off(&self, wait: Duration) {
        // Two of its packets may be told so; either is true.
        let _ = self.put_off.set(wait);
    }

    /// Takes one question; whether one was left.
    pub(super) fn send(&self) -> bool {
        take(&self.queries, 1)
    }

    /// Takes octets that are about to be read; whether they were left.
    pub(super) fn receive(&self, octets: usize) -> bool {
        let left = take(&self.octets, octets);
        if !left {
            // What was refused is as good as spent: the look is over.
            self.octets.store(0, Ordering::Relaxed);
        }
        left
    }

    fn why(&self, limits: Limits) -> String {
        if self.octets.load(Ordering::Relaxed) == 0 {
            format!("the answers are larger than {} octets", limits.octets)
        } else {
            format!("it would need more than {} questions", limits.queries)
        }
    }
}

fn take(from: &AtomicUsize, n: usize) -> bool {
    from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(n)).is_ok()
}

/// Sends one probe.
#[async_trait]
pub(super) trait Exchange: Send + Sync {
    /// The answer, or what stood in its place; none when the budget does not allow to learn it.
    async fn exchange(&self, probe: &Probe, budget: &Budget) -> Option<Answer>;
}

/// Asks until every check can be judged, a limit is reached or its time is over. Without an `env` nothing waits, so no time
/// passes.
pub(super) async fn look_within(
    ask: &Ask,
    resolvers: &[String],
    limits: Limits,
    env: Option<&Env>,
    running: Option<Running>,
    exchange: &dyn Exchange,
) -> Seen {
    let mut seen = Seen { resolvers: resolvers.to_vec(), ..Seen::default() };
    let budget = Budget::new(limits, running);
    let deadline = async {
        match env {
            Some(env) => budget.clock.run_out(limits.time, env).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(deadline);
    loop {
        let mut probes = wanted(ask, &seen);
        if probes.is_empty() {
            return seen;
        }
        let left = budget.queries.load(Ordering::Relaxed);
        if left == 0 {
            seen.cut_short = Some(budget.why(limits));
            return seen;
        }
        probes.truncate(left);
        let budget = &budget;
        let mut open: FuturesUnordered<_> =
            probes.into_iter().map(|probe| async move { (exchange.exchange(&probe, budget).await, probe) }).collect();
        loop {
            let next = tokio::select! {
                next = open.next() => next,
                () = &mut deadline => {
                    seen.cut_short = Some(format!("it took longer than {} s", limits.time.as_secs()));
                    return seen;
                }
            };
            let Some((answer, probe)) = next else { break };
            let Some(answer) = answer else {
                seen.put_off = budget.put_off.get().copied();
                seen.cut_short = Some(budget.why(limits));
                return seen;
            };
            seen.observations.push(Observation { probe, answer });
        }
    }
}
