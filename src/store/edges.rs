//! Edges: who may read the feed, where each one's cursor stands, and the join tokens they enrol with.

use std::str::FromStr;
use std::time::Duration;

use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::feed::Position;
use crate::model::id::{CertificateId, EdgeId};
use crate::model::moment::Moment;

/// Whether an edge takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeStatus {
    /// Serving, and counted while it is heard of.
    Active,
    /// Serving what still reaches it, no longer counted.
    Drained,
    /// Shut out for ever.
    Revoked,
}

impl EdgeStatus {
    /// The word in the store and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            EdgeStatus::Active => "active",
            EdgeStatus::Drained => "drained",
            EdgeStatus::Revoked => "revoked",
        }
    }
}

/// A word that is no status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no status of an edge")]
pub struct NoSuchStatus(String);

impl FromStr for EdgeStatus {
    type Err = NoSuchStatus;
    fn from_str(s: &str) -> Result<Self, NoSuchStatus> {
        let all = [EdgeStatus::Active, EdgeStatus::Drained, EdgeStatus::Revoked];
        all.into_iter().find(|status| status.as_str() == s).ok_or_else(|| NoSuchStatus(s.to_owned()))
    }
}

/// An edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeRow {
    /// The edge.
    pub id: EdgeId,
    /// The name its operator gave it.
    pub name: String,
    /// Its X25519 key.
    pub public_key: Vec<u8>,
    /// Whether it takes part.
    pub status: EdgeStatus,
    /// What it has confirmed.
    pub cursor: Position,
    /// When it was last heard of.
    pub heartbeat_at: Moment,
    /// Since when it is left behind.
    pub lost_at: Option<Moment>,
    /// When it enrolled.
    pub enrolled_at: Moment,
}

fn edge(row: &Row) -> StoreResult<EdgeRow> {
    Ok(EdgeRow {
        id: row.parse("id")?,
        name: row.text("name")?,
        public_key: row.blob("public_key")?,
        status: row.parse("status")?,
        cursor: Position { epoch: row.int("cursor_epoch")?, seq: row.int("cursor_seq")? },
        heartbeat_at: row.moment("heartbeat_at")?,
        lost_at: row.opt_moment("lost_at")?,
        enrolled_at: row.moment("enrolled_at")?,
    })
}

/// Writes a new edge; a conflict when the name or the credential is taken.
pub fn insert(id: &EdgeId, name: &str, public_key: &[u8], credential: &[u8], now: Moment) -> Stmt {
    sql("INSERT INTO edges (id, name, public_key, credential, status, cursor_epoch, cursor_seq, heartbeat_at, enrolled_at) \
         VALUES ($1, $2, $3, $4, 'active', 0, 0, $5, $5)")
    .bind(id.as_str())
    .bind(name)
    .bind(public_key)
    .bind(credential)
    .bind(now)
}

/// The edge that a credential's SHA-256 belongs to.
pub async fn by_credential(tx: &mut Tx, digest: &[u8]) -> StoreResult<Option<EdgeRow>> {
    let stmt = sql("SELECT id, name, public_key, status, cursor_epoch, cursor_seq, heartbeat_at, lost_at, enrolled_at \
                    FROM edges WHERE credential = $1");
    tx.fetch_optional(stmt.bind(digest)).await?.as_ref().map(edge).transpose()
}

/// The edge of that id or name.
pub async fn find(tx: &mut Tx, id_or_name: &str) -> StoreResult<Option<EdgeRow>> {
    let stmt = sql("SELECT id, name, public_key, status, cursor_epoch, cursor_seq, heartbeat_at, lost_at, enrolled_at \
                    FROM edges WHERE id = $1 OR name = $1");
    tx.fetch_optional(stmt.bind(id_or_name)).await?.as_ref().map(edge).transpose()
}

/// The edge that had this name last, of those that are shut out and gave it free.
pub async fn revoked_as(tx: &mut Tx, name: &str) -> StoreResult<Option<EdgeRow>> {
    let stmt = sql("SELECT id, name, public_key, status, cursor_epoch, cursor_seq, heartbeat_at, lost_at, enrolled_at \
                    FROM edges WHERE status = 'revoked' AND name = $1 || ' ' || id ORDER BY id DESC LIMIT 1");
    tx.fetch_optional(stmt.bind(name)).await?.as_ref().map(edge).transpose()
}

/// All edges, the oldest first.
pub async fn list(store: &Store) -> StoreResult<Vec<EdgeRow>> {
    let stmt = sql("SELECT id, name, public_key, status, cursor_epoch, cursor_seq, heartbeat_at, lost_at, enrolled_at \
                    FROM edges ORDER BY id");
    store.query(stmt).await?.iter().map(edge).collect()
}

/// Edges after an id, in order of their ids.
pub async fn page(store: &Store, after: &str, limit: i64) -> StoreResult<Vec<EdgeRow>> {
    let stmt = sql("SELECT id, name, public_key, status, cursor_epoch, cursor_seq, heartbeat_at, lost_at, enrolled_at \
                    FROM edges WHERE id > $1 ORDER BY id LIMIT $2");
    store.query(stmt.bind(after).bind(limit)).await?.iter().map(edge).collect()
}

/// Where the feed stands: nothing before its first start.
pub async fn head(store: &Store) -> StoreResult<Option<Position>> {
    let rows = store.query(sql("SELECT epoch, last_seq FROM feed WHERE id = 1")).await?;
    rows.first().map(|row| Ok(Position { epoch: row.int("epoch")?, seq: row.int("last_seq")? })).transpose()
}

/// Changes whether an edge takes part. What is revoked stays revoked: then no row changes.
pub fn set_status(id: &EdgeId, status: EdgeStatus) -> Stmt {
    sql("UPDATE edges SET status = $2 WHERE id = $1 AND status <> 'revoked'").bind(id.as_str()).bind(status.as_str())
}

/// Writes down what an edge has without hearing of it.
pub fn note_cursor(id: &EdgeId, cursor: Position) -> Stmt {
    sql("UPDATE edges SET cursor_epoch = $2, cursor_seq = $3 WHERE id = $1")
        .bind(id.as_str())
        .bind(cursor.epoch)
        .bind(cursor.seq)
}

/// How far behind a change an edge may be and count as having caught up: on a busy feed there is always a newer one.
const CAUGHT_UP: Duration = Duration::from_secs(5);

/// A certificate that an edge has and does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotServed {
    /// The certificate.
    pub certificate: CertificateId,
    /// What is served instead, in words.
    pub observed: String,
    /// The serial number of that, spelt as those of certificates are; none where nothing is.
    pub serial: Option<String>,
}

/// Records what an edge has, that it was heard of, and every certificate it has yet does not serve. An edge that was left
/// behind and has caught up is found again. Whether it still is left behind.
pub async fn ack(tx: &mut Tx, id: &EdgeId, cursor: Position, exceptions: &[NotServed], now: Moment) -> StoreResult<bool> {
    let row = tx
        .fetch_optional(
            sql("UPDATE edges SET cursor_epoch = $2, cursor_seq = $3, heartbeat_at = $4, lost_at = \
                 CASE WHEN EXISTS (SELECT 1 FROM feed WHERE epoch = $2) \
                   AND NOT EXISTS (SELECT 1 FROM outbox WHERE seq > $3 AND at < $5) THEN NULL ELSE lost_at END \
                 WHERE id = $1 RETURNING lost_at")
            .bind(id.as_str())
            .bind(cursor.epoch)
            .bind(cursor.seq)
            .bind(now)
            .bind(now - CAUGHT_UP),
        )
        .await?;
    // What it said before and says still keeps the moment at which it was first said.
    let still: String = exceptions.iter().map(|not_served| format!(",{},", not_served.certificate)).collect();
    let over = sql("DELETE FROM rollout_exceptions WHERE edge_id = $1 AND $2 NOT LIKE '%,' || certificate_id || ',%'");
    tx.execute(over.bind(id.as_str()).bind(still)).await?;
    for not_served in exceptions {
        tx.execute(
            sql("INSERT INTO rollout_exceptions (certificate_id, edge_id, observed, at, serial) \
                 SELECT c.id, e.id, $3, e.heartbeat_at, $4 FROM certificates c CROSS JOIN edges e WHERE c.id = $1 AND e.id = $2 \
                 ON CONFLICT (certificate_id, edge_id) DO UPDATE SET observed = excluded.observed, serial = excluded.serial")
            .bind(not_served.certificate.as_str())
            .bind(id.as_str())
            .bind(not_served.observed.as_str())
            .bind(not_served.serial.as_deref()),
        )
        .await?;
    }
    Ok(row.map(|r| r.opt_moment("lost_at")).transpose()?.flatten().is_some())
}

/// Uses a join token up: one row changes, once.
pub fn spend_join_token(digest: &[u8], now: Moment) -> Stmt {
    sql("UPDATE tokens SET used_at = $2 WHERE digest = $1 AND scope = 'edge_join' AND used_at IS NULL \
         AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)")
    .bind(digest)
    .bind(now)
}

/// Shuts an edge out for ever and frees its name: no name that an operator gives has a space. One row changes, once.
pub fn revoke(id: &EdgeId) -> Stmt {
    sql("UPDATE edges SET status = 'revoked', name = name || ' ' || id WHERE id = $1 AND status <> 'revoked'")
        .bind(id.as_str())
}

/// A distribution key, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistributionKeyRow {
    /// Its random id.
    pub id: String,
    /// The sealed key.
    pub sealed_key: Vec<u8>,
    /// When another took its place.
    pub retired_at: Option<Moment>,
}

/// Writes a distribution key.
pub fn insert_distribution_key(id: &str, epoch: i64, sealed_key: &[u8], now: Moment) -> Stmt {
    sql("INSERT INTO distribution_keys (id, epoch, sealed_key, created_at) VALUES ($1, $2, $3, $4)")
        .bind(id)
        .bind(epoch)
        .bind(sealed_key)
        .bind(now)
}

/// Retires all distribution keys of the epoch.
pub fn retire_distribution_keys(epoch: i64, now: Moment) -> Stmt {
    sql("UPDATE distribution_keys SET retired_at = $2 WHERE epoch = $1 AND retired_at IS NULL").bind(epoch).bind(now)
}

/// The distribution keys of an epoch, the newest first.
pub async fn distribution_keys(tx: &mut Tx, epoch: i64) -> StoreResult<Vec<DistributionKeyRow>> {
    let stmt = sql("SELECT id, sealed_key, retired_at FROM distribution_keys WHERE epoch = $1 ORDER BY created_at DESC, id");
    let rows = tx.fetch_all(stmt.bind(epoch)).await?;
    rows.iter()
        .map(|r| {
            Ok(DistributionKeyRow {
                id: r.text("id")?,
                sealed_key: r.blob("sealed_key")?,
                retired_at: r.opt_moment("retired_at")?,
            })
        })
        .collect()
}
