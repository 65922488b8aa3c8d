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

/// Orders that wait at an issuer, oldest first.
pub async fn waiting(tx: &mut Tx, issuer: &IssuerId) -> StoreResult<Vec<WaitingRow>> {
    let rows = tx
        .fetch_all(
            sql("SELECT o.id, o.lane, o.not_before, o.domain_id, d.tenant_id FROM orders o \
                 JOIN domains d ON d.id = o.domain_id \
                 WHERE o.issuer_id = $1 AND o.state = 'waiting' AND o.not_before < $2 ORDER BY o.id LIMIT $3")
            .bind(issuer.as_str())
            .bind(Moment::NEVER)
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

/// Writes grants with their open spends, moves the orders and marks the domains due.
pub async fn give(tx: &mut Tx, terms: &Terms<'_>, grants: &[NewGrant], now: Moment) -> StoreResult<()> {
    for chunk in grants.chunks(CHUNK) {
        let mut stmts: Vec<Stmt> = Vec::with_capacity(chunk.len() * 4);
        for g in chunk {
            stmts.push(
                sql("INSERT INTO grants (id, issuer_id, order_id, granted_at, expires_at, state) \
                     VALUES ($1, $2, $3, $4, $5, 'open')")
                .bind(g.id.as_str())
                .bind(terms.issuer.as_str())
                .bind(g.order_id.as_str())
                .bind(now)
                .bind(terms.expires_at),
            );
            stmts.push(
                sql("INSERT INTO spends (grant_id, issuer_id, limit_name, key, interval_us, opened_at, deadline) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7)")
                .bind(g.id.as_str())
                .bind(terms.issuer.as_str())
                .bind(terms.limit_name)
                .bind(terms.key)
                .bind(i64::try_from(terms.interval.as_micros()).unwrap_or(i64::MAX))
                .bind(now)
                .bind(terms.spend_deadline),
            );
            stmts.push(
                sql("UPDATE orders SET state = 'granted', state_since = $2 WHERE id = $1 AND state = 'waiting'")
                    .bind(g.order_id.as_str())
                    .bind(now),
            );
            stmts.push(nudge(g.domain_id.as_str(), now));
        }
        tx.batch(stmts).await?;
    }
    tx.execute(
        sql("UPDATE issuers SET granted = granted + $2 WHERE id = $1")
            .bind(terms.issuer.as_str())
            .bind(i64::try_from(grants.len()).unwrap_or(i64::MAX)),
    )
    .await
    .map(|_| ())
}
