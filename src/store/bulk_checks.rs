//! Looks at all names of an import: who asked for them last, when the next comes, and asking for them.

use std::time::Duration;

use super::{StoreResult, Tx, sql};
use crate::model::id::ImportId;
use crate::model::moment::Moment;

/// When an import was checked on request last.
pub async fn last(tx: &mut Tx, id: &ImportId) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT checked_at FROM imports WHERE id = $1").bind(id.as_str());
    tx.fetch_optional(stmt).await?.map_or(Ok(None), |row| row.opt_moment("checked_at"))
}

/// Notes that it is checked now; false when somebody asked since `before`.
pub async fn begin(tx: &mut Tx, id: &ImportId, now: Moment, before: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE imports SET checked_at = $2, version = version + 1 \
         WHERE id = $1 AND (checked_at IS NULL OR checked_at <= $3)")
    .bind(id.as_str())
    .bind(now)
    .bind(before);
    Ok(tx.execute(stmt).await? == 1)
}

/// Asks for a look at each name that waits for its records, and at each whose order a look holds back, so far apart and never later
/// than it would have come.
pub async fn ask(tx: &mut Tx, id: &ImportId, apart: Duration, now: Moment) -> StoreResult<u64> {
    let stmt = sql("UPDATE domains SET check_asked_at = $2, check_asked_by = 'import', nudged = generation, \
           due_at = CASE WHEN due_at < $2 + asked.n * $3 THEN due_at ELSE $2 + asked.n * $3 END \
         FROM (SELECT d.id, row_number() OVER (ORDER BY d.due_at, d.id) AS n FROM domains d \
           WHERE d.import_id = $1 AND d.lane = 'bulk' AND (d.claim = 'awaiting_dns' OR d.claim = 'queued' \
             AND EXISTS (SELECT 1 FROM orders o WHERE o.domain_id = d.id AND o.state = 'waiting' AND o.not_before = $4) \
             AND NOT EXISTS (SELECT 1 FROM imports m WHERE m.id = $1 AND m.hold IS NOT NULL))) asked \
         WHERE domains.id = asked.id")
    .bind(id.as_str())
    .bind(now)
    .bind(i64::try_from(apart.as_micros()).unwrap_or(i64::MAX))
    .bind(Moment::NEVER);
    tx.execute(stmt.long()).await
}

/// When the next name of an import that waits for its records is looked at.
pub async fn next_look(tx: &mut Tx, id: &ImportId) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT min(due_at) AS at FROM domains WHERE import_id = $1 AND claim = 'awaiting_dns'");
    let at = tx.fetch_optional(stmt.bind(id.as_str()).long()).await?.map_or(Ok(None), |row| row.opt_moment("at"))?;
    Ok(at.filter(|at| *at != Moment::NEVER))
}
