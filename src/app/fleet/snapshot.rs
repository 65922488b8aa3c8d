//! The fleet counted, at most once in a while.
//!
//! A small fleet is counted afresh for every page. A large one is counted at most every few seconds: who comes later sees that
//! count with its age, and starts the next in passing, so that no page waits for one but the first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::queue::{IssuerQueue, queues};
use crate::app::App;
use crate::model::moment::Moment;
use crate::store::StoreResult;
use crate::store::fleet::counts::{self, Count};
use crate::telemetry::Chain;

/// A fleet of so many domains and waiting orders is counted for every page.
const SMALL: i64 = 2_000;
/// A count of this age is counted again in passing.
const YOUNG: Duration = Duration::from_secs(10);
/// A count older than this is shown to nobody.
const OLD: Duration = Duration::from_secs(300);
/// So many days ahead the ends of certificates are counted by day.
pub const HORIZON_DAYS: i64 = 90;
const DAY: Duration = Duration::from_secs(86_400);

/// The fleet as it was at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was counted.
    pub taken_at: Moment,
    /// Domains by where they stand.
    pub counts: Vec<Count>,
    /// Days since 1970 on which certificates in use end, each with how many; up to [`HORIZON_DAYS`] ahead.
    pub ending: Vec<(i64, i64)>,
    /// The queue of each issuer.
    pub queues: Vec<IssuerQueue>,
}

impl Snapshot {
    /// How many rows were gone through, about.
    fn size(&self) -> i64 {
        let queued: usize = self.queues.iter().map(|q| q.orders.len()).sum();
        self.counts.iter().map(|c| c.domains).sum::<i64>().saturating_add(i64::try_from(queued).unwrap_or(i64::MAX))
    }

    /// How many domains `which` holds for.
    pub fn domains(&self, which: impl Fn(&Count) -> bool) -> i64 {
        self.counts.iter().filter(|c| which(c)).map(|c| c.domains).sum()
    }
}

/// The last snapshot of this process; cheap to clone.
#[derive(Clone, Default)]
pub struct Snapshots {
    last: Arc<Mutex<Option<Arc<Snapshot>>>>,
    counting: Arc<tokio::sync::Mutex<()>>,
}

impl Snapshots {
    fn last(&self) -> Option<Arc<Snapshot>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, taken: &Arc<Snapshot>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(taken));
    }
}

/// The fleet in numbers, young enough to be shown.
pub async fn snapshot(app: &App) -> StoreResult<Arc<Snapshot>> {
    let large = |s: &Arc<Snapshot>| s.size() > SMALL;
    let age = |s: &Arc<Snapshot>| app.env.now().since(s.taken_at);
    if let Some(last) = app.fleet.last().filter(|s| large(s) && age(s) < OLD) {
        if age(&last) >= YOUNG
            && let Ok(turn) = Arc::clone(&app.fleet.counting).try_lock_owned()
        {
            let app = app.clone();
            tokio::spawn(async move {
                if let Err(e) = take(&app).await {
                    tracing::warn!(error = %Chain(&e), "the fleet could not be counted; the last count is shown with its age");
                }
                drop(turn);
            });
        }
        return Ok(last);
    }
    let turn = app.fleet.counting.lock().await;
    // Whoever had the turn before may have counted what is wanted.
    if let Some(last) = app.fleet.last().filter(|s| large(s) && age(s) < YOUNG) {
        return Ok(last);
    }
    let taken = take(app).await;
    drop(turn);
    taken
}

async fn take(app: &App) -> StoreResult<Arc<Snapshot>> {
    let now = app.env.now();
    let days = u32::try_from(HORIZON_DAYS).unwrap_or(u32::MAX);
    let mut tx = app.store.read().await?;
    let counts = counts::fleet(&mut tx).await?;
    let ending = counts::ending_by_day(&mut tx, now + DAY * days).await?;
    drop(tx);
    let queues = queues(app, now).await?;
    let taken = Arc::new(Snapshot { taken_at: now, counts, ending, queues });
    app.fleet.keep(&taken);
    Ok(taken)
}
