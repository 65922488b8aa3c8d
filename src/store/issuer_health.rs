//! What is remembered of the CAs' answers: failures in a row, until when nothing is asked, why our account cannot be used, and
//! what is odd about a CA that answers well.

use std::collections::HashMap;
use std::time::Duration;

use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::id::IssuerId;
use crate::model::issuer::{ASK_AGAIN, Health, IssuerNews, LONGEST_TOLD, ODD_FOR, OPEN_FOR, Oddity, THRESHOLD};
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
        halts: row.int("halts")?,
        check_at: row.opt_moment("check_at")?,
    })
}

/// What is odd about issuers, by their names: what, and in whose words.
pub async fn oddities(store: &Store, now: Moment) -> StoreResult<Vec<(String, Oddity, String)>> {
    let stmt = sql("SELECT i.name, x.oddity, x.said FROM issuer_oddities x JOIN issuers i ON i.id = x.issuer_id \
         WHERE x.at > $1 ORDER BY i.name, x.oddity")
    .bind(now - ODD_FOR);
    let rows = store.query(stmt).await?;
    rows.iter().map(|row| Ok((row.text("name")?, row.parse("oddity")?, row.text("said")?))).collect()
}

/// Remembers what a call told of its CA. Failures while the circuit is open are of calls begun before: they add nothing, nor does
/// what was said of an account that is known to be of no use.
///
/// That an account is gone counts only if it was asked with the key that it has: another is just being given to it, or was.
pub fn news(id: &IssuerId, news: &IssuerNews, sealed_key: Option<&[u8]>, now: Moment) -> Stmt {
    match news {
        // What it asked everybody to wait is kept, though what was placed before goes on.
        IssuerNews::Answers => sql("UPDATE issuer_health SET failures = 0, halts = 0, \
               open_until = CASE WHEN failures < $2 THEN open_until ELSE 0 END \
             WHERE issuer_id = $1 AND (failures > 0 OR halts > 0)")
        .bind(id.as_str())
        .bind(THRESHOLD),
        IssuerNews::Failed { said, told } => {
            let told = told.map_or(Duration::ZERO, |told| told.min(LONGEST_TOLD));
            let until = if told.is_zero() { Moment::default() } else { now + told };
            OPEN_FOR
                .iter()
                .fold(
                    sql(
                        "INSERT INTO issuer_health (issuer_id, failures, open_until, said, at) VALUES ($1, 1, $10, $2, $3) \
                     ON CONFLICT (issuer_id) DO UPDATE SET failures = issuer_health.failures + 1, said = excluded.said, \
                       at = excluded.at, open_until = CASE WHEN issuer_health.failures < 4 THEN excluded.open_until \
                         WHEN issuer_health.failures = 4 THEN $4 WHEN issuer_health.failures = 5 THEN $5 \
                         WHEN issuer_health.failures = 6 THEN $6 WHEN issuer_health.failures = 7 THEN $7 \
                         WHEN issuer_health.failures = 8 THEN $8 ELSE $9 END \
                     WHERE issuer_health.open_until <= $3",
                    )
                    .bind(id.as_str())
                    .bind(said.as_str())
                    .bind(now),
                    |stmt, wait| stmt.bind(now + told.max(*wait)),
                )
                .bind(until)
        }
        IssuerNews::Halted(said) => halted(id, said, sealed_key, i64::MAX, now),
        IssuerNews::InDoubt(said) => halted(id, said, sealed_key, 0, now),
        IssuerNews::Odd(oddity, said) => {
            sql("INSERT INTO issuer_oddities (issuer_id, oddity, said, at) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (issuer_id, oddity) DO UPDATE SET said = excluded.said, at = excluded.at")
            .bind(id.as_str())
            .bind(oddity.as_str())
            .bind(said.as_str())
            .bind(now)
        }
        IssuerNews::Usual(oddity) => {
            sql("DELETE FROM issuer_oddities WHERE issuer_id = $1 AND oddity = $2").bind(id.as_str()).bind(oddity.as_str())
        }
    }
}

/// Our account cannot be used, unless that was found already, or so often in a row.
fn halted(id: &IssuerId, said: &str, sealed_key: Option<&[u8]>, at_most: i64, now: Moment) -> Stmt {
    again_later(
        sql("INSERT INTO issuer_health (issuer_id, failures, open_until, said, at, halted, halts, check_at) \
             SELECT i.id, 0, 0, $2, $3, $2, 1, $4 FROM issuers i \
             WHERE i.id = $1 AND i.account_key = $8 AND i.next_account_key IS NULL \
             ON CONFLICT (issuer_id) DO UPDATE SET said = excluded.said, at = excluded.at, halted = excluded.halted, \
               halts = issuer_health.halts + 1, check_at = CASE WHEN issuer_health.halts = 0 THEN $4 \
                 WHEN issuer_health.halts = 1 THEN $5 WHEN issuer_health.halts = 2 THEN $6 ELSE $7 END \
             WHERE issuer_health.halted IS NULL AND issuer_health.halts <= $9")
        .bind(id.as_str())
        .bind(said)
        .bind(now),
        now,
    )
    .bind(sealed_key.map(<[u8]>::to_vec))
    .bind(at_most)
}

/// Binds the moments at which the CA is asked about the account again, after the first time, the second and so on.
fn again_later(stmt: Stmt, now: Moment) -> Stmt {
    ASK_AGAIN.iter().fold(stmt, |stmt, wait| stmt.bind(now + *wait))
}

/// The CA says that the account is well: orders go on. That it could not be used is remembered until one was taken.
pub async fn account_is_well(store: &Store, id: &IssuerId) -> StoreResult<()> {
    let stmt = sql("UPDATE issuer_health SET halted = NULL, check_at = NULL WHERE issuer_id = $1").bind(id.as_str());
    store.execute(stmt).await.map(|_| ())
}

/// The account cannot be used still, in these words; or the CA could not be asked.
pub async fn account_is_not_well(store: &Store, id: &IssuerId, said: &str, now: Moment) -> StoreResult<()> {
    let stmt =
        sql("UPDATE issuer_health SET said = $2, at = $3, halts = halts + 1, check_at = CASE WHEN halts = 0 THEN $4 \
           WHEN halts = 1 THEN $5 WHEN halts = 2 THEN $6 ELSE $7 END WHERE issuer_id = $1")
        .bind(id.as_str())
        .bind(said)
        .bind(now);
    store.execute(again_later(stmt, now)).await.map(|_| ())
}

/// An operator has seen to it: the circuit is closed, the account is asked for at once.
pub async fn trust_again(tx: &mut Tx, id: &IssuerId) -> StoreResult<()> {
    tx.execute(
        sql("UPDATE issuer_health SET failures = 0, open_until = 0, halted = NULL, halts = 0, check_at = NULL \
             WHERE issuer_id = $1")
        .bind(id.as_str()),
    )
    .await?;
    tx.execute(sql("UPDATE issuers SET lease_until = 0 WHERE id = $1 AND account_url IS NULL").bind(id.as_str())).await?;
    Ok(())
}
