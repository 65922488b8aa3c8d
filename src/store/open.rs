//! Opening a database, migrating it, beginning transactions.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, PgConnection, PgPool};

use super::{Row, Stmt, StoreError, StoreResult, Tx};

/// How long a writer waits for its turn before it says [`StoreError::Busy`].
const PATIENCE: Duration = Duration::from_secs(20);

/// Prepared statements that a SQLite connection keeps: more than there are, recordings in their combinations included, so that
/// none is parsed twice. They are a few kilobytes each.
const STATEMENTS: usize = 1_000;

/// Pages of the write-ahead log after which it is copied into the file. A page that changes often is copied once for them all;
/// the log grows to 16 MB.
const CHECKPOINT_PAGES: &str = "4000";

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
    /// SQLite has one writer at a time; a pool of one makes writers queue in order instead of fighting for the lock.
    Sqlite {
        writer: SqlitePool,
        reader: SqlitePool,
    },
    Postgres(PgPool),
}

/// How a database's schema stands to the one this binary knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The same.
    Current,
    /// It lacks migrations that the binary brings, or has none.
    Older,
    /// It has migrations that the binary does not know.
    Newer,
}

impl Store {
    /// Opens the database; makes the file of a SQLite one.
    pub async fn open(settings: &OpenSettings) -> StoreResult<Store> {
        let backend = if settings.url.starts_with("sqlite:") {
            open_sqlite(settings).await?
        } else if settings.url.starts_with("postgres:") || settings.url.starts_with("postgresql:") {
            // A writer waits for a row as long as SQLite's waits for the file; a process that stopped half-way lets go. A count of
            // the whole fleet takes one core, not all: people are being answered meanwhile.
            let options = PgConnectOptions::from_str(&settings.url)?
                .application_name("nameplate")
                .options([("lock_timeout", millis(PATIENCE)), ("idle_in_transaction_session_timeout", millis(ABANDONED))])
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
            Backend::Sqlite { writer, .. } => sqlx::migrate!("migrations/sqlite").run(writer).await,
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
        const SQLITE: &str = "SELECT COUNT(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
        const POSTGRES: &str = "SELECT COUNT(to_regclass('_sqlx_migrations'))";
        const APPLIED: &str = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";
        let (known, applied): (Vec<i64>, Vec<i64>) = match &self.backend {
            Backend::Sqlite { reader, .. } => {
                let begun: i64 = sqlx::query_scalar(SQLITE).fetch_one(reader).await?;
                let applied = if begun == 0 { vec![] } else { sqlx::query_scalar(APPLIED).fetch_all(reader).await? };
                (versions(&sqlx::migrate!("migrations/sqlite")), applied)
            }
            Backend::Postgres(pool) => {
                let begun: i64 = sqlx::query_scalar(POSTGRES).fetch_one(pool).await?;
                let applied = if begun == 0 { vec![] } else { sqlx::query_scalar(APPLIED).fetch_all(pool).await? };
                (versions(&sqlx::migrate!("migrations/postgres")), applied)
            }
        };
        Ok(if known == applied {
            Schema::Current
        } else if applied.iter().any(|version| !known.contains(version)) {
            Schema::Newer
        } else {
            Schema::Older
        })
    }

    /// Begins a transaction that may write.
    pub async fn begin(&self) -> StoreResult<Tx> {
        self.trip();
        Ok(match &self.backend {
            Backend::Sqlite { writer, .. } => {
                let begun = writer.begin_with("BEGIN IMMEDIATE").await.map_err(|e| match e {
                    // Writers queue for one connection: to wait there in vain is to wait for another writer.
                    sqlx::Error::PoolTimedOut => StoreError::Busy,
                    e => e.into(),
                })?;
                Tx::sqlite(begun, Arc::clone(&self.trips))
            }
            Backend::Postgres(pool) => Tx::postgres(pool.begin().await?, Arc::clone(&self.trips)),
        })
    }

    /// Begins a transaction that only reads, from one snapshot on SQLite; it waits for no writer.
    pub async fn read(&self) -> StoreResult<Tx> {
        self.trip();
        Ok(match &self.backend {
            Backend::Sqlite { reader, .. } => Tx::sqlite(reader.begin().await?, Arc::clone(&self.trips)),
            Backend::Postgres(pool) => Tx::postgres(pool.begin().await?, Arc::clone(&self.trips)),
        })
    }

    /// Runs one statement in a transaction of its own; how many rows it changed.
    pub async fn execute(&self, stmt: Stmt) -> StoreResult<u64> {
        self.trip();
        stmt.execute_on(&self.writing()).await
    }

    /// Runs one writing statement with RETURNING in a transaction of its own; the first row it gives back.
    pub async fn fetch_optional(&self, stmt: Stmt) -> StoreResult<Option<Row>> {
        self.trip();
        Ok(stmt.fetch_on(&self.writing()).await?.into_iter().next())
    }

    /// All rows of one query, on its own; on SQLite it waits for no writer.
    pub async fn query(&self, stmt: Stmt) -> StoreResult<Vec<Row>> {
        self.trip();
        let pool = match &self.backend {
            Backend::Sqlite { reader, .. } => super::sql::Pool::Sqlite(reader),
            Backend::Postgres(pool) => super::sql::Pool::Postgres(pool),
        };
        stmt.fetch_on(&pool).await
    }

    fn writing(&self) -> super::sql::Pool<'_> {
        match &self.backend {
            Backend::Sqlite { writer, .. } => super::sql::Pool::Sqlite(writer),
            Backend::Postgres(pool) => super::sql::Pool::Postgres(pool),
        }
    }

    /// Lets SQLite look at its statistics again, so that a table that grew is read by the right index; `all` looks at every
    /// table and is for the start. PostgreSQL does this by itself.
    pub async fn optimize(&self, all: bool) -> StoreResult<()> {
        if let Backend::Sqlite { writer, .. } = &self.backend {
            let pragma = if all { "PRAGMA optimize = 0x10002" } else { "PRAGMA optimize" };
            sqlx::query(pragma).execute(writer).await?;
        }
        Ok(())
    }

    /// Round trips made so far, for the benchmark that keeps a step under its bound.
    pub fn round_trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    /// The writing SQLite pool, for the queue.
    pub fn sqlite_pool(&self) -> Option<&SqlitePool> {
        match &self.backend {
            Backend::Sqlite { writer, .. } => Some(writer),
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
            Backend::Sqlite { writer, reader } => {
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

async fn open_sqlite(settings: &OpenSettings) -> StoreResult<Backend> {
    let options = SqliteConnectOptions::from_str(&settings.url)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .statement_cache_capacity(STATEMENTS)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .busy_timeout(PATIENCE);
    let in_memory = settings.url.contains(":memory:");
    if !in_memory {
        make_file(&options);
    }
    // A pool of one that is never emptied: the queue of writers, and for a database in memory the database itself.
    // A connection is not pinged when it is taken: it cannot have died, and whoever gave up during the ping would close it.
    let pool = || SqlitePoolOptions::new().test_before_acquire(false).acquire_timeout(PATIENCE);
    let writer = pool()
        .max_connections(1)
        .min_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_with(options.clone())
        .await?;
    let reader = if in_memory {
        writer.clone()
    } else {
        pool()
            .max_connections(settings.connections)
            // A write that strays onto a reader would fight the writer for the file; it fails at once instead.
            .connect_with(options.pragma("query_only", "ON"))
            .await?
    };
    Ok(Backend::Sqlite { writer, reader })
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
