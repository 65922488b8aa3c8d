//! Rows that tests begin with.

use nameplate::model::id::{DomainId, IssuerId, OrderId, TenantId};
use nameplate::model::moment::Moment;
use nameplate::store::{Stmt, Store, sql};

/// A tenant.
pub fn tenant(id: &TenantId, slug: &str) -> Stmt {
    sql("INSERT INTO tenants (id, slug, name, region, stamp, shard, tier, status, version, created_at) \
         VALUES ($1, $2, $2, 'eu', 'one', 0, 'standard', 'active', 1, 0)")
    .bind(id.as_str())
    .bind(slug)
}

/// A claim that waits for its DNS, due at `due_at`.
pub fn domain(id: &DomainId, tenant: &TenantId, hostname: &str, due_at: Moment) -> Stmt {
    sql("INSERT INTO domains (id, tenant_id, hostname, claim, claim_since, routing_mode, target, attempt_id, evidence, \
           pace_from, nudged, tie, lost_for_us, due_at, lease_until, generation, settled, failures, event_seq, created_at) \
         VALUES ($1, $2, $3, 'awaiting_dns', 0, 'per_tenant', 'acme.app.example', 'att_none', '[]', \
           0, 0, 'held', 0, $4, 0, 0, 0, 0, 0, 0)")
    .bind(id.as_str())
    .bind(tenant.as_str())
    .bind(hostname)
    .bind(due_at)
}

/// An issuer.
pub fn issuer(id: &IssuerId) -> Stmt {
    sql("INSERT INTO issuers (id, name, directory, preference, limits, caa_identities, spent_before, lease_until, \
           term, granted, not_before, created_at) \
         VALUES ($1, 'ca', 'https://ca.test/dir', 1, '{}', '[]', 0, 0, 0, 0, 0, 0)")
    .bind(id.as_str())
}

/// An order that waits.
pub fn order(id: &OrderId, domain: &DomainId, issuer: &IssuerId, purpose: &'static str) -> Stmt {
    sql("INSERT INTO orders (id, domain_id, tenant_id, purpose, lane, issuer_id, state, state_since, not_before, created_at) \
         SELECT $1, id, tenant_id, $3, 'single', $4, 'waiting', 0, 0, 0 FROM domains WHERE id = $2")
    .bind(id.as_str())
    .bind(domain.as_str())
    .bind(purpose)
    .bind(issuer.as_str())
}

/// The id of the `n`th thing.
pub fn domain_id(n: u16) -> DomainId {
    DomainId::mint(Moment::from_secs(1), bytes(n))
}

/// The id of the `n`th tenant.
pub fn tenant_id(n: u16) -> TenantId {
    TenantId::mint(Moment::from_secs(1), bytes(n))
}

/// Ten bytes that say `n`.
pub fn bytes(n: u16) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[8..].copy_from_slice(&n.to_be_bytes());
    bytes
}

/// One tenant with `count` domains, all due at `due_at`.
pub async fn domains(store: &Store, count: u16, due_at: Moment) -> Vec<DomainId> {
    let mut tx = store.begin().await.unwrap();
    tx.execute(tenant(&tenant_id(0), "acme")).await.unwrap();
    let ids: Vec<_> = (0..count).map(domain_id).collect();
    for (n, id) in ids.iter().enumerate() {
        tx.execute(domain(id, &tenant_id(0), &format!("h{n}.acme.test"), due_at)).await.unwrap();
    }
    tx.commit().await.unwrap();
    ids
}
