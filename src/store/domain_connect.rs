//! What Domain Connect offers, by domain: found beside the looks, read by pages.

use super::{Stmt, StoreResult, Tx, sql};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::moment::Moment;

/// A domain whose offer nobody has asked for, or not for long.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct Due {
    pub id: DomainId,
    pub tenant_id: TenantId,
    pub hostname: Hostname,
}

/// Those of them that wait for DNS, of each tenant in turn; of one tenant the newest first: somebody sits before it.
pub async fn due(tx: &mut Tx, now: Moment, limit: i64) -> StoreResult<Vec<Due>> {
    let query = sql("SELECT w.id, w.tenant_id, w.hostname FROM (SELECT d.id, d.tenant_id, d.hostname, d.created_at, \
           row_number() OVER (PARTITION BY d.tenant_id ORDER BY d.created_at DESC, d.id) AS turn \
           FROM domains d LEFT JOIN domain_connect c ON c.domain_id = d.id \
           WHERE d.claim = 'awaiting_dns' AND (c.due_at IS NULL OR c.due_at <= $1)) w \
         ORDER BY w.turn, w.created_at DESC, w.id LIMIT $2")
    .bind(now)
    .bind(limit);
    let read = |row: &super::Row| {
        Ok(Due {
            id: row.parse("id")?,
            tenant_id: row.parse("tenant_id")?,
            hostname: Hostname::trusted(&row.text("hostname")?),
        })
    };
    tx.fetch_all(query).await?.iter().map(read).collect()
}

/// Takes a domain's question for oneself until `until`; one row where nobody else has it.
pub fn take(id: &DomainId, now: Moment, until: Moment) -> Stmt {
    sql("INSERT INTO domain_connect (domain_id, zone, offer, looked_at, due_at) VALUES ($1, '', NULL, $2, $3) \
         ON CONFLICT (domain_id) DO UPDATE SET due_at = excluded.due_at WHERE domain_connect.due_at <= excluded.looked_at")
    .bind(id.as_str())
    .bind(now)
    .bind(until)
}

/// Writes what was found.
pub fn found(id: &DomainId, zone: &str, offer: Option<&str>, now: Moment, due_at: Moment) -> Stmt {
    sql("UPDATE domain_connect SET zone = $2, offer = $3, looked_at = $4, due_at = $5 WHERE domain_id = $1")
        .bind(id.as_str())
        .bind(zone)
        .bind(offer)
        .bind(now)
        .bind(due_at)
}

/// What was found for another name of the same zone since `since`: nobody asks a provider twice.
pub async fn of_zone(tx: &mut Tx, zone: &str, since: Moment) -> StoreResult<Option<Option<String>>> {
    let query = sql("SELECT offer FROM domain_connect WHERE zone = $1 AND looked_at > $2 ORDER BY looked_at DESC LIMIT 1")
        .bind(zone)
        .bind(since);
    tx.fetch_optional(query).await?.map(|row| row.opt_text("offer")).transpose()
}

/// The offer for a domain, with its zone.
pub async fn lookup(tx: &mut Tx, id: &DomainId) -> StoreResult<Option<(String, String)>> {
    let query = sql("SELECT zone, offer FROM domain_connect WHERE domain_id = $1 AND offer IS NOT NULL").bind(id.as_str());
    tx.fetch_optional(query).await?.map(|row| Ok((row.text("zone")?, row.text("offer")?))).transpose()
}
