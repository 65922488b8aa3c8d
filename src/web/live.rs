//! Who waits for changes: one watcher a process reads the stream of events and tells every page that is open, and every reader
//! of the API's events.
//!
//! The watcher runs while somebody waits. It asks for what came after its position once a second, whoever numbered it, in this
//! process or in another. Who waits holds one of a bounded number of places, of which nobody has more than a share, and gives it
//! back by dropping it. Told to close, all places end at once, so that a drain need not wait for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::app::{App, show};
use crate::store::StoreResult;
use crate::store::portal::Moved;
use crate::store::views::EventFilter;
use crate::telemetry::Chain;

/// Between two looks at the stream.
const PACE: Duration = Duration::from_secs(1);
/// Events read at once.
const BATCH: i64 = 500;
/// Events that a slow page may be behind before it is told of "something".
const BUFFER: usize = 256;
/// So many places one session, link or token may have: whoever opens more shuts nobody else out.
const SHARE: usize = 32;

fn covers(filter: &EventFilter, moved: &Moved) -> bool {
    let domain = filter.domain.as_ref().is_none_or(|id| moved.domain_id.as_ref() == Some(id));
    domain && filter.tenant.as_ref().is_none_or(|id| moved.tenant_id.as_ref() == Some(id))
}

/// The places that are taken, by whom.
#[derive(Default)]
struct Taken {
    all: usize,
    by: HashMap<String, usize>,
}

/// A place that is taken, until it is dropped.
pub(super) struct Seat {
    taken: Arc<Mutex<Taken>>,
    who: String,
}

impl Seat {
    fn take(taken: &Arc<Mutex<Taken>>, who: &str, most: usize) -> Option<Seat> {
        let mut now = taken.lock().unwrap_or_else(PoisonError::into_inner);
        if now.all >= most || now.by.get(who).is_some_and(|own| *own >= SHARE) {
            return None;
        }
        now.all += 1;
        *now.by.entry(who.to_owned()).or_default() += 1;
        Some(Seat { taken: Arc::clone(taken), who: who.to_owned() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut now = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        now.all = now.all.saturating_sub(1);
        if let Some(own) = now.by.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                now.by.remove(&self.who);
            }
        }
    }
}

/// Everybody who waits; cheap to clone.
#[derive(Clone)]
pub struct Live {
    app: App,
    told: broadcast::Sender<Moved>,
    places: usize,
    taken: Arc<Mutex<Taken>>,
    /// Whether the watcher runs.
    watching: Arc<Mutex<bool>>,
    closed: CancellationToken,
}

/// A place from which changes are seen.
pub(super) struct Place {
    told: broadcast::Receiver<Moved>,
    wanted: EventFilter,
    closed: CancellationToken,
    _seat: Seat,
}

impl Live {
    pub(super) fn new(app: &App, places: usize) -> Self {
        Live {
            app: app.clone(),
            told: broadcast::Sender::new(BUFFER),
            places,
            taken: Arc::default(),
            watching: Arc::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Ends every place, and lets nobody in any more.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Returns when every place ends.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// A place for `who` that is told of nothing: whoever has it looks by itself. `None` when all are taken.
    pub(super) fn seat(&self, who: &str) -> Option<Seat> {
        if self.closed.is_cancelled() { None } else { Seat::take(&self.taken, who, self.places) }
    }

    /// A place for `who`, with whether something wanted is numbered already; `None` when all are taken. What is numbered
    /// later is told.
    pub(super) async fn wait(&self, who: &str, wanted: EventFilter) -> StoreResult<Option<(Place, bool)>> {
        if self.closed.is_cancelled() {
            return Ok(None);
        }
        let Some(seat) = Seat::take(&self.taken, who, self.places) else { return Ok(None) };
        // First the place, then the question: what moves in between is told twice rather than not at all.
        let told = self.told.subscribe();
        let newest = show::position(&self.app.store).await?;
        self.watch_from(newest);
        let missed = !show::events(&self.app.store, &wanted, 1).await?.is_empty();
        Ok(Some((Place { told, wanted, closed: self.closed.clone(), _seat: seat }, missed)))
    }

    fn watch_from(&self, position: i64) {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if !*watching {
            *watching = true;
            let live = self.clone();
            tokio::spawn(async move { live.watch(position).await });
        }
    }

    async fn watch(&self, mut position: i64) {
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return,
                () = self.app.env.sleep(PACE) => {}
            }
            if self.nobody_waits() {
                return;
            }
            match show::moved(&self.app.store, position, BATCH).await {
                Ok(news) => {
                    position = news.last().map_or(position, |last| last.position);
                    for moved in news {
                        // Nobody listens any more: seen at the next turn.
                        let _ = self.told.send(moved);
                    }
                }
                Err(error) => {
                    tracing::warn!(error = %Chain(&error), "open pages could not be told of changes; trying again")
                }
            }
        }
    }

    /// Decided under the lock under which watching begins: whoever comes later starts a watcher of their own.
    fn nobody_waits(&self) -> bool {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        *watching = self.told.receiver_count() > 0;
        !*watching
    }
}

/// Why somebody who waits is told something.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Something wanted moved.
    Moved,
    /// It is over: the process stops.
    Closed,
}

impl Place {
    /// The next change that was wanted.
    pub(super) async fn next(&mut self) -> News {
        loop {
            let told = tokio::select! {
                () = self.closed.cancelled() => return News::Closed,
                told = self.told.recv() => told,
            };
            match told {
                Ok(moved) if covers(&self.wanted, &moved) => return News::Moved,
                Ok(_) => {}
                // Too slow to know what: it looks again.
                Err(broadcast::error::RecvError::Lagged(_)) => return News::Moved,
                Err(broadcast::error::RecvError::Closed) => return News::Closed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_more_than_a_share_and_all_is_given_back() {
        let taken: Arc<Mutex<Taken>> = Arc::default();
        let mut greedy: Vec<Seat> = std::iter::from_fn(|| Seat::take(&taken, "greedy", 100)).collect();
        assert_eq!(greedy.len(), SHARE);
        let modest = Seat::take(&taken, "modest", 100);
        assert!(modest.is_some() && Seat::take(&taken, "late", SHARE + 1).is_none());
        greedy.pop();
        assert!(Seat::take(&taken, "greedy", 100).is_some());
        drop((greedy, modest));
        let now = taken.lock().unwrap();
        assert_eq!((now.all, now.by.len()), (0, 0));
    }
}
