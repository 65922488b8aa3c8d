//! Taking a tenant off board: what goes at once, and the claims that follow a few at a time.

use super::situation::domain;
use super::{Store, StoreResult, Tx, sql};
use crate::model::domain::Domain;
use crate::model::id::{DomainId, TenantId};
use crate::model::moment::Moment;

/// How far an off-boarding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// When it began.
    pub begun_at: Moment,
    /// When the last claim was let go of.
    pub finished_at: Option<Moment>,
    /// Claims that still stand.
    pub open: i64,
    /// Claims whose names rest until keys and certificates are destroyed.
    pub releasing: i64,
}

/// Marks the tenant deleted with all that goes in the same moment: its slug is retired, its canonical hosts leave the edges,
/// its tokens open nothing any more. False when there is no such tenant, or it is deleted already. `ids` are two fresh ids.
pub async fn begin(tx: &mut Tx, tenant: &TenantId, actor: &str, now: Moment, ids: [&str; 2]) -> StoreResult<bool> {
    let deleted = sql("UPDATE tenants SET status = 'deleted', version = version + 1 WHERE id = $1 AND status <> 'deleted' \
         RETURNING slug, version")
    .bind(tenant.as_str());
    let Some(row) = tx.fetch_optional(deleted).await? else { return Ok(false) };
    let (slug, version) = (row.text("slug")?, row.int("version")?);
    let [event, told] = ids;
    for stmt in [
        sql("UPDATE slugs SET retired_at = $2 WHERE tenant_id = $1 AND retired_at IS NULL").bind(tenant.as_str()).bind(now),
        sql("UPDATE tokens SET revoked_at = $2 WHERE tenant_id = $1 AND revoked_at IS NULL").bind(tenant.as_str()).bind(now),
        sql("INSERT INTO outbox (id, kind, subject, version, at) VALUES ($1, 'tenant', $2, $3, $4)")
            .bind(told)
            .bind(tenant.as_str())
            .bind(version)
            .bind(now),
        sql("INSERT INTO outbox (id, kind, subject, version, at) \
             SELECT $1 || r.hostname, 'host', r.hostname, $3, $3 FROM routes r \
             WHERE r.tenant_id = $2 AND r.domain_id IS NULL AND r.action = 'serve'")
        .bind(told)
        .bind(tenant.as_str())
        .bind(now),
        sql("UPDATE routes SET action = 'gone', certificate_id = NULL, \
               version = CASE WHEN version >= $2 THEN version + 1 ELSE $2 END \
             WHERE tenant_id = $1 AND domain_id IS NULL AND action = 'serve'")
        .bind(tenant.as_str())
        .bind(now),
        sql("INSERT INTO offboardings (tenant_id, actor, begun_at, finished_at) VALUES ($1, $2, $3, NULL)")
            .bind(tenant.as_str())
            .bind(actor)
            .bind(now),
        sql("INSERT INTO events (id, position, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
             VALUES ($1, NULL, $2, NULL, NULL, 'tenant_removed', $3, 'asked for', $4, $5)")
        .bind(event)
        .bind(tenant.as_str())
        .bind(actor)
        .bind(serde_json::json!({ "slug": slug }).to_string())
        .bind(now),
    ] {
        tx.execute(stmt).await?;
    }
    Ok(true)
}

/// Tenants whose claims do not all know yet, the longest waiting first.
pub async fn unfinished(store: &Store, limit: i64) -> StoreResult<Vec<TenantId>> {
    let stmt = sql("SELECT tenant_id FROM offboardings WHERE finished_at IS NULL ORDER BY begun_at LIMIT $1").bind(limit);
    store.query(stmt).await?.iter().map(|row| row.parse("tenant_id")).collect()
}

/// Makes up to `limit` of a tenant's open claims due that are not, and tells which.
pub async fn make_due(tx: &mut Tx, tenant: &TenantId, now: Moment, limit: i64) -> StoreResult<Vec<DomainId>> {
    let stmt = sql("UPDATE domains SET due_at = $2, nudged = generation WHERE id IN (SELECT id FROM domains \
           WHERE tenant_id = $1 AND claim IN ('awaiting_dns', 'queued', 'live', 'expired') AND due_at > $2 \
           ORDER BY id LIMIT $3) RETURNING id")
    .bind(tenant.as_str())
    .bind(now)
    .bind(limit);
    tx.fetch_all(stmt).await?.iter().map(|row| row.parse("id")).collect()
}

/// Notes that no claim stands any more; false while one does.
pub async fn finish(store: &Store, tenant: &TenantId, now: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE offboardings SET finished_at = $2 WHERE tenant_id = $1 AND finished_at IS NULL \
         AND NOT EXISTS (SELECT 1 FROM domains d WHERE d.tenant_id = $1 \
           AND d.claim IN ('awaiting_dns', 'queued', 'live', 'expired'))")
    .bind(tenant.as_str())
    .bind(now);
    Ok(store.execute(stmt).await? == 1)
}

/// How far a tenant's off-boarding is; nothing when it was never begun.
pub async fn progress(tx: &mut Tx, tenant: &TenantId) -> StoreResult<Option<Progress>> {
    let stmt = sql("SELECT o.begun_at, o.finished_at, \
           (SELECT COUNT(*) FROM domains d WHERE d.tenant_id = o.tenant_id \
              AND d.claim IN ('awaiting_dns', 'queued', 'live', 'expired')) AS open, \
           (SELECT COUNT(*) FROM domains d WHERE d.tenant_id = o.tenant_id AND d.claim = 'releasing') AS releasing \
         FROM offboardings o WHERE o.tenant_id = $1")
    .bind(tenant.as_str());
    let read = |row: super::Row| {
        Ok(Progress {
            begun_at: row.moment("begun_at")?,
            finished_at: row.opt_moment("finished_at")?,
            open: row.int("open")?,
            releasing: row.int("releasing")?,
        })
    };
    tx.fetch_optional(stmt).await?.map(read).transpose()
}

/// A tenant's domains after an id, but for names that another tenant holds now: those do not dangle.
pub async fn left_behind(store: &Store, tenant: &TenantId, after: &str, limit: i64) -> StoreResult<Vec<Domain>> {
    let stmt = sql("SELECT d.* FROM domains d WHERE d.tenant_id = $1 AND d.id > $2 AND NOT EXISTS \
           (SELECT 1 FROM holdings h WHERE h.hostname = d.hostname AND h.state = 'held' AND h.tenant_id <> d.tenant_id) \
         ORDER BY d.id LIMIT $3")
    .bind(tenant.as_str())
    .bind(after)
    .bind(limit);
    store.query(stmt).await?.iter().map(domain).collect()
}
