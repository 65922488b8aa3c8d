//! Opening a database, migrating it, beginning transactions.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::sync::OwnedSemaphorePermit;

use super::sqlite::{Line, Source, Wire};
use super::{Row, Stmt, StoreError, StoreResult, Tx, of_sqlite};

/// How long a writer waits for its turn before it says [`StoreError::Busy`].
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a free connection to PostgreSQL is waited for.
const CONNECTION: Duration = Duration::from_secs(5);

/// How long a PostgreSQL transaction may sit between two statements before its locks are taken away.
const ABANDONED: Duration = Duration::from_secs(60);

fn millis(d: Duration) -> String {
    format!("{}ms", d.as_millis())
}

/// Where the database is and how it is used.
#[derive(Clone, Debug)]
pub struct OpenSettings {
    /// `sqlite:PATH`, `sqlite::memory:` or `postgres://…`.
    pub url: String,
    /// Connections for PostgreSQL, readers for SQLite.
    pub connections: u32,
}

/// An open database, cheap to clone.
#[derive(Clone)]
pub struct Store {
    backend: Backend,
    trips: Arc<AtomicU64>,
}

#[derive(Clone)]
enum Backend {
    /// SQLite has one writer at a time: writers wait in one line, in order, instead of fighting for the lock. The queue has a
    /// connection of its own, which it gets when it is its turn in that line.
    Sqlite {
        writer: Arc<Line>,
        reader: Arc<Line>,
        queue: SqlitePool,
        queues_place: QueuesPlace,
    },
    Postgres(PgPool),
}

/// How a database's schema stands to the one this binary knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The same.
    Current,
    /// It lacks migrations that the binary brings.
    Older,
    /// It has none: nothing was ever stored there.
    Blank,
    /// It has migrations that the binary does not know.
    Newer,
}

impl Store {
    /// Opens the database; makes the file of a SQLite one.
    pub async fn open(settings: &OpenSettings) -> StoreResult<Store> {
        Self::open_patient(settings, PATIENCE).await
    }

    /// Opens the database for somebody whose patience with other writers is so long.
    pub async fn open_patient(settings: &OpenSettings, patience: Duration) -> StoreResult<Store> {
        let backend = if settings.url.starts_with("sqlite:") {
            open_sqlite(settings, patience)?
        } else if settings.url.starts_with("postgres:") || settings.url.starts_with("postgresql:") {
            // A writer waits for a row as long as SQLite's waits for the file; a process that stopped half-way lets go. A count of
            // the whole fleet takes one core, not all: people are being answered meanwhile.
            let options = PgConnectOptions::from_str(&settings.url)?
                .application_name("nameplate")
                .options([("lock_timeout", millis(patience)), ("idle_in_transaction_session_timeout", millis(ABANDONED))])
                .options([("max_parallel_workers_per_gather", "0")]);
            let pool = PgPoolOptions::new()
                .max_connections(settings.connections)
                .acquire_timeout(CONNECTION)
                // Instead of the driver's ping, at the same price.
                .test_before_acquire(false)
                .before_acquire(|connection, _| Box::pin(outside_transactions(connection)))
                .connect_with(options.clone());
            // The pool tries until its time is up and then does not say what was wrong.
            Backend::Postgres(tokio::select! {
                wrong = unreachable(&options) => return Err(wrong.into()),
                pool = pool => pool?,
            })
        } else {
            return Err(StoreError::unavailable(format!(
                "database.url begins with {:?}; expected sqlite: or postgres:",
                settings.url.split(':').next().unwrap_or_default()
            )));
        };
        Ok(Store { backend, trips: Arc::default() })
    }

    /// Brings the schema up to this binary's version, and its rows with it; refuses one that is newer.
    pub async fn migrate(&self) -> StoreResult<()> {
        let done = match &self.backend {
            Backend::Sqlite { queue, .. } => sqlx::migrate!("migrations/sqlite").run(queue).await,
            Backend::Postgres(pool) => sqlx::migrate!("migrations/postgres").run(pool).await,
        };
        done.map_err(|e| match e {
            sqlx::migrate::MigrateError::VersionMissing(v) => StoreError::unavailable(format!(
                "the database has migration {v}, which this binary does not know: it is older than the schema; install the newer release"
            )),
            e => e.into(),
        })?;
        super::standing::judge_unjudged(self).await
    }

    /// How the schema stands to this binary. Changes nothing.
    pub async fn schema(&self) -> StoreResult<Schema> {
        const POSTGRES: &str = "SELECT COUNT(to_regclass('_sqlx_migrations'))";
        const APPLIED: &str = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";
        let (known, applied): (Vec<i64>, Vec<i64>) = match &self.backend {
            Backend::Sqlite { .. } => {
                let begun = self.query(of_sqlite("SELECT name FROM sqlite_master WHERE name = '_sqlx_migrations'")).await?;
                let applied = match begun.is_empty() {
                    true => Vec::new(),
                    false => {
                        self.query(of_sqlite("SELECT version FROM _sqlx_migrations WHERE success ORDER BY version")).await?
                    }
                };
                let applied = applied.iter().map(|row| row.int("version")).collect::<StoreResult<_>>()?;
                (versions(&sqlx::migrate!("migrations/sqlite")), applied)
            }
            Backend::Postgres(pool) => {
                let begun: i64 = sqlx::query_scalar(POSTGRES).fetch_one(pool).await?;
                let applied = if begun == 0 { vec![] } else { sqlx::query_scalar(APPLIED).fetch_all(pool).await? };
                (versions(&sqlx::migrate!("migrations/postgres")), applied)
            }
        };
        Ok(stands(&known, &applied))
    }

    /// How a PostgreSQL schema with these migrations stands to this binary.
    pub fn postgres_schema(applied: &[i64]) -> Schema {
        stands(&versions(&sqlx::migrate!("migrations/postgres")), applied)
    }

    /// Whether a SQLite database can be read whole; PostgreSQL looks after that itself.
    pub async fn is_whole(&self) -> StoreResult<bool> {
        let Backend::Sqlite { .. } = &self.backend else { return Ok(true) };
        let said = self.query(of_sqlite("SELECT integrity_check AS said FROM pragma_integrity_check LIMIT 1")).await?;
        Ok(said.first().is_some_and(|row| row.text("said").is_ok_and(|said| said == "ok")))
    }

    /// Begins a transaction that may write.
    pub async fn begin(&self) -> StoreResult<Tx> {
        self.trip();
        Ok(match &self.backend {
            Backend::Sqlite { writer, .. } => Tx::sqlite(writer.begin(true).await?, Arc::clone(&self.trips)),
            Backend::Postgres(pool) => Tx::postgres(pool.begin().await?, Arc::clone(&self.trips)),
        })
    }

    /// Begins a transaction that only reads, from one snapshot on SQLite; it waits for no writer.
    pub async fn read(&self) -> StoreResult<Tx> {
        self.trip();
        Ok(match &self.backend {
            Backend::Sqlite { reader, .. } => Tx::sqlite(reader.begin(false).await?, Arc::clone(&self.trips)),
            Backend::Postgres(pool) => Tx::postgres(pool.begin().await?, Arc::clone(&self.trips)),
        })
    }

    /// Runs one statement in a transaction of its own; how many rows it changed.
    pub async fn execute(&self, stmt: Stmt) -> StoreResult<u64> {
        self.trip();
        match &self.backend {
            Backend::Sqlite { writer, .. } => writer.turn().await?.alone(stmt.checked()?, Wire::execute).await,
            Backend::Postgres(pool) => stmt.execute_on(pool).await,
        }
    }

    /// Runs one writing statement with RETURNING in a transaction of its own; the first row it gives back.
    pub async fn fetch_optional(&self, stmt: Stmt) -> StoreResult<Option<Row>> {
        self.trip();
        Ok(match &self.backend {
            Backend::Sqlite { writer, .. } => {
                writer.turn().await?.alone(stmt.checked()?, Wire::rows).await?.into_iter().next().map(Row::Sqlite)
            }
            Backend::Postgres(pool) => stmt.fetch_on(pool).await?.into_iter().next(),
        })
    }

    /// All rows of one query, on its own; on SQLite it waits for no writer.
    pub async fn query(&self, stmt: Stmt) -> StoreResult<Vec<Row>> {
        self.trip();
        match &self.backend {
            Backend::Sqlite { reader, .. } => {
                let (_, rows) = reader.turn().await?.rows(stmt.checked()?).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Backend::Postgres(pool) => stmt.fetch_on(pool).await,
        }
    }

    /// Lets SQLite look at its statistics again, so that a table that grew is read by the right index; `all` looks at every
    /// table and is for the start. PostgreSQL does this by itself.
    pub async fn optimize(&self, all: bool) -> StoreResult<()> {
        if let Backend::Sqlite { writer, .. } = &self.backend {
            let pragma = if all { of_sqlite("PRAGMA optimize = 0x10002") } else { of_sqlite("PRAGMA optimize") };
            writer.turn().await?.bare(pragma).await?;
        }
        Ok(())
    }

    /// Writes a whole, compact copy of a SQLite database to a file that does not exist yet, while it is in use. False for
    /// PostgreSQL, which brings its own tools.
    pub async fn copy_to(&self, file: &Path) -> StoreResult<bool> {
        let Backend::Sqlite { writer, .. } = &self.backend else { return Ok(false) };
        let path = file.to_str().ok_or_else(|| StoreError::unavailable("the path of the copy is not UTF-8"))?;
        writer.turn().await?.bare(of_sqlite("VACUUM INTO $1").bind(path)).await?;
        Ok(true)
    }

    /// Round trips made so far, for the benchmark that keeps a step under its bound.
    pub fn round_trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    /// Rows that were written through this store so far, as SQLite counts them, for tests and benchmarks of what only reads;
    /// nothing for PostgreSQL, which counts for itself.
    pub async fn rows_written(&self) -> StoreResult<Option<u64>> {
        match &self.backend {
            Backend::Sqlite { writer, .. } => Ok(Some(writer.turn().await?.rows_written()?)),
            Backend::Postgres(_) => Ok(None),
        }
    }

    /// The queue's connection to SQLite.
    pub fn sqlite_pool(&self) -> Option<&SqlitePool> {
        match &self.backend {
            Backend::Sqlite { queue, .. } => Some(queue),
            Backend::Postgres(_) => None,
        }
    }

    /// The PostgreSQL pool, for the queue.
    pub fn postgres_pool(&self) -> Option<&PgPool> {
        match &self.backend {
            Backend::Sqlite { .. } => None,
            Backend::Postgres(pool) => Some(pool),
        }
    }

    /// Waits until running statements ended and closes every connection.
    pub async fn close(&self) {
        match &self.backend {
            Backend::Sqlite { writer, reader, queue, queues_place } => {
                queue.close().await;
                // A connection that is closed instead of given back gives its place back here.
                keep(queues_place, None);
                reader.close().await;
                writer.close().await;
            }
            Backend::Postgres(pool) => pool.close().await,
        }
    }

    fn trip(&self) {
        self.trips.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a connection lives and has no transaction open. Whoever gives up while BEGIN is under way leaves one open that the
/// driver does not know of: the next statement to run by itself on that connection would never be committed. A statement
/// outside transactions begins together with its own.
async fn outside_transactions(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let row = sqlx::raw_sql("SELECT now() = statement_timestamp()").fetch_one(connection).await?;
    sqlx::Row::try_get(&row, 0)
}

/// Resolves when PostgreSQL cannot be reached at all, with the reason. What a server answers is left to the pool, which knows
/// what passes by itself.
async fn unreachable(options: &PgConnectOptions) -> sqlx::Error {
    match PgConnection::connect_with(options).await {
        // It ends by being closed; that it could be made is all that is asked.
        Ok(connection) => drop(connection.close().await),
        Err(sqlx::Error::Database(_)) => {}
        Err(wrong) => return wrong,
    }
    std::future::pending().await
}

/// `applied` in order.
fn stands(known: &[i64], applied: &[i64]) -> Schema {
    if applied.is_empty() {
        Schema::Blank
    } else if known == applied {
        Schema::Current
    } else if applied.iter().any(|version| !known.contains(version)) {
        Schema::Newer
    } else {
        Schema::Older
    }
}

fn versions(migrator: &sqlx::migrate::Migrator) -> Vec<i64> {
    migrator.iter().map(|migration| migration.version).collect()
}

/// Makes the file of a database that is not there yet, for its owner alone: what is in it is nobody else's. Its journals take
/// after it.
fn make_file(options: &SqliteConnectOptions) {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(options.get_filename());
    if let Err(error) = made
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        // Opening it will say why it cannot be.
        tracing::debug!(%error, "the database's file could not be made");
    }
}

fn open_sqlite(settings: &OpenSettings, patience: Duration) -> StoreResult<Backend> {
    let options = SqliteConnectOptions::from_str(&settings.url)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(patience);
    let in_memory = settings.url.contains(":memory:");
    if !in_memory {
        make_file(&options);
    }
    let name = options.get_filename().to_str().ok_or_else(|| StoreError::unavailable("the database's path is not UTF-8"))?;
    let source = Source { name: name.to_owned(), in_memory, reads_only: false };
    let writer = Line::open(source.clone(), 1, patience)?;
    let reader = match in_memory {
        true => Arc::clone(&writer),
        // A write that strays onto a reader would fight the writer for the file; it fails at once instead.
        false => Line::open(Source { reads_only: true, ..source }, settings.connections, patience)?,
    };
    let queues_place = QueuesPlace::default();
    let queue = queues_pool(&writer, &queues_place, options, patience);
    Ok(Backend::Sqlite { writer, reader, queue, queues_place })
}

/// The place in the line of writers that the queue's connection has while it is in use.
type QueuesPlace = Arc<Mutex<Option<OwnedSemaphorePermit>>>;

fn keep(place: &QueuesPlace, permit: Option<OwnedSemaphorePermit>) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = permit;
}

/// The pool of one connection that the queue has, which stands in line with all other writers: nobody fights for the file. Its
/// connection is not pinged when it is taken: it cannot have died.
fn queues_pool(writer: &Arc<Line>, place: &QueuesPlace, options: SqliteConnectOptions, patience: Duration) -> SqlitePool {
    let stand_in_line = {
        let (line, place) = (Arc::clone(writer), Arc::clone(place));
        move || {
            let (line, place) = (Arc::clone(&line), Arc::clone(&place));
            async move {
                let permit = line.place().await.map_err(|e| sqlx::Error::Configuration(e.into()))?;
                keep(&place, Some(permit));
                Ok(())
            }
        }
    };
    let (first, again, back) = (stand_in_line.clone(), stand_in_line, Arc::clone(place));
    SqlitePoolOptions::new()
        .max_connections(1)
        .min_connections(0)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .acquire_timeout(patience)
        .after_connect(move |_, _| Box::pin(first()))
        .before_acquire(move |_, _| {
            let standing = again();
            Box::pin(async move { standing.await.map(|()| true) })
        })
        .after_release(move |_, _| {
            keep(&back, None);
            Box::pin(std::future::ready(Ok(true)))
        })
        .connect_lazy_with(options)
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[tokio::test]
    async fn an_unreachable_database_is_told_at_once_and_why() {
        // Nobody can listen on port 0.
        let settings = OpenSettings { url: "postgres://nobody@127.0.0.1:0/none".to_owned(), connections: 1 };
        let Err(told) = Store::open(&settings).await else { panic!("opened") };
        assert!(matches!(told, StoreError::Unavailable(_)), "{told:?}");
        let why = told.source().unwrap().to_string().to_lowercase();
        assert!(why.contains("refused") || why.contains("address"), "{why}");
    }

    #[tokio::test]
    async fn it_closes_while_the_queue_has_its_connection() {
        let dir = tempfile::tempdir().unwrap();
        let settings = OpenSettings { url: format!("sqlite:{}", dir.path().join("n.db").display()), connections: 1 };
        let store = Store::open(&settings).await.unwrap();
        let held = store.sqlite_pool().unwrap().acquire().await.unwrap();
        let closing = tokio::spawn({
            let store = store.clone();
            async move { store.close().await }
        });
        while !store.sqlite_pool().unwrap().is_closed() {
            tokio::task::yield_now().await;
        }
        drop(held);
        closing.await.unwrap();
        assert!(matches!(store.begin().await, Err(StoreError::Unavailable(_))));
    }

    #[tokio::test]
    async fn a_fault_of_the_database_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("no.db");
        std::fs::write(&file, "This is no database, and long enough to be seen to be none. ".repeat(40)).unwrap();
        let settings = OpenSettings { url: format!("sqlite:{}", file.display()), connections: 1 };
        let Err(told) = Store::open(&settings).await else { panic!("opened") };
        let why = told.source().unwrap();
        assert!(why.to_string().contains("not a database") && why.source().is_none(), "{why:?}");
    }
}
