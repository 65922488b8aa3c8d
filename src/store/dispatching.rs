//! The dispatcher's reads and writes: waiting orders, the ledger with its open spends, grants.

use std::collections::BTreeMap;

use super::record::nudge;
use super::{Row, Stmt, StoreResult, Tx, sql};
use crate::model::dispatch::Waiting;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, GrantId, IssuerId, OrderId, TenantId};
use crate::model::ledger::{Bucket, Limit, Spent};
use crate::model::limits::{Counted, LimitName};
use crate::model::moment::Moment;
use crate::model::order::Lane;

/// How many grants go into one round trip.
const CHUNK: usize = 20;

/// An order that waits, with the domain to wake.
pub struct WaitingRow {
    /// What `dispatch` decides by.
    pub waiting: Waiting,
    /// Whose order it is.
    pub domain_id: DomainId,
}

/// What `dispatch` decides by, from a row that has `id`, `tenant_id`, `lane`, `not_before`, `served` and `hostname`.
pub(super) fn waiting_of(row: &Row) -> StoreResult<Waiting> {
    Ok(Waiting {
        order_id: row.parse("id")?,
        tenant_id: row.parse("tenant_id")?,
        lane: row.parse("lane")?,
        not_before: row.moment("not_before")?,
        served: u64::try_from(row.int("served")?).unwrap_or(0),
        name: Hostname::trusted(&row.text("hostname")?),
    })
}

/// Takes back grants that nobody used in time, settles spends whose calls were never answered, and forgets rows of the ledger
/// that say no more than a missing one.
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
        sql("DELETE FROM ledger WHERE issuer_id = $1 AND tat <= $2 AND key <> 'account'"),
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
            sql("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals) VALUES ($1, $2, $3, $4, 0) \
                 ON CONFLICT (issuer_id, limit_name, key) DO UPDATE SET \
                   tat = CASE WHEN ledger.tat > $5 THEN ledger.tat ELSE $5 END + excluded.tat - $5")
            .bind(issuer.as_str())
            .bind(row.text("limit_name")?)
            .bind(row.text("key")?)
            .bind(deadline + std::time::Duration::from_micros(u64::try_from(row.int("interval_us")?).unwrap_or(0)))
            .bind(deadline),
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

/// The ledger with its open spends, read as one: an answer that settles meanwhile is seen whole or not at all. Rows that lie in
/// the past say no more than missing ones.
pub async fn spent(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<Spent> {
    let stmt = sql("SELECT limit_name, key, tat, 0 AS open FROM ledger WHERE issuer_id = $1 AND tat > $2 \
         UNION ALL SELECT limit_name, key, 0 AS tat, count(*) AS open FROM spends WHERE issuer_id = $1 GROUP BY limit_name, key")
    .bind(issuer.as_str())
    .bind(now);
    spent_in(&tx.fetch_all(stmt).await?)
}

/// The rows of two keys, with their open spends.
pub async fn spent_of(tx: &mut Tx, issuer: &IssuerId, [one, other]: &[&str; 2]) -> StoreResult<Spent> {
    let stmt = sql("SELECT limit_name, key, tat, 0 AS open FROM ledger WHERE issuer_id = $1 AND key IN ($2, $3) \
         UNION ALL SELECT limit_name, key, 0 AS tat, count(*) AS open FROM spends WHERE issuer_id = $1 AND key IN ($2, $3) \
         GROUP BY limit_name, key")
    .bind(issuer.as_str())
    .bind(*one)
    .bind(*other);
    spent_in(&tx.fetch_all(stmt).await?)
}

fn spent_in(rows: &[Row]) -> StoreResult<Spent> {
    let mut spent = Spent::new();
    for row in rows {
        let bucket: &mut Bucket = spent.entry((row.parse("limit_name")?, row.text("key")?)).or_default();
        bucket.tat = bucket.tat.max(row.moment("tat")?);
        bucket.open = bucket.open.saturating_add(u32::try_from(row.int("open")?).unwrap_or(u32::MAX));
    }
    Ok(spent)
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

/// Whether any order waits at an issuer and may be placed.
pub async fn anybody(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<bool> {
    let stmt = sql("SELECT 1 AS n FROM orders WHERE issuer_id = $1 AND state = 'waiting' AND not_before <= $2 LIMIT 1")
        .bind(issuer.as_str())
        .bind(now);
    Ok(tx.fetch_optional(stmt).await?.is_some())
}

/// The heads of the queue: of each lane as many orders that may be placed, in the order in which its tenants take turns, so that
/// a round reads what it can grant and not the whole queue. Sorted by age.
pub async fn heads(tx: &mut Tx, issuer: &IssuerId, now: Moment, of_lane: u32) -> StoreResult<Vec<WaitingRow>> {
    let stmt = sql("SELECT id, lane, not_before, domain_id, tenant_id, hostname, served FROM ( \
           SELECT q.*, ROW_NUMBER() OVER (PARTITION BY q.lane ORDER BY q.nth, q.served, q.id) AS place FROM ( \
             SELECT o.id, o.lane, o.not_before, o.domain_id, d.tenant_id, d.hostname, COALESCE(u.served, 0) AS served, \
               ROW_NUMBER() OVER (PARTITION BY o.lane, d.tenant_id ORDER BY o.id) AS nth \
             FROM orders o JOIN domains d ON d.id = o.domain_id \
             JOIN tenants t ON t.id = d.tenant_id AND t.status <> 'deleted' \
             LEFT JOIN turns u ON u.issuer_id = o.issuer_id AND u.lane = o.lane AND u.tenant_id = d.tenant_id \
             WHERE o.issuer_id = $1 AND o.state = 'waiting' AND o.not_before <= $2) q) p \
         WHERE place <= $3 ORDER BY id")
    .bind(issuer.as_str())
    .bind(now)
    .bind(i64::from(of_lane));
    let rows = tx.fetch_all(stmt).await?;
    rows.iter().map(|row| Ok(WaitingRow { waiting: waiting_of(row)?, domain_id: row.parse("domain_id")? })).collect()
}

/// Orders whose own limits have no room wait until they have, out of the way of all others.
pub async fn hold(tx: &mut Tx, held: &[(OrderId, LimitName, Moment)]) -> StoreResult<()> {
    for chunk in held.chunks(CHUNK) {
        let one = |(order, limit, until): &(OrderId, LimitName, Moment)| {
            sql("UPDATE orders SET not_before = $2, held_by = $3 WHERE id = $1 AND state = 'waiting'")
                .bind(order.as_str())
                .bind(*until)
                .bind(limit.as_str())
        };
        tx.batch(chunk.iter().map(one).collect()).await?;
    }
    Ok(())
}

/// Whether a call is on its way at an issuer, or may begin at any moment.
pub async fn is_asking(tx: &mut Tx, issuer: &IssuerId) -> StoreResult<bool> {
    let stmt = sql("SELECT 1 AS n FROM orders WHERE issuer_id = $1 AND state = 'granted' LIMIT 1").bind(issuer.as_str());
    Ok(tx.fetch_optional(stmt).await?.is_some())
}

/// One grant to write.
pub struct NewGrant {
    /// Its id.
    pub id: GrantId,
    /// To whom.
    pub order_id: OrderId,
    /// Whom to wake.
    pub domain_id: DomainId,
    /// Whose turn it was.
    pub tenant_id: TenantId,
    /// In which lane.
    pub lane: Lane,
    /// What it may spend: one of each.
    pub spends: Vec<(LimitName, Limit, String)>,
}

/// The terms under which grants are given.
pub struct Terms<'a> {
    /// The issuer.
    pub issuer: &'a IssuerId,
    /// Grants given so far.
    pub turn: u64,
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
                        sql("UPDATE orders SET state = 'granted', state_since = $2, held_by = NULL \
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
    take_turns(tx, terms, &given).await?;
    tx.execute(
        sql("UPDATE issuers SET granted = granted + $2 WHERE id = $1")
            .bind(terms.issuer.as_str())
            .bind(i64::try_from(given.len()).unwrap_or(i64::MAX)),
    )
    .await?;
    Ok(given)
}

fn written(terms: &Terms<'_>, g: &NewGrant, now: Moment) -> Vec<Stmt> {
    let grant = sql(
        "INSERT INTO grants (id, issuer_id, order_id, granted_at, expires_at, state) VALUES ($1, $2, $3, $4, $5, 'open')",
    )
    .bind(g.id.as_str())
    .bind(terms.issuer.as_str())
    .bind(g.order_id.as_str())
    .bind(now)
    .bind(terms.expires_at);
    let spend = |(limit, numbers, key): &(LimitName, Limit, String)| {
        // What the order's outcome decides has no deadline: every order ends, and settles it.
        let deadline = if limit.counts() == Counted::Order { terms.spend_deadline } else { Moment::NEVER };
        sql("INSERT INTO spends (grant_id, issuer_id, limit_name, key, counts, interval_us, opened_at, deadline) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")
        .bind(g.id.as_str())
        .bind(terms.issuer.as_str())
        .bind(limit.as_str())
        .bind(key.as_str())
        .bind(limit.counts().as_str())
        .bind(i64::try_from(numbers.interval().as_micros()).unwrap_or(i64::MAX))
        .bind(now)
        .bind(deadline)
    };
    std::iter::once(grant).chain(g.spends.iter().map(spend)).collect()
}

/// Remembers in which turn each tenant was served last.
async fn take_turns(tx: &mut Tx, terms: &Terms<'_>, given: &[NewGrant]) -> StoreResult<()> {
    let mut last: BTreeMap<(Lane, &TenantId), u64> = BTreeMap::new();
    for (g, turn) in given.iter().zip(terms.turn + 1..) {
        last.insert((g.lane, &g.tenant_id), turn);
    }
    let one = |((lane, tenant), turn): (&(Lane, &TenantId), &u64)| {
        sql("INSERT INTO turns (issuer_id, lane, tenant_id, served) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (issuer_id, lane, tenant_id) DO UPDATE SET served = excluded.served")
        .bind(terms.issuer.as_str())
        .bind(lane.as_str())
        .bind(tenant.as_str())
        .bind(i64::try_from(*turn).unwrap_or(i64::MAX))
    };
    let stmts: Vec<Stmt> = last.iter().map(one).collect();
    let mut rest = stmts.into_iter().peekable();
    while rest.peek().is_some() {
        tx.batch(rest.by_ref().take(CHUNK).collect()).await?;
    }
    Ok(())
}
