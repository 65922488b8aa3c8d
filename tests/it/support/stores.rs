//! Every kind of store, each fresh: a SQLite file, SQLite in memory, a PostgreSQL database of its own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures::FutureExt as _;
use nameplate::env::Env;
use nameplate::jobs::queue::Queue;
use nameplate::store::{OpenSettings, Store};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;

use super::services::postgres_url;

/// The kinds of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    SqliteFile,
    SqliteMemory,
    Postgres,
}

/// A store with everything that belongs to it; what it was made of is removed by [`TestStore::remove`].
pub struct TestStore {
    pub kind: Kind,
    pub store: Store,
    pub url: String,
    _dir: Option<TempDir>,
    database: Option<String>,
}

impl TestStore {
    /// An empty store without tables.
    pub async fn blank(kind: Kind) -> TestStore {
        let (url, dir, database) = match kind {
            Kind::SqliteFile => {
                let dir = tempfile::tempdir().unwrap();
                (format!("sqlite:{}", dir.path().join("nameplate.db").display()), Some(dir), None)
            }
            Kind::SqliteMemory => ("sqlite::memory:".to_owned(), None, None),
            Kind::Postgres => {
                let name = format!("nameplate_test_{}", Env::real().draw_hex(8));
                let mut admin = PgConnection::connect(&postgres_url()).await.unwrap();
                admin.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
                (beside(&postgres_url(), &name), None, Some(name))
            }
        };
        let store = open(&url).await;
        TestStore { kind, store, url, _dir: dir, database }
    }

    /// A store with all tables, the queue's included.
    pub async fn migrated(kind: Kind) -> TestStore {
        let test = TestStore::blank(kind).await;
        test.store.migrate().await.unwrap();
        Queue::migrate(&test.store).await.unwrap();
        test
    }

    /// The same database, opened once more; nothing for one in memory.
    pub async fn reopened(&self) -> Option<Store> {
        if self.kind == Kind::SqliteMemory { None } else { Some(open(&self.url).await) }
    }

    /// The same for somebody who waits only so long for other writers.
    pub async fn reopened_by_the_impatient(&self, patience: Duration) -> Option<Store> {
        let settings = OpenSettings { url: self.url.clone(), connections: 1 };
        if self.kind == Kind::SqliteMemory { None } else { Some(Store::open_patient(&settings, patience).await.unwrap()) }
    }

    /// Cuts every connection to the database, as a restart or a firewall does; false where there is nothing to cut.
    pub async fn cut(&self) -> bool {
        let Some(name) = &self.database else { return false };
        let mut admin = PgConnection::connect(&postgres_url()).await.unwrap();
        sqlx::query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1")
            .bind(name)
            .execute(&mut admin)
            .await
            .unwrap();
        true
    }

    /// Closes the store and drops its database.
    pub async fn remove(self) {
        // A test that failed may have left a transaction open, for which a close would wait.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.store.close()).await;
        if let Some(name) = self.database {
            let mut admin = PgConnection::connect(&postgres_url()).await.unwrap();
            admin.execute(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).await.unwrap();
        }
    }
}

async fn open(url: &str) -> Store {
    Store::open(&OpenSettings { url: url.to_owned(), connections: 8 }).await.unwrap()
}

/// The URL of another database of the same server.
fn beside(url: &str, database: &str) -> String {
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{database}")
}

/// Runs a test on a migrated store of every kind, one after the other, and removes each also when the test fails.
pub async fn for_each_store(test: impl AsyncFn(&TestStore)) {
    for kind in [Kind::SqliteFile, Kind::SqliteMemory, Kind::Postgres] {
        on(TestStore::migrated(kind).await, &test).await;
    }
}

/// The same, on stores without tables.
pub async fn for_each_blank_store(test: impl AsyncFn(&TestStore)) {
    for kind in [Kind::SqliteFile, Kind::SqliteMemory, Kind::Postgres] {
        on(TestStore::blank(kind).await, &test).await;
    }
}

async fn on(store: TestStore, test: &impl AsyncFn(&TestStore)) {
    let kind = store.kind;
    let outcome: Result<(), Box<dyn Any + Send>> = AssertUnwindSafe(test(&store)).catch_unwind().await;
    store.remove().await;
    if let Err(panic) = outcome {
        eprintln!("the test failed on {kind:?}");
        resume_unwind(panic);
    }
}

/// Waits until `condition` holds, or fails with `what` after 20 s.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let env = Env::real();
    let deadline = env.now() + Duration::from_secs(20);
    while !condition().await {
        assert!(env.now() < deadline, "did not happen within 20 s: {what}");
        env.sleep(Duration::from_millis(5)).await;
    }
}
