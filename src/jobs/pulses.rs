//! Which loops of this process went round, and the rows that tell other processes and those who watch.
//!
//! A loop says so in memory; twice a minute all that was said is written at once. So a database is written to in time, however often
//! loops go round and however much they find to do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::Env;
use crate::model::alert::loops::LOOPS;
use crate::model::moment::Moment;
use crate::store::{Store, StoreResult, pulse};
use crate::telemetry::Chain;

/// How often what loops said is written down.
const WRITTEN: Duration = Duration::from_secs(30);

/// When the loops of this process last went round and did their work.
#[derive(Clone, Default)]
pub(super) struct Rounds(Arc<Mutex<BTreeMap<&'static str, Moment>>>);

impl Rounds {
    pub(super) fn went_round(&self, name: &'static str, now: Moment) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, now);
    }

    pub(super) fn all(&self) -> BTreeMap<&'static str, Moment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// By what a loop says that it went round.
#[derive(Clone)]
pub struct Beat {
    pub(super) name: &'static str,
    pub(super) env: Env,
    pub(super) rounds: Rounds,
}

impl Beat {
    /// It went round and did its work.
    pub fn went_round(&self) {
        self.rounds.went_round(self.name, self.env.now());
    }
}

/// Writes down what the loops say.
pub(super) struct Pulses {
    store: Store,
    env: Env,
    rounds: Rounds,
    /// The loops that this process has.
    runs: Vec<&'static str>,
    begun: AtomicBool,
}

impl Pulses {
    pub(super) fn new(store: &Store, env: &Env, rounds: &Rounds, runs: Vec<&'static str>) -> Self {
        Pulses { store: store.clone(), env: env.clone(), rounds: rounds.clone(), runs, begun: AtomicBool::new(false) }
    }

    /// Always in the order of names: no two processes wait for each other.
    async fn write(&self) -> StoreResult<()> {
        let mut stmts = Vec::new();
        if !self.begun.load(Ordering::Relaxed) {
            // One that never went round is heard of from now on; one that is not wanted any more is not missed.
            stmts.extend(LOOPS.iter().map(|l| {
                if self.runs.contains(&l.name) { pulse::begins(l.name, self.env.now()) } else { pulse::is_not_run(l.name) }
            }));
        }
        stmts.extend(self.rounds.all().into_iter().map(|(name, at)| pulse::beats(name, at)));
        let mut tx = self.store.begin().await?;
        for stmt in stmts {
            tx.execute(stmt).await?;
        }
        tx.commit().await?;
        self.begun.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Writes until `stop`.
    pub(super) async fn run(&self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.write().await {
                tracing::warn!(error = %Chain(&error), "it could not be written down which loops went round; trying again");
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.env.sleep(WRITTEN) => {}
            }
        }
    }
}
