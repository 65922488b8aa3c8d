//! Links into the portal and hand-off links: only their SHA-256 is kept.

use super::{Row, Stmt, StoreResult, Tx, sql};
use crate::model::id::{DomainId, LinkId, TenantId, TokenId};
use crate::model::moment::Moment;

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Signs in, once.
    Portal,
    /// Shows one domain's records until it ends.
    HandOff,
}

impl LinkKind {
    /// The word in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            LinkKind::Portal => "portal",
            LinkKind::HandOff => "hand_off",
        }
    }
}

/// A link as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// Its id, by which it is taken back.
    pub id: LinkId,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// The domain it leads to, or shows.
    pub domain_id: Option<DomainId>,
    /// Where the portal leads back to.
    pub return_url: Option<String>,
    /// The token that asked for it.
    pub token_id: TokenId,
    /// Who asked for it.
    pub created_by: String,
    /// When it was made.
    pub created_at: Moment,
    /// When it ends.
    pub expires_at: Moment,
    /// When it was used.
    pub used_at: Option<Moment>,
    /// When it was taken back.
    pub revoked_at: Option<Moment>,
}

/// A link together with what it hangs by.
#[derive(Clone, Debug)]
pub struct FoundLink {
    /// The link.
    pub row: LinkRow,
    /// What people call its tenant.
    pub tenant_name: String,
    /// Whether its tenant is active and the token that asked for it still good.
    pub holds: bool,
}

/// A new link.
pub fn insert(link: &LinkRow, kind: LinkKind, digest: &[u8]) -> Stmt {
    sql("INSERT INTO links (id, kind, tenant_id, domain_id, return_url, token_id, digest, created_by, created_at, \
           expires_at, used_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, NULL)")
    .bind(link.id.as_str())
    .bind(kind.as_str())
    .bind(link.tenant_id.as_str())
    .bind(link.domain_id.as_ref().map(DomainId::as_str))
    .bind(link.return_url.as_deref())
    .bind(link.token_id.as_str())
    .bind(digest)
    .bind(link.created_by.as_str())
    .bind(link.created_at)
    .bind(link.expires_at)
}

/// Forgets links that ended before `before`.
pub fn forget(before: Moment) -> Stmt {
    sql("DELETE FROM links WHERE expires_at < $1").bind(before)
}

/// The link with this digest, whatever became of it.
pub async fn lookup_by_digest(tx: &mut Tx, kind: LinkKind, digest: &[u8], now: Moment) -> StoreResult<Option<FoundLink>> {
    let query = sql("SELECT l.*, t.name AS tenant_name, \
           CAST(CASE WHEN t.status = 'active' AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $3) \
             THEN 1 ELSE 0 END AS BIGINT) AS holds \
         FROM links l JOIN tenants t ON t.id = l.tenant_id JOIN tokens k ON k.id = l.token_id \
         WHERE l.digest = $1 AND l.kind = $2");
    let row = tx.fetch_optional(query.bind(digest).bind(kind.as_str()).bind(now)).await?;
    let found =
        |row: &Row| Ok(FoundLink { row: link(row)?, tenant_name: row.text("tenant_name")?, holds: row.int("holds")? == 1 });
    row.as_ref().map(found).transpose()
}

/// Uses a portal link; counts the rows, none when it was used, taken back or over before.
pub fn consume(id: &LinkId, now: Moment) -> Stmt {
    sql("UPDATE links SET used_at = $2 WHERE id = $1 AND kind = 'portal' AND used_at IS NULL AND revoked_at IS NULL \
           AND expires_at > $2")
    .bind(id.as_str())
    .bind(now)
}

/// Takes a link back; counts the rows, none when it was taken back before or never was.
pub fn revoke(id: &LinkId, at: Moment) -> Stmt {
    sql("UPDATE links SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL").bind(id.as_str()).bind(at)
}

/// A link by its id.
pub async fn lookup(tx: &mut Tx, kind: LinkKind, id: &LinkId) -> StoreResult<Option<LinkRow>> {
    let query = sql("SELECT * FROM links WHERE id = $1 AND kind = $2").bind(id.as_str()).bind(kind.as_str());
    tx.fetch_optional(query).await?.as_ref().map(link).transpose()
}

/// Links of one kind in order of their age, after the id `after`; of one tenant or of all.
pub async fn list(
    tx: &mut Tx,
    kind: LinkKind,
    tenant: Option<&TenantId>,
    after: Option<&LinkId>,
    limit: i64,
) -> StoreResult<Vec<LinkRow>> {
    let after = after.map_or("", LinkId::as_str);
    let query = match tenant {
        Some(tenant) => sql("SELECT * FROM links WHERE kind = $1 AND tenant_id = $4 AND id > $2 ORDER BY id LIMIT $3")
            .bind(kind.as_str())
            .bind(after)
            .bind(limit)
            .bind(tenant.as_str()),
        None => sql("SELECT * FROM links WHERE kind = $1 AND id > $2 ORDER BY id LIMIT $3")
            .bind(kind.as_str())
            .bind(after)
            .bind(limit),
    };
    tx.fetch_all(query).await?.iter().map(link).collect()
}

/// The hand-off links of a domain that still work, latest first.
pub async fn open_hand_offs(tx: &mut Tx, domain: &DomainId, now: Moment, limit: i64) -> StoreResult<Vec<LinkRow>> {
    let query = sql("SELECT * FROM links WHERE domain_id = $1 AND kind = 'hand_off' AND revoked_at IS NULL \
           AND expires_at > $2 ORDER BY id DESC LIMIT $3");
    tx.fetch_all(query.bind(domain.as_str()).bind(now).bind(limit)).await?.iter().map(link).collect()
}

fn link(row: &Row) -> StoreResult<LinkRow> {
    Ok(LinkRow {
        id: row.parse("id")?,
        tenant_id: row.parse("tenant_id")?,
        domain_id: row.opt_parse("domain_id")?,
        return_url: row.opt_text("return_url")?,
        token_id: row.parse("token_id")?,
        created_by: row.text("created_by")?,
        created_at: row.moment("created_at")?,
        expires_at: row.moment("expires_at")?,
        used_at: row.opt_moment("used_at")?,
        revoked_at: row.opt_moment("revoked_at")?,
    })
}
