//! Issuers: CA accounts, seeded from configuration, their sealed keys and how far they may be used.

use std::collections::BTreeMap;
use std::time::Duration;

use super::record::document;
use super::{Row, Store, StoreResult, Tx, restore, sql};
use crate::model::id::{DomainId, IssuerId};
use crate::model::ledger::{self, Limit, ORDERS_PER_ACCOUNT};
use crate::model::moment::Moment;

/// The preference of issuers that configuration does not name.
const NOT_CONFIGURED: i64 = 1_000_000_000;
/// At most so many domains get an alarm at once.
const ALARMS: usize = 1000;

/// What configuration says of an issuer.
#[derive(Clone, Debug)]
pub struct IssuerSeed {
    /// Its name, unique.
    pub name: String,
    /// The ACME directory.
    pub directory: String,
    /// Lower is asked first.
    pub preference: i64,
    /// Limits by name.
    pub limits: BTreeMap<String, Limit>,
    /// Orders the account spent before we count.
    pub spent_before: u32,
}

/// The row of an issuer.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct IssuerRow {
    pub id: IssuerId,
    pub name: String,
    pub directory: String,
    pub limits: BTreeMap<String, Limit>,
    pub caa_identities: Vec<String>,
    pub account_key: Option<Vec<u8>>,
    pub account_url: Option<String>,
    pub account_problem: Option<String>,
    pub term: i64,
    pub granted: i64,
    pub not_before: Moment,
}

fn read(row: &Row) -> StoreResult<IssuerRow> {
    Ok(IssuerRow {
        id: row.parse("id")?,
        name: row.text("name")?,
        directory: row.text("directory")?,
        limits: row.json("limits")?,
        caa_identities: row.json("caa_identities")?,
        account_key: row.opt_blob("account_key")?,
        account_url: row.opt_text("account_url")?,
        account_problem: row.opt_text("account_problem")?,
        term: row.int("term")?,
        granted: row.int("granted")?,
        not_before: row.moment("not_before")?,
    })
}

/// Makes the rows that configuration names; changes directory, preference and limits of those that are there. An account
/// belongs to its directory: where that changed, the account's address is forgotten and asked for again with the same key.
pub async fn seed(tx: &mut Tx, seeds: &[IssuerSeed], now: Moment, mut mint: impl FnMut() -> IssuerId) -> StoreResult<()> {
    // An issuer that a restored copy does not know may be one that was spent at since.
    let recovering = restore::recovering_since(tx).await?.is_some();
    // Whoever is not named any more stands behind all that are: its row stays for history, and no new order goes there.
    tx.execute(sql("UPDATE issuers SET preference = $1").bind(NOT_CONFIGURED)).await?;
    for seed in seeds {
        let id = mint();
        tx.execute(
            sql("INSERT INTO issuers (id, name, directory, preference, limits, caa_identities, spent_before, lease_until, \
                   term, granted, not_before, created_at) VALUES ($1, $2, $3, $4, $5, '[]', $6, 0, 0, 0, 0, $7) \
                 ON CONFLICT (name) DO UPDATE SET preference = excluded.preference, limits = excluded.limits, \
                   account_url = CASE WHEN issuers.directory = excluded.directory THEN issuers.account_url ELSE NULL END, \
                   directory = excluded.directory")
            .bind(id.as_str())
            .bind(seed.name.as_str())
            .bind(seed.directory.as_str())
            .bind(seed.preference.min(NOT_CONFIGURED - 1))
            .bind(document(&seed.limits)?)
            .bind(i64::from(seed.spent_before))
            .bind(now),
        )
        .await?;
        for (name, limit) in seed.limits.iter().filter(|(name, _)| name.as_str() == ORDERS_PER_ACCOUNT) {
            tx.execute(
                sql("INSERT INTO ledger (issuer_id, limit_name, key, tat) SELECT id, $2, 'account', $3 FROM issuers \
                     WHERE name = $1 ON CONFLICT (issuer_id, limit_name, key) DO NOTHING")
                .bind(seed.name.as_str())
                .bind(name.as_str())
                .bind(ledger::spent_before(now, if recovering { limit.burst } else { seed.spent_before }, *limit)),
            )
            .await?;
        }
    }
    // Orders that only wait go to the issuer that is preferred now.
    tx.execute(
        sql("UPDATE orders SET issuer_id = (SELECT id FROM issuers ORDER BY preference, name LIMIT 1) WHERE state = 'waiting' \
             AND issuer_id IN (SELECT id FROM issuers WHERE preference = $1) \
             AND EXISTS (SELECT 1 FROM issuers WHERE preference < $1)")
        .bind(NOT_CONFIGURED),
    )
    .await?;
    Ok(())
}

/// All issuers, the preferred first.
pub async fn list(store: &Store) -> StoreResult<Vec<IssuerRow>> {
    store.query(sql("SELECT * FROM issuers ORDER BY preference, name")).await?.iter().map(read).collect()
}

/// Takes an issuer's lease for making its account; nothing when another process has it.
pub async fn take(
    store: &Store,
    id: &IssuerId,
    owner: &str,
    now: Moment,
    lease: Duration,
) -> StoreResult<Option<IssuerRow>> {
    let stmt = sql("UPDATE issuers SET lease_owner = $2, lease_until = $3, term = term + 1 \
         WHERE id = $1 AND lease_until <= $4 RETURNING *")
    .bind(id.as_str())
    .bind(owner)
    .bind(now + lease)
    .bind(now);
    store.fetch_optional(stmt).await?.as_ref().map(read).transpose()
}

/// Stores the sealed account key before the CA ever sees it; only in the term that drew it, and only once.
pub async fn store_account_key(store: &Store, id: &IssuerId, term: i64, sealed: Vec<u8>) -> StoreResult<bool> {
    let stmt = sql("UPDATE issuers SET account_key = $3 WHERE id = $1 AND term = $2 AND account_key IS NULL")
        .bind(id.as_str())
        .bind(term)
        .bind(sealed);
    Ok(store.execute(stmt).await? == 1)
}

/// Stores what the CA answered to newAccount and in its directory, and gives the lease back.
pub async fn store_account(store: &Store, id: &IssuerId, term: i64, url: &str, identities: &[String]) -> StoreResult<bool> {
    let stmt = sql("UPDATE issuers SET account_url = $3, caa_identities = $4, account_problem = NULL, lease_owner = NULL, \
           lease_until = 0 WHERE id = $1 AND term = $2")
    .bind(id.as_str())
    .bind(term)
    .bind(url)
    .bind(document(&identities)?);
    Ok(store.execute(stmt).await? == 1)
}

/// Names that could not be judged before the CA answered, or are being judged right now, are looked at now: their ids, as many
/// as are worth an alarm; the sweep finds the others.
pub async fn tell_waiting(tx: &mut Tx, now: Moment) -> StoreResult<Vec<DomainId>> {
    let told = tx
        .fetch_all(
            sql("UPDATE domains SET check_asked_at = $1, check_asked_by = 'nameplate', due_at = $1, nudged = generation \
                 WHERE claim IN ('awaiting_dns', 'queued') AND (evidence LIKE '%issuer_not_ready%' OR lease_until > $1) \
                 RETURNING id")
            .bind(now),
        )
        .await?;
    told.iter().take(ALARMS).map(|row| row.parse("id")).collect()
}

/// Stores why there is no account yet, and gives the lease back.
pub async fn store_account_problem(store: &Store, id: &IssuerId, term: i64, problem: &str) -> StoreResult<()> {
    let stmt =
        sql("UPDATE issuers SET account_problem = $3, lease_owner = NULL, lease_until = 0 WHERE id = $1 AND term = $2")
            .bind(id.as_str())
            .bind(term)
            .bind(problem);
    store.execute(stmt).await.map(|_| ())
}

/// Locks the issuer's row for one round of the dispatcher: whoever else dispatches waits until this transaction ends.
pub async fn lock(tx: &mut Tx, id: &IssuerId) -> StoreResult<Option<IssuerRow>> {
    // A write, so that both databases take the row's lock with it.
    let stmt = sql("UPDATE issuers SET granted = granted WHERE id = $1 RETURNING *").bind(id.as_str());
    tx.fetch_optional(stmt).await?.as_ref().map(read).transpose()
}
