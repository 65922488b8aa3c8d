//! What is to be written to whom. Several items make one message, so that no cause fills a mailbox.

use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::id::EventId;
use crate::model::moment::Moment;

/// An addressee with something due: the address, and whose contact it is (empty for an operator).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Addressee {
    /// The address.
    pub address: String,
    /// The tenant's id, or nothing.
    pub whose: String,
}

/// Something to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct ItemRow {
    pub event_id: EventId,
    pub kind: String,
    pub cause: String,
    pub detail: String,
    pub hostname: Option<String>,
    pub at: Moment,
    pub attempts: i64,
}

/// Who has something due that nobody is writing.
pub async fn addressees(store: &Store, now: Moment, limit: i64) -> StoreResult<Vec<Addressee>> {
    let stmt = sql("SELECT address, whose, MIN(due_at) AS since FROM mail_items m \
         WHERE state = 'pending' AND due_at <= $1 AND NOT EXISTS (SELECT 1 FROM mail_items b WHERE b.address = m.address \
           AND b.whose = m.whose AND b.state = 'pending' AND b.leased_until > $1) \
         GROUP BY address, whose ORDER BY since LIMIT $2");
    let rows = store.query(stmt.bind(now).bind(limit)).await?;
    rows.iter().map(|r| Ok(Addressee { address: r.text("address")?, whose: r.text("whose")? })).collect()
}

/// Takes all that waits for an addressee, due or not: one message tells it all. None when somebody else has it.
pub async fn take(tx: &mut Tx, to: &Addressee, now: Moment, until: Moment) -> StoreResult<Vec<ItemRow>> {
    let taken = sql("UPDATE mail_items SET leased_until = $4, attempts = attempts + 1 \
         WHERE address = $1 AND whose = $2 AND state = 'pending' AND leased_until <= $3")
    .bind(to.address.as_str())
    .bind(to.whose.as_str())
    .bind(now)
    .bind(until);
    if tx.execute(taken).await? == 0 {
        return Ok(Vec::new());
    }
    let stmt = sql("SELECT m.event_id, m.attempts, e.kind, e.cause, e.detail, e.at, COALESCE(d.hostname, \
           (SELECT x.hostname FROM domains x JOIN alerts a ON a.domain_id = x.id WHERE a.raised_event = e.id), \
           (SELECT x.hostname FROM domains x JOIN alerts a ON a.domain_id = x.id WHERE a.resolved_event = e.id)) AS hostname \
         FROM mail_items m JOIN events e ON e.id = m.event_id LEFT JOIN domains d ON d.id = e.domain_id \
         WHERE m.address = $1 AND m.whose = $2 AND m.state = 'pending' AND m.leased_until = $3 ORDER BY m.position");
    let rows = tx.fetch_all(stmt.bind(to.address.as_str()).bind(to.whose.as_str()).bind(until)).await?;
    rows.iter().map(item).collect()
}

fn item(row: &Row) -> StoreResult<ItemRow> {
    Ok(ItemRow {
        event_id: row.parse("event_id")?,
        kind: row.text("kind")?,
        cause: row.text("cause")?,
        detail: row.text("detail")?,
        hostname: row.opt_text("hostname")?,
        at: row.moment("at")?,
        attempts: row.int("attempts")?,
    })
}

/// Whether the address still wants it: a contact that was removed meanwhile is not written to.
pub async fn still_wanted(tx: &mut Tx, to: &Addressee) -> StoreResult<bool> {
    if to.whose.is_empty() {
        return Ok(true);
    }
    let stmt = sql("SELECT 1 AS found FROM contacts c JOIN tenants t ON t.id = c.tenant_id \
         WHERE c.tenant_id = $1 AND c.email = $2 AND t.status <> 'deleted'");
    Ok(tx.fetch_optional(stmt.bind(to.whose.as_str()).bind(to.address.as_str())).await?.is_some())
}

/// The beginning of what this event ends was dropped for this address, or waits together with its end.
pub async fn beginning_was_not_sent(tx: &mut Tx, to: &Addressee, event: &EventId) -> StoreResult<bool> {
    let stmt = sql("SELECT 1 AS found FROM alerts a JOIN mail_items m ON m.event_id = a.raised_event \
         WHERE a.resolved_event = $3 AND m.address = $1 AND m.whose = $2 AND m.state <> 'sent'");
    let stmt = stmt.bind(to.address.as_str()).bind(to.whose.as_str()).bind(event.as_str());
    Ok(tx.fetch_optional(stmt).await?.is_some())
}

/// One item ended for good.
pub fn ended(to: &Addressee, event: &EventId, state: &'static str, said: Option<&str>, now: Moment) -> Stmt {
    sql("UPDATE mail_items SET state = $4, said = $5, done_at = $6, leased_until = 0 \
         WHERE address = $1 AND whose = $2 AND event_id = $3 AND state = 'pending'")
    .bind(to.address.as_str())
    .bind(to.whose.as_str())
    .bind(event.as_str())
    .bind(state)
    .bind(said)
    .bind(now)
}

/// All that was taken together ended together.
pub fn all_ended(to: &Addressee, until: Moment, state: &'static str, said: Option<&str>, now: Moment) -> Stmt {
    sql("UPDATE mail_items SET state = $4, said = $5, done_at = $6, leased_until = 0 \
         WHERE address = $1 AND whose = $2 AND leased_until = $3 AND state = 'pending'")
    .bind(to.address.as_str())
    .bind(to.whose.as_str())
    .bind(until)
    .bind(state)
    .bind(said)
    .bind(now)
}

/// All that was taken together is tried again then.
pub fn all_again(to: &Addressee, until: Moment, at: Moment, said: &str) -> Stmt {
    sql("UPDATE mail_items SET due_at = $4, said = $5, leased_until = 0 \
         WHERE address = $1 AND whose = $2 AND leased_until = $3 AND state = 'pending'")
    .bind(to.address.as_str())
    .bind(to.whose.as_str())
    .bind(until)
    .bind(at)
    .bind(said)
}

/// What comes within this after a message waits for the next one.
pub fn rest(to: &Addressee, until: Moment) -> Stmt {
    sql("UPDATE mail_items SET due_at = $3 WHERE address = $1 AND whose = $2 AND state = 'pending' AND due_at < $3")
        .bind(to.address.as_str())
        .bind(to.whose.as_str())
        .bind(until)
}

/// When this addressee was last written to.
pub async fn last_sent(tx: &mut Tx, to: &Addressee) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT MAX(done_at) AS at FROM mail_items WHERE address = $1 AND whose = $2 AND state = 'sent'");
    let row = tx.fetch_optional(stmt.bind(to.address.as_str()).bind(to.whose.as_str())).await?;
    row.map_or(Ok(None), |row| row.opt_moment("at"))
}

/// Since when the oldest message waits that should have been sent.
pub async fn oldest_due(store: &Store, now: Moment) -> StoreResult<Option<Moment>> {
    let stmt =
        sql("SELECT MIN(created_at) AS at FROM mail_items WHERE state = 'pending' AND attempts > 0 AND created_at <= $1");
    store.query(stmt.bind(now)).await?.first().map_or(Ok(None), |row| row.opt_moment("at"))
}
