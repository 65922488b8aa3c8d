//! Orders of imports that are paused or given up: none is granted before the import goes on.

use std::time::Duration;

use super::{StoreResult, Tx, issuers, sql};
use crate::model::bulk::Hold;
use crate::model::id::ImportId;
use crate::model::moment::Moment;
use crate::model::standing::Standing;

/// Takes out of the queue what an import's claims have there, between two rounds of the dispatcher: both move many orders, each in
/// an order of its own. What is granted already goes back with the claim's next step; what the CA knows of goes its way. Each
/// claim says from now on what holds it; one that is in hand may be about to say what it read before, and is due again after that.
pub async fn hold(tx: &mut Tx, id: &ImportId, by: Hold, now: Moment) -> StoreResult<u64> {
    for issuer in issuers::ids(tx).await? {
        issuers::lock(tx, &issuer).await?;
    }
    let stands = Standing::of_hold(by);
    let say = sql("UPDATE domains SET standing_since = $4, standing = $2, acts = $3 \
         WHERE import_id = $1 AND lane = 'bulk' AND claim = 'queued' AND standing <> $2 AND standing IN \
           ('order_waiting', 'order_retried', 'import_paused', 'import_paused_by_operator')")
    .bind(id.as_str())
    .bind(stands.code())
    .bind(stands.acts().as_str())
    .bind(now);
    tx.execute(say.long()).await?;
    let in_hand = sql("UPDATE domains SET nudged = generation \
         WHERE import_id = $1 AND lane = 'bulk' AND claim IN ('awaiting_dns', 'queued') AND lease_until > $2")
    .bind(id.as_str())
    .bind(now);
    tx.execute(in_hand.long()).await?;
    let stmt = sql(
        "UPDATE orders SET not_before = $2, held_by = NULL WHERE state = 'waiting' AND lane = 'bulk' AND not_before < $2 \
         AND domain_id IN (SELECT d.id FROM domains d WHERE d.import_id = $1 AND d.lane = 'bulk' AND d.claim = 'queued')",
    )
    .bind(id.as_str())
    .bind(Moment::NEVER);
    tx.execute(stmt.long()).await
}

/// Has the claims looked at anew whose orders were taken out, one after the other so far apart: what passes joins the queue again.
/// A claim that is in hand may be about to have its order taken out by what it read before: it is due again after that.
pub async fn let_go(tx: &mut Tx, id: &ImportId, apart: Duration, now: Moment) -> StoreResult<u64> {
    let (first, again) = (Standing::OrderWaiting, Standing::OrderRetried);
    let stands = sql("UPDATE domains SET standing = CASE WHEN failures > 0 THEN $2 ELSE $3 END, \
           acts = CASE WHEN failures > 0 THEN $4 ELSE $5 END, standing_since = $6 \
         WHERE import_id = $1 AND lane = 'bulk' AND claim = 'queued' \
           AND standing IN ('import_paused', 'import_paused_by_operator')")
    .bind(id.as_str())
    .bind(again.code())
    .bind(first.code())
    .bind(again.acts().as_str())
    .bind(first.acts().as_str())
    .bind(now);
    tx.execute(stands.long()).await?;
    let apart = i64::try_from(apart.as_micros()).unwrap_or(i64::MAX);
    let stmt = sql("UPDATE domains SET check_asked_at = $2, check_asked_by = 'import', nudged = generation, \
           due_at = $2 + held.n * $3 \
         FROM (SELECT d.id, row_number() OVER (ORDER BY d.id) AS n FROM domains d \
           WHERE d.import_id = $1 AND d.lane = 'bulk' AND d.claim = 'queued' AND (d.lease_until > $2 \
             OR EXISTS (SELECT 1 FROM orders o WHERE o.domain_id = d.id AND o.state = 'waiting' AND o.not_before = $4))) held \
         WHERE domains.id = held.id")
    .bind(id.as_str())
    .bind(now)
    .bind(apart)
    .bind(Moment::NEVER);
    tx.execute(stmt.long()).await
}
