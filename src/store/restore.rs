//! What a restored database must be told: that time has passed and others have acted on what it does not know.

use super::{Store, StoreResult, Tx, sql};
use crate::model::feed::HostAction;
use crate::model::feed_apply::Remembered;
use crate::model::id::{DomainId, EdgeId, IssuerId};
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

/// What was counted against a name (that nothing ties it, that another's record is gone, that it leads elsewhere) counts from now on only:
/// what was seen of it since the copy was made is not known, and may have ended the count.
pub async fn begin_clocks_anew(tx: &mut Tx) -> StoreResult<()> {
    for stmt in [
        sql("UPDATE domains SET lost_for_us = 0, counted_until = NULL WHERE lost_for_us <> 0 OR counted_until IS NOT NULL"),
        sql("UPDATE holdings SET successor_counted = 0, successor_seen_at = NULL WHERE successor_id IS NOT NULL"),
        sql("UPDATE holdings SET looks_off = 0, first_off_at = NULL WHERE looks_off <> 0"),
    ] {
        tx.execute(stmt).await?;
    }
    Ok(())
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

/// Keeps what an edge remembers of a host, where it is newer than what is stored and than what others remembered.
pub fn recollect(edge: &EdgeId, r: &Remembered, now: Moment) -> super::Stmt {
    let action = match r.host.action {
        HostAction::Serve => "serve",
        HostAction::Gone => "gone",
    };
    sql("INSERT INTO recollections (hostname, tenant_id, term, action, version, certificate_id, serial, not_after, edge_id, told_at) \
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 \
         WHERE NOT EXISTS (SELECT 1 FROM routes r WHERE r.hostname = $1 AND r.version >= $5) \
         ON CONFLICT (hostname) DO UPDATE SET tenant_id = excluded.tenant_id, term = excluded.term, action = excluded.action, \
           version = excluded.version, certificate_id = excluded.certificate_id, serial = excluded.serial, \
           not_after = excluded.not_after, edge_id = excluded.edge_id, told_at = excluded.told_at, settled_at = NULL, outcome = NULL \
         WHERE recollections.version < excluded.version")
    .bind(r.host.hostname.as_str())
    .bind(r.host.tenant_id.as_str())
    .bind(r.host.term)
    .bind(action)
    .bind(r.host.version)
    .bind(r.host.certificate_id.as_ref().map(|c| c.as_str()))
    .bind(r.serial.as_deref())
    .bind(r.not_after)
    .bind(edge.as_str())
    .bind(now)
}

/// What edges remember of a name, beside what is stored of it.
#[derive(Clone, Debug)]
pub struct RecollectionRow {
    /// The name.
    pub hostname: String,
    /// Whether edges were told to serve it, or not to any more.
    pub serves: bool,
    /// The version they were told.
    pub version: i64,
    /// The certificate's end, where the store does not have it.
    pub unknown_until: Option<Moment>,
    /// The claim of the same tenant on the name that stands, of before the copy.
    pub claim: Option<DomainId>,
    /// The claim of another tenant that holds the name here, and lost it after the copy was made.
    pub overtaken: Option<DomainId>,
    /// Whether it is a tenant's canonical host, which is served here: that tenant left after the copy was made.
    pub canonical: bool,
}

/// What edges remember and was not settled yet; nothing before every edge that counts (heard of since that moment) took the epoch, and with
/// it told: one that lags may have heard of a removal, and not that it was undone. In a recovery that began after `begun_since` those are
/// waited for, too, that were not heard of yet.
pub async fn unsettled(
    store: &Store,
    heard_since: Moment,
    begun_since: Moment,
    limit: i64,
) -> StoreResult<Vec<RecollectionRow>> {
    let stmt = sql("SELECT c.hostname, c.action, c.version, \
           CASE WHEN c.certificate_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM certificates k WHERE k.id = c.certificate_id) \
             THEN c.not_after END AS unknown_until, \
           (SELECT d.id FROM domains d WHERE d.tenant_id = c.tenant_id AND d.hostname = c.hostname \
             AND d.claim IN ('awaiting_dns', 'queued', 'live', 'expired') AND d.created_at < f.recovering_since) AS claim_id, \
           (SELECT h.domain_id FROM holdings h WHERE h.hostname = c.hostname AND h.state = 'held' \
             AND h.tenant_id <> c.tenant_id AND h.term < c.term AND h.since < f.recovering_since) AS overtaken_id, \
           (SELECT r.hostname FROM routes r WHERE r.hostname = c.hostname AND r.tenant_id = c.tenant_id \
             AND r.domain_id IS NULL AND r.action = 'serve') AS canonical \
         FROM recollections c JOIN feed f ON f.id = 1 WHERE c.settled_at IS NULL \
           AND NOT EXISTS (SELECT 1 FROM edges e WHERE e.status = 'active' AND e.lost_at IS NULL AND e.cursor_epoch <> f.epoch \
             AND (e.heartbeat_at > $2 OR f.recovering_since > $3)) \
         ORDER BY c.hostname LIMIT $1");
    store
        .query(stmt.bind(limit).bind(heard_since).bind(begun_since))
        .await?
        .iter()
        .map(|row| {
            Ok(RecollectionRow {
                hostname: row.text("hostname")?,
                serves: row.text("action")? == "serve",
                version: row.int("version")?,
                unknown_until: row.opt_moment("unknown_until")?,
                claim: row.opt_parse("claim_id")?,
                overtaken: row.opt_parse("overtaken_id")?,
                canonical: row.opt_text("canonical")?.is_some(),
            })
        })
        .collect()
}

/// The store is in line with it; nothing where edges remembered more meanwhile.
pub fn settled(row: &RecollectionRow, outcome: &str, now: Moment) -> super::Stmt {
    sql("UPDATE recollections SET settled_at = $3, outcome = $4 WHERE hostname = $1 AND version = $2")
        .bind(row.hostname.as_str())
        .bind(row.version)
        .bind(now)
        .bind(outcome)
}

/// The name is not served here any more, without a word to edges that serve it for somebody else by now: they were told later, and
/// what is told now would be later still.
pub fn unroute(hostname: &str, claim: &DomainId) -> super::Stmt {
    sql("UPDATE routes SET action = 'gone', certificate_id = NULL, redirect_to = NULL, version = version + 1 \
         WHERE hostname = $1 AND domain_id = $2 AND action = 'serve'")
    .bind(hostname)
    .bind(claim.as_str())
}

/// What was restored and what edges remember, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Names that edges serve and the store does not: they are served no longer after the end.
    pub unknown: i64,
    /// Names with a certificate that only edges have: it is replaced by the stored one, or by a new one.
    pub newer: i64,
    /// Names that were let go of after the copy was made, and were again.
    pub let_go: i64,
    /// Tenants that left after the copy was made, and are here again.
    pub left: i64,
    /// What edges remember and was not settled yet.
    pub unsettled: i64,
    /// Edges that have taken the new epoch.
    pub edges: i64,
    /// Edges that have not.
    pub edges_behind: i64,
}

/// What ending the recovery would change.
pub async fn ahead(tx: &mut Tx) -> StoreResult<Ahead> {
    let stmt = sql("SELECT \
           (SELECT COUNT(*) FROM recollections WHERE outcome = 'unknown') AS unknown, \
           (SELECT COUNT(*) FROM recollections WHERE outcome = 'newer') AS newer, \
           (SELECT COUNT(*) FROM recollections WHERE outcome = 'let_go') AS let_go, \
           (SELECT COUNT(*) FROM recollections WHERE outcome = 'left') AS gone, \
           (SELECT COUNT(*) FROM recollections WHERE settled_at IS NULL) AS unsettled, \
           (SELECT COUNT(*) FROM edges e WHERE e.status = 'active' AND e.cursor_epoch = (SELECT epoch FROM feed WHERE id = 1)) AS edges, \
           (SELECT COUNT(*) FROM edges e WHERE e.status = 'active' AND e.cursor_epoch <> (SELECT epoch FROM feed WHERE id = 1)) AS behind");
    let Some(row) = tx.fetch_optional(stmt).await? else { return Ok(Ahead::default()) };
    Ok(Ahead {
        unknown: row.int("unknown")?,
        newer: row.int("newer")?,
        let_go: row.int("let_go")?,
        left: row.int("gone")?,
        unsettled: row.int("unsettled")?,
        edges: row.int("edges")?,
        edges_behind: row.int("behind")?,
    })
}

/// Some of the names that edges serve and the store does not.
pub async fn unknown_names(tx: &mut Tx, limit: i64) -> StoreResult<Vec<String>> {
    let stmt = sql("SELECT hostname FROM recollections WHERE outcome IN ('unknown', 'newer') ORDER BY hostname LIMIT $1");
    tx.fetch_all(stmt.bind(limit)).await?.iter().map(|row| row.text("hostname")).collect()
}

/// Some of the canonical hosts whose tenants left after the copy was made.
pub async fn left_hosts(tx: &mut Tx, limit: i64) -> StoreResult<Vec<String>> {
    let stmt = sql("SELECT hostname FROM recollections WHERE outcome = 'left' ORDER BY hostname LIMIT $1");
    tx.fetch_all(stmt.bind(limit)).await?.iter().map(|row| row.text("hostname")).collect()
}

/// What edges remember is of no more use: they follow the store again.
pub fn forget() -> super::Stmt {
    sql("DELETE FROM recollections")
}

/// The event that a database was restored, or that its recovery ended.
pub fn event(id: &str, kind: &'static str, detail: &serde_json::Value, actor: &str, now: Moment) -> super::Stmt {
    sql("INSERT INTO events (id, position, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
         VALUES ($1, NULL, NULL, NULL, NULL, $2, $5, 'asked for', $3, $4)")
    .bind(id)
    .bind(kind)
    .bind(detail.to_string())
    .bind(now)
    .bind(actor)
}
