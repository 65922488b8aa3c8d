//! Where tasks wait for a connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::wire::{Source, SqliteRow, Wire};
use crate::env::Env;
use crate::store::{Stmt, StoreError, StoreResult};

/// The first and the longest pause before the file's lock is tried again.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A statement on a thread of its own that takes so long is told.
const SLOW: Duration = Duration::from_secs(1);

/// Connections to one database, and the line for them.
pub(crate) struct Line {
    turns: Arc<Semaphore>,
    count: u32,
    idle: Mutex<Vec<Wire>>,
    source: Source,
    /// Real time, whatever clock drives the rest: another process and the disk know no other.
    env: Env,
    /// How long a task waits for its turn, and for another process to let go of the file, before it is told [`StoreError::Busy`].
    patience: Duration,
}

impl Line {
    /// A line for so many connections, of which the first is opened now.
    pub(crate) fn open(source: Source, count: u32, patience: Duration) -> StoreResult<Arc<Line>> {
        let count = count.max(1);
        let first = Wire::open(&source)?;
        let turns = Arc::new(Semaphore::new(usize::try_from(count).unwrap_or(1)));
        Ok(Arc::new(Line { turns, count, idle: Mutex::new(vec![first]), source, env: Env::real(), patience }))
    }

    /// A place in the line without a connection: for who has one of its own to the same file.
    pub(crate) async fn place(&self) -> StoreResult<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.turns).try_acquire_owned() {
            return Ok(place);
        }
        match tokio::time::timeout(self.patience, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(StoreError::unavailable("the database was closed")),
            Err(_) => Err(StoreError::Busy),
        }
    }

    /// Waits for a connection.
    pub(crate) async fn turn(self: &Arc<Self>) -> StoreResult<Turn> {
        let place = self.place().await?;
        let wire = match self.idle().pop() {
            Some(wire) => wire,
            None => Wire::open(&self.source)?,
        };
        Ok(Turn { wire: Some(wire), line: Arc::clone(self), _place: place })
    }

    /// Waits for a connection, and begins a transaction on it.
    pub(crate) async fn begin(self: &Arc<Self>, writes: bool) -> StoreResult<Turn> {
        let mut turn = self.turn().await?;
        turn.patiently(|wire| wire.begin(writes)).await?;
        Ok(turn)
    }

    /// Waits until all connections are given back, as long as anybody is waited for, and closes them. One that comes back later is
    /// closed with the line itself.
    pub(crate) async fn close(&self) {
        let all = tokio::time::timeout(self.patience, Arc::clone(&self.turns).acquire_many_owned(self.count)).await;
        if all.is_err() {
            tracing::warn!("the database is closed while a transaction is open; it will be undone");
        }
        self.turns.close();
        self.idle().clear();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Wire>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection as one task has it. Let go of, it undoes what was not committed.
pub(crate) struct Turn {
    wire: Option<Wire>,
    line: Arc<Line>,
    // After the wire is given back.
    _place: OwnedSemaphorePermit,
}

impl Drop for Turn {
    fn drop(&mut self) {
        // One that cannot undo is closed, which undoes: what the next writer commits shall be its own alone.
        if let Some(mut wire) = self.wire.take()
            && wire.roll_back()
            && !self.line.turns.is_closed()
        {
            self.line.idle().push(wire);
        }
    }
}

impl Turn {
    fn wire(&mut self) -> StoreResult<&mut Wire> {
        self.wire.as_mut().ok_or_else(|| StoreError::unavailable("the connection is gone"))
    }

    /// Tries what another process may hold up, with growing pauses.
    async fn patiently<T>(&mut self, mut act: impl FnMut(&mut Wire) -> StoreResult<T>) -> StoreResult<T> {
        let (env, patience) = (self.line.env.clone(), self.line.patience);
        let (began, mut pause) = (env.now(), PAUSE);
        loop {
            match act(self.wire()?) {
                Err(StoreError::Busy) if env.now().since(began) < patience => env.sleep(pause).await,
                other => return other,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// All rows of a statement. One that only reads is begun here, and on a thread of its own if it turns out long.
    pub(crate) async fn rows(self, stmt: Stmt) -> StoreResult<(Turn, Vec<SqliteRow>)> {
        let mut turn = self;
        let stays = turn.line.source.in_memory || !(stmt.is_long() || turn.line.source.reads_only);
        if stays {
            let rows = turn.patiently(|wire| wire.rows(&stmt)).await?;
            return Ok((turn, rows));
        }
        if turn.line.source.reads_only && !stmt.is_long() {
            match turn.patiently(|wire| wire.rows_soon(&stmt).transpose()).await {
                Ok(Some(rows)) => return Ok((turn, rows)),
                Ok(None) => {}
                Err(e) => return Err(e),
            }
        }
        turn.outside(stmt.text(), move |wire| wire.rows(&stmt)).await
    }

    /// Runs a statement inside a transaction; how many rows it changed.
    pub(crate) async fn execute(self, stmt: Stmt) -> StoreResult<(Turn, u64)> {
        let mut turn = self;
        if turn.line.source.in_memory || !stmt.is_long() {
            let changed = turn.patiently(|wire| wire.execute(&stmt)).await?;
            return Ok((turn, changed));
        }
        turn.outside(stmt.text(), move |wire| wire.execute(&stmt)).await
    }

    /// Runs a statement by itself: it is committed when it has run.
    pub(crate) async fn alone<T: Send + 'static>(
        self,
        stmt: Stmt,
        mut act: impl FnMut(&mut Wire, &Stmt) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let mut turn = self;
        if turn.line.source.in_memory {
            return turn.patiently(|wire| act(wire, &stmt)).await;
        }
        // Its lock is taken here, where one can wait for it asleep.
        turn.patiently(|wire| wire.begin(true)).await?;
        let (_, done) = turn
            .outside(stmt.text(), move |wire| {
                let done = act(wire, &stmt)?;
                wire.commit().map(|()| done)
            })
            .await?;
        Ok(done)
    }

    /// Makes a transaction durable. Whoever gives up waiting has it committed all the same.
    pub(crate) async fn commit(self) -> StoreResult<()> {
        let mut turn = self;
        if turn.line.source.in_memory || turn.line.source.reads_only {
            return turn.wire()?.commit();
        }
        turn.outside("COMMIT", Wire::commit).await.map(drop)
    }

    /// Runs it as SQLite would by itself, outside a transaction, which some statements insist on.
    pub(crate) async fn bare(self, stmt: Stmt) -> StoreResult<()> {
        self.outside(stmt.text(), move |wire| wire.execute(&stmt)).await.map(drop)
    }

    /// Rows that this connection has written since it was opened.
    pub(crate) fn rows_written(mut self) -> StoreResult<u64> {
        Ok(self.wire()?.rows_written())
    }

    async fn outside<T: Send + 'static>(
        self,
        text: &'static str,
        act: impl FnOnce(&mut Wire) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<(Turn, T)> {
        let mut turn = self;
        let run = tokio::task::spawn_blocking(move || {
            let env = turn.line.env.clone();
            let began = env.now();
            let done = act(turn.wire()?);
            let took = env.now().since(began);
            if took >= SLOW {
                tracing::warn!(statement = text, took_ms = took.as_millis(), "a statement was slow");
            }
            done.map(|done| (turn, done))
        });
        run.await.map_err(|_| StoreError::unavailable("the thread that ran a statement is gone"))?
    }
}
