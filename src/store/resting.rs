//! Names at rest: let go of by one tenant, and watched until they lead elsewhere.

use super::situation::domain;
use super::{Row, Stmt, Store, StoreResult, Tx, holdings, sql};
use crate::model::domain::Domain;
use crate::model::letting_go::{FIRST_LOOK, Resting};
use crate::model::moment::Moment;

/// Things that are told of with a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Many {
    /// How many.
    pub many: i64,
    /// Some of them by name.
    pub some: Vec<String>,
}

/// A name at rest.
#[derive(Clone, Debug)]
pub struct RestingRow {
    /// The claim that let it go.
    pub former: Domain,
    /// The number of that holding.
    pub term: i64,
    /// What is remembered of it.
    pub resting: Resting,
    /// When it is looked at next.
    pub watch_at: Moment,
}

fn resting(row: &Row) -> StoreResult<RestingRow> {
    Ok(RestingRow {
        former: domain(row)?,
        term: row.int("h_term")?,
        resting: Resting {
            since: row.moment("h_since")?,
            looks_off: row.int("h_looks_off")?,
            first_off_at: row.opt_moment("h_first_off")?,
            dangles_since: row.opt_moment("h_dangles")?,
            reminded_at: row.opt_moment("h_reminded")?,
        },
        watch_at: row.moment("h_watch")?,
    })
}

/// Names at rest that are to be looked at by now, the longest waiting first.
pub async fn due(store: &Store, now: Moment, limit: i64) -> StoreResult<Vec<RestingRow>> {
    let stmt =
        sql("SELECT d.*, h.term AS h_term, h.since AS h_since, h.looks_off AS h_looks_off, h.first_off_at AS h_first_off, \
           h.dangles_since AS h_dangles, h.reminded_at AS h_reminded, h.watch_at AS h_watch \
         FROM holdings h JOIN domains d ON d.id = h.domain_id WHERE h.watch_at <= $1 ORDER BY h.watch_at LIMIT $2")
        .bind(now)
        .bind(limit);
    store.query(stmt).await?.iter().map(resting).collect()
}

/// Names that were let go of and still lead to us, by name, after one.
pub async fn dangling(tx: &mut Tx, after: &str, limit: i64) -> StoreResult<Vec<RestingRow>> {
    let stmt =
        sql("SELECT d.*, h.term AS h_term, h.since AS h_since, h.looks_off AS h_looks_off, h.first_off_at AS h_first_off, \
           h.dangles_since AS h_dangles, h.reminded_at AS h_reminded, h.watch_at AS h_watch \
         FROM holdings h JOIN domains d ON d.id = h.domain_id \
         WHERE h.dangles_since IS NOT NULL AND h.hostname > $1 ORDER BY h.hostname LIMIT $2")
        .bind(after)
        .bind(limit);
    tx.fetch_all(stmt).await?.iter().map(resting).collect()
}

/// Names that have led to us since then at least although they were let go of; the longest of them by name.
pub async fn left_behind(store: &Store, since: Moment, named: i64) -> StoreResult<Option<Many>> {
    let counted = sql("SELECT COUNT(*) AS n FROM holdings WHERE dangles_since IS NOT NULL AND dangles_since <= $1");
    let many = store.query(counted.bind(since)).await?.first().map_or(Ok(0), |row| row.int("n"))?;
    if many == 0 {
        return Ok(None);
    }
    let some = sql("SELECT hostname FROM holdings WHERE dangles_since IS NOT NULL AND dangles_since <= $1 \
         ORDER BY dangles_since, hostname LIMIT $2");
    let some = store.query(some.bind(since).bind(named)).await?;
    Ok(Some(Many { many, some: some.iter().map(|row| row.text("hostname")).collect::<StoreResult<_>>()? }))
}

/// Keeps what a look came to; one row, unless the name rests no longer or somebody else looked meanwhile.
pub fn looked(before: &RestingRow, after: &Resting, next: Moment) -> Stmt {
    sql("UPDATE holdings SET looks_off = $4, first_off_at = $5, dangles_since = $6, reminded_at = $7, watch_at = $8 \
         WHERE hostname = $1 AND term = $2 AND watch_at = $3 AND state = 'quarantined'")
    .bind(before.former.hostname.as_str())
    .bind(before.term)
    .bind(before.watch_at)
    .bind(after.looks_off)
    .bind(after.first_off_at)
    .bind(after.dangles_since)
    .bind(after.reminded_at)
    .bind(next)
}

/// The name is free; who waits for it looks at once. The last changes one row, or none when the name rests no longer: then the first
/// must not be kept either.
pub fn free(before: &RestingRow, now: Moment) -> [Stmt; 2] {
    let free =
        sql("UPDATE holdings SET state = 'free', since = $4, watch_at = NULL, dangles_since = NULL, successor_id = NULL, \
           successor_at = NULL, successor_counted = 0, successor_seen_at = NULL \
         WHERE hostname = $1 AND term = $2 AND watch_at = $3 AND state = 'quarantined'")
        .bind(before.former.hostname.as_str())
        .bind(before.term)
        .bind(before.watch_at)
        .bind(now);
    [holdings::others_look(&before.former, now), free]
}

/// Nobody holds the name now: it rests, or is free. Who was to follow finds a name at rest with its clock, a free one without.
pub(super) fn let_go(d: &Domain, state: &'static str, now: Moment) -> Stmt {
    sql("UPDATE holdings SET state = $3, since = $4, looks_off = 0, first_off_at = NULL, dangles_since = NULL, reminded_at = NULL, \
           watch_at = CASE WHEN $3 = 'quarantined' THEN CAST($5 AS BIGINT) ELSE NULL END, \
           successor_id = CASE WHEN $3 = 'free' THEN NULL ELSE successor_id END WHERE hostname = $1 AND domain_id = $2")
    .bind(d.hostname.as_str())
    .bind(d.id.as_str())
    .bind(state)
    .bind(now)
    .bind(now + FIRST_LOOK)
}
