//! The sweep: every domain that is due and has been for a while gets a new alarm, whatever became of the old one.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Alarms;
use crate::env::Env;
use crate::model::id::DomainId;
use crate::store::{Store, StoreResult, kept_answers, pulse, sql};
use crate::telemetry::Chain;
use crate::telemetry::metrics::ControlMeters;

/// How often the store's statistics are looked at.
const OPTIMIZE_EVERY: Duration = Duration::from_secs(24 * 3600);

/// How often answers whose time is up are removed.
const PRUNE_EVERY: Duration = Duration::from_secs(15 * 60);

/// How often other processes are told that the workers here are alive.
const BEAT: Duration = Duration::from_secs(30);

/// How the sweep runs.
#[derive(Clone, Debug)]
pub struct SweepSettings {
    /// The pause between two sweeps.
    pub every: Duration,
    /// How long a domain is due before its alarm counts as lost. Alarms are set a minute ahead at most; whatever is due
    /// later than that waits this much longer.
    pub late: Duration,
    /// Alarms set and not rung above which the sweep adds none: those rows will have their turn.
    pub room: u64,
}

impl Default for SweepSettings {
    fn default() -> Self {
        SweepSettings { every: Duration::from_secs(5), late: Duration::from_secs(10), room: 1000 }
    }
}

/// What one sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Domains that got a new alarm.
    pub rearmed: usize,
    /// Rows removed from the queue.
    pub removed: u64,
}

/// The sweep.
pub struct Sweep {
    store: Store,
    alarms: Arc<dyn Alarms>,
    env: Env,
    settings: SweepSettings,
    meters: Arc<ControlMeters>,
    beaten_at: AtomicI64,
}

impl Sweep {
    /// Over the domains of `store`, by the alarm clock `alarms`.
    pub fn new(store: &Store, alarms: Arc<dyn Alarms>, env: &Env, settings: SweepSettings) -> Self {
        Sweep {
            store: store.clone(),
            alarms,
            env: env.clone(),
            settings,
            meters: Arc::default(),
            beaten_at: AtomicI64::new(i64::MIN),
        }
    }

    /// Says to these meters when it did its work.
    #[must_use]
    pub fn counted_by(mut self, meters: &Arc<ControlMeters>) -> Self {
        self.meters = Arc::clone(meters);
        self
    }

    /// Sweeps once.
    pub async fn once(&self) -> StoreResult<Swept> {
        let removed = self.alarms.tidy(self.env.now()).await?;
        let room = self.settings.room.saturating_sub(self.alarms.waiting().await?);
        let ids = self.overdue(i64::try_from(room).unwrap_or(i64::MAX)).await?;
        if !ids.is_empty() {
            let mut tx = self.store.begin().await?;
            let now = self.env.now();
            for id in &ids {
                self.alarms.wake(&mut tx, id, now).await?;
            }
            tx.commit().await?;
        }
        let now = self.env.now();
        // One write in half a minute is enough to tell that somebody works.
        if self.beaten_at.load(Ordering::Relaxed) <= (now - BEAT).micros() {
            pulse::beat(&self.store, pulse::SWEEP, now).await?;
            self.beaten_at.store(now.micros(), Ordering::Relaxed);
        }
        self.meters.swept(now, ids.len());
        Ok(Swept { rearmed: ids.len(), removed })
    }

    /// Domains due for a while that nobody works on, the longest due first. Imported names have a loop of their own, until
    /// somebody asks for one.
    async fn overdue(&self, limit: i64) -> StoreResult<Vec<DomainId>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let now = self.env.now();
        let mut tx = self.store.read().await?;
        let rows = tx
            .fetch_all(
                sql("SELECT id FROM domains
                     WHERE due_at <= $1 AND lease_until <= $2 AND claim NOT IN ('released', 'withdrawn')
                       AND NOT (lane = 'bulk' AND claim IN ('awaiting_dns', 'queued')
                         AND (check_asked_at IS NULL OR check_asked_by = 'import' OR check_asked_at <= COALESCE(looked_at, 0)))
                     ORDER BY due_at LIMIT $3")
                .bind(now - self.settings.late)
                .bind(now)
                .bind(limit),
            )
            .await?;
        rows.iter().map(|row| row.parse("id")).collect()
    }

    /// Sweeps until `stop`. A sweep that fails is told to the log; the next one does its work.
    pub async fn run(&self, stop: CancellationToken) {
        let (mut optimized, mut pruned) = (None, None);
        while !stop.is_cancelled() {
            if optimized.is_none_or(|at| self.env.now().since(at) >= OPTIMIZE_EVERY) {
                if let Err(e) = self.store.optimize(optimized.is_none()).await {
                    tracing::warn!(
                        error = %Chain(&e),
                        "the store's statistics were not brought up to date"
                    );
                }
                optimized = Some(self.env.now());
            }
            if pruned.is_none_or(|at| self.env.now().since(at) >= PRUNE_EVERY) {
                if let Err(e) = kept_answers::prune(&self.store, self.env.now()).await {
                    tracing::warn!(error = %Chain(&e), "answers whose time is up were not removed; they are tried again");
                }
                pruned = Some(self.env.now());
            }
            match self.once().await {
                Ok(Swept { rearmed: 0, .. }) => {}
                Ok(swept) => tracing::info!(rearmed = swept.rearmed, "domains were due without an alarm"),
                Err(e) => tracing::warn!(error = %Chain(&e), "the sweep failed; the next one tries again"),
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.env.sleep(self.settings.every) => {}
            }
        }
    }
}
