//! Adding tenants and finding them.

use crate::env::Env;
use crate::mint;
use crate::model::hostname::Hostname;
use crate::model::id::{EventId, TenantId};
use crate::model::slug::{Slug, SlugError};
use crate::model::tenant::{Placement, Tenant, TenantStatus};
use crate::store::{self, Store, StoreError, StoreResult};

/// Why a tenant was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddTenantError {
    /// The slug is none.
    #[error(transparent)]
    Slug(#[from] SlugError),
    /// The name is empty or too long.
    #[error("the name is {0} characters long; it must have 1 to 200")]
    Name(usize),
    /// The name holds a character that nobody sees, or that changes how its neighbours are shown.
    #[error("the name contains U+{:04X}, which is not shown or changes how others are shown; leave it out", u32::from(*.0))]
    Unseen(char),
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
    let slug = Slug::parse_new(new.slug)?;
    let name = new.name.map(str::trim).unwrap_or(slug.as_str()).to_owned();
    let length = name.chars().count();
    if !(1..=200).contains(&length) {
        return Err(AddTenantError::Name(length));
    }
    if let Some(unseen) = name.chars().find(|c| is_unseen(*c)) {
        return Err(AddTenantError::Unseen(unseen));
    }
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
    match write(store, env, &tenant, host.as_ref(), actor).await {
        Ok(()) => Ok(tenant),
        Err(StoreError::Conflict { .. }) => Err(AddTenantError::Taken(tenant.slug.to_string())),
        Err(e) => Err(AddTenantError::Store(e)),
    }
}

/// Control characters, and those that take no room or turn the direction of writing.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

async fn write(store: &Store, env: &Env, t: &Tenant, host: Option<&Hostname>, actor: &str) -> StoreResult<()> {
    let fresh = || mint!(env, EventId);
    let mut tx = store.begin().await?;
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
    tx.commit().await
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
