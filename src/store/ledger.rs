//! What was spent at a CA: rows of the ledger with their open spends.
//!
//! Whoever decides about names asks for their keys, and reads a row together with its open spends in one statement, so that an
//! answer that settles meanwhile is seen whole or not at all. Only who plays the whole queue for the eye reads the whole ledger.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fleet::queue::PAGE;
use super::{Row, Stmt, StoreResult, Tx, sql};
use crate::model::id::IssuerId;
use crate::model::ledger::{Bucket, Spent};
use crate::model::limits::{ACCOUNT, LimitName};
use crate::model::moment::Moment;
use crate::model::outcome::Refusal;

/// So many keys are asked for at once: as many as [`of_keys`] has places for.
const KEYS: usize = 16;

/// What the account has spent.
pub async fn of_account(tx: &mut Tx, issuer: &IssuerId) -> StoreResult<Bucket> {
    let spent = of_keys(tx, issuer, [ACCOUNT]).await?;
    Ok(spent.get(&(LimitName::OrdersPerAccount, ACCOUNT.to_owned())).copied().unwrap_or_default())
}

/// What was spent of these keys, under all limits that have them.
pub async fn of_keys<'k>(tx: &mut Tx, issuer: &IssuerId, keys: impl IntoIterator<Item = &'k str>) -> StoreResult<Spent> {
    let keys: Vec<&str> = keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let mut spent = Spent::new();
    for chunk in keys.chunks(KEYS) {
        let mut stmt = sql("SELECT limit_name, key, tat, 0 AS open, \
             CASE WHEN closed IS NOT NULL THEN closed_until END AS closed_until FROM ledger WHERE issuer_id = $1 \
           AND key IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) \
         UNION ALL SELECT limit_name, key, 0 AS tat, count(*) AS open, NULL AS closed_until FROM spends WHERE issuer_id = $1 \
           AND key IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) \
         GROUP BY limit_name, key")
        .bind(issuer.as_str());
        // The places that are left ask for the last key again.
        for n in 0..KEYS {
            stmt = stmt.bind(chunk[n.min(chunk.len() - 1)]);
        }
        add(&mut spent, &tx.fetch_all(stmt).await?)?;
    }
    Ok(spent)
}

/// The whole ledger, for who plays the whole queue. Rows that lie in the past say no more than missing ones. Read page by page,
/// after the open spends: an answer that settles meanwhile may be seen twice, but never not at all.
pub async fn whole(tx: &mut Tx, issuer: &IssuerId, now: Moment) -> StoreResult<Spent> {
    let mut spent = Spent::new();
    let open = sql("SELECT limit_name, key, CAST(0 AS BIGINT) AS tat, CAST(NULL AS BIGINT) AS closed_until, \
         count(*) AS open FROM spends WHERE issuer_id = $1 GROUP BY limit_name, key");
    add(&mut spent, &tx.fetch_all(open.bind(issuer.as_str())).await?)?;
    let (mut key, mut limit) = (String::new(), String::new());
    loop {
        let stmt = sql("SELECT limit_name, key, tat, CAST(0 AS BIGINT) AS open, \
               CASE WHEN closed IS NOT NULL THEN closed_until END AS closed_until FROM ledger \
             WHERE issuer_id = $1 AND (key, limit_name) > ($2, $3) AND tat > $4 ORDER BY key, limit_name LIMIT $5")
        .bind(issuer.as_str())
        .bind(key.as_str())
        .bind(limit.as_str())
        .bind(now)
        .bind(i64::try_from(PAGE).unwrap_or(i64::MAX));
        let page = tx.fetch_all(stmt).await?;
        add(&mut spent, &page)?;
        let Some(last) = page.last().filter(|_| page.len() == PAGE) else { return Ok(spent) };
        (key, limit) = (last.text("key")?, last.text("limit_name")?);
    }
}

fn add(spent: &mut Spent, rows: &[Row]) -> StoreResult<()> {
    for row in rows {
        let bucket = spent.entry((row.parse("limit_name")?, row.text("key")?)).or_default();
        bucket.tat = bucket.tat.max(row.moment("tat")?);
        bucket.closed_until = bucket.closed_until.max(row.opt_moment("closed_until")?.unwrap_or_default());
        bucket.open = bucket.open.saturating_add(u32::try_from(row.int("open")?).unwrap_or(u32::MAX));
    }
    Ok(())
}

/// Closes a row of the ledger, whatever is configured for its limit by then. Without a told time the wait grows with the square of the
/// refusals in a row; those of calls that were on their way when the row was closed are no row of refusals.
pub fn refused(r: &Refusal, now: Moment) -> Stmt {
    let micros = |d: Duration| i64::try_from(d.as_micros()).unwrap_or(i64::MAX);
    let (first, longest) = r.told.map_or(r.untold, |told| (told, told));
    sql("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals, closed, said, link, closed_at, closed_until) \
         VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8, $12) \
         ON CONFLICT (issuer_id, limit_name, key) DO UPDATE SET closed = excluded.closed, \
           refusals = CASE WHEN ledger.tat > $11 THEN ledger.refusals ELSE ledger.refusals + 1 END, \
           said = excluded.said, link = excluded.link, closed_at = excluded.closed_at, \
           closed_until = CASE \
             WHEN ledger.closed IS NOT NULL AND ledger.closed_until > excluded.closed_until THEN ledger.closed_until \
             WHEN ledger.closed IS NOT NULL AND ledger.closed_until > $8 AND CAST($9 AS BIGINT) < $10 THEN ledger.closed_until \
             WHEN ledger.refusals > 12 OR ledger.refusals * ledger.refusals * $9 + $9 > $10 \
               THEN excluded.closed_until - $9 + $10 \
             ELSE excluded.closed_until + ledger.refusals * ledger.refusals * $9 END, \
           tat = CASE WHEN ledger.tat > excluded.tat THEN ledger.tat \
             WHEN ledger.tat > $11 AND CAST($9 AS BIGINT) < $10 THEN ledger.tat \
             WHEN ledger.refusals > 12 OR ledger.refusals * ledger.refusals * $9 + $9 > $10 THEN excluded.tat - $9 + $10 \
             ELSE excluded.tat + ledger.refusals * ledger.refusals * $9 END")
    .bind(r.issuer_id.as_str())
    .bind(r.limit.as_str())
    .bind(r.key.as_str())
    .bind(now + r.tolerance + first)
    .bind(r.closed.as_str())
    .bind(r.said.as_str())
    .bind(r.link.as_deref())
    .bind(now)
    .bind(micros(first))
    .bind(micros(longest))
    .bind(now + r.tolerance)
    .bind(now + first)
}
