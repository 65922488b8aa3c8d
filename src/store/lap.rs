//! Imported names that wait for their records: how many there are, and whose turn it is.

use super::{Store, StoreResult, Tx, sql};
use crate::model::id::{DomainId, TenantId};
use crate::model::moment::Moment;

/// How many imported names wait.
pub async fn waiting(store: &Store) -> StoreResult<u64> {
    let stmt = sql("SELECT count(*) AS n FROM domains WHERE lane = 'bulk' AND claim IN ('awaiting_dns', 'queued')");
    let rows = store.query(stmt).await?;
    rows.first().map_or(Ok(0), |row| Ok(u64::try_from(row.int("n")?).unwrap_or(0)))
}

/// Imported names that are due and that nobody works on, the longest due first.
pub async fn due(store: &Store, now: Moment, limit: u32) -> StoreResult<Vec<DomainId>> {
    let stmt = sql("SELECT id FROM domains WHERE lane = 'bulk' AND claim IN ('awaiting_dns', 'queued') \
           AND due_at <= $1 AND lease_until <= $2 ORDER BY due_at LIMIT $3")
    .bind(now)
    .bind(now)
    .bind(i64::from(limit));
    store.query(stmt).await?.iter().map(|row| row.parse("id")).collect()
}

/// When the next imported name is due that nobody works on.
pub async fn next_due(store: &Store, now: Moment) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT min(due_at) AS at FROM domains WHERE lane = 'bulk' AND claim IN ('awaiting_dns', 'queued') \
           AND (due_at > $1 OR lease_until <= $2)")
    .bind(now)
    .bind(now);
    store.query(stmt).await?.first().map_or(Ok(None), |row| row.opt_moment("at"))
}

/// When the last of a tenant's imported names that were never looked at has its turn. One that was removed before its turn has
/// none any more, and stands in nobody's way.
pub async fn last_in_line(tx: &mut Tx, tenant: &TenantId) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT max(due_at) AS at FROM domains WHERE tenant_id = $1 AND lane = 'bulk' AND looked_at IS NULL \
           AND claim = 'awaiting_dns' AND due_at < $2")
    .bind(tenant.as_str())
    .bind(Moment::NEVER);
    tx.fetch_optional(stmt).await?.map_or(Ok(None), |row| row.opt_moment("at"))
}
