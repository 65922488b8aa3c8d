//! The routine looks' place in the day, and who is next.

use super::{Store, StoreResult, sql};
use crate::model::id::DomainId;
use crate::model::moment::Moment;

/// Where the walk through the day stands: the day, and the last slot that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The day, counted from 1970.
    pub lap: i64,
    /// Slots up to and with this one are done; four hex digits, empty before the first.
    pub done: String,
}

/// The cursor, made where there is none.
pub async fn cursor(store: &Store, start: &Cursor) -> StoreResult<Cursor> {
    if let Some(cursor) = lookup(store).await? {
        return Ok(cursor);
    }
    let stmt = sql("INSERT INTO routine_cursors (shard, position, lap) VALUES (0, $1, $2) ON CONFLICT (shard) DO NOTHING")
        .bind(start.done.as_str())
        .bind(start.lap);
    store.execute(stmt).await?;
    // Another process may have made it first.
    Ok(lookup(store).await?.unwrap_or_else(|| start.clone()))
}

async fn lookup(store: &Store) -> StoreResult<Option<Cursor>> {
    let rows = store.query(sql("SELECT position, lap FROM routine_cursors WHERE shard = 0")).await?;
    rows.first().map(|row| Ok(Cursor { lap: row.int("lap")?, done: row.text("position")? })).transpose()
}

/// Moves the cursor on; `false` when another process moved it meanwhile.
pub async fn advance(store: &Store, from: &Cursor, to: &Cursor) -> StoreResult<bool> {
    let stmt = sql("UPDATE routine_cursors SET position = $3, lap = $4 WHERE shard = 0 AND position = $1 AND lap = $2")
        .bind(from.done.as_str())
        .bind(from.lap)
        .bind(to.done.as_str())
        .bind(to.lap);
    Ok(store.execute(stmt).await? == 1)
}

/// Live domains in the slots after `after` up to and with `until`, in order of their slots.
pub async fn due(store: &Store, after: &str, until: &str, limit: i64) -> StoreResult<Vec<(String, DomainId)>> {
    let stmt = sql("SELECT id, substr(id, 33, 4) AS slot FROM domains \
         WHERE claim = 'live' AND substr(id, 33, 4) > $1 AND substr(id, 33, 4) <= $2 ORDER BY substr(id, 33, 4), id LIMIT $3")
    .bind(after)
    .bind(until)
    .bind(limit);
    store.query(stmt).await?.iter().map(|row| Ok((row.text("slot")?, row.parse("id")?))).collect()
}

/// A routine look saw something else: the one door shall look from every vantage point.
pub async fn ask_full_look(store: &Store, id: &DomainId, now: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE domains SET check_asked_at = $2, check_asked_by = 'routine', due_at = $2, nudged = generation \
         WHERE id = $1 AND claim = 'live'")
    .bind(id.as_str())
    .bind(now);
    Ok(store.execute(stmt).await? == 1)
}
