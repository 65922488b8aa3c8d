//! Adding tenants and finding them.

use super::expect::Expect;
use crate::env::Env;
use crate::mint;
use crate::model::hostname::Hostname;
use crate::model::id::{EventId, TenantId};
use crate::model::label::{Label, LabelError};
use crate::model::slug::{Slug, SlugError};
use crate::model::tenant::{Placement, Tenant, TenantStatus};
use crate::store::{self, Store, StoreError, StoreResult, Tx};

/// Why a tenant was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddTenantError {
    /// The slug is none.
    #[error(transparent)]
    Slug(#[from] SlugError),
    /// The name is none.
    #[error(transparent)]
    Name(#[from] LabelError),
    /// Somebody has, or had, this slug: slugs are never reused.
    #[error("the slug {0:?} is or was in use by another tenant, in this spelling or one that looks like it; choose another")]
    Taken(String),
    /// The store failed.
    #[error("the tenant could not be stored")]
    Store(#[source] StoreError),
}

/// A tenant to add.
#[derive(Clone, Debug)]
pub struct NewTenant<'a> {
    /// Its slug, as typed.
    pub slug: &'a str,
    /// What people call it; the slug where nothing is said.
    pub name: Option<&'a str>,
}

/// Adds a tenant: its row, its slug for ever, the route of its canonical host, and word of both for the edges.
pub async fn add(
    store: &Store,
    env: &Env,
    new: NewTenant<'_>,
    canonical_host: impl FnOnce(&Slug) -> Option<Hostname>,
    actor: &str,
) -> Result<Tenant, AddTenantError> {
    let mut tx = store.begin().await.map_err(AddTenantError::Store)?;
    let tenant = add_in(&mut tx, env, new, canonical_host, actor).await?;
    tx.commit().await.map_err(AddTenantError::Store)?;
    Ok(tenant)
}

/// The same inside a transaction, for those who write more into it; after an error it is of no more use.
pub async fn add_in(
    tx: &mut Tx,
    env: &Env,
    new: NewTenant<'_>,
    canonical_host: impl FnOnce(&Slug) -> Option<Hostname>,
    actor: &str,
) -> Result<Tenant, AddTenantError> {
    let slug = Slug::parse_new(new.slug)?;
    let name = Label::NAME.read(new.name.unwrap_or(slug.as_str()))?;
    let tenant = Tenant {
        id: mint!(env, TenantId),
        slug,
        name,
        placement: Placement::default(),
        tier: "standard".into(),
        status: TenantStatus::Active,
        version: 1,
        created_at: env.now(),
    };
    let host = canonical_host(&tenant.slug);
    match write(tx, env, &tenant, host.as_ref(), actor).await {
        Ok(()) => Ok(tenant),
        Err(StoreError::Conflict { .. }) => Err(AddTenantError::Taken(tenant.slug.to_string())),
        Err(e) => Err(AddTenantError::Store(e)),
    }
}

async fn write(tx: &mut Tx, env: &Env, t: &Tenant, host: Option<&Hostname>, actor: &str) -> StoreResult<()> {
    let fresh = || mint!(env, EventId);
    // One by one, for each refers to the one before.
    tx.execute(store::tenants::insert(t)).await?;
    let mut rest = vec![
        store::tenants::bind_slug(t),
        store::tenants::bind_skeleton(t),
        store::tenants::insert_added_event(fresh().as_str(), t, actor),
        store::outbox::insert(fresh().as_str(), "tenant", t.id.as_str(), t.version, t.created_at),
    ];
    if let Some(host) = host {
        rest.push(store::tenants::insert_canonical_route(t, host.as_str()));
        rest.push(store::outbox::insert(fresh().as_str(), "host", host.as_str(), t.created_at.micros(), t.created_at));
    }
    for stmt in rest {
        tx.execute(stmt).await?;
    }
    Ok(())
}

/// What to change of a tenant; what is missing stays.
#[derive(Clone, Debug, Default)]
pub struct TenantChange {
    /// What people call it.
    pub name: Option<String>,
    /// Its tier.
    pub tier: Option<String>,
}

/// Why a tenant was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeTenantError {
    /// There is none.
    #[error("there is no tenant {0}")]
    NotFound(TenantId),
    /// The name is none.
    #[error(transparent)]
    Name(LabelError),
    /// The tier is none.
    #[error(transparent)]
    Tier(LabelError),
    /// It is another version than the caller counted on.
    #[error("the tenant changed in the meantime: its version is {0} now; read it again and decide anew")]
    Changed(i64),
    /// The store failed.
    #[error("the change could not be stored")]
    Store(#[from] StoreError),
}

/// Changes a tenant, if it is as expected; the edges hear of it. A change to what is already so changes nothing.
pub async fn change(
    store: &Store,
    env: &Env,
    id: &TenantId,
    change: &TenantChange,
    expect: &Expect,
    actor: &str,
) -> Result<Tenant, ChangeTenantError> {
    let name = change.name.as_deref().map(|name| Label::NAME.read(name)).transpose().map_err(ChangeTenantError::Name)?;
    let tier = change.tier.as_deref().map(|tier| Label::TIER.read(tier)).transpose().map_err(ChangeTenantError::Tier)?;
    let now = env.now();
    let mut tx = store.begin().await?;
    let Some(tenant) = store::tenants::change(&mut tx, id, name.as_deref(), tier.as_deref()).await? else {
        let tenant = store::tenants::lookup(&mut tx, id).await?.filter(|t| t.status != TenantStatus::Deleted);
        let tenant = tenant.ok_or_else(|| ChangeTenantError::NotFound(id.clone()))?;
        return if expect.allows(tenant.version) { Ok(tenant) } else { Err(ChangeTenantError::Changed(tenant.version)) };
    };
    let before = tenant.version - 1;
    if !expect.allows(before) {
        return Err(ChangeTenantError::Changed(before));
    }
    let detail = serde_json::json!({ "name": tenant.name, "tier": tenant.tier });
    let event = mint!(env, EventId);
    tx.execute(store::tenants::insert_event(event.as_str(), id, "tenant_changed", actor, &detail, now)).await?;
    let told = mint!(env, EventId);
    tx.execute(store::outbox::insert(told.as_str(), "tenant", id.as_str(), tenant.version, now)).await?;
    tx.commit().await?;
    Ok(tenant)
}

/// Tenants in order of their age, after the id `after`, or from the first.
pub async fn list(store: &Store, after: Option<&TenantId>, limit: i64) -> StoreResult<Vec<Tenant>> {
    store::tenants::list(&mut store.read().await?, after.map_or("", TenantId::as_str), limit).await
}

/// The tenant with this id or slug.
pub async fn find(store: &Store, id_or_slug: &str) -> StoreResult<Option<Tenant>> {
    let mut tx = store.read().await?;
    if let Ok(id) = id_or_slug.parse::<TenantId>() {
        return store::tenants::lookup(&mut tx, &id).await;
    }
    match Slug::parse(id_or_slug) {
        Ok(slug) => store::tenants::lookup_by_slug(&mut tx, &slug).await,
        Err(_) => Ok(None),
    }
}
