//! One row of either database, read by column name; what does not fit is an inconsistency with its column named.

use std::str::FromStr;

use rusqlite::types::Value as Cell;
use serde::de::DeserializeOwned;
use sqlx::postgres::PgRow;

use super::sqlite::SqliteRow;
use super::{StoreError, StoreResult};
use crate::model::moment::Moment;

/// A row.
pub enum Row {
    /// From SQLite.
    Sqlite(SqliteRow),
    /// From PostgreSQL.
    Postgres(PgRow),
}

macro_rules! get {
    ($row:expr, $ty:ty, $cell:ident, $column:expr, $expected:literal) => {{
        let got: Result<Option<$ty>, String> = match $row {
            Row::Sqlite(r) => match r.cell($column) {
                Some(Cell::Null) => Ok(None),
                Some(Cell::$cell(value)) => Ok(Some(value.to_owned())),
                Some(other) => Err(format!("{other:?}").chars().take(80).collect()),
                None => Err("no such column".to_owned()),
            },
            Row::Postgres(r) => sqlx::Row::try_get(r, $column).map_err(|e| e.to_string()),
        };
        got.map_err(|seen| StoreError::Inconsistent { column: $column.to_owned(), seen, expected: $expected })
    }};
}

/// A value that must be there.
fn present<T>(got: Option<T>, column: &str, expected: &'static str) -> StoreResult<T> {
    got.ok_or_else(|| StoreError::Inconsistent { column: column.to_owned(), seen: "null".to_owned(), expected })
}

fn parsed<T: FromStr>(column: &str, seen: String, expected: &'static str) -> StoreResult<T> {
    seen.parse().map_err(|_| StoreError::Inconsistent { column: column.to_owned(), seen: shorten(seen), expected })
}

fn shorten(seen: String) -> String {
    seen.chars().take(80).collect()
}

impl Row {
    /// A text.
    pub fn text(&self, column: &str) -> StoreResult<String> {
        present(self.opt_text(column)?, column, "a text")
    }

    /// A text or nothing.
    pub fn opt_text(&self, column: &str) -> StoreResult<Option<String>> {
        get!(self, String, Text, column, "a text or null")
    }

    /// A whole number.
    pub fn int(&self, column: &str) -> StoreResult<i64> {
        present(self.opt_int(column)?, column, "a whole number")
    }

    /// A whole number or nothing.
    pub fn opt_int(&self, column: &str) -> StoreResult<Option<i64>> {
        get!(self, i64, Integer, column, "a whole number or null")
    }

    /// Bytes.
    pub fn blob(&self, column: &str) -> StoreResult<Vec<u8>> {
        present(self.opt_blob(column)?, column, "bytes")
    }

    /// Bytes or nothing.
    pub fn opt_blob(&self, column: &str) -> StoreResult<Option<Vec<u8>>> {
        get!(self, Vec<u8>, Blob, column, "bytes or null")
    }

    /// A moment.
    pub fn moment(&self, column: &str) -> StoreResult<Moment> {
        self.int(column).map(Moment::from_micros)
    }

    /// A moment or nothing.
    pub fn opt_moment(&self, column: &str) -> StoreResult<Option<Moment>> {
        Ok(self.opt_int(column)?.map(Moment::from_micros))
    }

    /// An id, a state, anything that is parsed from text.
    pub fn parse<T: FromStr>(&self, column: &str) -> StoreResult<T> {
        parsed(column, self.text(column)?, "a value of this version's vocabulary")
    }

    /// The same, or nothing.
    pub fn opt_parse<T: FromStr>(&self, column: &str) -> StoreResult<Option<T>> {
        self.opt_text(column)?.map(|t| parsed(column, t, "a value of this version's vocabulary")).transpose()
    }

    /// A JSON document.
    pub fn json<T: DeserializeOwned>(&self, column: &str) -> StoreResult<T> {
        let seen = self.text(column)?;
        serde_json::from_str(&seen).map_err(|_| StoreError::Inconsistent {
            column: column.to_owned(),
            seen: shorten(seen),
            expected: "a JSON document of the shape this version reads",
        })
    }

    /// A JSON document or nothing.
    pub fn opt_json<T: DeserializeOwned>(&self, column: &str) -> StoreResult<Option<T>> {
        match self.opt_text(column)? {
            None => Ok(None),
            Some(_) => self.json(column).map(Some),
        }
    }
}
