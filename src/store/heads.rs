//! The heads of the queue: whom a round of the dispatcher may grant.
//!
//! Each lane has a line for each tenant that waits in it. The lines are found by skipping through an index from tenant to
//! tenant, and of each its first order, which in the lane of renewals is the one whose certificate ends first; so a round costs
//! what it grants and how many tenants wait, however long their lines are.
//! Orders that were set aside for a limit of their own, or are held back until their checks pass, stand in no line.

use std::collections::{BTreeMap, VecDeque};

use super::{Row, StoreResult, Tx, sql};
use crate::model::dispatch::{Waiting, nearness};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, IssuerId};
use crate::model::moment::Moment;
use crate::model::order::Lane;

/// An order that waits, with the domain to wake.
pub struct WaitingRow {
    /// What `dispatch` decides by.
    pub waiting: Waiting,
    /// Whose order it is.
    pub domain_id: DomainId,
}

/// What `dispatch` decides by, from a row that has `id`, `tenant_id`, `lane`, `not_before`, `ends_at`, `served` and `hostname`.
pub(super) fn waiting_of(row: &Row) -> StoreResult<Waiting> {
    Ok(Waiting {
        order_id: row.parse("id")?,
        tenant_id: row.parse("tenant_id")?,
        lane: row.parse("lane")?,
        not_before: row.moment("not_before")?,
        ends: row.moment("ends_at")?,
        served: u64::try_from(row.int("served")?).unwrap_or(0),
        name: Hostname::trusted(&row.text("hostname")?),
    })
}

fn head_of(row: &Row) -> StoreResult<WaitingRow> {
    Ok(WaitingRow { waiting: waiting_of(row)?, domain_id: row.parse("domain_id")? })
}

/// Of each lane at least so many orders that may be placed, in the order in which its tenants take turns; all, where there are
/// not so many. Sorted by age.
pub async fn heads(tx: &mut Tx, issuer: &IssuerId, now: Moment, of_lane: u32) -> StoreResult<Vec<WaitingRow>> {
    let mut all = Vec::new();
    for lane in Lane::ALL {
        all.append(&mut heads_of(tx, issuer, *lane, now, usize::try_from(of_lane).unwrap_or(usize::MAX)).await?);
    }
    all.sort_by(|a, b| a.waiting.order_id.cmp(&b.waiting.order_id));
    Ok(all)
}

/// Turn by turn: whoever was served goes behind all whose orders end on the same day, and stays before those of later days.
async fn heads_of(tx: &mut Tx, issuer: &IssuerId, lane: Lane, now: Moment, most: usize) -> StoreResult<Vec<WaitingRow>> {
    let firsts = firsts(tx, issuer, lane, now, most).await?;
    let place = |of: &Waiting, served: u64| (nearness(of.ends, now), served, of.ends, of.order_id.clone());
    let mut lines: BTreeMap<_, Line> =
        firsts.into_iter().map(|row| (place(&row.waiting, row.waiting.served), Line::beginning_with(row))).collect();
    let mut heads = Vec::new();
    // Later than all that ever were.
    let mut turn = u64::MAX / 2;
    while heads.len() < most
        && let Some(((_, served, ..), mut line)) = lines.pop_first()
    {
        if let Some(row) = line.read.pop_front() {
            heads.push(row);
            turn += 1;
            let next = line.read.front().map_or(&line.last, |next| &next.waiting);
            lines.insert(place(next, turn), line);
        } else if !line.whole {
            let turns = (most - heads.len()).div_ceil(lines.len() + 1);
            line.read = more(tx, issuer, now, &line.last, turns).await?.into();
            line.whole = line.read.len() < turns;
            if let (Some(next), Some(last)) = (line.read.front(), line.read.back()) {
                line.last = last.waiting.clone();
                lines.insert(place(&next.waiting, served), line);
            }
        }
    }
    Ok(heads)
}

/// What was read of one tenant's orders in a lane.
struct Line {
    /// Those that had no turn yet.
    read: VecDeque<WaitingRow>,
    /// The last that was read; what follows has no place before it.
    last: Waiting,
    /// Nothing follows.
    whole: bool,
}

impl Line {
    fn beginning_with(row: WaitingRow) -> Self {
        Line { last: row.waiting.clone(), read: VecDeque::from([row]), whole: false }
    }
}

/// The first orders of the lines of the tenants whose turns come first: by the day on which what they are to replace ends (see
/// `model::dispatch`, `nearness`), then by who was served longest ago. SQLite takes tables that are cross-joined in the order in
/// which they stand, and else goes through all orders for these few.
async fn firsts(tx: &mut Tx, issuer: &IssuerId, lane: Lane, now: Moment, most: usize) -> StoreResult<Vec<WaitingRow>> {
    let stmt = sql("WITH RECURSIVE lines (tenant_id) AS ( \
           SELECT min(o.tenant_id) FROM orders o WHERE o.issuer_id = $1 AND o.lane = $2 AND o.tenant_id >= '' \
             AND o.state = 'waiting' AND o.held_by IS NULL AND o.not_before < 9223372036854775807 \
           UNION ALL \
           SELECT (SELECT min(o.tenant_id) FROM orders o WHERE o.issuer_id = $1 AND o.lane = $2 AND o.tenant_id > l.tenant_id \
             AND o.state = 'waiting' AND o.held_by IS NULL AND o.not_before < 9223372036854775807) \
           FROM lines l WHERE l.tenant_id IS NOT NULL \
         ), firsts AS MATERIALIZED ( \
           SELECT l.tenant_id, COALESCE(u.served, 0) AS served, ( \
             SELECT o.id FROM orders o WHERE o.issuer_id = $1 AND o.lane = $2 AND o.tenant_id = l.tenant_id \
               AND o.state = 'waiting' AND o.held_by IS NULL AND o.not_before < 9223372036854775807 AND o.not_before <= $3 \
             ORDER BY o.ends_at, o.id LIMIT 1) AS id, ( \
             SELECT min(o.ends_at) FROM orders o WHERE o.issuer_id = $1 AND o.lane = $2 AND o.tenant_id = l.tenant_id \
               AND o.state = 'waiting' AND o.held_by IS NULL AND o.not_before < 9223372036854775807 AND o.not_before <= $3 \
           ) AS ends_at \
           FROM lines l JOIN tenants t ON t.id = l.tenant_id AND t.status <> 'deleted' \
             LEFT JOIN turns u ON u.issuer_id = $1 AND u.lane = $2 AND u.tenant_id = l.tenant_id \
         ) \
         SELECT f.id, o.lane, o.not_before, f.ends_at, o.domain_id, f.tenant_id, d.hostname, f.served \
         FROM (SELECT id, tenant_id, served, ends_at FROM firsts WHERE id IS NOT NULL \
           ORDER BY CASE WHEN ends_at > $3 + 604800000000 THEN 8 WHEN ends_at <= $3 THEN 0 \
             ELSE (ends_at - $3 + 86399999999) / 86400000000 END, served, ends_at, id LIMIT $4) f \
           CROSS JOIN orders o CROSS JOIN domains d WHERE o.id = f.id AND d.id = o.domain_id")
    .bind(issuer.as_str())
    .bind(lane.as_str())
    .bind(now)
    .bind(i64::try_from(most).unwrap_or(i64::MAX));
    tx.fetch_all(stmt).await?.iter().map(head_of).collect()
}

/// The next orders of one line.
async fn more(tx: &mut Tx, issuer: &IssuerId, now: Moment, after: &Waiting, most: usize) -> StoreResult<Vec<WaitingRow>> {
    let stmt =
        sql("SELECT o.id, o.lane, o.not_before, o.ends_at, o.domain_id, o.tenant_id, d.hostname, COALESCE(u.served, 0) AS served \
         FROM orders o JOIN domains d ON d.id = o.domain_id \
           LEFT JOIN turns u ON u.issuer_id = o.issuer_id AND u.lane = o.lane AND u.tenant_id = o.tenant_id \
         WHERE o.issuer_id = $1 AND o.lane = $2 AND o.tenant_id = $3 AND (o.ends_at, o.id) > ($7, $4) \
           AND o.state = 'waiting' AND o.held_by IS NULL AND o.not_before < 9223372036854775807 AND o.not_before <= $5 \
         ORDER BY o.ends_at, o.id LIMIT $6")
        .bind(issuer.as_str())
        .bind(after.lane.as_str())
        .bind(after.tenant_id.as_str())
        .bind(after.order_id.as_str())
        .bind(now)
        .bind(i64::try_from(most).unwrap_or(i64::MAX))
        .bind(after.ends);
    tx.fetch_all(stmt).await?.iter().map(head_of).collect()
}
