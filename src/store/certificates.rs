//! What is known of certificates; their keys stay where they are.

use super::{Row, Store, StoreResult, sql};
use crate::model::id::{CertificateId, DomainId, TenantId};
use crate::model::moment::Moment;

/// A certificate without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct CertificateMeta {
    pub id: CertificateId,
    pub domain_id: Option<DomainId>,
    pub tenant_id: Option<TenantId>,
    pub source: String,
    pub issuer: Option<String>,
    pub names: Vec<String>,
    pub serial: String,
    pub fingerprint: String,
    pub not_before: Moment,
    pub not_after: Moment,
    pub stored_at: Moment,
    /// Whether it is the one that its domain is served with.
    pub in_use: bool,
}

/// Which certificates a list holds; those destroyed are in none.
#[derive(Clone, Debug, Default)]
pub struct CertificateFilter {
    /// Of this tenant only.
    pub tenant: Option<TenantId>,
    /// Of this domain only.
    pub domain: Option<DomainId>,
    /// That end before this moment.
    pub before: Option<Moment>,
    /// After this end and id.
    pub after: Option<(Moment, CertificateId)>,
}

/// The list, those that end first in front.
pub async fn list(store: &Store, filter: &CertificateFilter, limit: i64) -> StoreResult<Vec<CertificateMeta>> {
    let (end, id) = match &filter.after {
        Some((end, id)) => (*end, id.as_str()),
        None => (Moment::from_micros(i64::MIN), ""),
    };
    let before = filter.before.unwrap_or(Moment::NEVER);
    let query = match (&filter.domain, &filter.tenant) {
        (Some(domain), tenant) => sql("SELECT c.id, c.domain_id, c.tenant_id, c.source, i.name AS issuer, c.serial, \
               c.fingerprint, c.not_before, c.not_after, c.stored_at, d.certificate_id AS used \
             FROM certificates c LEFT JOIN issuers i ON i.id = c.issuer_id LEFT JOIN domains d ON d.id = c.domain_id \
             WHERE c.domain_id = $5 AND ($6 = '' OR c.tenant_id = $6) AND c.destroyed_at IS NULL AND c.not_after < $3 \
               AND (c.not_after > $1 OR (c.not_after = $1 AND c.id > $2)) ORDER BY c.not_after, c.id LIMIT $4")
        .bind(end)
        .bind(id)
        .bind(before)
        .bind(limit)
        .bind(domain.as_str())
        .bind(tenant.as_ref().map_or("", TenantId::as_str)),
        (None, Some(tenant)) => sql("SELECT c.id, c.domain_id, c.tenant_id, c.source, i.name AS issuer, c.serial, \
               c.fingerprint, c.not_before, c.not_after, c.stored_at, d.certificate_id AS used \
             FROM certificates c LEFT JOIN issuers i ON i.id = c.issuer_id LEFT JOIN domains d ON d.id = c.domain_id \
             WHERE c.tenant_id = $5 AND c.destroyed_at IS NULL AND c.not_after < $3 AND c.not_after >= $1 \
               AND (c.not_after > $1 OR (c.not_after = $1 AND c.id > $2)) ORDER BY c.not_after, c.id LIMIT $4")
        .bind(end)
        .bind(id)
        .bind(before)
        .bind(limit)
        .bind(tenant.as_str()),
        (None, None) => sql("SELECT c.id, c.domain_id, c.tenant_id, c.source, i.name AS issuer, c.serial, \
               c.fingerprint, c.not_before, c.not_after, c.stored_at, d.certificate_id AS used \
             FROM certificates c LEFT JOIN issuers i ON i.id = c.issuer_id LEFT JOIN domains d ON d.id = c.domain_id \
             WHERE c.destroyed_at IS NULL AND c.not_after < $3 AND c.not_after >= $1 \
               AND (c.not_after > $1 OR (c.not_after = $1 AND c.id > $2)) ORDER BY c.not_after, c.id LIMIT $4")
        .bind(end)
        .bind(id)
        .bind(before)
        .bind(limit),
    };
    let mut found = Vec::new();
    for row in store.query(query).await? {
        let names = names(store, &row.text("id")?).await?;
        found.push(certificate(&row, names)?);
    }
    Ok(found)
}

/// One certificate.
pub async fn lookup(store: &Store, id: &CertificateId) -> StoreResult<Option<CertificateMeta>> {
    let query = sql("SELECT c.id, c.domain_id, c.tenant_id, c.source, i.name AS issuer, c.serial, \
           c.fingerprint, c.not_before, c.not_after, c.stored_at, d.certificate_id AS used \
         FROM certificates c LEFT JOIN issuers i ON i.id = c.issuer_id LEFT JOIN domains d ON d.id = c.domain_id \
         WHERE c.id = $1 AND c.destroyed_at IS NULL");
    match store.query(query.bind(id.as_str())).await?.first() {
        None => Ok(None),
        Some(row) => Ok(Some(certificate(row, names(store, id.as_str()).await?)?)),
    }
}

async fn names(store: &Store, id: &str) -> StoreResult<Vec<String>> {
    let query = sql("SELECT name FROM certificate_names WHERE certificate_id = $1 ORDER BY name").bind(id);
    store.query(query).await?.iter().map(|row| row.text("name")).collect()
}

fn certificate(row: &Row, names: Vec<String>) -> StoreResult<CertificateMeta> {
    let id: CertificateId = row.parse("id")?;
    Ok(CertificateMeta {
        in_use: row.opt_text("used")?.as_deref() == Some(id.as_str()),
        id,
        domain_id: row.opt_parse("domain_id")?,
        tenant_id: row.opt_parse("tenant_id")?,
        source: row.text("source")?,
        issuer: row.opt_text("issuer")?,
        names,
        serial: row.text("serial")?,
        fingerprint: row.text("fingerprint")?,
        not_before: row.moment("not_before")?,
        not_after: row.moment("not_after")?,
        stored_at: row.moment("stored_at")?,
    })
}
