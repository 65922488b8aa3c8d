//! What a restored database must be told: that time has passed and others have acted on what it does not know.

use super::{StoreResult, Tx, sql};
use crate::model::id::IssuerId;
use crate::model::moment::Moment;

/// Begins a new epoch of the feed, in which edges add what they are told to what they have; false when the epoch at hand is
/// not older. Event positions go on above all that were ever given.
pub async fn begin_epoch(tx: &mut Tx, epoch: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE feed SET epoch = $1, recovering_since = $1, \
           last_position = CASE WHEN last_position > $1 THEN last_position ELSE $1 END WHERE id = 1 AND epoch < $1")
    .bind(epoch);
    Ok(tx.execute(stmt).await? == 1)
}

/// Ends the recovery with an epoch of its own, so that every edge takes exactly what is stored; false when none was begun.
pub async fn end_recovery(tx: &mut Tx, epoch: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE feed SET epoch = $1, recovering_since = NULL \
         WHERE id = 1 AND epoch < $1 AND recovering_since IS NOT NULL")
    .bind(epoch);
    Ok(tx.execute(stmt).await? == 1)
}

/// Since when the feed adds only.
pub async fn recovering_since(tx: &mut Tx) -> StoreResult<Option<Moment>> {
    let row = tx.fetch_optional(sql("SELECT recovering_since FROM feed WHERE id = 1")).await?;
    row.map_or(Ok(None), |row| row.opt_moment("recovering_since"))
}

/// Grants that were open when the copy was made may have been used since: they are used, and their orders wait for others.
pub async fn spend_open_grants(tx: &mut Tx, now: Moment) -> StoreResult<u64> {
    let used = tx.execute(sql("UPDATE grants SET state = 'used' WHERE state = 'open'")).await?;
    tx.execute(sql("DELETE FROM spends")).await?;
    tx.execute(sql("UPDATE orders SET state = 'waiting', state_since = $1 WHERE state = 'granted'").bind(now)).await?;
    Ok(used)
}

/// Moves a limit's row to where it is when all of it was spent just now.
pub async fn spend_limit(tx: &mut Tx, issuer: &IssuerId, limit_name: &str, tat: Moment) -> StoreResult<u64> {
    let stmt = sql("UPDATE ledger SET tat = $3 WHERE issuer_id = $1 AND limit_name = $2 AND tat < $3")
        .bind(issuer.as_str())
        .bind(limit_name)
        .bind(tat);
    tx.execute(stmt).await
}

/// Takes back open join tokens and links: they may have been used, or taken back, since. How many.
pub async fn revoke_invitations(tx: &mut Tx, now: Moment) -> StoreResult<u64> {
    let tokens =
        sql("UPDATE tokens SET revoked_at = $1 WHERE scope = 'edge_join' AND revoked_at IS NULL AND used_at IS NULL");
    let links = sql("UPDATE links SET revoked_at = $1 WHERE revoked_at IS NULL AND used_at IS NULL AND expires_at > $1");
    Ok(tx.execute(tokens.bind(now)).await? + tx.execute(links.bind(now)).await?)
}

/// Ends every session: somebody may have signed out since.
pub async fn end_sessions(tx: &mut Tx, now: Moment) -> StoreResult<u64> {
    tx.execute(sql("UPDATE sessions SET ended_at = $1 WHERE ended_at IS NULL").bind(now)).await
}

/// The event that a database was restored, or that its recovery ended.
pub fn event(id: &str, kind: &'static str, detail: &serde_json::Value, now: Moment) -> super::Stmt {
    sql("INSERT INTO events (id, position, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
         VALUES ($1, NULL, NULL, NULL, NULL, $2, 'command line', 'asked for', $3, $4)")
    .bind(id)
    .bind(kind)
    .bind(detail.to_string())
    .bind(now)
}
