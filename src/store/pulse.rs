//! When the workers last went round, whichever process they run in, and what else tells that nothing moves.

use super::{Row, Stmt, Store, StoreResult, sql};
pub use crate::model::alert::loops::SWEEP;
use crate::model::moment::Moment;

/// The workers behind `name` went round.
pub async fn beat(store: &Store, name: &str, now: Moment) -> StoreResult<()> {
    store.execute(beats(name, now)).await.map(|_| ())
}

/// Whatever is called `name` went round then.
pub fn beats(name: &str, at: Moment) -> Stmt {
    sql("INSERT INTO pulses (name, at) VALUES ($1, $2) \
         ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE pulses.at < excluded.at")
    .bind(name)
    .bind(at)
}

/// It runs from now on, if nobody has heard of it before.
pub fn begins(name: &str, now: Moment) -> Stmt {
    sql("INSERT INTO pulses (name, at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING").bind(name).bind(now)
}

/// It is not run here: unless another process does, nobody waits for it.
pub fn is_not_run(name: &str) -> Stmt {
    sql("DELETE FROM pulses WHERE name = $1").bind(name)
}

/// When everything that has a pulse last went round.
pub async fn all(store: &Store) -> StoreResult<Vec<(String, Moment)>> {
    store.query(every()).await?.iter().map(named).collect()
}

pub(super) fn every() -> Stmt {
    sql("SELECT name, at FROM pulses ORDER BY name")
}

pub(super) fn named(row: &Row) -> StoreResult<(String, Moment)> {
    Ok((row.text("name")?, row.moment("at")?))
}

/// When they last did; none before the first time.
pub async fn last(store: &Store, name: &str) -> StoreResult<Option<Moment>> {
    let rows = store.query(sql("SELECT at FROM pulses WHERE name = $1").bind(name)).await?;
    rows.first().map(|row| row.moment("at")).transpose()
}

/// Since when the longest overdue domain is due that nobody works on. Imported names have a loop of their own, whose pace is
/// decided: they are late when somebody asked for one.
pub async fn overdue_since(store: &Store, now: Moment) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT due_at FROM domains WHERE due_at <= $1 AND lease_until <= $1 \
           AND claim NOT IN ('released', 'withdrawn') AND NOT (lane = 'bulk' AND claim IN ('awaiting_dns', 'queued') \
             AND (check_asked_at IS NULL OR check_asked_by = 'import' OR check_asked_at <= COALESCE(looked_at, 0))) \
         ORDER BY due_at LIMIT 1");
    store.query(stmt.bind(now)).await?.first().map(|row| row.moment("due_at")).transpose()
}

/// How many edges are enrolled that nobody took out, and how many of them are heard of and not left behind.
pub async fn edges(store: &Store, heard_since: Moment) -> StoreResult<(i64, i64)> {
    let stmt = sql("SELECT COUNT(*) AS n, COUNT(CASE WHEN lost_at IS NULL AND heartbeat_at > $1 THEN 1 END) AS counted \
         FROM edges WHERE status = 'active'");
    let rows = store.query(stmt.bind(heard_since)).await?;
    rows.first().map_or(Ok((0, 0)), |row| Ok((row.int("n")?, row.int("counted")?)))
}
