//! Lists of domains, each by an index, page by page.

use super::counts::actor;
use crate::model::claim::Claim;
use crate::model::evidence::Actor;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::moment::Moment;
use crate::model::search;
use crate::model::standing::Standing;
use crate::store::{Row, StoreResult, Tx, sql};

/// A domain in an operator's list.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct FleetRow {
    pub id: DomainId,
    pub tenant_id: TenantId,
    pub tenant_slug: String,
    pub hostname: Hostname,
    pub claim: Claim,
    pub standing: Option<Standing>,
    pub acts: Actor,
    pub since: Moment,
    pub due_at: Moment,
    pub certificate_until: Option<Moment>,
}

fn read(row: &Row) -> StoreResult<FleetRow> {
    Ok(FleetRow {
        id: row.parse("id")?,
        tenant_id: row.parse("tenant_id")?,
        tenant_slug: row.text("slug")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
        claim: row.parse("claim")?,
        standing: Standing::from_code(&row.text("standing")?),
        acts: actor(row)?,
        since: row.moment("standing_since")?,
        due_at: row.moment("due_at")?,
        certificate_until: row.opt_moment("certificate_until")?,
    })
}

/// After which row a list by time begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// The row's time.
    pub at: Moment,
    /// The row.
    pub id: String,
}

impl Default for After {
    fn default() -> Self {
        After { at: Moment::from_micros(i64::MIN), id: String::new() }
    }
}

/// Who stands there, longest first.
pub async fn by_standing(tx: &mut Tx, standing: Standing, after: &After, limit: i64) -> StoreResult<Vec<FleetRow>> {
    let query =
        sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.standing, d.acts, d.standing_since, d.due_at, \
           d.certificate_until FROM domains d JOIN tenants t ON t.id = d.tenant_id \
         WHERE d.standing = $1 AND (d.standing_since, d.id) > ($2, $3) ORDER BY d.standing_since, d.id LIMIT $4")
        .bind(standing.code())
        .bind(after.at)
        .bind(after.id.as_str())
        .bind(limit);
    tx.fetch_all(query).await?.iter().map(read).collect()
}

/// Who waits for this actor, longest first.
pub async fn by_actor(tx: &mut Tx, acts: Actor, after: &After, limit: i64) -> StoreResult<Vec<FleetRow>> {
    let query =
        sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.standing, d.acts, d.standing_since, d.due_at, \
           d.certificate_until FROM domains d JOIN tenants t ON t.id = d.tenant_id \
         WHERE d.acts = $1 AND (d.standing_since, d.id) > ($2, $3) ORDER BY d.standing_since, d.id LIMIT $4")
        .bind(acts.as_str())
        .bind(after.at)
        .bind(after.id.as_str())
        .bind(limit);
    tx.fetch_all(query).await?.iter().map(read).collect()
}

/// Whose certificate in use ends before `until`, the soonest first.
pub async fn ending(tx: &mut Tx, until: Moment, after: &After, limit: i64) -> StoreResult<Vec<FleetRow>> {
    let query =
        sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.standing, d.acts, d.standing_since, d.due_at, \
           d.certificate_until FROM domains d JOIN tenants t ON t.id = d.tenant_id \
         WHERE d.certificate_until < $1 AND (d.certificate_until, d.id) > ($2, $3) \
         ORDER BY d.certificate_until, d.id LIMIT $4")
        .bind(until)
        .bind(after.at)
        .bind(after.id.as_str())
        .bind(limit);
    tx.fetch_all(query).await?.iter().map(read).collect()
}

/// The domains of one tenant, the oldest first.
pub async fn of_tenant(tx: &mut Tx, tenant: &TenantId, after: &str, limit: i64) -> StoreResult<Vec<FleetRow>> {
    let query =
        sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.standing, d.acts, d.standing_since, d.due_at, \
           d.certificate_until FROM domains d JOIN tenants t ON t.id = d.tenant_id \
         WHERE d.tenant_id = $1 AND d.id > $2 ORDER BY d.id LIMIT $3")
        .bind(tenant.as_str())
        .bind(after)
        .bind(limit);
    tx.fetch_all(query).await?.iter().map(read).collect()
}

/// A domain that a search found, and by which word.
pub struct Found {
    /// The word.
    pub word: String,
    /// The domain.
    pub row: FleetRow,
}

/// Which domains have a word that begins with `needle`, in order of the words after `(word, id)`. The page of words is cut
/// before it is joined: a planner that thinks a range of words is wide would otherwise read whole tables and cut last. It begins
/// by one condition alone: beside a second one on the word, PostgreSQL begins at the wrong of the two and reads all before it.
pub async fn search(tx: &mut Tx, needle: &str, after: (&str, &str), limit: i64) -> StoreResult<Vec<Found>> {
    let begin = after.max((needle, ""));
    let query = sql("SELECT w.word, d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.standing, d.acts, d.standing_since, \
           d.due_at, d.certificate_until FROM (SELECT word, domain_id FROM domain_words \
             WHERE (word, domain_id) > ($1, $2) AND word < $3 ORDER BY word, domain_id LIMIT $4) w \
         JOIN domains d ON d.id = w.domain_id JOIN tenants t ON t.id = d.tenant_id")
    .bind(begin.0)
    .bind(begin.1)
    .bind(search::end_of(needle))
    .bind(limit);
    let rows = tx.fetch_all(query).await?;
    let found = rows.iter().map(|row| Ok(Found { word: row.text("word")?, row: read(row)? }));
    // The page came out of the index in order; the join owes none, and a page is put in order sooner here.
    let mut found = found.collect::<StoreResult<Vec<Found>>>()?;
    found.sort_by(|a, b| (&a.word, a.row.id.as_str()).cmp(&(&b.word, b.row.id.as_str())));
    Ok(found)
}

/// All claims on a hostname, the latest first.
pub async fn claims_on(tx: &mut Tx, hostname: &Hostname, limit: i64) -> StoreResult<Vec<FleetRow>> {
    let query =
        sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.standing, d.acts, d.standing_since, d.due_at, \
           d.certificate_until FROM domains d JOIN tenants t ON t.id = d.tenant_id \
         WHERE d.hostname = $1 ORDER BY d.id DESC LIMIT $2")
        .bind(hostname.as_str())
        .bind(limit);
    tx.fetch_all(query).await?.iter().map(read).collect()
}

/// The claims of one tenant on a hostname, the latest first.
pub async fn own_claims_on(tx: &mut Tx, hostname: &Hostname, tenant: &TenantId, limit: i64) -> StoreResult<Vec<FleetRow>> {
    let query =
        sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.standing, d.acts, d.standing_since, d.due_at, \
           d.certificate_until FROM domains d JOIN tenants t ON t.id = d.tenant_id \
         WHERE d.hostname = $1 AND d.tenant_id = $2 ORDER BY d.id DESC LIMIT $3")
        .bind(hostname.as_str())
        .bind(tenant.as_str())
        .bind(limit);
    tx.fetch_all(query).await?.iter().map(read).collect()
}
