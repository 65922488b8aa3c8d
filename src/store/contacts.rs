//! The addresses to which a tenant's mail goes.

use super::{Row, Stmt, Store, StoreResult, sql};
use crate::model::id::{ContactId, TenantId};
use crate::model::moment::Moment;

/// A contact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactRow {
    /// Its id.
    pub id: ContactId,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// The address.
    pub email: String,
    /// What is sent to it.
    pub kinds: Vec<String>,
    /// When it was added.
    pub created_at: Moment,
}

/// A new contact, unless the tenant has that address, or `most` of them.
pub fn insert(c: &ContactRow, most: i64) -> Stmt {
    let kinds = serde_json::json!(c.kinds).to_string();
    sql("INSERT INTO contacts (id, tenant_id, email, kinds, created_at) \
         SELECT $1, t.id, $3, $4, CAST($5 AS BIGINT) FROM tenants t \
         WHERE t.id = $2 AND (SELECT COUNT(*) FROM contacts c WHERE c.tenant_id = t.id) < $6 ON CONFLICT DO NOTHING")
    .bind(c.id.as_str())
    .bind(c.tenant_id.as_str())
    .bind(c.email.as_str())
    .bind(kinds)
    .bind(c.created_at)
    .bind(most)
}

/// Removes a contact of this tenant; counts the rows.
pub fn delete(tenant: &TenantId, id: &ContactId) -> Stmt {
    sql("DELETE FROM contacts WHERE id = $1 AND tenant_id = $2").bind(id.as_str()).bind(tenant.as_str())
}

/// The contacts of a tenant after an id, in order of their ids.
pub async fn list(store: &Store, tenant: &TenantId, after: &str, limit: i64) -> StoreResult<Vec<ContactRow>> {
    let stmt = sql("SELECT * FROM contacts WHERE tenant_id = $1 AND id > $2 ORDER BY id LIMIT $3")
        .bind(tenant.as_str())
        .bind(after)
        .bind(limit);
    store.query(stmt).await?.iter().map(contact).collect()
}

fn contact(row: &Row) -> StoreResult<ContactRow> {
    Ok(ContactRow {
        id: row.parse("id")?,
        tenant_id: row.parse("tenant_id")?,
        email: row.text("email")?,
        kinds: row.json("kinds")?,
        created_at: row.moment("created_at")?,
    })
}
