//! The addresses to which a tenant's mail goes.

use crate::env::Env;
use crate::mint;
use crate::model::email::{ContactKind, EmailError, email};
use crate::model::id::{ContactId, EventId, TenantId};
use crate::store::contacts::{self, ContactRow};
use crate::store::{Store, StoreError, StoreResult, Tx, tenants};

/// How many contacts a tenant may have.
pub const MOST: i64 = 20;

/// Why a contact was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddContactError {
    /// The address is none.
    #[error(transparent)]
    Email(#[from] EmailError),
    /// The tenant has it, or has as many as it may have.
    #[error("the tenant has this address already, or has {MOST} contacts, which is the most; remove one first")]
    Refused,
    /// The store failed.
    #[error("the contact could not be stored")]
    Store(#[from] StoreError),
}

/// Adds a contact, inside a transaction.
pub async fn add_in(
    tx: &mut Tx,
    env: &Env,
    tenant: &TenantId,
    typed: &str,
    kinds: &[ContactKind],
    actor: &str,
) -> Result<ContactRow, AddContactError> {
    let mut kinds: Vec<String> = kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
    kinds.sort();
    kinds.dedup();
    let row = ContactRow {
        id: mint!(env, ContactId),
        tenant_id: tenant.clone(),
        email: email(typed)?,
        kinds,
        created_at: env.now(),
    };
    if tx.execute(contacts::insert(&row, MOST)).await? == 0 {
        return Err(AddContactError::Refused);
    }
    told(tx, env, tenant, "contact_added", &row.id, actor).await?;
    Ok(row)
}

/// Removes a contact of this tenant; whether there was one.
pub async fn remove(store: &Store, env: &Env, tenant: &TenantId, id: &ContactId, actor: &str) -> StoreResult<bool> {
    let mut tx = store.begin().await?;
    if tx.execute(contacts::delete(tenant, id)).await? == 0 {
        return Ok(false);
    }
    told(&mut tx, env, tenant, "contact_removed", id, actor).await?;
    tx.commit().await?;
    Ok(true)
}

/// The event names the contact, not the address: history is kept for ever, addresses are not.
async fn told(
    tx: &mut Tx,
    env: &Env,
    tenant: &TenantId,
    kind: &'static str,
    id: &ContactId,
    actor: &str,
) -> StoreResult<()> {
    let detail = serde_json::json!({ "contact": id });
    tx.execute(tenants::insert_event(mint!(env, EventId).as_str(), tenant, kind, actor, &detail, env.now())).await?;
    Ok(())
}
