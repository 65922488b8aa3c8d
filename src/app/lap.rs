//! The lap of imported names: each has a first look in its turn and then a slow lap, until something about it changes.
//!
//! They have no alarms: ten thousand at once would stand before everybody else's. A loop takes those that are due, the longest
//! due first, and moves each through the one door like anybody else's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::{App, AppError, advance};
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::model::pace;
use crate::store::lap;
use crate::telemetry::Chain;

/// Names under way at once.
const AT_ONCE: usize = 16;
/// So many seconds' worth are taken at a time.
const SECONDS: u32 = 10;
/// How often the names are counted.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// How fast the lap goes.
#[derive(Debug)]
pub struct Lap {
    first_looks_per_second: u32,
    looks_per_second: u32,
    names: AtomicU64,
    counted_at: AtomicU64,
}

impl Default for Lap {
    fn default() -> Self {
        Lap::new(10, 1)
    }
}

impl Lap {
    /// So many first looks a second for each tenant's import, and so many looks a second in the lap afterwards.
    pub fn new(first_looks_per_second: u32, looks_per_second: u32) -> Self {
        Lap { first_looks_per_second, looks_per_second, names: AtomicU64::new(0), counted_at: AtomicU64::new(0) }
    }

    /// How long it takes now.
    pub fn takes(&self) -> Duration {
        pace::lap(self.names.load(Ordering::Relaxed), self.looks_per_second)
    }

    pub(super) fn first_look_at(&self, last_in_line: Option<Moment>, now: Moment) -> Moment {
        pace::first_look_at(last_in_line, now, self.first_looks_per_second)
    }

    /// How far apart first looks of one import are.
    pub(super) fn apart(&self) -> Duration {
        Duration::from_secs(1) / self.first_looks_per_second.max(1)
    }

    /// Whether it is time to count; then it counts as done.
    fn to_be_counted(&self, now: Moment) -> bool {
        let at = u64::try_from(now.secs()).unwrap_or(0);
        let before = self.counted_at.load(Ordering::Relaxed);
        let due = at.saturating_sub(before) >= COUNT_EVERY.as_secs();
        if due {
            self.counted_at.store(at, Ordering::Relaxed);
        }
        due
    }
}

/// What a round did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Names that were due and had their turn.
    pub taken: usize,
    /// When the next is due.
    pub next: Option<Moment>,
}

/// Whose turn it is, the longest due first, so many at a time.
pub async fn due(app: &App) -> Result<Vec<DomainId>, AppError> {
    let now = app.env.now();
    if app.lap.to_be_counted(now) {
        app.lap.names.store(lap::waiting(&app.store).await?, Ordering::Relaxed);
    }
    Ok(lap::due(&app.store, now, app.lap.first_looks_per_second.max(1).saturating_mul(SECONDS)).await?)
}

/// Takes the names that are due, so many at a time.
pub async fn round(app: &App) -> Result<Round, AppError> {
    let due = due(app).await?;
    let taken = due.len();
    stream::iter(due)
        .for_each_concurrent(AT_ONCE, |id| async move {
            if let Err(e) = advance::drive(app, &id).await {
                // The row is as it was: its turn comes again.
                tracing::warn!(domain.id = %id, error = %Chain(&e), "an imported name could not be moved on");
            }
        })
        .await;
    Ok(Round { taken, next: lap::next_due(&app.store, app.env.now()).await? })
}
