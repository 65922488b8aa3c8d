//! Who waits for changes: one watcher a process reads the stream of events and tells every page that is open.
//!
//! The watcher runs while somebody waits. It asks for what came after its position once a second, whoever numbered it, in this
//! process or in another. A page that waits holds one of a bounded number of places and is given back by dropping it. Told to
//! close, all places end at once, so that a drain need not wait for them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use crate::app::{App, show};
use crate::model::id::{DomainId, TenantId};
use crate::store::StoreResult;
use crate::store::portal::Moved;
use crate::telemetry::Chain;

/// Between two looks at the stream.
const PACE: Duration = Duration::from_secs(1);
/// Events read at once.
const BATCH: i64 = 500;
/// Events that a slow page may be behind before it is told of "something".
const BUFFER: usize = 256;

/// What a page wants to be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    /// One domain.
    Domain(DomainId),
    /// Everything of a tenant.
    Tenant(TenantId),
    /// Everything.
    All,
}

impl Interest {
    fn covers(&self, moved: &Moved) -> bool {
        match self {
            Interest::Domain(id) => moved.domain_id.as_ref() == Some(id),
            Interest::Tenant(id) => moved.tenant_id.as_ref() == Some(id),
            Interest::All => true,
        }
    }
}

/// Everybody who waits; cheap to clone.
#[derive(Clone)]
pub struct Live {
    app: App,
    told: broadcast::Sender<Moved>,
    places: Arc<Semaphore>,
    /// Whether the watcher runs.
    watching: Arc<Mutex<bool>>,
    closed: CancellationToken,
}

/// A place from which changes are seen.
pub(super) struct Place {
    told: broadcast::Receiver<Moved>,
    interest: Interest,
    closed: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Live {
    pub(super) fn new(app: &App, places: usize) -> Self {
        Live {
            app: app.clone(),
            told: broadcast::Sender::new(BUFFER),
            places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            watching: Arc::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Ends every place, and lets nobody in any more.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// A place; `None` when all are taken. Whatever is numbered after `position`, or was before anybody watched, is told.
    pub(super) async fn wait(&self, interest: Interest, position: i64) -> StoreResult<Option<(Place, bool)>> {
        let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() else { return Ok(None) };
        if self.closed.is_cancelled() {
            return Ok(None);
        }
        // First the place, then the question: what moves in between is told twice rather than not at all.
        let told = self.told.subscribe();
        let newest = show::position(&self.app.store).await?;
        self.watch_from(newest);
        let (tenant, domain) = match &interest {
            Interest::Domain(id) => (None, Some(id)),
            Interest::Tenant(id) => (Some(id), None),
            Interest::All => (None, None),
        };
        let missed = show::moved_since(&self.app.store, tenant, domain, position).await?;
        Ok(Some((Place { told, interest, closed: self.closed.clone(), _permit: permit }, missed)))
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

/// Why a page is told something.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Something it shows moved.
    Moved,
    /// It is over: the process stops.
    Closed,
}

impl Place {
    /// The next change that concerns this page.
    pub(super) async fn next(&mut self) -> News {
        loop {
            let told = tokio::select! {
                () = self.closed.cancelled() => return News::Closed,
                told = self.told.recv() => told,
            };
            match told {
                Ok(moved) if self.interest.covers(&moved) => return News::Moved,
                Ok(_) => {}
                // Too slow to know what: it looks again.
                Err(broadcast::error::RecvError::Lagged(_)) => return News::Moved,
                Err(broadcast::error::RecvError::Closed) => return News::Closed,
            }
        }
    }
}
