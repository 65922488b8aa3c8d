//! What is sent to whom: one row an event and place, handed out by a cursor over the stream, sent in order for each subject.

use super::webhooks::WebhookRow;
use super::{Row, Stmt, Store, StoreResult, Tx, sql, webhooks};
use crate::model::alert::kinds;
use crate::model::email::ContactKind;
use crate::model::id::{EventId, TenantId, WebhookId};
use crate::model::moment::Moment;

/// A delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct DeliveryRow {
    pub endpoint_id: WebhookId,
    pub event_id: EventId,
    pub kind: String,
    pub subject: String,
    pub state: String,
    pub attempts: i64,
    pub refusals: i64,
    /// Somebody asked for it.
    pub asked: bool,
    pub due_at: Moment,
    pub tried_at: Option<Moment>,
    pub status: Option<i64>,
    pub said: Option<String>,
    pub created_at: Moment,
    pub done_at: Option<Moment>,
}

fn delivery(row: &Row) -> StoreResult<DeliveryRow> {
    Ok(DeliveryRow {
        endpoint_id: row.parse("endpoint_id")?,
        event_id: row.parse("event_id")?,
        kind: row.text("kind")?,
        subject: row.text("subject")?,
        state: row.text("state")?,
        attempts: row.int("attempts")?,
        refusals: row.int("refusals")?,
        asked: row.int("asked")? == 1,
        due_at: row.moment("due_at")?,
        tried_at: row.opt_moment("tried_at")?,
        status: row.opt_int("status")?,
        said: row.opt_text("said")?,
        created_at: row.moment("created_at")?,
        done_at: row.opt_moment("done_at")?,
    })
}

/// Whether the stream has something that was not handed out.
pub async fn something_new(store: &Store) -> StoreResult<bool> {
    let stmt = sql("SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM events \
         WHERE position > (SELECT position FROM notify_cursor WHERE id = 1))");
    Ok(!store.query(stmt).await?.is_empty())
}

/// Hands out up to `limit` events of the stream: a row for each place that wants one, a row for each address. The cursor moves
/// in the same transaction, by a guard: whoever comes second writes nothing. How many events.
pub async fn hand_out(
    tx: &mut Tx,
    operators: Operators<'_>,
    mail: bool,
    now: Moment,
    mail_at: Moment,
    limit: i64,
) -> StoreResult<u64> {
    let Some(row) = tx.fetch_optional(sql("SELECT position FROM notify_cursor WHERE id = 1")).await? else { return Ok(0) };
    let from = row.int("position")?;
    let next = sql("SELECT COALESCE(MAX(n.position), 0) AS upto, COUNT(*) AS n FROM (SELECT position FROM events \
         WHERE position > $1 ORDER BY position LIMIT $2) n");
    let row = tx.fetch_optional(next.bind(from).bind(limit)).await?;
    let (upto, many) = row.map_or(Ok((0, 0)), |row| StoreResult::Ok((row.int("upto")?, row.int("n")?)))?;
    if many == 0 {
        return Ok(0);
    }
    let moved = sql("UPDATE notify_cursor SET position = $2 WHERE id = 1 AND position = $1").bind(from).bind(upto);
    if tx.execute(moved).await? != 1 {
        return Ok(0);
    }
    tx.execute(to_places(from, upto, now)).await?;
    if mail {
        for kind in ContactKind::ALL {
            tx.execute(to_contacts(*kind, from, upto, now, mail_at)).await?;
        }
        for address in operators.addresses {
            tx.execute(to_operator(address, operators.unwanted, from, upto, (now, mail_at))).await?;
        }
    }
    Ok(u64::try_from(many).unwrap_or(0))
}

/// What belongs together is told in order: a domain's, else a tenant's, else the platform's.
fn to_places(from: i64, upto: i64, now: Moment) -> Stmt {
    sql("INSERT INTO deliveries (endpoint_id, event_id, position, subject, state, attempts, due_at, leased_until, created_at) \
         SELECT w.id, e.id, e.position, COALESCE(e.domain_id, \
             (SELECT v.domain_id FROM alert_events v WHERE v.event_id = e.id), e.tenant_id, 'platform'), \
           'pending', 0, CAST($3 AS BIGINT), 0, CAST($3 AS BIGINT) \
         FROM events e JOIN webhook_endpoints w ON w.tenant_id IS NULL OR w.tenant_id = e.tenant_id \
         LEFT JOIN tenants t ON t.id = w.tenant_id \
         WHERE e.position > $1 AND e.position <= $2 AND e.position > w.from_position AND e.kind <> $4 \
           AND (COALESCE(t.status, 'active') <> 'deleted' OR $5 LIKE '%,' || e.kind || ',%' AND EXISTS (SELECT 1 \
             FROM holdings h WHERE h.tenant_id = t.id AND h.state = 'quarantined')) \
           AND (w.kinds = '[\"*\"]' OR w.kinds LIKE '%\"' || e.kind || '\"%') \
         ON CONFLICT (endpoint_id, event_id) DO NOTHING")
    .bind(from)
    .bind(upto)
    .bind(now)
    .bind(kinds::WEBHOOK_TEST)
    .bind(kinds::told_after_leaving())
}

/// What is gathered counts as waiting from the moment on at which it is to be written.
fn to_contacts(kind: ContactKind, from: i64, upto: i64, now: Moment, mail_at: Moment) -> Stmt {
    sql("INSERT INTO mail_items (address, whose, event_id, position, state, attempts, due_at, leased_until, created_at) \
         SELECT c.email, e.tenant_id, e.id, e.position, 'pending', 0, \
           CASE WHEN v.mail_at > CAST($5 AS BIGINT) THEN v.mail_at ELSE CAST($5 AS BIGINT) END, 0, \
           CASE WHEN v.mail_at > CAST($4 AS BIGINT) THEN v.mail_at ELSE CAST($4 AS BIGINT) END \
         FROM events e JOIN contacts c ON c.tenant_id = e.tenant_id JOIN tenants t ON t.id = c.tenant_id \
         LEFT JOIN alert_events v ON v.event_id = e.id \
         WHERE e.position > $1 AND e.position <= $2 AND $3 LIKE '%,' || e.kind || ',%' \
           AND (t.status <> 'deleted' OR $7 LIKE '%,' || e.kind || ',%' AND EXISTS (SELECT 1 FROM holdings h \
             WHERE h.tenant_id = t.id AND h.state = 'quarantined')) \
           AND c.kinds LIKE '%\"' || $6 || '\"%' ON CONFLICT (address, whose, event_id) DO NOTHING")
    .bind(from)
    .bind(upto)
    .bind(kinds::mailed(kind))
    .bind(now)
    .bind(mail_at)
    .bind(kind.as_str())
    .bind(kinds::told_after_leaving())
}

/// Operators who get mail.
#[derive(Clone, Copy, Debug)]
pub struct Operators<'a> {
    /// Where.
    pub addresses: &'a [String],
    /// Of which kinds of alerts they get none.
    pub unwanted: &'a [String],
}

fn to_operator(address: &str, unwanted: &[String], from: i64, upto: i64, (now, mail_at): (Moment, Moment)) -> Stmt {
    sql("INSERT INTO mail_items (address, whose, event_id, position, state, attempts, due_at, leased_until, created_at) \
         SELECT $3, '', e.id, e.position, 'pending', 0, CAST($5 AS BIGINT), 0, CAST($4 AS BIGINT) FROM events e \
         WHERE e.position > $1 AND e.position <= $2 AND e.kind IN ('alert_raised', 'alert_resolved') \
           AND NOT EXISTS (SELECT 1 FROM alert_events v JOIN alerts a ON a.id = v.alert_id \
             WHERE v.event_id = e.id AND $6 LIKE '%,' || a.kind || ',%') \
         ON CONFLICT (address, whose, event_id) DO NOTHING")
    .bind(from)
    .bind(upto)
    .bind(address)
    .bind(now)
    .bind(mail_at)
    .bind(format!(",{},", unwanted.join(",")))
}

/// A delivery to one place, of an event that is about to be written in the same transaction: a try.
pub fn insert_test(endpoint: &WebhookId, event: &EventId, now: Moment) -> Stmt {
    sql("INSERT INTO deliveries (endpoint_id, event_id, position, subject, state, attempts, due_at, leased_until, created_at) \
         VALUES ($1, $2, 0, $2, 'pending', 0, $3, 0, $3)")
    .bind(endpoint.as_str())
    .bind(event.as_str())
    .bind(now)
}

/// Places after `after` that may be asked now and for which something is due. Only places that something waits for are read, each
/// by one step through an index. Whether a place may be told is judged right before it is sent to ([`concerns`]).
pub async fn places_due(store: &Store, now: Moment, after: &str, limit: i64) -> StoreResult<Vec<WebhookId>> {
    let stmt = sql("WITH RECURSIVE waiting (id) AS (SELECT MIN(endpoint_id) FROM deliveries \
           WHERE state = 'pending' AND endpoint_id > $2 \
         UNION ALL SELECT (SELECT MIN(d.endpoint_id) FROM deliveries d WHERE d.state = 'pending' AND d.endpoint_id > p.id) \
           FROM waiting p WHERE p.id IS NOT NULL) \
         SELECT w.id FROM waiting p JOIN webhook_endpoints w ON w.id = p.id \
         WHERE w.disabled_at IS NULL AND w.not_before <= $1 \
           AND EXISTS (SELECT 1 FROM deliveries d WHERE d.endpoint_id = w.id AND d.state = 'pending' AND d.due_at <= $1 \
             AND d.leased_until <= $1) \
         ORDER BY w.id LIMIT $3")
    .bind(now)
    .bind(after)
    .bind(limit);
    store.query(stmt).await?.iter().map(|r| r.parse("id")).collect()
}

/// A delivery that may be tried now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// The event.
    pub event: EventId,
    /// Tries so far.
    pub attempts: i64,
    /// Failures in a row of the place.
    pub failures: i64,
}

/// What is due for a place that may be asked: the first of every subject only, so that each subject is told in order; and of a
/// place that fails, nothing while something is on its way.
pub async fn firsts_due(store: &Store, place: &WebhookId, now: Moment, limit: i64) -> StoreResult<Vec<First>> {
    let stmt =
        sql("SELECT d.event_id, d.attempts, w.failures FROM webhook_endpoints w JOIN deliveries d ON d.endpoint_id = w.id \
         WHERE w.id = $1 AND w.disabled_at IS NULL AND w.not_before <= $2 \
           AND (w.failures = 0 OR NOT EXISTS (SELECT 1 FROM deliveries b WHERE b.endpoint_id = $1 \
             AND b.state = 'pending' AND b.leased_until > $2)) \
           AND d.state = 'pending' AND d.due_at <= $2 AND d.leased_until <= $2 \
           AND NOT EXISTS (SELECT 1 FROM deliveries b WHERE b.endpoint_id = d.endpoint_id AND b.subject = d.subject \
             AND b.state = 'pending' AND b.position < d.position) \
         ORDER BY d.due_at, d.position LIMIT $3")
        .bind(place.as_str())
        .bind(now)
        .bind(limit);
    let read =
        |r: &Row| Ok(First { event: r.parse("event_id")?, attempts: r.int("attempts")?, failures: r.int("failures")? });
    store.query(stmt).await?.iter().map(read).collect()
}

/// Takes a delivery for one try; one row changes, for whoever was first.
pub fn take(endpoint: &WebhookId, event: &EventId, attempts: i64, now: Moment, until: Moment) -> Stmt {
    sql("UPDATE deliveries SET attempts = attempts + 1, leased_until = $5, tried_at = $4 \
         WHERE endpoint_id = $1 AND event_id = $2 AND attempts = $3 AND state = 'pending' AND leased_until <= $4")
    .bind(endpoint.as_str())
    .bind(event.as_str())
    .bind(attempts)
    .bind(now)
    .bind(until)
}

/// How a try ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried<'a> {
    /// The place.
    pub endpoint: &'a WebhookId,
    /// The event.
    pub event: &'a EventId,
    /// The number of the try: whoever comes late with an old one writes nothing.
    pub attempt: i64,
    /// What the receiver answered.
    pub status: Option<u16>,
    /// What was wrong.
    pub said: Option<&'a str>,
}

/// It ended for good: `delivered`, `dropped` or `given_up`. One row changes.
pub fn ended(t: &Tried<'_>, state: &'static str, now: Moment) -> Stmt {
    sql("UPDATE deliveries SET state = $4, status = $5, said = $6, done_at = $7, leased_until = 0 \
         WHERE endpoint_id = $1 AND event_id = $2 AND attempts = $3 AND state = 'pending'")
    .bind(t.endpoint.as_str())
    .bind(t.event.as_str())
    .bind(t.attempt)
    .bind(state)
    .bind(t.status.map(i64::from))
    .bind(t.said)
    .bind(now)
}

/// It is tried again then; `refused` where the receiver would not have this very thing. One row changes.
pub fn again(t: &Tried<'_>, refused: bool, at: Moment) -> Stmt {
    sql("UPDATE deliveries SET due_at = $4, status = $5, said = $6, leased_until = 0, refusals = refusals + $7 \
         WHERE endpoint_id = $1 AND event_id = $2 AND attempts = $3 AND state = 'pending'")
    .bind(t.endpoint.as_str())
    .bind(t.event.as_str())
    .bind(t.attempt)
    .bind(at)
    .bind(t.status.map(i64::from))
    .bind(t.said)
    .bind(refused)
}

/// Whether something else failed at this place, too, since it began to fail.
pub async fn others_fail(tx: &mut Tx, place: &WebhookRow, event: &EventId) -> StoreResult<bool> {
    let Some(since) = place.failing_since else { return Ok(false) };
    let stmt = sql("SELECT 1 AS found FROM deliveries WHERE endpoint_id = $1 AND event_id <> $2 AND state = 'pending' \
           AND said IS NOT NULL AND tried_at >= $3 LIMIT 1");
    Ok(tx.fetch_optional(stmt.bind(place.id.as_str()).bind(event.as_str()).bind(since)).await?.is_some())
}

/// Whether events of this kind still concern whoever has the place: a tenant that left hears of the names it left behind, as long as
/// one rests, and of nothing else. The platform hears of everything.
pub async fn concerns(tx: &mut Tx, tenant: Option<&TenantId>, kind: &str) -> StoreResult<bool> {
    let Some(tenant) = tenant else { return Ok(true) };
    let stmt =
        sql("SELECT 1 AS found FROM tenants t WHERE t.id = $1 AND (t.status <> 'deleted' OR $3 LIKE '%,' || $2 || ',%' \
           AND EXISTS (SELECT 1 FROM holdings h WHERE h.tenant_id = t.id AND h.state = 'quarantined'))")
        .bind(tenant.as_str())
        .bind(kind)
        .bind(kinds::told_after_leaving());
    Ok(tx.fetch_optional(stmt).await?.is_some())
}

/// The place and the delivery, for a try that was taken.
pub async fn taken(tx: &mut Tx, endpoint: &WebhookId, event: &EventId) -> StoreResult<Option<(WebhookRow, DeliveryRow)>> {
    let stmt = sql("SELECT d.*, e.kind FROM deliveries d JOIN events e ON e.id = d.event_id \
         WHERE d.endpoint_id = $1 AND d.event_id = $2");
    let Some(row) = tx.fetch_optional(stmt.bind(endpoint.as_str()).bind(event.as_str())).await? else { return Ok(None) };
    let place = webhooks::to_send(tx, endpoint).await?;
    Ok(place.zip(Some(delivery(&row)?)))
}

/// The deliveries to a place, the latest first, before an event's id; of one state, where one is given.
pub async fn list(
    store: &Store,
    endpoint: &WebhookId,
    state: &str,
    before: &str,
    limit: i64,
) -> StoreResult<Vec<DeliveryRow>> {
    let stmt = sql("SELECT d.*, e.kind FROM deliveries d JOIN events e ON e.id = d.event_id \
         WHERE d.endpoint_id = $1 AND ($2 = '' OR d.event_id < $2) AND ($3 = '' OR d.state = $3) ORDER BY d.event_id DESC LIMIT $4")
    .bind(endpoint.as_str())
    .bind(before)
    .bind(state)
    .bind(limit);
    store.query(stmt).await?.iter().map(delivery).collect()
}

/// Sends one again, whatever became of it and of what it tells; one row changes.
pub fn replay(endpoint: &WebhookId, event: &EventId, now: Moment) -> Stmt {
    sql("UPDATE deliveries SET state = 'pending', asked = 1, refusals = 0, due_at = $3, leased_until = 0, done_at = NULL \
         WHERE endpoint_id = $1 AND event_id = $2 AND leased_until <= $3")
    .bind(endpoint.as_str())
    .bind(event.as_str())
    .bind(now)
}

/// Sends again what was given up, of what was made since then.
pub fn replay_given_up(endpoint: &WebhookId, since: Moment, now: Moment) -> Stmt {
    sql("UPDATE deliveries SET state = 'pending', refusals = 0, due_at = $3, leased_until = 0, done_at = NULL \
         WHERE endpoint_id = $1 AND created_at >= $2 AND state = 'given_up'")
    .bind(endpoint.as_str())
    .bind(since)
    .bind(now)
}
