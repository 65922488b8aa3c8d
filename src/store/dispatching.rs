//! The dispatcher's reads and writes: waiting orders, the ledger with its open spends, grants.

use std::time::Duration;

use super::record::nudge;
use super::{Stmt, StoreResult, Tx, sql};
use crate::model::dispatch::Waiting;
use crate::model::id::{DomainId, GrantId, IssuerId, OrderId};
use crate::model::ledger::Bucket;
use crate::model::moment::Moment;

/// How many waiting orders one round looks at.
const WINDOW: i64 = 5_000;
/// How many grants go into one round trip.
const CHUNK: usize = 20;

/// An order that waits, with the domain to wake.
pub struct WaitingRow {
    /// What `dispatch` decides by.
    pub waiting: Waiting,
    /// Whose order it is.
    pub domain_id: DomainId,
}

/// Takes back grants that nobody used in time, and settles spends whose calls were never answered.
pub async fn close_overdue(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<()> {
    for stmt in [
        sql("UPDATE domains SET due_at = $2, nudged = generation WHERE id IN (SELECT o.domain_id FROM orders o \
             JOIN grants g ON g.order_id = o.id WHERE o.issuer_id = $1 AND o.state = 'granted' \
               AND g.state = 'open' AND g.expires_at <= $2)"),
        // Their rows are locked first: a call that is just being begun takes its grant before this, or finds it gone.
        sql("UPDATE grants SET state = state WHERE issuer_id = $1 AND state = 'open' AND expires_at <= $2"),
        sql("UPDATE orders SET state = 'waiting', state_since = $2 WHERE issuer_id = $1 AND state = 'granted' \
             AND id IN (SELECT order_id FROM grants WHERE state = 'open' AND expires_at <= $2)"),
        sql("DELETE FROM spends WHERE issuer_id = $1 \
             AND grant_id IN (SELECT id FROM grants WHERE state = 'open' AND expires_at <= $2)"),
        sql("UPDATE grants SET state = 'returned' WHERE issuer_id = $1 AND state = 'open' AND expires_at <= $2"),
    ] {
        tx.execute(stmt.bind(issuer.as_str()).bind(now)).await?;
    }
    let unanswered = tx
        .fetch_all(
            sql("SELECT grant_id, limit_name, key, interval_us, deadline FROM spends \
                 WHERE issuer_id = $1 AND deadline <= $2 ORDER BY deadline")
            .bind(issuer.as_str())
            .bind(now),
        )
        .await?;
    for row in unanswered {
        let deadline = row.moment("deadline")?;
        tx.execute(
            sql("UPDATE ledger SET tat = CASE WHEN tat > $4 THEN tat ELSE $4 END + $5 \
                 WHERE issuer_id = $1 AND limit_name = $2 AND key = $3")
            .bind(issuer.as_str())
            .bind(row.text("limit_name")?)
            .bind(row.text("key")?)
            .bind(deadline)
            .bind(row.int("interval_us")?),
        )
        .await?;
        tx.execute(
            sql("DELETE FROM spends WHERE grant_id = $1 AND limit_name = $2")
                .bind(row.text("grant_id")?)
                .bind(row.text("limit_name")?),
        )
        .await?;
    }
    Ok(())
}

/// The ledger row of a limit with its open spends, read as one: an answer that settles meanwhile is seen whole or not at all.
pub async fn bucket(tx: &mut Tx, issuer: &IssuerId, limit_name: &str, key: &str, now: Moment) -> StoreResult<Bucket> {
    let row = tx
        .fetch_optional(
            sql("SELECT l.tat, (SELECT count(*) FROM spends p WHERE p.issuer_id = l.issuer_id \
                   AND p.limit_name = l.limit_name AND p.key = l.key) AS open \
                 FROM ledger l WHERE l.issuer_id = $1 AND l.limit_name = $2 AND l.key = $3")
            .bind(issuer.as_str())
            .bind(limit_name)
            .bind(key),
        )
        .await?;
    Ok(match row {
        Some(row) => Bucket { tat: row.moment("tat")?, open: u32::try_from(row.int("open")?).unwrap_or(u32::MAX) },
        None => Bucket { tat: now, open: 0 },
    })
}

/// When the next order that may not be placed yet becomes eligible.
pub async fn next_eligible(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT min(not_before) AS at FROM orders \
         WHERE issuer_id = $1 AND state = 'waiting' AND not_before > $2 AND not_before < $3")
    .bind(issuer.as_str())
    .bind(now)
    .bind(Moment::NEVER);
    tx.fetch_optional(stmt).await?.map_or(Ok(None), |row| row.opt_moment("at"))
}

/// Orders that wait at an issuer and may be placed, oldest first.
pub async fn waiting(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<Vec<WaitingRow>> {
    let rows = tx
        .fetch_all(
            sql("SELECT o.id, o.lane, o.not_before, o.domain_id, d.tenant_id FROM orders o \
                 JOIN domains d ON d.id = o.domain_id JOIN tenants t ON t.id = d.tenant_id AND t.status <> 'deleted' \
                 WHERE o.issuer_id = $1 AND o.state = 'waiting' AND o.not_before <= $2 ORDER BY o.id LIMIT $3")
            .bind(issuer.as_str())
            .bind(now)
            .bind(WINDOW),
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(WaitingRow {
                waiting: Waiting {
                    order_id: row.parse("id")?,
                    tenant_id: row.parse("tenant_id")?,
                    lane: row.parse("lane")?,
                    not_before: row.moment("not_before")?,
                },
                domain_id: row.parse("domain_id")?,
            })
        })
        .collect()
}

/// One grant to write.
pub struct NewGrant {
    /// Its id.
    pub id: GrantId,
    /// To whom.
    pub order_id: OrderId,
    /// Whom to wake.
    pub domain_id: DomainId,
}

/// The terms under which grants are given.
pub struct Terms<'a> {
    /// The issuer.
    pub issuer: &'a IssuerId,
    /// Spent limit and key.
    pub limit_name: &'a str,
    /// The key of the limit.
    pub key: &'a str,
    /// What one spend costs.
    pub interval: Duration,
    /// Unused after this, a grant goes back.
    pub expires_at: Moment,
    /// A call that was not answered by then never will be.
    pub spend_deadline: Moment,
}

/// Gives the grants whose orders still wait: moves those orders, writes the grants with their open spends and marks the domains
/// due. Rows are locked in the order in which steps lock them, the domain first. Which grants were given.
pub async fn give(tx: &mut Tx, terms: &Terms<'_>, grants: Vec<NewGrant>, now: Moment) -> StoreResult<Vec<NewGrant>> {
    let mut given = Vec::with_capacity(grants.len());
    let mut rest = grants.into_iter().peekable();
    while rest.peek().is_some() {
        let chunk: Vec<NewGrant> = rest.by_ref().take(CHUNK).collect();
        tx.batch(chunk.iter().map(|g| nudge(g.domain_id.as_str(), now)).collect()).await?;
        let moved = tx
            .batch(
                chunk
                    .iter()
                    .map(|g| {
                        sql("UPDATE orders SET state = 'granted', state_since = $2 \
                             WHERE id = $1 AND state = 'waiting' AND not_before <= $2")
                        .bind(g.order_id.as_str())
                        .bind(now)
                    })
                    .collect(),
            )
            .await?;
        let chunk: Vec<NewGrant> = chunk.into_iter().zip(moved).filter(|(_, n)| *n == 1).map(|(g, _)| g).collect();
        tx.batch(chunk.iter().flat_map(|g| written(terms, g, now)).collect()).await?;
        given.extend(chunk);
    }
    tx.execute(
        sql("UPDATE issuers SET granted = granted + $2 WHERE id = $1")
            .bind(terms.issuer.as_str())
            .bind(i64::try_from(given.len()).unwrap_or(i64::MAX)),
    )
    .await?;
    Ok(given)
}

fn written(terms: &Terms<'_>, g: &NewGrant, now: Moment) -> [Stmt; 2] {
    [
        sql("INSERT INTO grants (id, issuer_id, order_id, granted_at, expires_at, state) VALUES ($1, $2, $3, $4, $5, 'open')")
            .bind(g.id.as_str())
            .bind(terms.issuer.as_str())
            .bind(g.order_id.as_str())
            .bind(now)
            .bind(terms.expires_at),
        sql("INSERT INTO spends (grant_id, issuer_id, limit_name, key, interval_us, opened_at, deadline) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)")
        .bind(g.id.as_str())
        .bind(terms.issuer.as_str())
        .bind(terms.limit_name)
        .bind(terms.key)
        .bind(i64::try_from(terms.interval.as_micros()).unwrap_or(i64::MAX))
        .bind(now)
        .bind(terms.spend_deadline),
    ]
}
