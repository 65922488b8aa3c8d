//! How far the walk of the routine looks has come, whose it is, and which names come next.

use super::{Row, Store, StoreError, StoreResult, sql};
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::model::routine::{Cursor, Stretch, slot_of};

/// Where the walk stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// What is done.
    pub done: Cursor,
    /// Who walks, ...
    pub owner: Option<String>,
    /// ... and until when nobody else does.
    pub leased_until: Moment,
    /// Since when it stands still, as no resolver of ours answers.
    pub unheard_since: Option<Moment>,
    /// Raised by every change: who read an older number neither takes it nor moves it.
    pub term: i64,
}

/// Where the walk stands; one that never began stands at `start`.
pub async fn walk(store: &Store, start: Cursor) -> StoreResult<Walk> {
    if let Some(walk) = lookup(store).await? {
        return Ok(walk);
    }
    let stmt = sql("INSERT INTO routine_cursors (shard, position, lap) VALUES (0, $1, $2) ON CONFLICT (shard) DO NOTHING")
        .bind(position(start))
        .bind(start.day());
    store.execute(stmt).await?;
    // Another process may have made it first.
    lookup(store).await?.ok_or_else(|| StoreError::not_found("the cursor of the routine looks"))
}

/// Since when the walk stands still, where it does.
pub async fn unheard_since(store: &Store) -> StoreResult<Option<Moment>> {
    Ok(lookup(store).await?.and_then(|walk| walk.unheard_since))
}

async fn lookup(store: &Store) -> StoreResult<Option<Walk>> {
    let stmt = sql("SELECT position, lap, owner, leased_until, unheard_since, term FROM routine_cursors WHERE shard = 0");
    store.query(stmt).await?.first().map(stands).transpose()
}

fn stands(row: &Row) -> StoreResult<Walk> {
    let position = row.text("position")?;
    let slots = match position.as_str() {
        "" => Ok(0),
        last => i64::from_str_radix(last, 16).map(|last| last + 1),
    };
    let slots = slots.map_err(|_| StoreError::Inconsistent {
        column: "position".to_owned(),
        seen: position,
        expected: "the hex digits of a slot, or none",
    })?;
    Ok(Walk {
        done: Cursor::new(row.int("lap")?, slots),
        owner: row.opt_text("owner")?,
        leased_until: row.moment("leased_until")?,
        unheard_since: row.opt_moment("unheard_since")?,
        term: row.int("term")?,
    })
}

/// The last slot of its day that is done, or nothing.
fn position(at: Cursor) -> String {
    match at.slots() {
        0 => String::new(),
        slots => hex(slots - 1),
    }
}

fn hex(slot: impl Into<i64>) -> String {
    format!("{:04x}", slot.into())
}

/// Takes the walk for `owner`, who begins at `from`; the number to move it by, or nothing when it is another's at `now`.
pub async fn take(
    store: &Store,
    walk: &Walk,
    from: Cursor,
    owner: &str,
    (now, until): (Moment, Moment),
) -> StoreResult<Option<i64>> {
    let stmt = sql("UPDATE routine_cursors SET position = $1, lap = $2, owner = $3, leased_until = $4, term = term + 1 \
         WHERE shard = 0 AND term = $5 AND (owner = $3 OR leased_until <= $6)")
    .bind(position(from))
    .bind(from.day())
    .bind(owner)
    .bind(until)
    .bind(walk.term)
    .bind(now);
    Ok((store.execute(stmt).await? == 1).then_some(walk.term + 1))
}

/// Moves the walk on, and keeps it until then or gives it up; `false` when another has taken it since. Who read where it stood
/// before, and would take what is given up here, would take it back there.
pub async fn advance(
    store: &Store,
    term: i64,
    to: Cursor,
    keep: Option<Moment>,
    unheard_since: Option<Moment>,
) -> StoreResult<bool> {
    let stmt =
        sql("UPDATE routine_cursors SET position = $2, lap = $3, leased_until = $4, unheard_since = $5, term = term + 1 \
         WHERE shard = 0 AND term = $1")
        .bind(term)
        .bind(position(to))
        .bind(to.day())
        .bind(keep.unwrap_or_default())
        .bind(unheard_since);
    Ok(store.execute(stmt).await? == 1)
}

/// Live domains of a stretch behind `after`, in the order of their slots.
pub async fn due(store: &Store, stretch: Stretch, after: Option<&DomainId>, limit: usize) -> StoreResult<Vec<DomainId>> {
    let (first, last) = stretch.slots();
    let stmt = sql("SELECT id FROM domains WHERE claim = 'live' AND substr(id, 33, 4) >= $1 AND substr(id, 33, 4) <= $2 \
           AND (substr(id, 33, 4) > $1 OR id > $3) ORDER BY substr(id, 33, 4), id LIMIT $4")
    .bind(hex(after.map_or(first, slot_of)))
    .bind(hex(last))
    .bind(after.map_or("", DomainId::as_str))
    .bind(i64::try_from(limit).unwrap_or(i64::MAX));
    store.query(stmt).await?.iter().map(|row| row.parse("id")).collect()
}

/// A routine look saw something else: the one door shall look from every vantage point.
pub async fn ask_full_look(store: &Store, id: &DomainId, now: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE domains SET check_asked_at = $2, check_asked_by = 'routine', due_at = $2, nudged = generation \
         WHERE id = $1 AND claim = 'live'")
    .bind(id.as_str())
    .bind(now);
    Ok(store.execute(stmt).await? == 1)
}
