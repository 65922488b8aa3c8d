//! Orders that wait and what the ledger lets us spend.

use crate::model::dispatch::Waiting;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, IssuerId};
use crate::model::moment::Moment;
use crate::store::{Row, StoreResult, Tx, sql};

/// As many orders as the dispatcher looks at in one round, and as many of those that may not be placed yet.
const WINDOW: i64 = 5_000;

/// A waiting order with whose it is.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct QueuedRow {
    pub waiting: Waiting,
    pub domain_id: DomainId,
    pub tenant_slug: String,
    pub hostname: Hostname,
}

fn read(row: &Row) -> StoreResult<QueuedRow> {
    Ok(QueuedRow {
        waiting: Waiting {
            order_id: row.parse("id")?,
            tenant_id: row.parse("tenant_id")?,
            lane: row.parse("lane")?,
            not_before: row.moment("not_before")?,
        },
        domain_id: row.parse("domain_id")?,
        tenant_slug: row.text("slug")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
    })
}

/// What the dispatcher's next round at an issuer looks at, and after that what becomes eligible soonest.
pub async fn waiting(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<Vec<QueuedRow>> {
    let eligible = sql("SELECT o.id, o.lane, o.not_before, o.domain_id, d.tenant_id, d.hostname, t.slug FROM orders o \
         JOIN domains d ON d.id = o.domain_id JOIN tenants t ON t.id = d.tenant_id \
         WHERE o.issuer_id = $1 AND o.state = 'waiting' AND o.not_before <= $2 ORDER BY o.id LIMIT $3")
    .bind(issuer.as_str())
    .bind(now)
    .bind(WINDOW);
    let later = sql("SELECT o.id, o.lane, o.not_before, o.domain_id, d.tenant_id, d.hostname, t.slug FROM orders o \
         JOIN domains d ON d.id = o.domain_id JOIN tenants t ON t.id = d.tenant_id \
         WHERE o.issuer_id = $1 AND o.state = 'waiting' AND o.not_before > $2 AND o.not_before < $3 \
         ORDER BY o.not_before LIMIT $4")
    .bind(issuer.as_str())
    .bind(now)
    .bind(Moment::NEVER)
    .bind(WINDOW);
    let mut rows: Vec<QueuedRow> = tx.fetch_all(eligible).await?.iter().map(read).collect::<StoreResult<_>>()?;
    rows.extend(tx.fetch_all(later).await?.iter().map(read).collect::<StoreResult<Vec<_>>>()?);
    Ok(rows)
}

/// How many orders wait at an issuer, and how many of them are held back until their checks pass again.
pub async fn sizes(tx: &mut Tx, issuer: &IssuerId) -> StoreResult<(i64, i64)> {
    let held = sql("SELECT count(*) AS n FROM orders WHERE issuer_id = $1 AND state = 'waiting' AND not_before = $2")
        .bind(issuer.as_str())
        .bind(Moment::NEVER);
    let all = sql("SELECT count(*) AS n FROM orders WHERE issuer_id = $1 AND state = 'waiting' AND not_before < $2")
        .bind(issuer.as_str())
        .bind(Moment::NEVER);
    let mut n = [0, 0];
    for (n, query) in n.iter_mut().zip([all, held]) {
        *n = tx.fetch_optional(query).await?.map_or(Ok(0), |row| row.int("n"))?;
    }
    Ok((n[0], n[1]))
}

/// A row of the ledger with its open spends.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct LedgerRow {
    pub limit_name: String,
    pub key: String,
    pub tat: Moment,
    pub open: i64,
}

/// The ledger of an issuer, the account's row and those of most keys in use, the emptiest first.
pub async fn ledger(tx: &mut Tx, issuer: &IssuerId, limit: i64) -> StoreResult<Vec<LedgerRow>> {
    let query = sql("SELECT l.limit_name, l.key, l.tat, (SELECT count(*) FROM spends p WHERE p.issuer_id = l.issuer_id \
           AND p.limit_name = l.limit_name AND p.key = l.key) AS open \
         FROM ledger l WHERE l.issuer_id = $1 ORDER BY CASE WHEN l.key = 'account' THEN 0 ELSE 1 END, l.tat DESC LIMIT $2")
    .bind(issuer.as_str())
    .bind(limit);
    let read = |row: &Row| {
        Ok(LedgerRow {
            limit_name: row.text("limit_name")?,
            key: row.text("key")?,
            tat: row.moment("tat")?,
            open: row.int("open")?,
        })
    };
    tx.fetch_all(query).await?.iter().map(read).collect()
}
