//! Alerts: raised once, resolved once, each together with the event that tells of it.

use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::id::{AlertId, CertificateId, DomainId, EventId, TenantId};
use crate::model::moment::Moment;
use crate::model::outcome::NewEvent;

/// An alert.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct AlertRow {
    pub id: AlertId,
    pub kind: String,
    pub subject: String,
    pub topic: String,
    pub tenant_id: Option<TenantId>,
    pub domain_id: Option<DomainId>,
    pub certificate_id: Option<CertificateId>,
    pub threshold: Option<i64>,
    pub cause: String,
    pub said: String,
    pub many: i64,
    pub told_many: i64,
    pub told_threshold: i64,
    pub raised_at: Moment,
    pub clear_since: Option<Moment>,
    pub resolved_at: Option<Moment>,
    pub resolution: Option<String>,
    pub raised_event: EventId,
    /// The name of its domain.
    pub hostname: Option<String>,
}

pub(super) fn alert(row: &Row) -> StoreResult<AlertRow> {
    Ok(AlertRow {
        id: row.parse("id")?,
        kind: row.text("kind")?,
        subject: row.text("subject")?,
        topic: row.text("topic")?,
        tenant_id: row.opt_parse("tenant_id")?,
        domain_id: row.opt_parse("domain_id")?,
        certificate_id: row.opt_parse("certificate_id")?,
        threshold: row.opt_int("threshold")?,
        cause: row.text("cause")?,
        said: row.text("said")?,
        many: row.int("many")?,
        told_many: row.int("told_many")?,
        told_threshold: row.int("told_threshold")?,
        raised_at: row.moment("raised_at")?,
        clear_since: row.opt_moment("clear_since")?,
        resolved_at: row.opt_moment("resolved_at")?,
        resolution: row.opt_text("resolution")?,
        raised_event: row.parse("raised_event")?,
        hostname: row.opt_text("hostname")?,
    })
}

/// What is one story to whoever hears of it: a certificate or a check of a domain, or all of a subject.
pub fn topic(kind: &str, subject: &str, part: Option<&str>) -> String {
    match part {
        Some(part) => format!("{kind}/{subject}/{part}"),
        None => format!("{kind}/{subject}"),
    }
}

/// A new alert; nothing is written where it was raised before.
pub fn insert(a: &AlertRow, next_at: Option<Moment>) -> Stmt {
    sql("INSERT INTO alerts (id, kind, subject, tenant_id, domain_id, certificate_id, threshold, next_at, cause, said, many, \
           told_many, told_threshold, raised_at, raised_event, topic) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT DO NOTHING")
    .bind(a.id.as_str())
    .bind(a.kind.as_str())
    .bind(a.subject.as_str())
    .bind(a.tenant_id.as_ref().map(|t| t.as_str()))
    .bind(a.domain_id.as_ref().map(|d| d.as_str()))
    .bind(a.certificate_id.as_ref().map(|c| c.as_str()))
    .bind(a.threshold)
    .bind(next_at)
    .bind(a.cause.as_str())
    .bind(a.said.as_str())
    .bind(a.many)
    .bind(a.told_many)
    .bind(a.told_threshold)
    .bind(a.raised_at)
    .bind(a.raised_event.as_str())
    .bind(a.topic.as_str())
}

/// The alert of this domain, certificate and threshold that ended because the name was let go of, which was undone since, or because
/// a clock was wrong, as was one that took its place: it is open again. Gives its id.
pub async fn reopen(tx: &mut Tx, a: &AlertRow) -> StoreResult<Option<AlertId>> {
    let stmt = sql(
        "UPDATE alerts SET resolved_at = NULL, resolution = NULL, resolved_event = NULL, raised_event = $4, said = $5, \
           cause = $6, raised_at = $7 \
         WHERE domain_id = $1 AND certificate_id = $2 AND threshold = $3 \
           AND (resolution IN ('let_go', 'mistaken') OR resolution = 'escalated' AND NOT EXISTS (SELECT 1 FROM alerts o \
             WHERE o.domain_id = $1 AND o.certificate_id = $2 AND o.resolved_at IS NULL)) \
         RETURNING id",
    )
    .bind(a.domain_id.as_ref().map(|d| d.as_str()))
    .bind(a.certificate_id.as_ref().map(|c| c.as_str()))
    .bind(a.threshold)
    .bind(a.raised_event.as_str())
    .bind(a.said.as_str())
    .bind(a.cause.as_str())
    .bind(a.raised_at);
    tx.fetch_optional(stmt).await?.map(|row| row.parse("id")).transpose()
}

/// A tighter threshold takes the place of looser ones: whoever hears of it hears of the same topic.
pub fn escalate(domain: &DomainId, certificate: &CertificateId, threshold: i64, now: Moment) -> Stmt {
    sql("UPDATE alerts SET resolved_at = $4, resolution = 'escalated' \
         WHERE domain_id = $1 AND certificate_id = $2 AND threshold > $3 AND resolved_at IS NULL")
    .bind(domain.as_str())
    .bind(certificate.as_str())
    .bind(threshold)
    .bind(now)
}

/// What an event tells of an alert, written with the event. Mail of it waits until `mail_at`, where that is said, for others of its
/// kind.
pub fn tells(event: &EventId, a: &AlertRow, begins: bool, mail_at: Option<Moment>) -> Stmt {
    sql("INSERT INTO alert_events (event_id, alert_id, topic, domain_id, says, mail_at) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(event.as_str())
        .bind(a.id.as_str())
        .bind(a.topic.as_str())
        .bind(a.domain_id.as_ref().map(|d| d.as_str()))
        .bind(if begins { "begins" } else { "ends" })
        .bind(mail_at)
}

/// Ends an alert; one row changes, once.
pub fn resolve(id: &AlertId, resolution: &str, event: &EventId, now: Moment) -> Stmt {
    sql("UPDATE alerts SET resolved_at = $2, resolution = $3, resolved_event = $4 WHERE id = $1 AND resolved_at IS NULL")
        .bind(id.as_str())
        .bind(now)
        .bind(resolution)
        .bind(event.as_str())
}

/// What open alerts of domains share: the cause, how many, the tightest threshold where they have one.
pub async fn by_cause(store: &Store, kind: &str) -> StoreResult<Vec<(String, i64, i64)>> {
    let stmt = sql("SELECT cause, count(*) AS n, COALESCE(min(threshold), 0) AS tightest FROM alerts \
         WHERE kind = $1 AND resolved_at IS NULL GROUP BY cause ORDER BY cause");
    store
        .query(stmt.bind(kind))
        .await?
        .iter()
        .map(|row| Ok((row.text("cause")?, row.int("n")?, row.int("tightest")?)))
        .collect()
}

/// On which days since 1970 the certificates end that open alerts are about, by cause: of each domain one, what is known
/// to keep it from being renewed before that it ends.
pub async fn days_by_cause(store: &Store, until: Moment) -> StoreResult<Vec<(i64, String, i64)>> {
    let stmt = sql("SELECT c.not_after / 86400000000 AS day, a.cause, count(*) AS n FROM alerts a \
         JOIN domains d ON d.id = a.domain_id JOIN certificates c ON c.id = COALESCE(a.certificate_id, d.certificate_id) \
         WHERE a.resolved_at IS NULL AND a.domain_id IS NOT NULL AND c.not_after < $1 \
           AND NOT EXISTS (SELECT 1 FROM alerts b WHERE b.domain_id = a.domain_id AND b.resolved_at IS NULL \
             AND (b.kind > a.kind OR b.kind = a.kind AND b.id < a.id)) \
         GROUP BY c.not_after / 86400000000, a.cause");
    let rows = store.query(stmt.bind(until)).await?;
    rows.iter().map(|row| Ok((row.int("day")?, row.text("cause")?, row.int("n")?))).collect()
}

/// Open alerts of the whole platform.
pub async fn open_of_platform(store: &Store) -> StoreResult<Vec<AlertRow>> {
    let stmt =
        sql("SELECT a.*, NULL AS hostname FROM alerts a WHERE a.resolved_at IS NULL AND a.domain_id IS NULL ORDER BY a.id");
    store.query(stmt).await?.iter().map(alert).collect()
}

/// Remembers since when a condition is not seen any more, or that it is seen.
pub fn clear(id: &AlertId, since: Option<Moment>) -> Stmt {
    sql("UPDATE alerts SET clear_since = $2 WHERE id = $1 AND resolved_at IS NULL").bind(id.as_str()).bind(since)
}

/// Brings the count and its words up to date, without telling.
pub fn count(id: &AlertId, many: i64, said: &str) -> Stmt {
    sql("UPDATE alerts SET many = $2, said = $3 WHERE id = $1 AND resolved_at IS NULL AND many <> $2")
        .bind(id.as_str())
        .bind(many)
        .bind(said)
}

/// When it was told last.
pub async fn told_at(tx: &mut Tx, a: &AlertRow) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT at FROM events WHERE id = $1").bind(a.raised_event.as_str());
    tx.fetch_optional(stmt).await?.map(|row| row.moment("at")).transpose()
}

/// It is told again, as it is worse by now or has lasted; one row changes, for whoever was first.
pub fn tell_again(a: &AlertRow, many: i64, threshold: i64, said: &str, event: &EventId) -> Stmt {
    sql(
        "UPDATE alerts SET many = $2, told_many = $2, told_threshold = $3, said = $4, raised_event = $5, clear_since = NULL \
         WHERE id = $1 AND resolved_at IS NULL AND raised_event = $6",
    )
    .bind(a.id.as_str())
    .bind(many)
    .bind(threshold)
    .bind(said)
    .bind(event.as_str())
    .bind(a.raised_event.as_str())
}

/// An event of the platform, or of a tenant, of no domain's history: that is written through its one door only.
pub fn event(id: &EventId, tenant: Option<&TenantId>, news: &NewEvent, now: Moment) -> Stmt {
    sql("INSERT INTO events (id, position, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
         VALUES ($1, NULL, $2, NULL, NULL, $3, $4, $5, $6, $7)")
    .bind(id.as_str())
    .bind(tenant.map(|t| t.as_str()))
    .bind(news.kind)
    .bind(news.actor.as_str())
    .bind(news.cause.as_str())
    .bind(news.detail.to_string())
    .bind(now)
}

/// Which alerts a list holds.
#[derive(Clone, Debug, Default)]
pub struct AlertFilter {
    /// Of this tenant only.
    pub tenant: Option<TenantId>,
    /// Those that are over, too.
    pub resolved: bool,
    /// Those of the platform only.
    pub platform: bool,
    /// After this id.
    pub after: Option<AlertId>,
}

/// Alerts, the latest first.
pub async fn list(store: &Store, filter: &AlertFilter, limit: i64) -> StoreResult<Vec<AlertRow>> {
    let before = filter.after.as_ref().map_or("", AlertId::as_str);
    let stmt = match &filter.tenant {
        Some(tenant) => sql("SELECT a.*, d.hostname FROM alerts a LEFT JOIN domains d ON d.id = a.domain_id \
             WHERE a.tenant_id = $4 AND ($1 = '' OR a.id < $1) AND ($2 = 1 OR a.resolved_at IS NULL) ORDER BY a.id DESC LIMIT $3")
        .bind(before)
        .bind(filter.resolved)
        .bind(limit)
        .bind(tenant.as_str()),
        None => sql("SELECT a.*, d.hostname FROM alerts a LEFT JOIN domains d ON d.id = a.domain_id \
             WHERE ($1 = '' OR a.id < $1) AND ($2 = 1 OR a.resolved_at IS NULL) AND ($4 = 0 OR a.domain_id IS NULL) \
             ORDER BY a.id DESC LIMIT $3")
        .bind(before)
        .bind(filter.resolved)
        .bind(limit)
        .bind(filter.platform),
    };
    store.query(stmt).await?.iter().map(alert).collect()
}
