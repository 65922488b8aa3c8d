//! Sessions of the pages: only their SHA-256 is kept.

use super::{Row, Stmt, StoreResult, Tx, sql};
use crate::model::id::{LinkId, SessionId, TenantId, TokenId};
use crate::model::moment::Moment;

/// A session as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id, by which events name it.
    pub id: SessionId,
    /// Whose it is; nobody's in particular for an operator's.
    pub tenant_id: Option<TenantId>,
    /// The token it rests on.
    pub token_id: TokenId,
    /// The link it came by.
    pub link_id: Option<LinkId>,
    /// Where it leads back to.
    pub return_url: Option<String>,
    /// When it began.
    pub created_at: Moment,
    /// When it was last used, to the minute.
    pub seen_at: Moment,
    /// When it ends in any case.
    pub expires_at: Moment,
}

/// A session together with what people call its tenant.
#[derive(Clone, Debug)]
pub struct FoundSession {
    /// The session.
    pub row: SessionRow,
    /// `operator` or `tenant`.
    pub scope: String,
    /// What people call its tenant.
    pub tenant_name: Option<String>,
}

/// A new session.
pub fn insert(session: &SessionRow, scope: &str, digest: &[u8]) -> Stmt {
    sql("INSERT INTO sessions (id, scope, tenant_id, token_id, link_id, return_url, digest, created_at, seen_at, \
           expires_at, ended_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL)")
    .bind(session.id.as_str())
    .bind(scope)
    .bind(session.tenant_id.as_ref().map(TenantId::as_str))
    .bind(session.token_id.as_str())
    .bind(session.link_id.as_ref().map(LinkId::as_str))
    .bind(session.return_url.as_deref())
    .bind(digest)
    .bind(session.created_at)
    .bind(session.seen_at)
    .bind(session.expires_at)
}

/// Forgets sessions that were over before `before`.
pub fn forget(before: Moment) -> Stmt {
    sql("DELETE FROM sessions WHERE expires_at < $1").bind(before)
}

/// The session with this digest, if it lasts: not ended, not over, used since `idle_since`, its token good, its link not taken
/// back, its tenant active. A link that is forgotten was not.
pub async fn lasting(tx: &mut Tx, digest: &[u8], now: Moment, idle_since: Moment) -> StoreResult<Option<FoundSession>> {
    let query = sql("SELECT s.*, t.name AS tenant_name FROM sessions s JOIN tokens k ON k.id = s.token_id \
         LEFT JOIN tenants t ON t.id = s.tenant_id \
         WHERE s.digest = $1 AND s.ended_at IS NULL AND s.expires_at > $2 AND s.seen_at > $3 \
           AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2) \
           AND NOT EXISTS (SELECT 1 FROM links l WHERE l.id = s.link_id AND l.revoked_at IS NOT NULL) \
           AND (s.scope = 'operator' OR t.status = 'active')");
    let row = tx.fetch_optional(query.bind(digest).bind(now).bind(idle_since)).await?;
    row.as_ref().map(found).transpose()
}

/// Notes that a session is in use, at most once since `before`.
pub fn touch(id: &SessionId, now: Moment, before: Moment) -> Stmt {
    sql("UPDATE sessions SET seen_at = $2 WHERE id = $1 AND seen_at < $3").bind(id.as_str()).bind(now).bind(before)
}

/// Ends the session with this digest.
pub fn end(digest: &[u8], now: Moment) -> Stmt {
    sql("UPDATE sessions SET ended_at = $2 WHERE digest = $1 AND ended_at IS NULL").bind(digest).bind(now)
}

fn found(row: &Row) -> StoreResult<FoundSession> {
    Ok(FoundSession {
        row: SessionRow {
            id: row.parse("id")?,
            tenant_id: row.opt_parse("tenant_id")?,
            token_id: row.parse("token_id")?,
            link_id: row.opt_parse("link_id")?,
            return_url: row.opt_text("return_url")?,
            created_at: row.moment("created_at")?,
            seen_at: row.moment("seen_at")?,
            expires_at: row.moment("expires_at")?,
        },
        scope: row.text("scope")?,
        tenant_name: row.opt_text("tenant_name")?,
    })
}
