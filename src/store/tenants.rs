//! Tenants and their slugs.

use super::{Row, Stmt, StoreResult, Tx, sql};
use crate::model::id::TenantId;
use crate::model::moment::Moment;
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
    insert_event(event_id, &t.id, "tenant_added", actor, &serde_json::json!({ "slug": t.slug }), t.created_at)
}

/// An event of a tenant, of no domain.
pub fn insert_event(
    event_id: &str,
    tenant: &TenantId,
    kind: &'static str,
    actor: &str,
    detail: &serde_json::Value,
    at: Moment,
) -> Stmt {
    sql("INSERT INTO events (id, position, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
         VALUES ($1, NULL, $2, NULL, NULL, $3, $4, 'asked for', $5, $6)")
    .bind(event_id)
    .bind(tenant.as_str())
    .bind(kind)
    .bind(actor)
    .bind(detail.to_string())
    .bind(at)
}

/// Changes what is given of a tenant and raises its version; the tenant as it is now, or nothing where nothing would change.
pub async fn change(tx: &mut Tx, id: &TenantId, name: Option<&str>, tier: Option<&str>) -> StoreResult<Option<Tenant>> {
    let stmt = sql("UPDATE tenants SET name = COALESCE($2, name), tier = COALESCE($3, tier), version = version + 1 \
         WHERE id = $1 AND status <> 'deleted' AND (name <> COALESCE($2, name) OR tier <> COALESCE($3, tier)) RETURNING *")
    .bind(id.as_str())
    .bind(name)
    .bind(tier);
    tx.fetch_optional(stmt).await?.as_ref().map(tenant).transpose()
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
