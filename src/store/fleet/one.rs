//! The inside of one domain, and of the edges: what only an operator sees.

use crate::model::domain::{HoldingState, TieState};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, EdgeId};
use crate::model::moment::Moment;
use crate::store::{Row, StoreResult, Tx, sql};

/// The row's own bookkeeping.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct InsideRow {
    pub standing: String,
    pub standing_since: Moment,
    pub claim_since: Moment,
    pub tie: TieState,
    pub looked_at: Option<Moment>,
    pub check_asked_at: Option<Moment>,
    pub check_asked_by: Option<String>,
    pub lease_owner: Option<String>,
    pub lease_until: Moment,
    pub generation: i64,
    pub settled: i64,
    pub failures: i64,
    pub active_since: Option<Moment>,
    pub certificate_id: Option<String>,
    pub import_id: Option<String>,
    pub intent: Option<IntentRow>,
}

/// What was last about to be done outside.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct IntentRow {
    pub effect: String,
    pub object_id: String,
    pub generation: i64,
    pub recorded_at: Moment,
}

/// The inside of a domain.
pub async fn inside(tx: &mut Tx, id: &DomainId) -> StoreResult<Option<InsideRow>> {
    let query = sql("SELECT d.standing, d.standing_since, d.claim_since, d.tie, d.looked_at, d.check_asked_at, \
           d.check_asked_by, d.lease_owner, d.lease_until, d.generation, d.settled, d.failures, d.active_since, \
           d.certificate_id, d.import_id, n.effect, n.object_id, n.generation AS intent_generation, n.recorded_at \
         FROM domains d LEFT JOIN intents n ON n.subject_kind = 'domain' AND n.subject_id = d.id WHERE d.id = $1");
    let Some(row) = tx.fetch_optional(query.bind(id.as_str())).await? else { return Ok(None) };
    let intent = match row.opt_text("effect")? {
        None => None,
        Some(effect) => Some(IntentRow {
            effect,
            object_id: row.text("object_id")?,
            generation: row.int("intent_generation")?,
            recorded_at: row.moment("recorded_at")?,
        }),
    };
    Ok(Some(InsideRow {
        standing: row.text("standing")?,
        standing_since: row.moment("standing_since")?,
        claim_since: row.moment("claim_since")?,
        tie: row.parse("tie")?,
        looked_at: row.opt_moment("looked_at")?,
        check_asked_at: row.opt_moment("check_asked_at")?,
        check_asked_by: row.opt_text("check_asked_by")?,
        lease_owner: row.opt_text("lease_owner")?,
        lease_until: row.moment("lease_until")?,
        generation: row.int("generation")?,
        settled: row.int("settled")?,
        failures: row.int("failures")?,
        active_since: row.opt_moment("active_since")?,
        certificate_id: row.opt_text("certificate_id")?,
        import_id: row.opt_text("import_id")?,
        intent,
    }))
}

/// An order of a domain, with its grant.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct OrderRow {
    pub id: String,
    pub purpose: String,
    pub lane: String,
    pub issuer: String,
    pub state: String,
    pub state_since: Moment,
    pub not_before: Moment,
    pub created_at: Moment,
    pub url: Option<String>,
    pub problem: Option<String>,
    pub grant_state: Option<String>,
    pub grant_expires: Option<Moment>,
}

/// The latest orders of a domain, the latest first.
pub async fn orders(tx: &mut Tx, id: &DomainId, limit: i64) -> StoreResult<Vec<OrderRow>> {
    let query =
        sql("SELECT o.id, o.purpose, o.lane, i.name AS issuer, o.state, o.state_since, o.not_before, o.created_at, \
           o.url, o.problem, g.state AS grant_state, g.expires_at AS grant_expires \
         FROM orders o JOIN issuers i ON i.id = o.issuer_id \
         LEFT JOIN grants g ON g.id = (SELECT max(l.id) FROM grants l WHERE l.order_id = o.id) \
         WHERE o.domain_id = $1 ORDER BY o.created_at DESC, o.id DESC LIMIT $2");
    let read = |row: &Row| {
        Ok(OrderRow {
            id: row.text("id")?,
            purpose: row.text("purpose")?,
            lane: row.text("lane")?,
            issuer: row.text("issuer")?,
            state: row.text("state")?,
            state_since: row.moment("state_since")?,
            not_before: row.moment("not_before")?,
            created_at: row.moment("created_at")?,
            url: row.opt_text("url")?,
            problem: row.opt_text("problem")?,
            grant_state: row.opt_text("grant_state")?,
            grant_expires: row.opt_moment("grant_expires")?,
        })
    };
    tx.fetch_all(query.bind(id.as_str()).bind(limit)).await?.iter().map(read).collect()
}

/// Who holds a hostname.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct HoldingRow {
    pub state: HoldingState,
    pub term: i64,
    pub since: Moment,
    pub domain_id: Option<DomainId>,
    pub tenant_slug: Option<String>,
}

/// The holding of a hostname.
pub async fn holding(tx: &mut Tx, hostname: &Hostname) -> StoreResult<Option<HoldingRow>> {
    let query = sql("SELECT h.state, h.term, h.since, h.domain_id, t.slug FROM holdings h \
         LEFT JOIN tenants t ON t.id = h.tenant_id WHERE h.hostname = $1");
    let row = tx.fetch_optional(query.bind(hostname.as_str())).await?;
    row.map(|row| {
        Ok(HoldingRow {
            state: row.parse("state")?,
            term: row.int("term")?,
            since: row.moment("since")?,
            domain_id: row.opt_parse("domain_id")?,
            tenant_slug: row.opt_text("slug")?,
        })
    })
    .transpose()
}

/// An edge next to one subject of the feed: whether it has it, by its cursor.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct EdgeAt {
    pub id: EdgeId,
    pub name: String,
    pub status: String,
    pub lost: bool,
    pub heartbeat_at: Moment,
    /// Whether its cursor is at or past the subject's last change, in the feed's epoch.
    pub has_it: bool,
    pub observed: Option<String>,
}

/// Where every edge that is not revoked stands with a certificate.
pub async fn edges_with(tx: &mut Tx, certificate: &str) -> StoreResult<Vec<EdgeAt>> {
    let query = sql("SELECT e.id, e.name, e.status, e.lost_at, e.heartbeat_at, x.observed, \
           CAST(CASE WHEN e.cursor_epoch = f.epoch AND s.pending = 0 AND e.cursor_seq >= s.seq THEN 1 ELSE 0 END AS BIGINT) AS has_it \
         FROM edges e CROSS JOIN feed f \
         CROSS JOIN (SELECT MAX(seq) AS seq, COUNT(*) - COUNT(seq) AS pending FROM outbox \
           WHERE kind = 'certificate' AND subject = $1) s \
         LEFT JOIN rollout_exceptions x ON x.edge_id = e.id AND x.certificate_id = $1 \
         WHERE e.status <> 'revoked' AND f.id = 1 ORDER BY e.name");
    let read = |row: &Row| {
        Ok(EdgeAt {
            id: row.parse("id")?,
            name: row.text("name")?,
            status: row.text("status")?,
            lost: row.opt_moment("lost_at")?.is_some(),
            heartbeat_at: row.moment("heartbeat_at")?,
            has_it: row.int("has_it")? == 1,
            observed: row.opt_text("observed")?,
        })
    };
    tx.fetch_all(query.bind(certificate)).await?.iter().map(read).collect()
}

/// Where the feed stands: epoch and last number.
pub async fn feed_head(tx: &mut Tx) -> StoreResult<Option<(i64, i64)>> {
    let row = tx.fetch_optional(sql("SELECT epoch, last_seq FROM feed WHERE id = 1")).await?;
    row.map(|row| Ok((row.int("epoch")?, row.int("last_seq")?))).transpose()
}

/// A certificate that an edge has and does not serve.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct ExceptionRow {
    pub edge: String,
    pub domain_id: Option<DomainId>,
    pub serial: String,
    pub hostname: Option<Hostname>,
    pub observed: String,
    pub at: Moment,
}

/// Certificates that edges have and do not serve.
pub async fn exceptions(tx: &mut Tx, limit: i64) -> StoreResult<Vec<ExceptionRow>> {
    // The exceptions are few; CROSS keeps SQLite from beginning with the certificates, which are many.
    let query = sql("SELECT e.name, c.serial, c.domain_id, d.hostname, x.observed, x.at FROM \
           (SELECT certificate_id, edge_id, observed, at FROM rollout_exceptions ORDER BY certificate_id, edge_id LIMIT $1) x \
         CROSS JOIN edges e CROSS JOIN certificates c LEFT JOIN domains d ON d.id = c.domain_id \
         WHERE e.id = x.edge_id AND c.id = x.certificate_id ORDER BY x.certificate_id, x.edge_id");
    let read = |row: &Row| {
        Ok(ExceptionRow {
            edge: row.text("name")?,
            serial: row.text("serial")?,
            domain_id: row.opt_parse("domain_id")?,
            hostname: row.opt_text("hostname")?.map(|name| Hostname::trusted(&name)),
            observed: row.text("observed")?,
            at: row.moment("at")?,
        })
    };
    tx.fetch_all(query.bind(limit)).await?.iter().map(read).collect()
}
