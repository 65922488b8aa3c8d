//! Tokens: only their SHA-256 is kept.

use super::{Row, Stmt, StoreResult, Tx, sql};
use crate::model::id::{TenantId, TokenId};
use crate::model::moment::Moment;

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its id.
    pub id: TokenId,
    /// `operator`, `tenant`, `edge_join`…
    pub scope: String,
    /// Whose it is.
    pub tenant_id: Option<TenantId>,
    /// What people call it.
    pub label: String,
    /// When it was made.
    pub created_at: Moment,
    /// When it ends.
    pub expires_at: Option<Moment>,
    /// When a single-use token was used.
    pub used_at: Option<Moment>,
    /// When it was taken back.
    pub revoked_at: Option<Moment>,
}

/// A new token.
pub fn insert(token: &TokenRow, digest: &[u8]) -> Stmt {
    sql("INSERT INTO tokens (id, scope, tenant_id, domain_id, label, digest, created_at, expires_at, used_at, revoked_at) \
         VALUES ($1, $2, $3, NULL, $4, $5, $6, $7, NULL, NULL)")
    .bind(token.id.as_str())
    .bind(token.scope.as_str())
    .bind(token.tenant_id.as_ref().map(TenantId::as_str))
    .bind(token.label.as_str())
    .bind(digest)
    .bind(token.created_at)
    .bind(token.expires_at)
}

/// The token with this digest; none of a tenant that has left, whenever it was made.
pub async fn lookup_by_digest(tx: &mut Tx, digest: &[u8]) -> StoreResult<Option<TokenRow>> {
    let stmt = sql("SELECT tokens.* FROM tokens LEFT JOIN tenants t ON t.id = tokens.tenant_id \
         WHERE digest = $1 AND COALESCE(t.status, 'active') <> 'deleted'")
    .bind(digest);
    let row = tx.fetch_optional(stmt).await?;
    row.as_ref().map(token).transpose()
}

/// The token of that id, if the API shows it: links and what pages hold are none.
pub async fn lookup(tx: &mut Tx, id: &TokenId) -> StoreResult<Option<TokenRow>> {
    let stmt = sql("SELECT * FROM tokens WHERE id = $1 AND scope IN ('operator', 'tenant', 'edge_join')");
    tx.fetch_optional(stmt.bind(id.as_str())).await?.as_ref().map(token).transpose()
}

/// The tokens that the API shows, of one tenant or of all, after an id and in order of their ids.
pub async fn list(tx: &mut Tx, tenant: Option<&TenantId>, after: &str, limit: i64) -> StoreResult<Vec<TokenRow>> {
    let query = match tenant {
        Some(tenant) => {
            sql("SELECT * FROM tokens WHERE tenant_id = $3 AND scope = 'tenant' AND id > $1 ORDER BY id LIMIT $2")
                .bind(after)
                .bind(limit)
                .bind(tenant.as_str())
        }
        None => {
            sql("SELECT * FROM tokens WHERE scope IN ('operator', 'tenant', 'edge_join') AND id > $1 ORDER BY id LIMIT $2")
                .bind(after)
                .bind(limit)
        }
    };
    tx.fetch_all(query).await?.iter().map(token).collect()
}

/// Takes a token back; counts the rows, none when it was taken back before or never was.
pub fn revoke(id: &TokenId, at: Moment) -> Stmt {
    sql("UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL").bind(id.as_str()).bind(at)
}

fn token(row: &Row) -> StoreResult<TokenRow> {
    Ok(TokenRow {
        id: row.parse("id")?,
        scope: row.text("scope")?,
        tenant_id: row.opt_parse("tenant_id")?,
        label: row.text("label")?,
        created_at: row.moment("created_at")?,
        expires_at: row.opt_moment("expires_at")?,
        used_at: row.opt_moment("used_at")?,
        revoked_at: row.opt_moment("revoked_at")?,
    })
}
