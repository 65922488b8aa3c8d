//! Answers kept for requests that are sent again under the same key. A row is written, with its answer, in the transaction
//! that did what was asked: either both are there or neither.

use super::{Stmt, Store, StoreResult, Tx, sql};
use crate::model::moment::Moment;

/// Takes a key for this transaction, unless somebody has it whose time is not up; whoever is about to commit it is waited
/// for. The digest says which request it stands for.
pub fn take(principal: &str, key: &str, request: &[u8], now: Moment, expires_at: Moment) -> Stmt {
    sql("INSERT INTO kept_answers (principal, key, request, answer, kept_at, expires_at) VALUES ($1, $2, $3, NULL, $4, $5) \
         ON CONFLICT (principal, key) DO UPDATE SET request = excluded.request, answer = NULL, kept_at = excluded.kept_at, \
           expires_at = excluded.expires_at WHERE kept_answers.expires_at <= excluded.kept_at")
    .bind(principal)
    .bind(key)
    .bind(request)
    .bind(now)
    .bind(expires_at)
}

/// What stands under a key: the digest of its request, and the sealed answer.
pub async fn lookup(tx: &mut Tx, principal: &str, key: &str) -> StoreResult<Option<(Vec<u8>, Option<Vec<u8>>)>> {
    let stmt = sql("SELECT request, answer FROM kept_answers WHERE principal = $1 AND key = $2").bind(principal).bind(key);
    tx.fetch_optional(stmt).await?.map(|row| Ok((row.blob("request")?, row.opt_blob("answer")?))).transpose()
}

/// Writes the sealed answer beside what was done.
pub fn keep(principal: &str, key: &str, answer: &[u8]) -> Stmt {
    sql("UPDATE kept_answers SET answer = $3 WHERE principal = $1 AND key = $2").bind(principal).bind(key).bind(answer)
}

/// Removes those whose time is up; how many.
pub async fn prune(store: &Store, now: Moment) -> StoreResult<u64> {
    store.execute(sql("DELETE FROM kept_answers WHERE expires_at <= $1").bind(now)).await
}
