//! The places that events are sent to.

use std::time::Duration;

use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::id::{TenantId, WebhookId};
use crate::model::moment::Moment;

/// A place. Its secrets are sealed, each under its id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct WebhookRow {
    pub id: WebhookId,
    pub tenant_id: Option<TenantId>,
    /// What an older release wrote; empty since it is sealed.
    pub url: String,
    pub sealed_url: Option<Vec<u8>>,
    /// What others than its owner see of the URL.
    pub host: String,
    pub fingerprint: String,
    pub kinds: Vec<String>,
    pub secret: Vec<u8>,
    pub previous_secret: Option<Vec<u8>>,
    pub previous_until: Option<Moment>,
    pub not_before: Moment,
    pub failures: i64,
    pub failing_since: Option<Moment>,
    /// Why nothing can be sent to it for a reason of ours.
    pub fault: Option<String>,
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
        sealed_url: row.opt_blob("sealed_url")?,
        host: row.text("host")?,
        fingerprint: row.text("fingerprint")?,
        kinds: row.json("kinds")?,
        secret: row.blob("secret")?,
        previous_secret: row.opt_blob("previous_secret")?,
        previous_until: row.opt_moment("previous_until")?,
        not_before: row.moment("not_before")?,
        failures: row.int("failures")?,
        failing_since: row.opt_moment("failing_since")?,
        fault: row.opt_text("fault")?,
        disabled_at: row.opt_moment("disabled_at")?,
        disabled_why: row.opt_text("disabled_why")?,
        created_at: row.moment("created_at")?,
        pending: row.int("pending")?,
    })
}

/// A new place, unless its owner has `most` of them; what happened before is not sent to it.
pub fn insert(w: &WebhookRow, most: i64) -> Stmt {
    sql("INSERT INTO webhook_endpoints (id, tenant_id, url, sealed_url, host, fingerprint, kinds, secret, from_position, \
           not_before, failures, created_at) \
         SELECT $1, $2, '', $9, $3, $10, $4, $5, COALESCE((SELECT last_position FROM feed WHERE id = 1), 0), 0, 0, \
           CAST($6 AS BIGINT) \
         WHERE (SELECT COUNT(*) FROM webhook_endpoints w WHERE COALESCE(w.tenant_id, '') = $7) < $8")
    .bind(w.id.as_str())
    .bind(w.tenant_id.as_ref().map(|t| t.as_str()))
    .bind(w.host.as_str())
    .bind(serde_json::json!(w.kinds).to_string())
    .bind(w.secret.as_slice())
    .bind(w.created_at)
    .bind(w.tenant_id.as_ref().map_or("", |t| t.as_str()))
    .bind(most)
    .bind(w.sealed_url.clone())
    .bind(w.fingerprint.as_str())
}

/// Places whose URL stands in the open, as an older release wrote it.
pub async fn in_the_open(store: &Store, limit: i64) -> StoreResult<Vec<(WebhookId, String)>> {
    let stmt = sql("SELECT id, url FROM webhook_endpoints WHERE sealed_url IS NULL ORDER BY id LIMIT $1");
    store.query(stmt.bind(limit)).await?.iter().map(|row| Ok((row.parse("id")?, row.text("url")?))).collect()
}

/// Puts the sealed URL in the place of the open one.
pub fn seal(id: &WebhookId, sealed: &[u8], host: &str, fingerprint: &str) -> Stmt {
    sql("UPDATE webhook_endpoints SET url = '', sealed_url = $2, host = $3, fingerprint = $4 WHERE id = $1 AND sealed_url IS NULL")
        .bind(id.as_str())
        .bind(sealed)
        .bind(host)
        .bind(fingerprint)
}

/// One of them, to be shown.
pub async fn lookup(tx: &mut Tx, id: &WebhookId) -> StoreResult<Option<WebhookRow>> {
    let stmt = sql(
        "SELECT w.*, (SELECT COUNT(*) FROM deliveries d WHERE d.endpoint_id = w.id AND d.state = 'pending') AS pending \
         FROM webhook_endpoints w WHERE w.id = $1",
    );
    tx.fetch_optional(stmt.bind(id.as_str())).await?.as_ref().map(webhook).transpose()
}

/// One of them, to be sent to: what waits for it is not counted.
pub async fn to_send(tx: &mut Tx, id: &WebhookId) -> StoreResult<Option<WebhookRow>> {
    let stmt = sql("SELECT w.*, CAST(0 AS BIGINT) AS pending FROM webhook_endpoints w WHERE w.id = $1");
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

/// Places that share a trouble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Which.
    pub why: String,
    /// How many.
    pub many: i64,
    /// Some of them: host and fingerprint.
    pub some: Vec<String>,
}

fn shown(row: &Row) -> StoreResult<String> {
    Ok(format!("{} ({})", row.text("host")?, row.text("fingerprint")?))
}

/// Those that are switched off because they failed or said that they are gone, by which of the two; some of each by name.
pub async fn switched_off(store: &Store, named: i64) -> StoreResult<Vec<Shared>> {
    let counted =
        sql("SELECT w.disabled_why, COUNT(*) AS n FROM webhook_endpoints w LEFT JOIN tenants t ON t.id = w.tenant_id \
         WHERE w.disabled_at IS NOT NULL AND w.disabled_why <> 'asked' AND COALESCE(t.status, 'active') <> 'deleted' \
         GROUP BY w.disabled_why ORDER BY w.disabled_why");
    let mut out = Vec::new();
    for row in store.query(counted).await? {
        let why = row.text("disabled_why")?;
        let some = sql("SELECT w.host, w.fingerprint FROM webhook_endpoints w LEFT JOIN tenants t ON t.id = w.tenant_id \
             WHERE w.disabled_at IS NOT NULL AND w.disabled_why = $1 AND COALESCE(t.status, 'active') <> 'deleted' \
             ORDER BY w.id LIMIT $2");
        let some = store.query(some.bind(why.as_str()).bind(named)).await?.iter().map(shown).collect::<StoreResult<_>>()?;
        out.push(Shared { why, many: row.int("n")?, some });
    }
    Ok(out)
}

/// Those that cannot be sent to for a reason of ours, with one of the reasons.
pub async fn faulty(store: &Store, named: i64) -> StoreResult<Option<Shared>> {
    let counted = sql("SELECT COUNT(*) AS n, MIN(fault) AS fault FROM webhook_endpoints WHERE fault IS NOT NULL");
    let rows = store.query(counted).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let Some(why) = row.opt_text("fault")? else { return Ok(None) };
    let some = sql("SELECT host, fingerprint FROM webhook_endpoints WHERE fault IS NOT NULL ORDER BY id LIMIT $1");
    let some = store.query(some.bind(named)).await?.iter().map(shown).collect::<StoreResult<_>>()?;
    Ok(Some(Shared { why, many: row.int("n")?, some }))
}

/// Removes a place and all that waits for it; whether there was one.
pub async fn delete(tx: &mut Tx, id: &WebhookId) -> StoreResult<bool> {
    tx.execute(sql("DELETE FROM deliveries WHERE endpoint_id = $1").bind(id.as_str())).await?;
    tx.execute(sql("DELETE FROM told WHERE place = $1").bind(id.as_str())).await?;
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
           refused_for = 0, silent_for = 0, fault = NULL, not_before = 0 WHERE id = $1 AND disabled_at IS NOT NULL");
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
pub fn took(id: &WebhookId, now: Moment) -> Stmt {
    sql("UPDATE webhook_endpoints SET failures = 0, failing_since = NULL, refused_for = 0, silent_for = 0, fault = NULL, \
           tried_at = $2, not_before = 0 WHERE id = $1 AND (failures > 0 OR fault IS NOT NULL)")
    .bind(id.as_str())
    .bind(now)
}

/// Nothing waits for it any more, as all that it did not take was over by then: what comes next meets it as if it were new, for
/// nobody knows how it has been meanwhile.
pub fn rested(id: &WebhookId) -> Stmt {
    sql("UPDATE webhook_endpoints SET failures = 0, failing_since = NULL, refused_for = 0, silent_for = 0, not_before = 0 \
         WHERE id = $1 AND failures > 0 \
           AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.endpoint_id = $1 AND d.state = 'pending')")
    .bind(id.as_str())
}

/// For how long a place has failed, counted from try to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failing {
    /// It answered, and took nothing.
    pub refused: Duration,
    /// It did not answer at all.
    pub silent: Duration,
}

/// It failed: it is left alone until then. `answered` tells a refusal from silence. The time since the try before counts for what
/// this try was, up to `most`.
pub async fn failed(
    tx: &mut Tx,
    id: &WebhookId,
    answered: bool,
    not_before: Moment,
    now: Moment,
    most: Duration,
) -> StoreResult<Failing> {
    let stmt = sql("UPDATE webhook_endpoints SET failures = failures + 1, failing_since = COALESCE(failing_since, $3), \
           not_before = $2, tried_at = $3, \
           refused_for = refused_for + CASE WHEN $4 = 0 OR failures = 0 OR tried_at IS NULL OR tried_at > $3 THEN 0 \
             WHEN $3 - tried_at > $5 THEN $5 ELSE $3 - tried_at END, \
           silent_for = CASE WHEN $4 = 1 THEN 0 ELSE silent_for + CASE WHEN failures = 0 OR tried_at IS NULL OR tried_at > $3 THEN 0 \
             WHEN $3 - tried_at > $5 THEN $5 ELSE $3 - tried_at END END \
         WHERE id = $1 RETURNING refused_for, silent_for")
    .bind(id.as_str())
    .bind(not_before)
    .bind(now)
    .bind(answered)
    .bind(i64::try_from(most.as_micros()).unwrap_or(i64::MAX));
    let row = tx.fetch_optional(stmt).await?;
    let long = |column: &str| -> StoreResult<Duration> {
        let micros = row.as_ref().map_or(Ok(0), |row| row.int(column))?;
        Ok(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    };
    Ok(Failing { refused: long("refused_for")?, silent: long("silent_for")? })
}

/// Nothing can be sent to it for a reason of ours; it is left alone until then.
pub fn at_fault(id: &WebhookId, fault: &str, not_before: Moment) -> Stmt {
    sql("UPDATE webhook_endpoints SET fault = $2, not_before = $3 WHERE id = $1")
        .bind(id.as_str())
        .bind(fault)
        .bind(not_before)
}
