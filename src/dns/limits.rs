//! What one look may cost, and the loop that keeps to it.

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::model::checks::wanted;
use crate::model::look::{Answer, Ask, Observation, Probe, Seen};

/// What one look may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Questions sent.
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

/// Sends one probe.
#[async_trait]
pub(super) trait Exchange: Send + Sync {
    async fn exchange(&self, probe: &Probe) -> Answer;
}

/// Asks until every check can be judged, a limit is reached or `deadline` comes.
pub(super) async fn look_within(
    ask: &Ask,
    resolvers: &[String],
    limits: Limits,
    deadline: impl Future<Output = ()>,
    exchange: &dyn Exchange,
) -> Seen {
    let mut seen = Seen { resolvers: resolvers.to_vec(), ..Seen::default() };
    let mut octets = 0;
    tokio::pin!(deadline);
    loop {
        let mut probes = wanted(ask, &seen);
        if probes.is_empty() {
            return seen;
        }
        let left = limits.queries.saturating_sub(seen.observations.len());
        if left == 0 {
            seen.cut_short = Some(format!("it would need more than {} questions", limits.queries));
            return seen;
        }
        probes.truncate(left);
        let mut open: FuturesUnordered<_> =
            probes.into_iter().map(|probe| async move { (exchange.exchange(&probe).await, probe) }).collect();
        loop {
            let next = tokio::select! {
                next = open.next() => next,
                () = &mut deadline => {
                    seen.cut_short = Some(format!("it took longer than {} s", limits.time.as_secs()));
                    return seen;
                }
            };
            let Some((answer, probe)) = next else { break };
            octets += answer.size;
            seen.observations.push(Observation { probe, answer });
            if octets > limits.octets {
                seen.cut_short = Some(format!("the answers are larger than {} octets", limits.octets));
                return seen;
            }
        }
    }
}
