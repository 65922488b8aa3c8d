//! What the portal's pages read: a tenant's domains by name, the rest of a history, and where the stream of events stands.

use super::views::{EventRow, event};
use super::{Row, StoreResult, Tx, sql};
use crate::model::bulk::Hold;
use crate::model::claim::Claim;
use crate::model::evidence::Evidence;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, ImportId, TenantId};
use crate::model::moment::Moment;
use crate::model::order::OrderState;

/// A domain as the list shows it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct ListedRow {
    pub id: DomainId,
    pub hostname: Hostname,
    pub claim: Claim,
    pub evidence: Vec<Evidence>,
    pub order_state: Option<OrderState>,
    pub not_after: Option<Moment>,
    pub active: bool,
    pub failures: i64,
    pub held: Option<Hold>,
    pub created_at: Moment,
}

/// Which domains a list holds, and where it begins.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Of this tenant.
    pub tenant: TenantId,
    /// With this in their name.
    pub part: String,
    /// In one of these states; in any where there are none.
    pub claims: Vec<Claim>,
    /// After this name and id.
    pub after: Option<(String, String)>,
}

/// A tenant's domains in order of their names.
pub async fn list(tx: &mut Tx, listing: &Listing, limit: i64) -> StoreResult<Vec<ListedRow>> {
    let (name, id) = listing.after.clone().unwrap_or_default();
    let escaped = listing.part.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    let claims: String = listing.claims.iter().map(|claim| format!(",{claim}")).collect();
    let claims = if claims.is_empty() { claims } else { claims + "," };
    let query = sql("SELECT d.id, d.hostname, d.claim, d.evidence, d.failures, d.active_since, d.created_at, m.hold, \
           (SELECT c.not_after FROM certificates c WHERE c.id = d.certificate_id AND c.destroyed_at IS NULL) AS not_after, \
           (SELECT o.state FROM orders o WHERE o.domain_id = d.id ORDER BY o.created_at DESC, o.id DESC LIMIT 1) AS order_state \
         FROM domains d LEFT JOIN imports m ON m.id = d.import_id AND d.lane = 'bulk' \
         WHERE d.tenant_id = $1 AND (d.hostname, d.id) > ($2, $3) AND d.hostname LIKE $4 ESCAPE '!' \
           AND ($5 = '' OR $5 LIKE '%,' || d.claim || ',%') ORDER BY d.hostname, d.id LIMIT $6")
    .bind(listing.tenant.as_str())
    .bind(name)
    .bind(id)
    .bind(format!("%{escaped}%"))
    .bind(claims)
    .bind(limit);
    tx.fetch_all(query).await?.iter().map(listed).collect()
}

/// Claims that an import made, in one state, after this one.
pub async fn of_import(
    tx: &mut Tx,
    import: &ImportId,
    claim: Claim,
    after: Option<&DomainId>,
    limit: i64,
) -> StoreResult<Vec<ListedRow>> {
    let query = sql("SELECT d.id, d.hostname, d.claim, d.evidence, d.failures, d.active_since, d.created_at, m.hold, \
           (SELECT c.not_after FROM certificates c WHERE c.id = d.certificate_id AND c.destroyed_at IS NULL) AS not_after, \
           (SELECT o.state FROM orders o WHERE o.domain_id = d.id ORDER BY o.created_at DESC, o.id DESC LIMIT 1) AS order_state \
         FROM domains d LEFT JOIN imports m ON m.id = d.import_id AND d.lane = 'bulk' \
         WHERE d.import_id = $1 AND d.claim = $2 AND d.id > $3 ORDER BY d.id LIMIT $4")
    .bind(import.as_str())
    .bind(claim.as_str())
    .bind(after.map_or("", DomainId::as_str))
    .bind(limit);
    tx.fetch_all(query).await?.iter().map(listed).collect()
}

fn listed(row: &Row) -> StoreResult<ListedRow> {
    Ok(ListedRow {
        id: row.parse("id")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
        claim: row.parse("claim")?,
        evidence: row.json("evidence")?,
        order_state: row.opt_parse("order_state")?,
        not_after: row.opt_moment("not_after")?,
        active: row.opt_int("active_since")?.is_some(),
        failures: row.int("failures")?,
        held: row.opt_parse("hold")?,
        created_at: row.moment("created_at")?,
    })
}

/// A domain's events before its `before`th, latest first.
pub async fn history(tx: &mut Tx, id: &DomainId, before: i64, limit: i64) -> StoreResult<Vec<EventRow>> {
    let query = sql("SELECT * FROM events WHERE domain_id = $1 AND domain_seq < $2 ORDER BY domain_seq DESC LIMIT $3");
    tx.fetch_all(query.bind(id.as_str()).bind(before).bind(limit)).await?.iter().map(event).collect()
}

/// How far the stream of events has come.
pub async fn position(tx: &mut Tx) -> StoreResult<i64> {
    let row = tx.fetch_optional(sql("SELECT MAX(position) AS position FROM events")).await?;
    row.map_or(Ok(0), |row| Ok(row.opt_int("position")?.unwrap_or(0)))
}

/// A numbered event, as far as the live pages need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its place in the stream.
    pub position: i64,
    /// Whose it is.
    pub tenant_id: Option<TenantId>,
    /// What it is about.
    pub domain_id: Option<DomainId>,
}

/// What moved after `position`.
pub async fn moved(tx: &mut Tx, position: i64, limit: i64) -> StoreResult<Vec<Moved>> {
    let query = sql("SELECT position, tenant_id, domain_id FROM events WHERE position > $1 ORDER BY position LIMIT $2");
    let rows = tx.fetch_all(query.bind(position).bind(limit)).await?;
    rows.iter()
        .map(|row| {
            Ok(Moved {
                position: row.int("position")?,
                tenant_id: row.opt_parse("tenant_id")?,
                domain_id: row.opt_parse("domain_id")?,
            })
        })
        .collect()
}

/// The names in a domain's certificate in use.
pub async fn certificate_names(tx: &mut Tx, id: &DomainId) -> StoreResult<Vec<String>> {
    let query = sql("SELECT n.name FROM certificate_names n JOIN domains d ON d.certificate_id = n.certificate_id \
         WHERE d.id = $1 ORDER BY n.name");
    tx.fetch_all(query.bind(id.as_str())).await?.iter().map(|row| row.text("name")).collect()
}
