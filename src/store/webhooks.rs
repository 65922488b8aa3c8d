//! The places that events are sent to.

use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::id::{TenantId, WebhookId};
use crate::model::moment::Moment;

/// A place. Its secrets are sealed, each under its id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct WebhookRow {
    pub id: WebhookId,
    pub tenant_id: Option<TenantId>,
    pub url: String,
    pub kinds: Vec<String>,
    pub secret: Vec<u8>,
    pub previous_secret: Option<Vec<u8>>,
    pub previous_until: Option<Moment>,
    pub not_before: Moment,
    pub failures: i64,
    pub failing_since: Option<Moment>,
    pub disabled_at: Option<Moment>,
    pub disabled_why: Option<String>,
    pub created_at: Moment,
    /// What waits to be sent to it.
    pub pending: i64,
}

fn webhook(row: &Row) -> StoreResult<WebhookRow> {
    Ok(WebhookRow {
        id: row.parse("id")?,
        tenant_id: row.opt_parse("tenant_id")?,
        url: row.text("url")?,
        kinds: row.json("kinds")?,
        secret: row.blob("secret")?,
        previous_secret: row.opt_blob("previous_secret")?,
        previous_until: row.opt_moment("previous_until")?,
        not_before: row.moment("not_before")?,
        failures: row.int("failures")?,
        failing_since: row.opt_moment("failing_since")?,
        disabled_at: row.opt_moment("disabled_at")?,
        disabled_why: row.opt_text("disabled_why")?,
        created_at: row.moment("created_at")?,
        pending: row.int("pending")?,
    })
}

/// A new place, unless its owner has `most` of them; what happened before is not sent to it.
pub fn insert(w: &WebhookRow, most: i64) -> Stmt {
    sql(
        "INSERT INTO webhook_endpoints (id, tenant_id, url, kinds, secret, from_position, not_before, failures, created_at) \
         SELECT $1, $2, $3, $4, $5, COALESCE((SELECT last_position FROM feed WHERE id = 1), 0), 0, 0, CAST($6 AS BIGINT) \
         WHERE (SELECT COUNT(*) FROM webhook_endpoints w WHERE COALESCE(w.tenant_id, '') = $7) < $8",
    )
    .bind(w.id.as_str())
    .bind(w.tenant_id.as_ref().map(|t| t.as_str()))
    .bind(w.url.as_str())
    .bind(serde_json::json!(w.kinds).to_string())
    .bind(w.secret.as_slice())
    .bind(w.created_at)
    .bind(w.tenant_id.as_ref().map_or("", |t| t.as_str()))
    .bind(most)
}

/// One of them.
pub async fn lookup(tx: &mut Tx, id: &WebhookId) -> StoreResult<Option<WebhookRow>> {
    let stmt = sql(
        "SELECT w.*, (SELECT COUNT(*) FROM deliveries d WHERE d.endpoint_id = w.id AND d.state = 'pending') AS pending \
         FROM webhook_endpoints w WHERE w.id = $1",
    );
    tx.fetch_optional(stmt.bind(id.as_str())).await?.as_ref().map(webhook).transpose()
}

/// Those of a tenant, or all, after an id.
pub async fn list(store: &Store, tenant: Option<&TenantId>, after: &str, limit: i64) -> StoreResult<Vec<WebhookRow>> {
    let stmt = sql(
        "SELECT w.*, (SELECT COUNT(*) FROM deliveries d WHERE d.endpoint_id = w.id AND d.state = 'pending') AS pending \
         FROM webhook_endpoints w WHERE ($1 = '' OR w.tenant_id = $1) AND w.id > $2 ORDER BY w.id LIMIT $3",
    )
    .bind(tenant.map_or("", TenantId::as_str))
    .bind(after)
    .bind(limit);
    store.query(stmt).await?.iter().map(webhook).collect()
}

/// Those that are switched off because they failed or said that they are gone.
pub async fn switched_off(store: &Store, limit: i64) -> StoreResult<Vec<(WebhookId, String, String)>> {
    let stmt = sql("SELECT id, url, disabled_why FROM webhook_endpoints \
         WHERE disabled_at IS NOT NULL AND disabled_why <> 'asked' ORDER BY id LIMIT $1");
    let rows = store.query(stmt.bind(limit)).await?;
    rows.iter().map(|r| Ok((r.parse("id")?, r.text("url")?, r.text("disabled_why")?))).collect()
}

/// Removes a place and all that waits for it; whether there was one.
pub async fn delete(tx: &mut Tx, id: &WebhookId) -> StoreResult<bool> {
    tx.execute(sql("DELETE FROM deliveries WHERE endpoint_id = $1").bind(id.as_str())).await?;
    Ok(tx.execute(sql("DELETE FROM webhook_endpoints WHERE id = $1").bind(id.as_str())).await? == 1)
}

/// Gives it another secret; the present one is good beside it for a while.
pub fn rotate(id: &WebhookId, secret: &[u8], previous_until: Moment) -> Stmt {
    sql("UPDATE webhook_endpoints SET previous_secret = secret, previous_until = $3, secret = $2 WHERE id = $1")
        .bind(id.as_str())
        .bind(secret)
        .bind(previous_until)
}

/// Switches it on again: what waits is due at once.
pub async fn enable(tx: &mut Tx, id: &WebhookId, now: Moment) -> StoreResult<bool> {
    let on =
        sql("UPDATE webhook_endpoints SET disabled_at = NULL, disabled_why = NULL, failures = 0, failing_since = NULL, \
           not_before = 0 WHERE id = $1 AND disabled_at IS NOT NULL");
    let on = tx.execute(on.bind(id.as_str())).await? == 1;
    if on {
        tx.execute(due(id, now)).await?;
    }
    Ok(on)
}

/// Switches it off; one row changes, once.
pub fn disable(id: &WebhookId, why: &'static str, now: Moment) -> Stmt {
    sql("UPDATE webhook_endpoints SET disabled_at = $2, disabled_why = $3 WHERE id = $1 AND disabled_at IS NULL")
        .bind(id.as_str())
        .bind(now)
        .bind(why)
}

/// All that waits for it is due.
pub fn due(id: &WebhookId, now: Moment) -> Stmt {
    sql("UPDATE deliveries SET due_at = $2 WHERE endpoint_id = $1 AND state = 'pending' AND due_at > $2")
        .bind(id.as_str())
        .bind(now)
}

/// It took something.
pub fn took(id: &WebhookId) -> Stmt {
    sql("UPDATE webhook_endpoints SET failures = 0, failing_since = NULL, not_before = 0 WHERE id = $1 AND failures > 0")
        .bind(id.as_str())
}

/// It failed: it is left alone until then.
pub fn failed(id: &WebhookId, not_before: Moment, now: Moment) -> Stmt {
    sql(
        "UPDATE webhook_endpoints SET failures = failures + 1, failing_since = COALESCE(failing_since, $3), not_before = $2 \
         WHERE id = $1",
    )
    .bind(id.as_str())
    .bind(not_before)
    .bind(now)
}
