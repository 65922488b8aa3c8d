//! What is remembered of the CAs' answers: failures in a row, until when nothing is asked, why only an operator can help.

use std::collections::HashMap;

use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::id::IssuerId;
use crate::model::issuer::{Health, IssuerNews, OPEN_FOR};
use crate::model::moment::Moment;

/// What is remembered of the CAs' answers.
pub async fn all(store: &Store) -> StoreResult<HashMap<IssuerId, Health>> {
    let rows = store.query(sql("SELECT * FROM issuer_health")).await?;
    rows.iter().map(|row| Ok((row.parse("issuer_id")?, health_of_row(row)?))).collect()
}

/// What is remembered of one CA's answers.
pub async fn of(tx: &mut Tx, id: &IssuerId) -> StoreResult<Health> {
    let row = tx.fetch_optional(sql("SELECT * FROM issuer_health WHERE issuer_id = $1").bind(id.as_str())).await?;
    row.as_ref().map_or_else(|| Ok(Health::default()), health_of_row)
}

fn health_of_row(row: &Row) -> StoreResult<Health> {
    Ok(Health {
        failures: row.int("failures")?,
        open_until: row.moment("open_until")?,
        said: row.opt_text("said")?,
        at: row.opt_moment("at")?,
        halted: row.opt_text("halted")?,
    })
}

/// Remembers what a call told of its CA. Failures while the circuit is open are of calls begun before: they add nothing.
///
/// That an account is gone counts only if it was asked with the key that it has: another is just being given to it, or was.
pub fn news(id: &IssuerId, news: &IssuerNews, sealed_key: Option<&[u8]>, now: Moment) -> Stmt {
    match news {
        IssuerNews::Answers => {
            sql("UPDATE issuer_health SET failures = 0, open_until = 0 WHERE issuer_id = $1 AND failures > 0")
                .bind(id.as_str())
        }
        IssuerNews::Failed(said) => OPEN_FOR.iter().fold(
            sql("INSERT INTO issuer_health (issuer_id, failures, open_until, said, at) VALUES ($1, 1, 0, $2, $3) \
                 ON CONFLICT (issuer_id) DO UPDATE SET failures = issuer_health.failures + 1, said = excluded.said, \
                   at = excluded.at, open_until = CASE WHEN issuer_health.failures < 4 THEN 0 \
                     WHEN issuer_health.failures = 4 THEN $4 WHEN issuer_health.failures = 5 THEN $5 \
                     WHEN issuer_health.failures = 6 THEN $6 WHEN issuer_health.failures = 7 THEN $7 \
                     WHEN issuer_health.failures = 8 THEN $8 ELSE $9 END \
                 WHERE issuer_health.open_until <= $3")
            .bind(id.as_str())
            .bind(said.as_str())
            .bind(now),
            |stmt, wait| stmt.bind(now + *wait),
        ),
        IssuerNews::Halted(said) => sql("INSERT INTO issuer_health (issuer_id, failures, open_until, said, at, halted) \
             SELECT i.id, 0, 0, $2, $3, $2 FROM issuers i \
             WHERE i.id = $1 AND i.account_key = $4 AND i.next_account_key IS NULL \
             ON CONFLICT (issuer_id) DO UPDATE SET said = excluded.said, at = excluded.at, halted = excluded.halted")
        .bind(id.as_str())
        .bind(said.as_str())
        .bind(now)
        .bind(sealed_key.map(<[u8]>::to_vec)),
    }
}

/// An operator has seen to it: the circuit is closed, the account is asked for at once.
pub async fn trust_again(tx: &mut Tx, id: &IssuerId) -> StoreResult<()> {
    tx.execute(
        sql("UPDATE issuer_health SET failures = 0, open_until = 0, halted = NULL WHERE issuer_id = $1").bind(id.as_str()),
    )
    .await?;
    tx.execute(sql("UPDATE issuers SET lease_until = 0 WHERE id = $1 AND account_url IS NULL").bind(id.as_str())).await?;
    Ok(())
}
