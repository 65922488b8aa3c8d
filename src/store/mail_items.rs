//! What is to be written to whom. Several items make one message, so that no cause fills a mailbox.

use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::alert::kinds;
use crate::model::id::EventId;
use crate::model::moment::Moment;

/// Something to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct ItemRow {
    pub event_id: EventId,
    /// Whose contact the address is for this; empty for an operator.
    pub whose: String,
    pub kind: String,
    pub cause: String,
    pub detail: serde_json::Value,
    pub hostname: Option<String>,
    pub at: Moment,
    pub attempts: i64,
    pub refusals: i64,
    /// Whether the address is a contact of that tenant still, and this concerns the tenant; nothing is said of operators.
    pub is_contact: bool,
    /// Whether that tenant left.
    pub left: bool,
}

/// Addresses after `after` with something due that nobody is writing, and that are not left alone because a try failed. Only
/// addresses that something waits for are read, each by one step through an index.
pub async fn addressees(store: &Store, now: Moment, after: &str, limit: i64) -> StoreResult<Vec<String>> {
    let stmt = sql("WITH RECURSIVE waiting (address) AS (SELECT MIN(address) FROM mail_items \
           WHERE state = 'pending' AND address > $2 \
         UNION ALL SELECT (SELECT MIN(m.address) FROM mail_items m WHERE m.state = 'pending' AND m.address > p.address) \
           FROM waiting p WHERE p.address IS NOT NULL) \
         SELECT p.address FROM waiting p WHERE p.address IS NOT NULL \
           AND EXISTS (SELECT 1 FROM mail_items m WHERE m.address = p.address AND m.state = 'pending' AND m.due_at <= $1) \
           AND NOT EXISTS (SELECT 1 FROM mail_items b WHERE b.address = p.address AND b.state = 'pending' \
             AND (b.leased_until > $1 OR (b.attempts > 0 AND b.due_at > $1))) \
         ORDER BY p.address LIMIT $3");
    let rows = store.query(stmt.bind(now).bind(after).bind(limit)).await?;
    rows.iter().map(|r| r.text("address")).collect()
}

/// Takes all that waits for an address, due or not: one message tells it all. None when somebody else has it.
pub async fn take(tx: &mut Tx, to: &str, now: Moment, until: Moment) -> StoreResult<Vec<ItemRow>> {
    let taken = sql("UPDATE mail_items SET leased_until = $3, attempts = attempts + 1 \
         WHERE address = $1 AND state = 'pending' AND leased_until <= $2")
    .bind(to)
    .bind(now)
    .bind(until);
    if tx.execute(taken).await? == 0 {
        return Ok(Vec::new());
    }
    let stmt = sql(
        "SELECT m.event_id, m.whose, m.attempts, m.refusals, e.kind, e.cause, e.detail, e.at, COALESCE(d.hostname, \
           (SELECT x.hostname FROM alert_events v JOIN domains x ON x.id = v.domain_id WHERE v.event_id = e.id)) AS hostname, \
           CAST(CASE WHEN EXISTS (SELECT 1 FROM contacts c JOIN tenants t ON t.id = c.tenant_id \
             WHERE c.tenant_id = m.whose AND c.email = m.address \
               AND (t.status <> 'deleted' OR $3 LIKE '%,' || e.kind || ',%' AND EXISTS (SELECT 1 FROM holdings h \
                 WHERE h.tenant_id = t.id AND h.state = 'quarantined'))) THEN 1 ELSE 0 END AS BIGINT) AS wanted, \
           CAST(CASE WHEN EXISTS (SELECT 1 FROM tenants g WHERE g.id = m.whose AND g.status = 'deleted') THEN 1 ELSE 0 END AS BIGINT) \
             AS departed \
         FROM mail_items m JOIN events e ON e.id = m.event_id LEFT JOIN domains d ON d.id = e.domain_id \
         WHERE m.address = $1 AND m.state = 'pending' AND m.leased_until = $2 ORDER BY m.position",
    );
    let rows = tx.fetch_all(stmt.bind(to).bind(until).bind(kinds::told_after_leaving())).await?;
    rows.iter().map(item).collect()
}

fn item(row: &Row) -> StoreResult<ItemRow> {
    Ok(ItemRow {
        event_id: row.parse("event_id")?,
        whose: row.text("whose")?,
        kind: row.text("kind")?,
        cause: row.text("cause")?,
        detail: row.json("detail")?,
        hostname: row.opt_text("hostname")?,
        at: row.moment("at")?,
        attempts: row.int("attempts")?,
        refusals: row.int("refusals")?,
        is_contact: row.int("wanted")? == 1,
        left: row.int("departed")? == 1,
    })
}

/// One item ended for good.
pub fn ended(to: &str, item: &ItemRow, state: &'static str, said: Option<&str>, now: Moment) -> Stmt {
    sql("UPDATE mail_items SET state = $4, said = $5, done_at = $6, leased_until = 0 \
         WHERE address = $1 AND whose = $2 AND event_id = $3 AND state = 'pending'")
    .bind(to)
    .bind(item.whose.as_str())
    .bind(item.event_id.as_str())
    .bind(state)
    .bind(said)
    .bind(now)
}

/// All that was taken together ended together.
pub fn all_ended(to: &str, until: Moment, state: &'static str, said: Option<&str>, now: Moment) -> Stmt {
    sql("UPDATE mail_items SET state = $3, said = $4, done_at = $5, leased_until = 0 \
         WHERE address = $1 AND leased_until = $2 AND state = 'pending'")
    .bind(to)
    .bind(until)
    .bind(state)
    .bind(said)
    .bind(now)
}

/// What was taken together and was put off so often is given up; the rest of it is not.
pub fn given_up(to: &str, until: Moment, refusals: i64, said: &str, now: Moment) -> Stmt {
    sql("UPDATE mail_items SET state = 'given_up', said = $4, done_at = $5, leased_until = 0 \
         WHERE address = $1 AND leased_until = $2 AND state = 'pending' AND refusals >= $3")
    .bind(to)
    .bind(until)
    .bind(refusals)
    .bind(said)
    .bind(now)
}

/// All that was taken together is tried again then; `put_off` where the server answered for this addressee.
pub fn all_again(to: &str, until: Moment, put_off: bool, at: Moment, said: &str) -> Stmt {
    sql("UPDATE mail_items SET due_at = $3, said = $4, leased_until = 0, refusals = refusals + $5 \
         WHERE address = $1 AND leased_until = $2 AND state = 'pending'")
    .bind(to)
    .bind(until)
    .bind(at)
    .bind(said)
    .bind(put_off)
}

/// What comes within this after a message waits for the next one.
pub fn rest(to: &str, until: Moment) -> Stmt {
    sql("UPDATE mail_items SET due_at = $2 WHERE address = $1 AND state = 'pending' AND due_at < $2").bind(to).bind(until)
}

/// When this address was last written to.
pub async fn last_sent(tx: &mut Tx, to: &str) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT MAX(done_at) AS at FROM mail_items WHERE address = $1 AND state = 'sent'");
    let row = tx.fetch_optional(stmt.bind(to)).await?;
    row.map_or(Ok(None), |row| row.opt_moment("at"))
}

/// Since when the oldest message waits that should have been sent.
pub async fn oldest_due(store: &Store, now: Moment) -> StoreResult<Option<Moment>> {
    let stmt =
        sql("SELECT MIN(created_at) AS at FROM mail_items WHERE state = 'pending' AND attempts > 0 AND created_at <= $1");
    store.query(stmt.bind(now)).await?.first().map_or(Ok(None), |row| row.opt_moment("at"))
}

/// How much was given up since then.
pub async fn given_up_since(store: &Store, since: Moment) -> StoreResult<i64> {
    let stmt = sql("SELECT COUNT(*) AS n FROM mail_items WHERE state = 'given_up' AND done_at >= $1").bind(since);
    store.query(stmt).await?.first().map_or(Ok(0), |row| row.int("n"))
}
