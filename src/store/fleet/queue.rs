//! Orders that wait and what the ledger lets us spend.

use std::collections::BTreeMap;

use crate::model::bulk::Hold;
use crate::model::dispatch::Waiting;
use crate::model::id::{DomainId, IssuerId};
use crate::model::limits::{Closed, LimitName};
use crate::model::moment::Moment;
use crate::store::heads::waiting_of;
use crate::store::{Row, StoreResult, Tx, sql};

/// A waiting order with whose it is.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct QueuedRow {
    pub waiting: Waiting,
    pub domain_id: DomainId,
    pub tenant_slug: String,
    /// The limit of its own that it was set aside for.
    pub held_by: Option<LimitName>,
}

fn read(row: &Row) -> StoreResult<QueuedRow> {
    Ok(QueuedRow {
        waiting: waiting_of(row)?,
        domain_id: row.parse("domain_id")?,
        tenant_slug: row.text("slug")?,
        held_by: row.opt_parse("held_by")?,
    })
}

/// So many rows are read at once of what is read whole: in between others get their turn, at the database and here.
pub(in crate::store) const PAGE: usize = 1_000;

/// The whole queue of an issuer, oldest first: everything that has a place. Read page by page.
pub async fn waiting(tx: &mut Tx, issuer: &IssuerId) -> StoreResult<Vec<QueuedRow>> {
    let mut all: Vec<QueuedRow> = Vec::new();
    loop {
        let query = sql("SELECT o.id, o.lane, o.not_before, o.domain_id, o.held_by, o.tenant_id, o.ends_at, d.hostname, t.slug, \
               COALESCE(u.served, 0) AS served \
             FROM orders o JOIN domains d ON d.id = o.domain_id JOIN tenants t ON t.id = o.tenant_id AND t.status <> 'deleted' \
               LEFT JOIN turns u ON u.issuer_id = o.issuer_id AND u.lane = o.lane AND u.tenant_id = o.tenant_id \
             WHERE o.issuer_id = $1 AND o.state = 'waiting' AND o.not_before < $2 AND o.id > $3 ORDER BY o.id LIMIT $4")
        .bind(issuer.as_str())
        .bind(Moment::NEVER)
        .bind(all.last().map_or("", |row| row.waiting.order_id.as_str()))
        .bind(i64::try_from(PAGE).unwrap_or(i64::MAX));
        let page = tx.fetch_all(query).await?;
        for row in &page {
            all.push(read(row)?);
        }
        if page.len() < PAGE {
            return Ok(all);
        }
    }
}

/// How many orders of an issuer are held back until their checks pass again.
pub async fn held_back(tx: &mut Tx, issuer: &IssuerId) -> StoreResult<i64> {
    let query = sql("SELECT count(*) AS n FROM orders WHERE issuer_id = $1 AND state = 'waiting' AND not_before = $2")
        .bind(issuer.as_str())
        .bind(Moment::NEVER);
    tx.fetch_optional(query).await?.map_or(Ok(0), |row| row.int("n"))
}

/// How many orders of an issuer are held back by the imports that brought their names, by what holds those.
pub async fn held_by_imports(tx: &mut Tx, issuer: &IssuerId) -> StoreResult<BTreeMap<Hold, i64>> {
    let query = sql("SELECT m.hold, count(*) AS n FROM imports m \
           JOIN domains d ON d.import_id = m.id AND d.lane = 'bulk' AND d.claim = 'queued' \
           JOIN orders o ON o.domain_id = d.id AND o.issuer_id = $1 AND o.state = 'waiting' AND o.not_before = $2 \
         WHERE m.hold IS NOT NULL GROUP BY m.hold")
    .bind(issuer.as_str())
    .bind(Moment::NEVER);
    tx.fetch_all(query).await?.iter().map(|row| Ok((row.parse("hold")?, row.int("n")?))).collect()
}

/// A row of the ledger with its open spends.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct LedgerRow {
    pub limit: LimitName,
    pub key: String,
    pub tat: Moment,
    pub open: i64,
    pub closed: Option<Closed>,
    pub said: Option<String>,
    pub link: Option<String>,
    pub closed_at: Option<Moment>,
    pub closed_until: Option<Moment>,
}

/// The ledger of an issuer: the account's row, what the CA closed, then the emptiest.
pub async fn ledger(tx: &mut Tx, issuer: &IssuerId, limit: i64) -> StoreResult<Vec<LedgerRow>> {
    let query = sql("SELECT l.limit_name, l.key, l.tat, l.closed, l.said, l.link, l.closed_at, l.closed_until, \
           (SELECT count(*) FROM spends p WHERE p.issuer_id = $1 AND p.limit_name = l.limit_name AND p.key = l.key) AS open \
         FROM ( \
           SELECT 0 AS place, own.* FROM (SELECT * FROM ledger WHERE issuer_id = $1 AND key = 'account' LIMIT $2) own \
           UNION ALL \
           SELECT 1 AS place, shut.* FROM (SELECT * FROM ledger WHERE issuer_id = $1 AND closed IS NOT NULL AND key <> 'account' \
             ORDER BY tat DESC LIMIT $2) shut \
           UNION ALL \
           SELECT 2 AS place, rest.* FROM (SELECT * FROM ledger WHERE issuer_id = $1 AND closed IS NULL AND key <> 'account' \
             ORDER BY tat DESC LIMIT $2) rest \
         ) l ORDER BY l.place, l.tat DESC LIMIT $2")
    .bind(issuer.as_str())
    .bind(limit);
    tx.fetch_all(query).await?.iter().map(ledger_row).collect()
}

fn ledger_row(row: &Row) -> StoreResult<LedgerRow> {
    Ok(LedgerRow {
        limit: row.parse("limit_name")?,
        key: row.text("key")?,
        tat: row.moment("tat")?,
        open: row.int("open")?,
        closed: row.opt_parse("closed")?,
        said: row.opt_text("said")?,
        link: row.opt_text("link")?,
        closed_at: row.opt_moment("closed_at")?,
        closed_until: row.opt_moment("closed_until")?,
    })
}

/// Why the CA closed a row, if it did, and its link.
pub async fn closed_row(
    tx: &mut Tx,
    issuer: &str,
    limit: LimitName,
    key: &str,
) -> StoreResult<Option<(Closed, Option<String>)>> {
    let query = sql("SELECT l.closed, l.link FROM ledger l JOIN issuers i ON i.id = l.issuer_id \
         WHERE i.name = $1 AND l.limit_name = $2 AND l.key = $3 AND l.closed IS NOT NULL")
    .bind(issuer)
    .bind(limit.as_str())
    .bind(key);
    let row = tx.fetch_optional(query).await?;
    row.map(|row| Ok((row.parse("closed")?, row.opt_text("link")?))).transpose()
}
