//! The queue's own tables: migrations, pushing, counting, deleting.

use std::time::Duration;

use apalis::prelude::{Task, TaskBuilder, TaskId};
use apalis_postgres::PostgresStorage;
use apalis_sqlite::SqliteStorage;
use ulid::Ulid;

use super::Alarm;
use crate::model::moment::Moment;
use crate::store::{Stmt, Store, StoreError, StoreResult, Tx, of_sqlite};

/// The queue's name in its tables.
pub(super) const QUEUE: &str = "domains";

/// Rows of alarms that rang say nothing that the domain's row and events do not say better; a table full of them makes
/// every fetch slow.
const RUNG_KEPT: Duration = Duration::from_secs(60);

/// Rows of alarms that ended otherwise stay long enough to be looked at.
const ODD_KEPT: Duration = Duration::from_secs(600);

/// A worker is long dead after this time; its alarms were given to others.
const WORKERS_KEPT: Duration = Duration::from_secs(3600);

/// Alarms of the same priority ring by their time; those of a higher one ring before all that are due.
pub(super) const IN_TURN: usize = 0;
pub(super) const FIRST: usize = 1;

/// How far an alarm for now is dated back, so that a database whose clock is behind ours still rings it at once.
const BACKDATED: Duration = Duration::from_secs(3600);

fn unavailable(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Unavailable(e.into())
}

/// Runs the queue's migrations. Its bookkeeping goes into a table of its own: in ours, each would miss the other's.
/// (`SqliteStorage::setup` would also switch `synchronous` off on a connection of our pool.)
pub(super) async fn migrate(store: &Store) -> StoreResult<()> {
    let done = if let Some(pool) = store.sqlite_pool() {
        let mut migrations = SqliteStorage::migrations();
        migrations.dangerous_set_table_name("_apalis_migrations");
        migrations.run(pool).await
    } else if let Some(pool) = store.postgres_pool() {
        PostgresStorage::migrations().run(pool).await
    } else {
        Ok(())
    };
    done.map_err(unavailable)
}

/// The whole second at which an alarm may ring. A coming one is rounded up: rung early it would find nothing due.
pub(super) fn run_at(at: Moment, now: Moment) -> u64 {
    let second = if at <= now { (now - BACKDATED).secs() } else { (at + Duration::from_micros(999_999)).secs() };
    u64::try_from(second).unwrap_or(0)
}

/// Sets an alarm in the caller's transaction.
pub(super) async fn push(tx: &mut Tx, id: Ulid, alarm: &Alarm, run_at: u64, priority: usize) -> StoreResult<()> {
    let args = serde_json::to_vec(alarm).map_err(unavailable)?;
    // One attempt: a second one is the sweep's to decide.
    let task = TaskBuilder::new(args)
        .task_id(TaskId::from_ulid(id))
        .run_at_timestamp(run_at)
        .priority(priority)
        .max_attempts(1)
        .build();
    match tx.as_postgres() {
        Some(tx) => apalis_postgres::queries::push_tasks(&mut **tx, QUEUE, vec![task]).await.map_err(unavailable)?,
        None => drop(tx.execute(job(&task, id)).await?),
    }
    Ok(())
}

/// The row that apalis-sqlite would write, which wants a connection of another kind than our transactions have.
fn job(task: &Task<Vec<u8>>, id: Ulid) -> Stmt {
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    of_sqlite(
        "INSERT INTO Jobs (job, id, job_type, status, attempts, max_attempts, run_at, priority, metadata) \
         VALUES ($1, $2, $3, 'Pending', 0, $4, $5, $6, '{}')",
    )
    .bind(task.args.as_slice())
    .bind(id.to_string())
    .bind(QUEUE)
    .bind(number(task.max_attempts().unwrap_or(1)))
    .bind(task.run_at().map_or(0, |at| i64::try_from(at).unwrap_or(0)))
    .bind(number(task.priority().unwrap_or_default()))
}

pub(super) async fn waiting(store: &Store) -> StoreResult<u64> {
    const SQLITE: &str = "SELECT COUNT(*) FROM Jobs WHERE job_type = $1 AND status = 'Pending' AND lock_by IS NULL";
    const POSTGRES: &str = "SELECT COUNT(*) FROM apalis.jobs WHERE job_type = $1 AND status = 'Pending' AND lock_by IS NULL";
    let count: i64 = if let Some(pool) = store.sqlite_pool() {
        sqlx::query_scalar(SQLITE).bind(QUEUE).fetch_one(pool).await?
    } else if let Some(pool) = store.postgres_pool() {
        sqlx::query_scalar(POSTGRES).bind(QUEUE).fetch_one(pool).await?
    } else {
        0
    };
    Ok(u64::try_from(count).unwrap_or(0))
}

/// What is deleted, on SQLite and on PostgreSQL, and the age from which on.
const LEFTOVERS: [(&str, &str, Duration); 4] = [
    (
        "DELETE FROM Jobs WHERE status = 'Done' AND done_at < $1",
        "DELETE FROM apalis.jobs WHERE status = 'Done' AND done_at < to_timestamp($1::bigint)",
        RUNG_KEPT,
    ),
    (
        "DELETE FROM Jobs WHERE status IN ('Killed', 'Failed') AND done_at < $1",
        "DELETE FROM apalis.jobs WHERE status IN ('Killed', 'Failed') AND done_at < to_timestamp($1::bigint)",
        ODD_KEPT,
    ),
    // Pending, yet held by a worker: a fault of the queue that hides an alarm from every worker.
    (
        "DELETE FROM Jobs WHERE status = 'Pending' AND lock_by IS NOT NULL AND COALESCE(lock_at, 0) < $1",
        "DELETE FROM apalis.jobs WHERE status = 'Pending' AND lock_by IS NOT NULL
           AND COALESCE(lock_at, to_timestamp(0)) < to_timestamp($1::bigint)",
        RUNG_KEPT,
    ),
    (
        "DELETE FROM Workers WHERE last_seen < $1 AND id NOT IN (SELECT lock_by FROM Jobs WHERE lock_by IS NOT NULL)",
        "DELETE FROM apalis.workers WHERE last_seen < to_timestamp($1::bigint)
           AND id NOT IN (SELECT lock_by FROM apalis.jobs WHERE lock_by IS NOT NULL)",
        WORKERS_KEPT,
    ),
];

/// Deletes what nobody needs any more; how many rows.
pub(super) async fn tidy(store: &Store, now: Moment) -> StoreResult<u64> {
    let mut deleted = 0;
    for (on_sqlite, on_postgres, kept) in LEFTOVERS {
        let before = (now - kept).secs();
        deleted += if let Some(pool) = store.sqlite_pool() {
            sqlx::query(on_sqlite).bind(before).execute(pool).await?.rows_affected()
        } else if let Some(pool) = store.postgres_pool() {
            sqlx::query(on_postgres).bind(before).execute(pool).await?.rows_affected()
        } else {
            0
        };
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_for_now_is_dated_back_and_a_coming_one_is_rounded_up() {
        let now = Moment::from_micros(10_000_000_500_000);
        assert_eq!(run_at(now, now), 10_000_000 - 3_600);
        assert_eq!(run_at(Moment::from_micros(10_000_000_500_001), now), 10_000_001);
        assert_eq!(run_at(Moment::from_micros(10_000_001_000_000), now), 10_000_001);
    }
}
