//! Small reads that a step needs now and then: earlier values, a challenge's token.

use super::{Store, StoreResult, sql};
use crate::model::id::{AttemptId, ChallengeId, DomainId};

/// Values of a domain's earlier attempts: shown as such, never accepted.
pub async fn superseded(store: &Store, domain: &DomainId, present: &AttemptId) -> StoreResult<Vec<String>> {
    let stmt = sql("SELECT value FROM attempts WHERE domain_id = $1 AND id <> $2 ORDER BY opened_at")
        .bind(domain.as_str())
        .bind(present.as_str());
    store.query(stmt).await?.iter().map(|row| row.text("value")).collect()
}

/// The token of a challenge and its answer.
pub async fn token_of(store: &Store, challenge: Option<&ChallengeId>) -> StoreResult<Option<(String, String)>> {
    let Some(challenge) = challenge else { return Ok(None) };
    let stmt = sql("SELECT token, key_authorization FROM challenges WHERE id = $1").bind(challenge.as_str());
    let rows = store.query(stmt).await?;
    rows.first().map(|row| Ok((row.text("token")?, row.text("key_authorization")?))).transpose()
}
