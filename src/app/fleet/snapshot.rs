//! The fleet counted, and its queues played, at most once in a while.
//!
//! A small fleet is counted afresh for every page. A large one is counted at most every few seconds: who comes later sees that
//! count with its age, and starts the next in passing, so that no page waits for one but the first. The two are apart: who only
//! asks for a place in the queue has nothing counted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::queue::{IssuerQueue, queues};
use super::stuck::{Stuck, stuck};
use crate::app::App;
use crate::model::moment::Moment;
use crate::store::StoreResult;
use crate::store::fleet::counts::{self, Count};
use crate::telemetry::Chain;

/// So many domains are counted, or rows of queue and ledger gone through, for every page.
const SMALL: i64 = 2_000;
/// A count of this age is counted again in passing.
const YOUNG: Duration = Duration::from_secs(10);
/// A count older than this is shown to nobody.
const OLD: Duration = Duration::from_secs(300);
/// So many days ahead the ends of certificates are counted by day.
pub const HORIZON_DAYS: i64 = 90;
/// More certificates than this that have ended are not counted.
const ENDED: i64 = 1_000;
const DAY: Duration = Duration::from_secs(86_400);

/// The fleet as it was at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was counted.
    pub taken_at: Moment,
    /// Domains by where they stand.
    pub counts: Vec<Count>,
    /// Days since 1970 on which certificates in use end, each with how many; up to the day in [`HORIZON_DAYS`].
    pub ending: Vec<(i64, i64)>,
    /// Certificates in use that have ended, up to a thousand.
    pub ended: i64,
    /// What is stuck.
    pub stuck: Stuck,
}

impl Snapshot {
    /// How many domains `which` holds for.
    pub fn domains(&self, which: impl Fn(&Count) -> bool) -> i64 {
        self.counts.iter().filter(|c| which(c)).map(|c| c.domains).sum()
    }
}

/// The queues as they were at one moment.
#[derive(Clone, Debug)]
pub struct Played {
    /// When they were read.
    pub taken_at: Moment,
    /// The queue of each issuer.
    pub queues: Vec<IssuerQueue>,
}

/// What is taken once in a while.
trait Taken: Send + Sync + Sized + 'static {
    /// What it is called when it could not be taken.
    const WHAT: &'static str;

    /// Where this process keeps the last one.
    fn kept(app: &App) -> &Kept<Self>;
    /// Takes it now.
    fn take(app: &App) -> impl Future<Output = StoreResult<Self>> + Send;
    /// When it was taken.
    fn taken_at(&self) -> Moment;
    /// How many rows were gone through, about.
    fn size(&self) -> i64;
}

impl Taken for Snapshot {
    const WHAT: &'static str = "the fleet could not be counted; the last count is shown with its age";

    fn kept(app: &App) -> &Kept<Self> {
        &app.fleet.counted
    }

    async fn take(app: &App) -> StoreResult<Self> {
        let now = app.env.now();
        let days = u32::try_from(HORIZON_DAYS).unwrap_or(u32::MAX);
        // Up to the end of the last day: a certificate of ninety days that came today ends in it.
        let until = Moment::from_secs(now.secs().div_euclid(86_400) * 86_400) + DAY * (days + 1);
        let mut tx = app.store.read().await?;
        let counts = counts::fleet(&mut tx).await?;
        let ending = counts::ending_by_day(&mut tx, until).await?;
        let ended = counts::ended(&mut tx, now, ENDED).await?;
        let stuck = stuck(&mut tx, &counts).await?;
        Ok(Snapshot { taken_at: now, counts, ending, ended, stuck })
    }

    fn taken_at(&self) -> Moment {
        self.taken_at
    }

    fn size(&self) -> i64 {
        self.domains(|_| true)
    }
}

impl Taken for Played {
    const WHAT: &'static str = "the queues could not be read; the last reading is shown with its age";

    fn kept(app: &App) -> &Kept<Self> {
        &app.fleet.played
    }

    async fn take(app: &App) -> StoreResult<Self> {
        let now = app.env.now();
        Ok(Played { taken_at: now, queues: queues(&app.store, now).await? })
    }

    fn taken_at(&self) -> Moment {
        self.taken_at
    }

    fn size(&self) -> i64 {
        i64::try_from(self.queues.iter().map(IssuerQueue::rows).sum::<usize>()).unwrap_or(i64::MAX)
    }
}

/// The last one of this process.
#[derive(Debug)]
struct Kept<T> {
    last: Mutex<Option<Arc<T>>>,
    taking: Arc<tokio::sync::Mutex<()>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept { last: Mutex::default(), taking: Arc::default() }
    }
}

impl<T> Kept<T> {
    fn last(&self) -> Option<Arc<T>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, taken: T) -> Arc<T> {
        let taken = Arc::new(taken);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&taken));
        taken
    }
}

/// What this process counted and played last; cheap to clone.
#[derive(Clone, Default)]
pub struct Snapshots {
    counted: Arc<Kept<Snapshot>>,
    played: Arc<Kept<Played>>,
}

impl Snapshots {
    /// Waits for what was begun in passing.
    pub async fn settled(&self) {
        drop(self.counted.taking.lock().await);
        drop(self.played.taking.lock().await);
    }
}

/// The fleet in numbers, young enough to be shown.
pub async fn snapshot(app: &App) -> StoreResult<Arc<Snapshot>> {
    young(app).await
}

/// The queues, young enough to be shown.
pub async fn played(app: &App) -> StoreResult<Arc<Played>> {
    young(app).await
}

async fn young<T: Taken>(app: &App) -> StoreResult<Arc<T>> {
    let kept = T::kept(app);
    let large = |t: &Arc<T>| t.size() > SMALL;
    let age = |t: &Arc<T>| app.env.now().since(t.taken_at());
    if let Some(last) = kept.last().filter(|t| large(t) && age(t) < OLD) {
        if age(&last) >= YOUNG
            && let Ok(turn) = Arc::clone(&kept.taking).try_lock_owned()
        {
            let app = app.clone();
            tokio::spawn(async move {
                match T::take(&app).await {
                    Ok(taken) => drop(T::kept(&app).keep(taken)),
                    Err(e) => tracing::warn!(error = %Chain(&e), "{}", T::WHAT),
                }
                drop(turn);
            });
        }
        return Ok(last);
    }
    let turn = kept.taking.lock().await;
    // Whoever had the turn before may have counted what is wanted.
    if let Some(last) = kept.last().filter(|t| large(t) && age(t) < YOUNG) {
        return Ok(last);
    }
    let taken = T::take(app).await.map(|taken| kept.keep(taken));
    drop(turn);
    taken
}
