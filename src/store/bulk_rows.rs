//! The rows of imports: staged as they arrive, judged in order, read back a page at a time.

use super::{Row, Store, StoreResult, Tx, sql};
use crate::model::bulk::Verdict;
use crate::model::domain::RoutingMode;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, ImportId, IssuerId, TenantId};
use crate::model::ledger::Bucket;
use crate::model::moment::Moment;
use crate::model::slug::Slug;

/// Rows staged in one round trip.
const TOGETHER: usize = 100;

/// A row as it was read.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Staged {
    pub n: i64,
    pub line: i64,
    pub tenant: Option<String>,
    pub method: Option<String>,
    pub typed: String,
    pub hostname: Option<Hostname>,
    pub refusal: Option<Refusal>,
}

/// Why a row is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Refusal {
    pub code: String,
    pub detail: String,
    pub suggestion: Option<String>,
}

/// A row of an import.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct ImportRow {
    pub n: i64,
    pub line: i64,
    pub tenant: Option<String>,
    pub method: Option<String>,
    pub typed: String,
    pub hostname: Option<Hostname>,
    pub verdict: Verdict,
    pub refusal: Option<Refusal>,
    pub tenant_id: Option<TenantId>,
    pub domain_id: Option<DomainId>,
}

/// Stages rows.
pub async fn stage(tx: &mut Tx, id: &ImportId, rows: &[Staged]) -> StoreResult<()> {
    for chunk in rows.chunks(TOGETHER) {
        let one = |row: &Staged| {
            let verdict = if row.refusal.is_some() { Verdict::Refused } else { Verdict::Pending };
            let refusal = row.refusal.as_ref();
            sql("INSERT INTO import_rows (import_id, n, line, tenant, typed, hostname, registered, verdict, code, detail, suggestion, method) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)")
            .bind(id.as_str())
            .bind(row.n)
            .bind(row.line)
            .bind(row.tenant.as_deref())
            .bind(row.typed.as_str())
            .bind(row.hostname.as_ref().map(Hostname::as_str))
            .bind(row.hostname.as_ref().map(Hostname::registered_domain))
            .bind(verdict.as_str())
            .bind(refusal.map(|r| r.code.as_str()))
            .bind(refusal.map(|r| r.detail.as_str()))
            .bind(refusal.and_then(|r| r.suggestion.as_deref()))
            .bind(row.method.as_deref())
        };
        tx.batch(chunk.iter().map(one).collect()).await?;
    }
    Ok(())
}

/// A row to judge, with the row behind the cursor that was taken with the same name.
pub struct ToJudge {
    /// The row.
    pub row: ImportRow,
    /// Who got the name by an earlier batch of this import.
    pub taken: Option<Taken>,
}

/// A row that was taken.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Taken {
    pub line: i64,
    pub tenant_id: Option<TenantId>,
    pub tenant: Option<String>,
}

/// The next rows after the cursor. Beyond it, verdicts may be those of a dry run that has been started since.
pub async fn next(tx: &mut Tx, id: &ImportId, cursor: i64, limit: i64) -> StoreResult<Vec<ToJudge>> {
    let stmt = sql("SELECT r.*, f.line AS f_line, f.tenant_id AS f_tenant, f.tenant AS f_named \
         FROM import_rows r LEFT JOIN import_rows f ON f.import_id = r.import_id AND f.n = \
           (SELECT min(e.n) FROM import_rows e WHERE e.import_id = r.import_id AND e.hostname = r.hostname \
             AND e.verdict IN ('claimed', 'already_yours', 'would_be_claimed') AND e.n <= $2) \
         WHERE r.import_id = $1 AND r.n > $2 AND r.n <= $2 + $3 ORDER BY r.n")
    .bind(id.as_str())
    .bind(cursor)
    .bind(limit);
    let read = |row: &Row| {
        let taken = match row.opt_int("f_line")? {
            Some(line) => Some(Taken { line, tenant_id: row.opt_parse("f_tenant")?, tenant: row.opt_text("f_named")? }),
            None => None,
        };
        Ok(ToJudge { row: import_row(row)?, taken })
    };
    tx.fetch_all(stmt).await?.iter().map(read).collect()
}

/// What was found about a row.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Judged {
    pub n: i64,
    pub verdict: Verdict,
    pub refusal: Option<Refusal>,
    pub tenant_id: Option<TenantId>,
    pub domain_id: Option<DomainId>,
}

/// Verdicts written in one round trip.
const WRITTEN: usize = 50;

/// Writes verdicts.
pub async fn judge(tx: &mut Tx, id: &ImportId, judged: &[Judged]) -> StoreResult<()> {
    for chunk in judged.chunks(WRITTEN) {
        let one = |j: &Judged| {
            let refusal = j.refusal.as_ref();
            sql("UPDATE import_rows SET verdict = $3, code = $4, detail = $5, suggestion = $6, tenant_id = $7, domain_id = $8 \
                 WHERE import_id = $1 AND n = $2")
            .bind(id.as_str())
            .bind(j.n)
            .bind(j.verdict.as_str())
            .bind(refusal.map(|r| r.code.as_str()))
            .bind(refusal.map(|r| r.detail.as_str()))
            .bind(refusal.and_then(|r| r.suggestion.as_deref()))
            .bind(j.tenant_id.as_ref().map(TenantId::as_str))
            .bind(j.domain_id.as_ref().map(DomainId::as_str))
        };
        tx.batch(chunk.iter().map(one).collect()).await?;
    }
    Ok(())
}

/// Claims that an import made, or opened again, are its own and wait in the lane of imports.
pub async fn belong(tx: &mut Tx, claims: &[DomainId], id: &ImportId) -> StoreResult<()> {
    for chunk in claims.chunks(WRITTEN) {
        let one = |domain: &DomainId| {
            sql("UPDATE domains SET lane = 'bulk', import_id = $2 WHERE id = $1").bind(domain.as_str()).bind(id.as_str())
        };
        tx.batch(chunk.iter().map(one).collect()).await?;
    }
    Ok(())
}

/// Somebody wants this one name by hand: it leaves the lane of imports with whatever waits for it. Whether it was there.
pub async fn by_hand(tx: &mut Tx, domain: &DomainId, now: Moment) -> StoreResult<bool> {
    let stmt = sql("UPDATE domains SET lane = 'single', nudged = generation, \
           due_at = CASE WHEN (looked_at IS NULL OR claim = 'queued') AND due_at > $2 THEN $2 ELSE due_at END, \
           check_asked_at = CASE WHEN claim = 'queued' THEN $2 ELSE check_asked_at END, \
           check_asked_by = CASE WHEN claim = 'queued' THEN 'nameplate' ELSE check_asked_by END \
         WHERE id = $1 AND lane = 'bulk'")
    .bind(domain.as_str())
    .bind(now);
    if tx.execute(stmt).await? == 0 {
        return Ok(false);
    }
    let orders = sql("UPDATE orders SET lane = 'single' WHERE domain_id = $1 AND lane = 'bulk' AND purpose = 'first' \
         AND state NOT IN ('issued', 'failed', 'lost')");
    tx.execute(orders.bind(domain.as_str())).await?;
    Ok(true)
}

/// Rows of an import after number `after`, with this verdict only if one is given. A row behind the cursor is pending,
/// whatever a dry run said of it.
pub async fn page(
    store: &Store,
    id: &ImportId,
    verdict: Option<Verdict>,
    after: i64,
    limit: i64,
) -> StoreResult<Vec<ImportRow>> {
    // Refused rows are asked for by themselves most of all, and have an index for it.
    let stmt = match verdict {
        Some(Verdict::Refused) => {
            sql("SELECT r.*, i.cursor, i.state FROM import_rows r JOIN imports i ON i.id = r.import_id \
             WHERE r.import_id = $1 AND r.n > $2 AND r.verdict = 'refused' AND (r.n <= i.cursor OR r.hostname IS NULL) \
             ORDER BY r.n LIMIT $3")
        }
        _ => sql("SELECT r.*, i.cursor, i.state FROM import_rows r JOIN imports i ON i.id = r.import_id \
             WHERE r.import_id = $1 AND r.n > $2 AND ($4 = '' OR $4 = CASE WHEN r.n <= i.cursor OR r.hostname IS NULL \
               THEN r.verdict WHEN i.state = 'cancelled' THEN 'cancelled' ELSE 'pending' END) ORDER BY r.n LIMIT $3"),
    };
    let stmt = stmt.bind(id.as_str()).bind(after).bind(limit);
    let stmt = match verdict {
        Some(Verdict::Refused) => stmt,
        other => stmt.bind(other.map_or("", Verdict::as_str)),
    };
    let read = |row: &Row| {
        let mut read = import_row(row)?;
        if read.n > row.int("cursor")? && read.hostname.is_some() {
            let given_up = row.text("state")? == "cancelled";
            read.verdict = if given_up { Verdict::Cancelled } else { Verdict::Pending };
            read.refusal = None;
        }
        Ok(read)
    };
    store.query(stmt).await?.iter().map(read).collect()
}

/// A claim with what is to be published for it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Published {
    pub n: i64,
    pub tenant: String,
    pub hostname: Hostname,
    pub value: String,
    pub routing_mode: RoutingMode,
    pub target: String,
}

/// What is to be published for the claims of an import that are still open, in the order of its rows, of one tenant only if
/// one is given.
pub async fn published(
    store: &Store,
    id: &ImportId,
    tenant: Option<&TenantId>,
    after: i64,
    limit: i64,
) -> StoreResult<Vec<Published>> {
    let stmt = sql("SELECT r.n, t.slug, d.hostname, a.value, d.routing_mode, d.target FROM import_rows r \
         JOIN domains d ON d.id = r.domain_id JOIN attempts a ON a.id = d.attempt_id JOIN tenants t ON t.id = d.tenant_id \
         WHERE r.import_id = $1 AND r.n > $2 AND r.verdict IN ('claimed', 'already_yours') AND ($4 = '' OR r.tenant_id = $4) \
           AND d.claim IN ('awaiting_dns', 'queued', 'live', 'expired') ORDER BY r.n LIMIT $3")
    .bind(id.as_str())
    .bind(after)
    .bind(limit)
    .bind(tenant.map_or("", TenantId::as_str));
    let read = |row: &Row| {
        Ok(Published {
            n: row.int("n")?,
            tenant: row.text("slug")?,
            hostname: Hostname::trusted(&row.text("hostname")?),
            value: row.text("value")?,
            routing_mode: row.parse("routing_mode")?,
            target: row.text("target")?,
        })
    };
    store.query(stmt).await?.iter().map(read).collect()
}

/// Names that need an order, and the registered domains they are under.
pub async fn orders_needed(tx: &mut Tx, id: &ImportId) -> StoreResult<(u64, u64)> {
    let stmt = sql("SELECT count(*) AS n, count(DISTINCT registered) AS domains FROM import_rows \
         WHERE import_id = $1 AND verdict IN ('claimed', 'would_be_claimed')");
    let Some(row) = tx.fetch_optional(stmt.bind(id.as_str()).long()).await? else { return Ok((0, 0)) };
    let number = |column| -> StoreResult<u64> { Ok(u64::try_from(row.int(column)?).unwrap_or(0)) };
    Ok((number("n")?, number("domains")?))
}

/// Registered domains whose names may have to wait for each other, with what is used of their limit: those under which more than
/// `most` names need an order, and those whose limit is in use. Who waits under them already, proven or not yet, goes first, and
/// counts as a spend that is open: names of earlier imports, and single claims.
pub async fn crowds(
    tx: &mut Tx,
    id: &ImportId,
    (issuer, limit_name): (&IssuerId, &str),
    most: u32,
    now: Moment,
) -> StoreResult<Vec<(String, u64, Bucket)>> {
    // A name's registered domain is one of the words that it is found by.
    let stmt = sql("WITH crowds AS MATERIALIZED ( \
           SELECT asked.registered, asked.n, l.tat, CASE WHEN l.closed IS NOT NULL THEN l.closed_until END AS closed_until, \
             (SELECT count(*) FROM spends p WHERE p.issuer_id = $2 AND p.limit_name = $3 AND p.key = asked.registered) \
             + (SELECT count(DISTINCT d.id) FROM domain_words w JOIN domains d ON d.id = w.domain_id \
                 LEFT JOIN orders o ON o.domain_id = d.id AND o.state NOT IN ('issued', 'failed', 'lost') \
                 WHERE w.word = asked.registered AND (d.import_id IS NULL OR d.import_id <> $1) \
                   AND (d.claim = 'awaiting_dns' OR o.state = 'waiting' AND o.issuer_id = $2)) AS open \
           FROM (SELECT registered, count(*) AS n FROM import_rows WHERE import_id = $1 \
               AND verdict IN ('claimed', 'would_be_claimed') GROUP BY registered) asked \
             LEFT JOIN ledger l ON l.issuer_id = $2 AND l.limit_name = $3 AND l.key = asked.registered AND l.tat > $4 \
         ) SELECT registered, n, tat, closed_until, open FROM crowds WHERE tat IS NOT NULL OR n + open > $5 ORDER BY registered")
    .bind(id.as_str())
    .bind(issuer.as_str())
    .bind(limit_name)
    .bind(now)
    .bind(i64::from(most));
    let read = |row: &Row| {
        let names = u64::try_from(row.int("n")?).unwrap_or(0);
        let open = u32::try_from(row.int("open")?).unwrap_or(u32::MAX);
        let closed_until = row.opt_moment("closed_until")?.unwrap_or_default();
        Ok((row.text("registered")?, names, Bucket { tat: row.opt_moment("tat")?.unwrap_or(now), open, closed_until }))
    };
    tx.fetch_all(stmt.long()).await?.iter().map(read).collect()
}

/// The registered domains of the names that need an order, in the order of their rows, from behind row `after`: a page of them, with
/// their rows.
pub async fn domains_in_order(tx: &mut Tx, id: &ImportId, after: i64, limit: i64) -> StoreResult<Vec<(i64, String)>> {
    let stmt = sql("SELECT n, registered FROM import_rows WHERE import_id = $1 AND n > $2 \
         AND verdict IN ('claimed', 'would_be_claimed') ORDER BY n LIMIT $3");
    let rows = tx.fetch_all(stmt.bind(id.as_str()).bind(after).bind(limit)).await?;
    rows.iter().map(|row| Ok((row.int("n")?, row.opt_text("registered")?.unwrap_or_default()))).collect()
}

/// Orders that wait at an issuer for what the account may spend. Those set aside for a limit of their own are not in the way of others.
pub async fn waiting(tx: &mut Tx, issuer: &IssuerId) -> StoreResult<u64> {
    let stmt = sql("SELECT count(*) AS n FROM orders WHERE issuer_id = $1 AND state = 'waiting' AND held_by IS NULL AND not_before < $2")
        .bind(issuer.as_str())
        .bind(Moment::NEVER);
    let n = tx.fetch_optional(stmt.long()).await?.map_or(Ok(0), |row| row.int("n"))?;
    Ok(u64::try_from(n).unwrap_or(0))
}

fn import_row(row: &Row) -> StoreResult<ImportRow> {
    let refusal = match (row.opt_text("code")?, row.opt_text("detail")?) {
        (Some(code), detail) => {
            Some(Refusal { code, detail: detail.unwrap_or_default(), suggestion: row.opt_text("suggestion")? })
        }
        (None, _) => None,
    };
    Ok(ImportRow {
        n: row.int("n")?,
        line: row.int("line")?,
        tenant: row.opt_text("tenant")?,
        method: row.opt_text("method")?,
        typed: row.text("typed")?,
        hostname: row.opt_text("hostname")?.map(|name| Hostname::trusted(&name)),
        verdict: row.parse("verdict")?,
        refusal,
        tenant_id: row.opt_parse("tenant_id")?,
        domain_id: row.opt_parse("domain_id")?,
    })
}

/// Whether a slug, or one that could be mistaken for it, is or was somebody's.
pub async fn slug_is_taken(tx: &mut Tx, slug: &Slug) -> StoreResult<bool> {
    let stmt = sql("SELECT 1 AS n FROM slug_skeletons WHERE skeleton = $1 UNION ALL SELECT 1 FROM slugs WHERE slug = $2")
        .bind(slug.skeleton())
        .bind(slug.as_str());
    Ok(tx.fetch_optional(stmt).await?.is_some())
}

/// Notes that a dry run would add a tenant with this slug; false when it would add one before that people could mistake for it.
pub async fn would_add(tx: &mut Tx, id: &ImportId, slug: &Slug) -> StoreResult<bool> {
    let note = sql("INSERT INTO import_slugs (import_id, skeleton, slug) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING")
        .bind(id.as_str())
        .bind(slug.skeleton())
        .bind(slug.as_str());
    if tx.execute(note).await? == 1 {
        return Ok(true);
    }
    let stmt = sql("SELECT 1 AS n FROM import_slugs WHERE import_id = $1 AND skeleton = $2 AND slug = $3")
        .bind(id.as_str())
        .bind(slug.skeleton())
        .bind(slug.as_str());
    Ok(tx.fetch_optional(stmt).await?.is_some())
}
