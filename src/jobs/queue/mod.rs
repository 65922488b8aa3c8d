//! The alarm clock on the store's own database: the only folder that names apalis.
//!
//! apalis fetches, hands out and acknowledges; everything it does not do well is kept away from it. An alarm is pushed in
//! the caller's transaction. The handler always succeeds: an error or a panic leaves the row due, and the sweep sets a new
//! alarm. A worker that the database threw out is started again under a new name, after a pause. On SQLite the
//! queue has one connection of its own, which stands in line with all other writers: nobody fights for the file.
//!
//! - [`table`] migrates, pushes, counts and deletes;
//! - [`bell`] decides when the worker looks for alarms;
//! - [`worker`] runs and restarts the worker, and drains it.
//!
//! To fake it: `jobs::hand`. How to get it wrong: let a handler return an error; stop apalis while a step runs (it then
//! holds its place in the line of writers and the step waits behind it); call `SqliteStorage::setup`.

mod bell;
mod table;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use ulid::Ulid;

use self::bell::Bell;
use self::worker::Duty;
use super::{Alarms, Step};
use crate::env::Env;
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::store::{Store, StoreResult, Tx, Wake};

/// How the workers run.
#[derive(Clone, Debug)]
pub struct QueueSettings {
    /// Domains advanced at the same time in this process.
    pub concurrency: usize,
    /// How often a worker says that it lives. Its alarms are given to others after six silent ones; whole seconds.
    pub heartbeat: Duration,
    /// How long running steps may take to finish once the process is told to stop.
    pub grace: Duration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        QueueSettings { concurrency: 160, heartbeat: Duration::from_secs(5), grace: Duration::from_secs(10) }
    }
}

/// What an alarm carries. A field that another version does not know must not stop its workers.
#[derive(Debug, Serialize, Deserialize)]
struct Alarm {
    #[serde(default)]
    domain_id: String,
}

/// The alarm clock, cheap to clone.
#[derive(Clone)]
pub struct Queue {
    store: Store,
    env: Env,
    settings: QueueSettings,
    bell: Arc<Bell>,
}

impl Queue {
    /// On a store whose queue tables exist (see [`Queue::migrate`]).
    pub fn new(store: &Store, env: &Env, settings: QueueSettings) -> Self {
        Queue { store: store.clone(), env: env.clone(), settings, bell: Arc::default() }
    }

    /// Makes the queue's own tables, or brings them up to date.
    pub async fn migrate(store: &Store) -> StoreResult<()> {
        table::migrate(store).await
    }

    /// The longest time that [`Queue::work`] takes to return once it is told to stop.
    pub fn drain_time(&self) -> Duration {
        self.settings.grace + worker::LAST_WORDS
    }

    async fn set(&self, tx: &mut Tx, id: &DomainId, at: Moment, priority: usize) -> StoreResult<()> {
        let alarm = Alarm { domain_id: id.as_str().to_owned() };
        let now = self.env.now();
        let chance = self.env.id_bytes().into_iter().fold(0, |sum, byte| sum << 8 | u128::from(byte));
        let id = Ulid::from_parts(u64::try_from(now.secs()).unwrap_or(0) * 1_000, chance);
        table::push(tx, id, &alarm, table::run_at(at, now), priority).await?;
        let bell = Arc::clone(&self.bell);
        tx.after_commit(move || bell.ring());
        Ok(())
    }

    /// Answers alarms by `step` until `stop`; then starts no more, lets running steps finish within the settings' grace,
    /// drops those that did not, and returns.
    pub async fn work(&self, step: Arc<dyn Step>, stop: CancellationToken) {
        worker::work(self, Arc::new(Duty::new(step, stop))).await;
    }
}

#[async_trait]
impl Wake for Queue {
    async fn wake(&self, tx: &mut Tx, id: &DomainId, at: Moment) -> StoreResult<()> {
        self.set(tx, id, at, table::IN_TURN).await
    }

    async fn wake_first(&self, tx: &mut Tx, id: &DomainId, at: Moment) -> StoreResult<()> {
        self.set(tx, id, at, table::FIRST).await
    }
}

#[async_trait]
impl Alarms for Queue {
    async fn waiting(&self) -> StoreResult<u64> {
        table::waiting(&self.store).await
    }

    async fn tidy(&self, now: Moment) -> StoreResult<u64> {
        table::tidy(&self.store, now).await
    }
}
