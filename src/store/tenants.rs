//! Tenants and their slugs.

use super::{Row, Stmt, StoreResult, Tx, sql};
use crate::model::id::TenantId;
use crate::model::slug::Slug;
use crate::model::tenant::{Placement, Tenant};

/// A new tenant.
pub fn insert(t: &Tenant) -> Stmt {
    sql("INSERT INTO tenants (id, slug, name, region, stamp, shard, tier, status, version, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
    .bind(t.id.as_str())
    .bind(t.slug.as_str())
    .bind(t.name.as_str())
    .bind(t.placement.region.as_str())
    .bind(t.placement.stamp.as_str())
    .bind(t.placement.shard)
    .bind(t.tier.as_str())
    .bind(t.status.as_str())
    .bind(t.version)
    .bind(t.created_at)
}

/// Binds a slug to its tenant for ever; a slug that was ever bound refuses by its primary key.
pub fn bind_slug(t: &Tenant) -> Stmt {
    sql("INSERT INTO slugs (slug, tenant_id, taken_at, retired_at) VALUES ($1, $2, $3, NULL)")
        .bind(t.slug.as_str())
        .bind(t.id.as_str())
        .bind(t.created_at)
}

/// Takes everything that a slug could be mistaken for, for ever; what was ever taken refuses by its primary key.
pub fn bind_skeleton(t: &Tenant) -> Stmt {
    sql("INSERT INTO slug_skeletons (skeleton, slug) VALUES ($1, $2)").bind(t.slug.skeleton()).bind(t.slug.as_str())
}

/// The route of a tenant's canonical host.
pub fn insert_canonical_route(t: &Tenant, host: &str) -> Stmt {
    sql("INSERT INTO routes (hostname, tenant_id, domain_id, term, action, certificate_id, version) \
         VALUES ($1, $2, NULL, 1, 'serve', NULL, 1)")
    .bind(host)
    .bind(t.id.as_str())
}

/// The event that a tenant was added.
pub fn insert_added_event(event_id: &str, t: &Tenant, actor: &str) -> Stmt {
    sql("INSERT INTO events (id, position, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
         VALUES ($1, NULL, $2, NULL, NULL, 'tenant_added', $3, 'asked for', $4, $5)")
    .bind(event_id)
    .bind(t.id.as_str())
    .bind(actor)
    .bind(serde_json::json!({ "slug": t.slug }).to_string())
    .bind(t.created_at)
}

/// The tenant with this id.
pub async fn lookup(tx: &mut Tx, id: &TenantId) -> StoreResult<Option<Tenant>> {
    let row = tx.fetch_optional(sql("SELECT * FROM tenants WHERE id = $1").bind(id.as_str())).await?;
    row.as_ref().map(tenant).transpose()
}

/// The tenant with this slug.
pub async fn lookup_by_slug(tx: &mut Tx, slug: &Slug) -> StoreResult<Option<Tenant>> {
    let row = tx.fetch_optional(sql("SELECT * FROM tenants WHERE slug = $1").bind(slug.as_str())).await?;
    row.as_ref().map(tenant).transpose()
}

/// Tenants in order of their ids, after `after`.
pub async fn list(tx: &mut Tx, after: &str, limit: i64) -> StoreResult<Vec<Tenant>> {
    let query = sql("SELECT * FROM tenants WHERE id > $1 ORDER BY id LIMIT $2").bind(after).bind(limit);
    tx.fetch_all(query).await?.iter().map(tenant).collect()
}

fn tenant(row: &Row) -> StoreResult<Tenant> {
    Ok(Tenant {
        id: row.parse("id")?,
        slug: row.parse("slug")?,
        name: row.text("name")?,
        placement: Placement { region: row.text("region")?, stamp: row.text("stamp")?, shard: row.int("shard")? },
        tier: row.text("tier")?,
        status: row.parse("status")?,
        version: row.int("version")?,
        created_at: row.moment("created_at")?,
    })
}
