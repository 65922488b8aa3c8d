//! Bulk imports: their rows of state. What they hold, line by line, is in [`super::bulk_rows`].
//!
//! An import's row is locked by whoever judges a batch of its rows, by its guarded UPDATE; counts, cursor and the rows
//! themselves move in that one transaction.

use super::record::document;
use super::{Row, Store, StoreResult, Tx, sql};
use crate::model::bulk::{Format, Hold, ImportState};
use crate::model::bulk_plan::Plan;
use crate::model::claim::Claim;
use crate::model::id::{ImportId, TenantId};
use crate::model::moment::Moment;

/// An import.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Import {
    pub id: ImportId,
    pub tenant_id: Option<TenantId>,
    pub actor: String,
    pub name: String,
    pub format: Format,
    pub dry_run: bool,
    pub create_tenants: bool,
    pub default_tenant: Option<TenantId>,
    pub state: ImportState,
    pub touched_at: Moment,
    pub digest: Option<String>,
    pub rows: i64,
    pub cursor: i64,
    pub counts: Counts,
    pub unreadable: i64,
    pub plan: Option<Plan>,
    pub version: i64,
    pub created_at: Moment,
    pub received_at: Option<Moment>,
    pub finished_at: Option<Moment>,
    pub turned_by: Option<String>,
    pub turned_at: Option<Moment>,
    pub hold: Option<Hold>,
}

/// Verdicts, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "one a verdict")]
pub struct Counts {
    pub claimed: i64,
    pub already: i64,
    pub would_claim: i64,
    pub duplicate: i64,
    pub refused: i64,
    pub tenants_added: i64,
}

/// An import to begin.
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct NewImport<'a> {
    pub id: &'a ImportId,
    pub tenant_id: Option<&'a TenantId>,
    pub principal: &'a str,
    pub actor: &'a str,
    pub name: &'a str,
    pub format: Format,
    pub dry_run: bool,
    pub create_tenants: bool,
    pub default_tenant: Option<&'a TenantId>,
    pub idempotency_key: Option<&'a str>,
}

/// Begins an import; false when its sender has used the key.
pub async fn insert(tx: &mut Tx, new: &NewImport<'_>, now: Moment) -> StoreResult<bool> {
    let stmt =
        sql("INSERT INTO imports (id, tenant_id, principal, actor, name, format, dry_run, create_tenants, default_tenant, \
           state, touched_at, idempotency_key, row_count, cursor, claimed, already, would_claim, duplicate, refused, \
           unreadable, tenants_added, lease_until, version, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'receiving', $10, $11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, $10) \
         ON CONFLICT DO NOTHING")
        .bind(new.id.as_str())
        .bind(new.tenant_id.map(TenantId::as_str))
        .bind(new.principal)
        .bind(new.actor)
        .bind(new.name)
        .bind(new.format.as_str())
        .bind(new.dry_run)
        .bind(new.create_tenants)
        .bind(new.default_tenant.map(TenantId::as_str))
        .bind(now)
        .bind(new.idempotency_key);
    Ok(tx.execute(stmt).await? == 1)
}

/// The import that a sender began under a key.
pub async fn by_key(tx: &mut Tx, principal: &str, key: &str) -> StoreResult<Option<Import>> {
    let stmt = sql("SELECT * FROM imports WHERE principal = $1 AND idempotency_key = $2").bind(principal).bind(key);
    tx.fetch_optional(stmt).await?.as_ref().map(import).transpose()
}

/// Frees the key of an import for another request.
pub async fn free_key(tx: &mut Tx, id: &ImportId) -> StoreResult<()> {
    tx.execute(sql("UPDATE imports SET idempotency_key = NULL WHERE id = $1").bind(id.as_str())).await.map(|_| ())
}

/// How many imports of a sender are not over yet.
pub async fn open_of(tx: &mut Tx, principal: &str) -> StoreResult<i64> {
    let stmt = sql("SELECT count(*) AS n FROM imports WHERE principal = $1 AND state IN ('receiving', 'working', 'paused')");
    tx.fetch_optional(stmt.bind(principal)).await?.map_or(Ok(0), |row| row.int("n"))
}

/// Notes that rows arrived, `unreadable` of them such that cannot be taken; false when the import is no longer receiving.
pub async fn arrived(tx: &mut Tx, id: &ImportId, rows: i64, unreadable: i64, now: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE imports SET row_count = $2, unreadable = $3, touched_at = $4, version = version + 1 \
         WHERE id = $1 AND state = 'receiving'")
    .bind(id.as_str())
    .bind(rows)
    .bind(unreadable)
    .bind(now);
    Ok(tx.execute(stmt).await? == 1)
}

/// The file is whole: its rows count from now on.
pub async fn complete(tx: &mut Tx, id: &ImportId, digest: &str, now: Moment) -> StoreResult<Option<Import>> {
    let stmt = sql("UPDATE imports SET state = 'working', digest = $2, received_at = $3, touched_at = $3, \
           version = version + 1 WHERE id = $1 AND state = 'receiving' RETURNING *")
    .bind(id.as_str())
    .bind(digest)
    .bind(now);
    tx.fetch_optional(stmt).await?.as_ref().map(import).transpose()
}

/// Gives up an import whose file did not come whole; its key is free again.
pub async fn give_up(store: &Store, id: &ImportId) -> StoreResult<()> {
    let stmt = sql("UPDATE imports SET state = 'broken', idempotency_key = NULL, version = version + 1 \
         WHERE id = $1 AND state = 'receiving'");
    store.execute(stmt.bind(id.as_str())).await.map(|_| ())
}

/// Gives up imports that have not received anything since `since`.
pub async fn give_up_stale(store: &Store, since: Moment) -> StoreResult<u64> {
    let stmt = sql("UPDATE imports SET state = 'broken', idempotency_key = NULL, version = version + 1 \
         WHERE state = 'receiving' AND touched_at < $1");
    store.execute(stmt.bind(since)).await
}

/// Throws a part of a broken import away; whether nothing is left of any.
pub async fn throw_away(store: &Store, rows: i64) -> StoreResult<bool> {
    let broken = store.query(sql("SELECT id FROM imports WHERE state = 'broken' ORDER BY id LIMIT 1")).await?;
    let Some(broken) = broken.first() else { return Ok(true) };
    let id = broken.text("id")?;
    let stmt = sql("DELETE FROM import_rows WHERE import_id = $1 AND n IN \
         (SELECT n FROM import_rows WHERE import_id = $1 ORDER BY n LIMIT $2)");
    if store.execute(stmt.bind(id.as_str()).bind(rows)).await? == 0 {
        store.execute(sql("DELETE FROM import_slugs WHERE import_id = $1").bind(id.as_str())).await?;
        store.execute(sql("DELETE FROM imports WHERE id = $1 AND state = 'broken'").bind(id)).await?;
    }
    Ok(false)
}

/// Breaks imports that were over before `before`, so that they are thrown away; not those that were given up while claims of theirs
/// wait for a turn that must not come.
pub async fn forget(store: &Store, before: Moment) -> StoreResult<u64> {
    let stmt = sql("UPDATE imports SET state = 'broken', idempotency_key = NULL \
         WHERE state IN ('done', 'cancelled') AND finished_at < $1 \
           AND NOT (state = 'cancelled' AND EXISTS (SELECT 1 FROM domains d WHERE d.import_id = imports.id \
             AND d.lane = 'bulk' AND d.claim IN ('awaiting_dns', 'queued')))");
    store.execute(stmt.bind(before)).await
}

/// Breaks the oldest of a sender's imports that are over, beyond so many rows of younger ones.
pub async fn forget_beyond(tx: &mut Tx, principal: &str, rows: i64) -> StoreResult<u64> {
    let stmt =
        sql("UPDATE imports SET state = 'broken', idempotency_key = NULL WHERE state IN ('done', 'cancelled') AND id IN \
         (SELECT s.id FROM (SELECT i.id, SUM(i.row_count) OVER (ORDER BY i.id DESC) - i.row_count AS younger FROM imports i \
           WHERE i.principal = $1 AND i.state <> 'broken') s WHERE s.younger >= $2)")
        .bind(principal)
        .bind(rows);
    tx.execute(stmt).await
}

/// Imports with rows to judge that nobody else works on, the one that waited longest first.
pub async fn workable(store: &Store, worker: &str, now: Moment, limit: i64) -> StoreResult<Vec<ImportId>> {
    let stmt = sql("SELECT id FROM imports WHERE state = 'working' AND (lease_until <= $1 OR lease_owner = $2) \
         ORDER BY lease_until, id LIMIT $3")
    .bind(now)
    .bind(worker)
    .bind(limit);
    store.query(stmt).await?.iter().map(|row| row.parse("id")).collect()
}

/// Takes an import to judge some of its rows in this transaction: nobody else can until it ends, or for as long as the lease.
pub async fn take(tx: &mut Tx, id: &ImportId, worker: &str, now: Moment, until: Moment) -> StoreResult<Option<Import>> {
    let stmt = sql("UPDATE imports SET lease_owner = $2, lease_until = $4, version = version + 1 \
         WHERE id = $1 AND state = 'working' AND (lease_until <= $3 OR lease_owner = $2) RETURNING *")
    .bind(id.as_str())
    .bind(worker)
    .bind(now)
    .bind(until);
    tx.fetch_optional(stmt).await?.as_ref().map(import).transpose()
}

/// Moves the cursor behind the rows that were judged and adds up their verdicts, in the transaction that took the import.
pub async fn advance(tx: &mut Tx, id: &ImportId, cursor: i64, more: &Counts) -> StoreResult<()> {
    let stmt = sql("UPDATE imports SET cursor = $2, claimed = claimed + $3, already = already + $4, \
           would_claim = would_claim + $5, duplicate = duplicate + $6, refused = refused + $7, \
           tenants_added = tenants_added + $8 WHERE id = $1")
    .bind(id.as_str())
    .bind(cursor)
    .bind(more.claimed)
    .bind(more.already)
    .bind(more.would_claim)
    .bind(more.duplicate)
    .bind(more.refused)
    .bind(more.tenants_added);
    tx.execute(stmt).await.map(|_| ())
}

/// Every row has its verdict.
pub async fn finish(store: &Store, id: &ImportId, plan: Option<&Plan>, now: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE imports SET state = 'done', plan = $2, finished_at = $3, version = version + 1, \
           tenants_added = CASE WHEN dry_run = 0 THEN tenants_added ELSE (SELECT count(*) FROM import_slugs s WHERE s.import_id = $1) END \
         WHERE id = $1 AND state = 'working' AND cursor >= row_count")
    .bind(id.as_str())
    .bind(plan.map(document).transpose()?)
    .bind(now);
    Ok(store.execute(stmt).await? == 1)
}

/// How an import is to be turned.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Where it is to stand.
    pub to: ImportState,
    /// What keeps its claims back from then on.
    pub hold: Option<Hold>,
    /// Whether what an operator paused may go on by it.
    pub over_operators: bool,
}

/// Moves an import from one of the states `from`; the import if it was in one. Who held it first is who holds it, but that an
/// operator's hold takes the place of a tenant's: what the operator stopped no tenant lets go on.
pub async fn turn(
    tx: &mut Tx,
    id: &ImportId,
    from: &[ImportState],
    turn: Turn,
    actor: &str,
    now: Moment,
) -> StoreResult<Option<Import>> {
    let from: String = from.iter().map(|state| format!(",{state}")).collect::<String>() + ",";
    let stmt = sql("UPDATE imports SET state = $2, version = version + 1, lease_until = 0, \
           turned_by = CASE WHEN state = $2 AND NOT (hold = 'paused_by_tenant' AND $8 = 1) THEN turned_by ELSE $5 END, \
           turned_at = CASE WHEN state = $2 AND NOT (hold = 'paused_by_tenant' AND $8 = 1) THEN turned_at ELSE $4 END, \
           hold = CASE WHEN state = $2 AND NOT (hold = 'paused_by_tenant' AND $8 = 1) THEN hold ELSE $6 END, \
           finished_at = CASE WHEN $2 = 'cancelled' THEN $4 ELSE finished_at END \
         WHERE id = $1 AND $3 LIKE '%,' || state || ',%' \
           AND ($2 <> 'working' OR $7 = 1 OR hold IS NULL OR hold <> 'paused_by_operator') RETURNING *")
    .bind(id.as_str())
    .bind(turn.to.as_str())
    .bind(from)
    .bind(now)
    .bind(actor)
    .bind(turn.hold.map(Hold::as_str))
    .bind(turn.over_operators)
    .bind(turn.hold == Some(Hold::ByOperator));
    tx.fetch_optional(stmt).await?.as_ref().map(import).transpose()
}

/// Makes a finished dry run an import: its rows are judged once more, and claimed.
pub async fn start(tx: &mut Tx, id: &ImportId) -> StoreResult<Option<Import>> {
    let stmt =
        sql("UPDATE imports SET state = 'working', dry_run = 0, cursor = 0, claimed = 0, already = 0, would_claim = 0, \
           duplicate = 0, refused = 0, tenants_added = 0, finished_at = NULL, version = version + 1, lease_until = 0 \
         WHERE id = $1 AND state = 'done' AND dry_run = 1 RETURNING *")
        .bind(id.as_str());
    tx.execute(sql("DELETE FROM import_slugs WHERE import_id = $1").bind(id.as_str())).await?;
    tx.fetch_optional(stmt).await?.as_ref().map(import).transpose()
}

/// The import with this id.
pub async fn lookup(tx: &mut Tx, id: &ImportId) -> StoreResult<Option<Import>> {
    let stmt = sql("SELECT * FROM imports WHERE id = $1 AND state <> 'broken'").bind(id.as_str());
    tx.fetch_optional(stmt).await?.as_ref().map(import).transpose()
}

/// Which imports a list holds.
#[derive(Clone, Debug, Default)]
pub struct ImportFilter {
    /// Of this tenant only.
    pub tenant: Option<TenantId>,
    /// Of a file with this digest only.
    pub digest: Option<String>,
    /// In this state only.
    pub state: Option<ImportState>,
    /// Older than this one.
    pub before: Option<ImportId>,
}

/// Imports, the newest first.
pub async fn list(store: &Store, filter: &ImportFilter, limit: i64) -> StoreResult<Vec<Import>> {
    let stmt =
        sql("SELECT * FROM imports WHERE state <> 'broken' AND ($1 = '' OR tenant_id = $1) AND ($2 = '' OR digest = $2) \
           AND ($3 = '' OR state = $3) AND ($4 = '' OR id < $4) ORDER BY id DESC LIMIT $5")
        .bind(filter.tenant.as_ref().map_or("", TenantId::as_str))
        .bind(filter.digest.as_deref().unwrap_or_default())
        .bind(filter.state.map_or("", ImportState::as_str))
        .bind(filter.before.as_ref().map_or("", ImportId::as_str))
        .bind(limit);
    store.query(stmt).await?.iter().map(import).collect()
}

/// The version of an import: it rises with everything that happens to it.
pub async fn version(store: &Store, id: &ImportId) -> StoreResult<Option<i64>> {
    let rows = store.query(sql("SELECT version FROM imports WHERE id = $1 AND state <> 'broken'").bind(id.as_str())).await?;
    rows.first().map(|row| row.int("version")).transpose()
}

/// What became of the claims that some imports made: of each, how many stand where.
pub async fn claims(tx: &mut Tx, ids: impl Iterator<Item = &ImportId>) -> StoreResult<Vec<(ImportId, Claim, i64)>> {
    // Each id has 36 letters: they are cut off one by one, so that each is looked up in the index.
    let stmt = sql("WITH RECURSIVE asked (id, rest) AS ( \
           SELECT substr(CAST($1 AS TEXT), 1, 36), substr(CAST($1 AS TEXT), 37) \
           UNION ALL SELECT substr(rest, 1, 36), substr(rest, 37) FROM asked WHERE rest <> '') \
         SELECT d.import_id, d.claim, count(*) AS n FROM asked a JOIN domains d ON d.import_id = a.id \
         GROUP BY d.import_id, d.claim ORDER BY d.import_id, d.claim");
    let ids: String = ids.map(ImportId::as_str).collect();
    let read = |row: &Row| Ok((row.parse("import_id")?, row.parse("claim")?, row.int("n")?));
    tx.fetch_all(stmt.bind(ids)).await?.iter().map(read).collect()
}

fn import(row: &Row) -> StoreResult<Import> {
    Ok(Import {
        id: row.parse("id")?,
        tenant_id: row.opt_parse("tenant_id")?,
        actor: row.text("actor")?,
        name: row.text("name")?,
        format: row.parse("format")?,
        dry_run: row.int("dry_run")? != 0,
        create_tenants: row.int("create_tenants")? != 0,
        default_tenant: row.opt_parse("default_tenant")?,
        state: row.parse("state")?,
        touched_at: row.moment("touched_at")?,
        digest: row.opt_text("digest")?,
        rows: row.int("row_count")?,
        cursor: row.int("cursor")?,
        counts: Counts {
            claimed: row.int("claimed")?,
            already: row.int("already")?,
            would_claim: row.int("would_claim")?,
            duplicate: row.int("duplicate")?,
            refused: row.int("refused")?,
            tenants_added: row.int("tenants_added")?,
        },
        unreadable: row.int("unreadable")?,
        plan: row.opt_json("plan")?,
        version: row.int("version")?,
        created_at: row.moment("created_at")?,
        received_at: row.opt_moment("received_at")?,
        finished_at: row.opt_moment("finished_at")?,
        turned_by: row.opt_text("turned_by")?,
        turned_at: row.opt_moment("turned_at")?,
        hold: row.opt_parse("hold")?,
    })
}
