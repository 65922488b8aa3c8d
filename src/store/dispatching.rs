//! The dispatcher's writes, and what it asks before: what is over, whether anybody waits, grants, who is set aside.
//!
//! Whom it reads of the queue is in `heads`, what was spent in `ledger`.

use std::collections::BTreeMap;

use super::record::nudge;
use super::{Stmt, Store, StoreResult, Tx, sql};
use crate::model::id::{DomainId, GrantId, IssuerId, OrderId, TenantId};
use crate::model::ledger::Limit;
use crate::model::limits::{Counted, LimitName};
use crate::model::moment::Moment;
use crate::model::order::Lane;

/// How many grants go into one round trip.
const CHUNK: usize = 20;

/// So much of what is over is seen to in one round; the next goes on.
const OVER: i64 = 200;

/// Takes back grants that nobody used in time, settles spends whose calls were never answered, and forgets rows of the ledger
/// that say no more than a missing one. A look at the first of each tells whether there is anything to do.
pub async fn close_overdue(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<()> {
    let stmt = sql("SELECT (SELECT min(expires_at) FROM grants WHERE issuer_id = $1 AND state = 'open') AS grants, \
           (SELECT min(deadline) FROM spends WHERE issuer_id = $1 AND counts = 'order') AS spends, \
           (SELECT min(tat) FROM ledger WHERE issuer_id = $1 AND key <> 'account') AS ledger");
    let Some(first) = tx.fetch_optional(stmt.bind(issuer.as_str())).await? else { return Ok(()) };
    let is_over = |column| first.opt_moment(column).map(|at| at.is_some_and(|at| at <= now));
    if is_over("grants")? {
        take_back(tx, issuer, now).await?;
    }
    if is_over("ledger")? {
        forget_past(tx, issuer, now).await?;
    }
    if is_over("spends")? {
        settle_unanswered(tx, issuer, now).await?;
    }
    Ok(())
}

async fn forget_past(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<()> {
    let past = sql("SELECT limit_name, key FROM ledger \
         WHERE issuer_id = $1 AND tat <= $2 AND key <> 'account' ORDER BY tat LIMIT $3");
    let past = tx.fetch_all(past.bind(issuer.as_str()).bind(now).bind(OVER)).await?;
    for chunk in past.chunks(CHUNK) {
        let mut gone = Vec::with_capacity(chunk.len());
        for row in chunk {
            // Unless something was spent of it just now.
            gone.push(
                sql("DELETE FROM ledger WHERE issuer_id = $1 AND key = $2 AND limit_name = $3 AND tat <= $4")
                    .bind(issuer.as_str())
                    .bind(row.text("key")?)
                    .bind(row.text("limit_name")?)
                    .bind(now),
            );
        }
        tx.batch(gone).await?;
    }
    Ok(())
}

async fn take_back(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<()> {
    let over = sql("SELECT o.domain_id FROM orders o JOIN grants g ON g.order_id = o.id \
         WHERE o.issuer_id = $1 AND o.state = 'granted' AND g.state = 'open' AND g.expires_at <= $2");
    let over = tx.fetch_all(over.bind(issuer.as_str()).bind(now)).await?;
    wake_all(tx, over.iter().map(|row| row.parse("domain_id")).collect::<StoreResult<_>>()?, now).await?;
    for stmt in [
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
    Ok(())
}

/// Makes these domains due. Who locks several does so in the order of their ids.
async fn wake_all(tx: &mut Tx, mut domains: Vec<DomainId>, now: Moment) -> StoreResult<()> {
    domains.sort();
    domains.dedup();
    for chunk in domains.chunks(CHUNK) {
        tx.batch(chunk.iter().map(|id| nudge(id.as_str(), now)).collect()).await?;
    }
    Ok(())
}

async fn settle_unanswered(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<()> {
    let unanswered = tx
        .fetch_all(
            sql("SELECT grant_id, limit_name, key, interval_us, deadline FROM spends \
                 WHERE issuer_id = $1 AND counts = 'order' AND deadline <= $2 ORDER BY deadline LIMIT $3")
            .bind(issuer.as_str())
            .bind(now)
            .bind(OVER),
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

/// When the next order that could not be placed at `then` becomes eligible, or became so since.
pub async fn next_eligible(tx: &mut Tx, issuer: &IssuerId, then: Moment) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT min(not_before) AS at FROM orders \
         WHERE issuer_id = $1 AND state = 'waiting' AND not_before > $2 AND not_before < $3")
    .bind(issuer.as_str())
    .bind(then)
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

/// Orders that were set aside stand in their lines again once their limits can have room for them. Apart from a round's own
/// transaction, which locks domains after orders.
pub async fn line_up(store: &Store, issuer: &IssuerId, now: Moment) -> StoreResult<()> {
    let ripe = sql("SELECT 1 AS n FROM orders \
         WHERE issuer_id = $1 AND state = 'waiting' AND held_by IS NOT NULL AND not_before <= $2 LIMIT 1");
    if store.query(ripe.bind(issuer.as_str()).bind(now)).await?.is_empty() {
        return Ok(());
    }
    let stmt = sql("UPDATE orders SET held_by = NULL \
         WHERE issuer_id = $1 AND state = 'waiting' AND held_by IS NOT NULL AND not_before <= $2");
    store.execute(stmt.bind(issuer.as_str()).bind(now)).await.map(|_| ())
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
    // The second condition follows from the first, and says to the database which index it may use.
    let stmt = sql("SELECT 1 AS n FROM orders \
         WHERE issuer_id = $1 AND state = 'granted' AND state NOT IN ('issued', 'failed', 'lost') LIMIT 1");
    let stmt = stmt.bind(issuer.as_str());
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
/// due. Rows are locked in the order in which steps lock them, the domains first. Which grants were given.
pub async fn give(tx: &mut Tx, terms: &Terms<'_>, grants: Vec<NewGrant>, now: Moment) -> StoreResult<Vec<NewGrant>> {
    wake_all(tx, grants.iter().map(|g| g.domain_id.clone()).collect(), now).await?;
    let mut given = Vec::with_capacity(grants.len());
    let mut rest = grants.into_iter().peekable();
    while rest.peek().is_some() {
        let chunk: Vec<NewGrant> = rest.by_ref().take(CHUNK).collect();
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
