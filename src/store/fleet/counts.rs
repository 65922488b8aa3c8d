//! How many there are of everything. The whole-fleet counts read a covering index from end to end; nobody asks for them once a
//! page view.

use crate::model::claim::Claim;
use crate::model::evidence::Actor;
use crate::model::id::TenantId;
use crate::model::moment::Moment;
use crate::model::standing::Standing;
use crate::store::{Row, StoreError, StoreResult, Tx, sql};

/// So many domains stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The claim.
    pub claim: Claim,
    /// What blocks them; nothing for a word of another release.
    pub standing: Option<Standing>,
    /// Whose move it is.
    pub acts: Actor,
    /// How many.
    pub domains: i64,
}

fn count(row: &Row) -> StoreResult<Count> {
    Ok(Count {
        claim: row.parse("claim")?,
        standing: Standing::from_code(&row.text("standing")?),
        acts: actor(row)?,
        domains: row.int("n")?,
    })
}

/// The actor of a row; a row that nobody judged yet waits for the platform.
pub(super) fn actor(row: &Row) -> StoreResult<Actor> {
    let word = row.text("acts")?;
    match Actor::from_word(&word) {
        Some(actor) => Ok(actor),
        None if word.is_empty() => Ok(Actor::Platform),
        None => Err(StoreError::Inconsistent { column: "acts".to_owned(), seen: word, expected: "an actor" }),
    }
}

/// The whole fleet.
pub async fn fleet(tx: &mut Tx) -> StoreResult<Vec<Count>> {
    let query = sql("SELECT claim, standing, acts, count(*) AS n FROM domains GROUP BY claim, standing, acts");
    tx.fetch_all(query).await?.iter().map(count).collect()
}

/// The domains of one tenant.
pub async fn of_tenant(tx: &mut Tx, tenant: &TenantId) -> StoreResult<Vec<Count>> {
    let query = sql("SELECT claim, standing, acts, count(*) AS n FROM domains WHERE tenant_id = $1 \
         GROUP BY claim, standing, acts");
    tx.fetch_all(query.bind(tenant.as_str())).await?.iter().map(count).collect()
}

/// The domains of the tenants from one id to another, tenant by tenant.
pub async fn of_tenants(tx: &mut Tx, first: &TenantId, last: &TenantId) -> StoreResult<Vec<(TenantId, Count)>> {
    let query = sql("SELECT tenant_id, claim, standing, acts, count(*) AS n FROM domains \
         WHERE tenant_id >= $1 AND tenant_id <= $2 GROUP BY tenant_id, claim, standing, acts");
    let rows = tx.fetch_all(query.bind(first.as_str()).bind(last.as_str())).await?;
    rows.iter().map(|row| Ok((row.parse("tenant_id")?, count(row)?))).collect()
}

/// Days since 1970 on which certificates in use end before `until`, each with how many.
pub async fn ending_by_day(tx: &mut Tx, until: Moment) -> StoreResult<Vec<(i64, i64)>> {
    let query =
        sql("SELECT certificate_until / 86400000000 AS day, count(*) AS n FROM domains WHERE certificate_until < $1 \
         GROUP BY certificate_until / 86400000000 ORDER BY day");
    tx.fetch_all(query.bind(until)).await?.iter().map(|row| Ok((row.int("day")?, row.int("n")?))).collect()
}

/// How many certificates in use have ended, up to `at_most`.
pub async fn ended(tx: &mut Tx, now: Moment, at_most: i64) -> StoreResult<i64> {
    let query = sql("SELECT count(*) AS n FROM (SELECT 1 AS one FROM domains WHERE certificate_until <= $1 LIMIT $2) e");
    tx.fetch_optional(query.bind(now).bind(at_most)).await?.map_or(Ok(0), |row| row.int("n"))
}
