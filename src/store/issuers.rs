//! Issuers: CA accounts, seeded from configuration, their sealed keys and how far they may be used.

use std::time::Duration;

use super::record::document;
use super::{Row, Store, StoreError, StoreResult, Tx, restore, sql};
use crate::model::id::{DomainId, IssuerId};
use crate::model::ledger;
use crate::model::limits::{ACCOUNT, LimitName, Limits};
use crate::model::moment::Moment;

/// The preference of issuers that configuration does not name.
const NOT_CONFIGURED: i64 = 1_000_000_000;
/// At most so many domains get an alarm at once.
const ALARMS: usize = 1000;

/// What configuration, or a command, says of an issuer.
#[derive(Clone, Debug, Default)]
pub struct IssuerSeed {
    /// Its name, unique.
    pub name: String,
    /// The ACME directory.
    pub directory: String,
    /// Lower is asked first.
    pub preference: i64,
    /// Its limits.
    pub limits: Limits,
    /// Orders the account spent before we count.
    pub spent_before: u32,
    /// Mail addresses the CA may write to.
    pub contacts: Vec<String>,
    /// Whom the CA's server must chain to, in PEM; the system's roots where nothing is said.
    pub roots: Option<String>,
    /// The certificate profile that is asked for.
    pub profile: Option<String>,
    /// The account kept elsewhere that ours is bound to: its name, and the sealed key.
    pub binding: Option<(String, Vec<u8>)>,
}

/// The row of an issuer.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct IssuerRow {
    pub id: IssuerId,
    pub name: String,
    pub directory: String,
    pub limits: Limits,
    pub preference: i64,
    /// `configuration` or `command`.
    pub source: String,
    pub contacts: Vec<String>,
    pub roots: Option<String>,
    pub profile: Option<String>,
    pub binding: Option<(String, Vec<u8>)>,
    pub caa_identities: Vec<String>,
    pub account_key: Option<Vec<u8>>,
    pub next_account_key: Option<Vec<u8>>,
    pub account_url: Option<String>,
    pub account_problem: Option<String>,
    pub account_failures: i64,
    pub term: i64,
    pub granted: i64,
    pub not_before: Moment,
    pub honours_replaces: bool,
}

impl IssuerRow {
    /// Whether new orders may go there: it is named by configuration or was added by command.
    pub fn is_in_use(&self) -> bool {
        self.preference < NOT_CONFIGURED
    }
}

impl IssuerRow {
    /// Whether it was added by a command, and not by configuration.
    pub fn is_added(&self) -> bool {
        self.source == "command"
    }
}

fn read(row: &Row) -> StoreResult<IssuerRow> {
    Ok(IssuerRow {
        id: row.parse("id")?,
        name: row.text("name")?,
        directory: row.text("directory")?,
        limits: row.json("limits")?,
        preference: row.int("preference")?,
        source: row.text("source")?,
        contacts: row.json("contacts")?,
        roots: row.opt_text("roots")?,
        profile: row.opt_text("profile")?,
        binding: row.opt_text("eab_key_id")?.zip(row.opt_blob("eab_hmac")?),
        caa_identities: row.json("caa_identities")?,
        account_key: row.opt_blob("account_key")?,
        next_account_key: row.opt_blob("next_account_key")?,
        account_url: row.opt_text("account_url")?,
        account_problem: row.opt_text("account_problem")?,
        account_failures: row.int("account_failures")?,
        term: row.int("term")?,
        granted: row.int("granted")?,
        not_before: row.moment("not_before")?,
        honours_replaces: row.int("honours_replaces")? != 0,
    })
}

/// Makes the rows that configuration names; changes those that are there. An account belongs to its directory: where a name got
/// another directory, the account's address is forgotten and asked for again with the same key; where a directory got another
/// name, its row, and with it account and ledger, gets that name too.
pub async fn seed(tx: &mut Tx, seeds: &[IssuerSeed], now: Moment, mut mint: impl FnMut() -> IssuerId) -> StoreResult<()> {
    // An issuer that a restored copy does not know may be one that was spent at since.
    let recovering = restore::recovering_since(tx).await?.is_some();
    // Whoever is not named any more stands behind all that are: its row stays for history, and no new order goes there.
    tx.execute(sql("UPDATE issuers SET preference = $1 WHERE source = 'configuration'").bind(NOT_CONFIGURED)).await?;
    for seed in seeds {
        rename(tx, seed).await?;
        write(tx, seed, "configuration", recovering, now, &mint()).await?;
    }
    leave_unused(tx, now).await?;
    // Whoever waits for room under a limit of its own is looked at anew: the limits may be others now.
    tx.execute(
        sql("UPDATE orders SET not_before = $1, held_by = NULL \
             WHERE state = 'waiting' AND held_by IS NOT NULL AND not_before > $1 AND not_before < $2")
        .bind(now)
        .bind(Moment::NEVER),
    )
    .await?;
    Ok(())
}

/// A directory that got another name keeps its row.
async fn rename(tx: &mut Tx, seed: &IssuerSeed) -> StoreResult<()> {
    let stmt = sql("UPDATE issuers SET name = $1 WHERE directory = $2 AND name <> $1 \
         AND NOT EXISTS (SELECT 1 FROM issuers o WHERE o.name = $1) \
         AND id = (SELECT o.id FROM issuers o WHERE o.directory = $2 AND (o.preference = $3 OR o.source = 'command') \
           ORDER BY o.created_at DESC LIMIT 1)")
    .bind(seed.name.as_str())
    .bind(seed.directory.as_str())
    .bind(NOT_CONFIGURED);
    tx.execute(stmt).await.map(|_| ())
}

/// Orders that only wait at an issuer that is used no more go to the one that is preferred now; their names are looked at anew, for it
/// is CAA that says which may issue, and what was held back for the one may not be for the other.
async fn leave_unused(tx: &mut Tx, now: Moment) -> StoreResult<()> {
    let left = sql("SELECT o.domain_id FROM orders o JOIN issuers i ON i.id = o.issuer_id AND i.preference = $1 \
         WHERE o.state = 'waiting' AND EXISTS (SELECT 1 FROM issuers u WHERE u.preference < $1) ORDER BY o.domain_id");
    let left = tx.fetch_all(left.bind(NOT_CONFIGURED)).await?;
    let left: Vec<DomainId> = left.iter().map(|row| row.parse("domain_id")).collect::<StoreResult<_>>()?;
    ask_for_looks(tx, &left, now).await?;
    let stmt = sql(
        "UPDATE orders SET issuer_id = (SELECT id FROM issuers ORDER BY preference, name LIMIT 1) WHERE state = 'waiting' \
         AND issuer_id IN (SELECT id FROM issuers WHERE preference = $1) \
         AND EXISTS (SELECT 1 FROM issuers WHERE preference < $1)",
    )
    .bind(NOT_CONFIGURED);
    tx.execute(stmt).await.map(|_| ())
}

/// Uses an issuer that was added by command no more: its row stays for history, and what is on its way there goes on; false
/// where configuration names it.
pub async fn remove(tx: &mut Tx, id: &IssuerId, now: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE issuers SET preference = $2 WHERE id = $1 AND source = 'command'");
    let removed = tx.execute(stmt.bind(id.as_str()).bind(NOT_CONFIGURED)).await? == 1;
    if removed {
        leave_unused(tx, now).await?;
    }
    Ok(removed)
}

/// What of an issuer can be changed while it is in use.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Smaller is asked first.
    pub preference: i64,
    /// The certificate profile that is asked for.
    pub profile: Option<String>,
    /// What it allows.
    pub limits: Limits,
}

/// Changes an issuer, whose row is locked. Whoever waits for room under a limit of its own is looked at anew.
pub async fn set(tx: &mut Tx, id: &IssuerId, terms: &Terms, now: Moment) -> StoreResult<()> {
    let stmt = sql("UPDATE issuers SET preference = $2, profile = $3, limits = $4 WHERE id = $1")
        .bind(id.as_str())
        .bind(terms.preference.min(NOT_CONFIGURED - 1))
        .bind(terms.profile.as_deref())
        .bind(document(&terms.limits)?);
    tx.execute(stmt).await?;
    let held = sql("UPDATE orders SET not_before = $2, held_by = NULL \
         WHERE issuer_id = $1 AND state = 'waiting' AND held_by IS NOT NULL AND not_before > $2 AND not_before < $3")
    .bind(id.as_str())
    .bind(now)
    .bind(Moment::NEVER);
    tx.execute(held).await.map(|_| ())
}

/// Adds an issuer beside those of the configuration; refuses a name or a directory that is in use, for an account and what it may
/// spend belong to its directory. One that was removed comes back with its account and what it has spent.
pub async fn add(tx: &mut Tx, seed: &IssuerSeed, now: Moment, id: &IssuerId) -> StoreResult<()> {
    let taken = sql("SELECT name FROM issuers WHERE (name = $1 OR directory = $2) AND preference < $3 LIMIT 1")
        .bind(seed.name.as_str())
        .bind(seed.directory.as_str())
        .bind(NOT_CONFIGURED);
    if let Some(row) = tx.fetch_optional(taken).await? {
        return Err(StoreError::Conflict { constraint: format!("issuer {}", row.text("name")?) });
    }
    rename(tx, seed).await?;
    let recovering = restore::recovering_since(tx).await?.is_some();
    write(tx, seed, "command", recovering, now, id).await
}

async fn write(
    tx: &mut Tx,
    seed: &IssuerSeed,
    source: &'static str,
    recovering: bool,
    now: Moment,
    id: &IssuerId,
) -> StoreResult<()> {
    let (key_id, hmac) = seed.binding.clone().unzip();
    tx.execute(
        sql("INSERT INTO issuers (id, name, directory, preference, limits, caa_identities, spent_before, lease_until, \
               term, granted, not_before, created_at, source, contacts, roots, profile, eab_key_id, eab_hmac) \
             VALUES ($1, $2, $3, $4, $5, '[]', $6, 0, 0, 0, 0, $7, $8, $9, $10, $11, $12, $13) \
             ON CONFLICT (name) DO UPDATE SET preference = excluded.preference, limits = excluded.limits, \
               account_url = CASE WHEN issuers.directory = excluded.directory THEN issuers.account_url ELSE NULL END, \
               directory = excluded.directory, source = excluded.source, contacts = excluded.contacts, \
               roots = excluded.roots, profile = excluded.profile, eab_key_id = excluded.eab_key_id, \
               eab_hmac = excluded.eab_hmac")
        .bind(id.as_str())
        .bind(seed.name.as_str())
        .bind(seed.directory.as_str())
        .bind(seed.preference.min(NOT_CONFIGURED - 1))
        .bind(document(&seed.limits)?)
        .bind(i64::from(seed.spent_before))
        .bind(now)
        .bind(source)
        .bind(document(&seed.contacts)?)
        .bind(seed.roots.as_deref())
        .bind(seed.profile.as_deref())
        .bind(key_id)
        .bind(hmac),
    )
    .await?;
    if let Some(limit) = seed.limits.get(&LimitName::OrdersPerAccount) {
        let spent = if recovering { limit.burst } else { seed.spent_before };
        tx.execute(
            sql("INSERT INTO ledger (issuer_id, limit_name, key, tat) SELECT id, $2, $4, $3 FROM issuers \
                 WHERE name = $1 ON CONFLICT (issuer_id, limit_name, key) DO NOTHING")
            .bind(seed.name.as_str())
            .bind(LimitName::OrdersPerAccount.as_str())
            .bind(ledger::spent_before(now, spent, *limit))
            .bind(ACCOUNT),
        )
        .await?;
    }
    Ok(())
}

/// The account is gone at the CA: another is asked for, with the key that there is or with another.
pub async fn forget_account(tx: &mut Tx, id: &IssuerId, key_too: bool) -> StoreResult<()> {
    let stmt = sql("UPDATE issuers SET account_url = NULL, account_problem = NULL, account_failures = 0, lease_until = 0, \
           term = term + 1, account_key = CASE WHEN $2 = 1 THEN NULL ELSE account_key END, next_account_key = NULL WHERE id = $1")
    .bind(id.as_str())
    .bind(i64::from(key_too));
    tx.execute(stmt).await.map(|_| ())
}

/// Stores the sealed key that an account is to have next, before the CA is told of it; only in the term that drew it, and only
/// where none waits already.
pub async fn store_next_key(store: &Store, id: &IssuerId, term: i64, sealed: Vec<u8>) -> StoreResult<bool> {
    let stmt = sql("UPDATE issuers SET next_account_key = $3 WHERE id = $1 AND term = $2 AND next_account_key IS NULL")
        .bind(id.as_str())
        .bind(term)
        .bind(sealed);
    Ok(store.execute(stmt).await? == 1)
}

/// The account has its next key from now on; gives the lease back.
pub async fn promote_next_key(store: &Store, id: &IssuerId, term: i64) -> StoreResult<bool> {
    let stmt = sql(
        "UPDATE issuers SET account_key = next_account_key, next_account_key = NULL, lease_owner = NULL, lease_until = 0 \
         WHERE id = $1 AND term = $2 AND next_account_key IS NOT NULL",
    )
    .bind(id.as_str())
    .bind(term);
    Ok(store.execute(stmt).await? == 1)
}

/// The CA surely did not take the key that was to be next: it is forgotten.
pub async fn forget_next_key(store: &Store, id: &IssuerId, term: i64) -> StoreResult<()> {
    let stmt = sql("UPDATE issuers SET next_account_key = NULL WHERE id = $1 AND term = $2").bind(id.as_str()).bind(term);
    store.execute(stmt).await.map(|_| ())
}

/// Gives an issuer's lease back.
pub async fn give_back(store: &Store, id: &IssuerId, term: i64) -> StoreResult<()> {
    let stmt = sql("UPDATE issuers SET lease_owner = NULL, lease_until = 0 WHERE id = $1 AND term = $2")
        .bind(id.as_str())
        .bind(term);
    store.execute(stmt).await.map(|_| ())
}

/// These names, queued or live and to be renewed, are looked at anew, which chooses their issuer. Locked in the order of their ids,
/// as by whoever else locks several.
pub async fn ask_for_looks(tx: &mut Tx, domains: &[DomainId], now: Moment) -> StoreResult<()> {
    let mut domains: Vec<&DomainId> = domains.iter().collect();
    domains.sort();
    domains.dedup();
    for chunk in domains.chunks(20) {
        let one = |id: &&DomainId| {
            sql("UPDATE domains SET check_asked_at = $2, check_asked_by = 'nameplate', due_at = $2, nudged = generation \
                 WHERE id = $1 AND claim IN ('queued', 'live')")
            .bind(id.as_str())
            .bind(now)
        };
        tx.batch(chunk.iter().map(one).collect()).await?;
    }
    Ok(())
}

/// Names with orders that wait, first ones and renewals, and could go to another issuer are looked at anew, which chooses: those whose
/// last look is longest ago, so that everybody's turn comes; those looked at since `looked_before` are left alone. Their ids, for
/// an alarm.
pub async fn look_anew(
    tx: &mut Tx,
    id: &IssuerId,
    looked_before: Moment,
    most: i64,
    now: Moment,
) -> StoreResult<Vec<DomainId>> {
    let stmt = sql("SELECT o.domain_id FROM orders o JOIN domains d ON d.id = o.domain_id \
         WHERE o.issuer_id = $1 AND o.state = 'waiting' AND o.not_before < $4 \
           AND d.claim IN ('queued', 'live') AND COALESCE(d.looked_at, 0) < $2 AND COALESCE(d.check_asked_at, 0) < $2 \
         ORDER BY COALESCE(d.looked_at, 0), o.id LIMIT $3")
    .bind(id.as_str())
    .bind(looked_before)
    .bind(most)
    .bind(Moment::NEVER);
    let rows = tx.fetch_all(stmt).await?;
    let domains: Vec<DomainId> = rows.iter().map(|row| row.parse("domain_id")).collect::<StoreResult<_>>()?;
    ask_for_looks(tx, &domains, now).await?;
    Ok(domains)
}

/// All issuers, the preferred first.
pub async fn list(store: &Store) -> StoreResult<Vec<IssuerRow>> {
    store.query(sql("SELECT * FROM issuers ORDER BY preference, name")).await?.iter().map(read).collect()
}

/// The ids of all issuers, in the order in which whoever locks several does so.
pub async fn ids(tx: &mut Tx) -> StoreResult<Vec<IssuerId>> {
    tx.fetch_all(sql("SELECT id FROM issuers ORDER BY id")).await?.iter().map(|row| row.parse("id")).collect()
}

/// The issuer that is asked first: of those in use, the preferred one that has an account. The same order as in
/// [`super::situation`], where a domain without an order begins with it.
pub async fn first(tx: &mut Tx) -> StoreResult<Option<IssuerRow>> {
    let stmt = sql(
        "SELECT * FROM issuers ORDER BY CASE WHEN preference < 1000000000 AND account_url IS NOT NULL THEN 0 ELSE 1 END, \
         preference, name LIMIT 1",
    );
    tx.fetch_optional(stmt).await?.as_ref().map(read).transpose()
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
    let stmt =
        sql("UPDATE issuers SET account_url = $3, caa_identities = $4, account_problem = NULL, account_failures = 0, \
           lease_owner = NULL, lease_until = 0 WHERE id = $1 AND term = $2")
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
                 WHERE id IN (SELECT w.id FROM domains w WHERE w.claim IN ('awaiting_dns', 'queued') \
                     AND (w.evidence LIKE '%issuer_not_ready%' OR w.lease_until > $1) \
                   UNION ALL SELECT w.id FROM orders o JOIN domains w ON w.id = o.domain_id AND w.claim = 'live' \
                     WHERE o.state = 'waiting' AND (w.evidence LIKE '%issuer_not_ready%' OR w.lease_until > $1)) \
                 RETURNING id")
            .bind(now)
            .long(),
        )
        .await?;
    told.iter().take(ALARMS).map(|row| row.parse("id")).collect()
}

/// Stores why there is no account yet, and keeps everybody from asking again before `again`.
pub async fn store_account_problem(
    store: &Store,
    id: &IssuerId,
    term: i64,
    problem: &str,
    again: Moment,
) -> StoreResult<()> {
    let stmt = sql("UPDATE issuers SET account_problem = $3, account_failures = account_failures + 1, lease_owner = NULL, \
           lease_until = $4 WHERE id = $1 AND term = $2")
    .bind(id.as_str())
    .bind(term)
    .bind(problem)
    .bind(again);
    store.execute(stmt).await.map(|_| ())
}

/// Locks the issuer's row for one round of the dispatcher: whoever else dispatches, or takes many orders out of its queue, waits
/// until this transaction ends.
pub async fn lock(tx: &mut Tx, id: &IssuerId) -> StoreResult<Option<IssuerRow>> {
    // A write, so that both databases take the row's lock with it.
    let stmt = sql("UPDATE issuers SET granted = granted WHERE id = $1 RETURNING *").bind(id.as_str());
    tx.fetch_optional(stmt).await?.as_ref().map(read).transpose()
}
