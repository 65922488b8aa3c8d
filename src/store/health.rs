//! What a database says of itself, for `nameplate doctor` and for whoever takes its clock for its own; nothing is changed.

use std::path::PathBuf;

use super::{Store, StoreError, StoreResult, of_sqlite};
use crate::model::moment::Moment;

/// A database's own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// `SQLite 3.46.0`, `PostgreSQL 15.8`.
    pub version: String,
    /// The settings on which durability rests, as they stand.
    pub durability: String,
    /// Whether what is committed survives a power cut.
    pub durable: bool,
    /// Its clock; SQLite has none of its own.
    pub now: Option<Moment>,
    /// Its file, for SQLite.
    pub file: Option<PathBuf>,
}

const POSTGRES: &str = "SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync, \
     current_setting('synchronous_commit') AS commit, current_setting('full_page_writes') AS pages, \
     CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) AS now";

/// Whether the database takes writes. A standby does not, nor does one that was made read-only; both answer all the same.
pub async fn takes_writes(store: &Store) -> StoreResult<bool> {
    let Some(pool) = store.postgres_pool() else { return Ok(true) };
    let read_only: String = sqlx::query_scalar("SELECT current_setting('transaction_read_only')").fetch_one(pool).await?;
    Ok(read_only == "off")
}

/// Asks the database.
pub async fn of(store: &Store) -> StoreResult<Health> {
    let Some(pool) = store.postgres_pool() else {
        let asked = of_sqlite(
            "SELECT sqlite_version() AS version, (SELECT synchronous FROM pragma_synchronous) AS synchronous, \
             (SELECT journal_mode FROM pragma_journal_mode) AS journal, \
             (SELECT file FROM pragma_database_list WHERE name = 'main') AS file",
        );
        let rows = store.query(asked).await?;
        let row = rows.first().ok_or_else(|| StoreError::not_found("a database"))?;
        let (synchronous, journal) = (row.int("synchronous")?, row.text("journal")?);
        let file = row.opt_text("file")?.filter(|file| !file.is_empty()).map(PathBuf::from);
        return Ok(Health {
            version: format!("SQLite {}", row.text("version")?),
            // 2 is FULL, 3 is EXTRA.
            durable: synchronous >= 2 && file.is_some(),
            durability: format!("synchronous={synchronous} journal_mode={journal}"),
            now: None,
            file,
        });
    };
    let (version, fsync, commit, pages, now): (String, String, String, String, i64) =
        sqlx::query_as(POSTGRES).fetch_one(pool).await?;
    Ok(Health {
        version: format!("PostgreSQL {version}"),
        durable: fsync == "on" && commit != "off" && pages == "on",
        durability: format!("fsync={fsync} synchronous_commit={commit} full_page_writes={pages}"),
        now: Some(Moment::from_micros(now)),
        file: None,
    })
}
