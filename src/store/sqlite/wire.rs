//! One connection to SQLite.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, Value as Cell, ValueRef};
use rusqlite::{CachedStatement, Connection, OpenFlags, ToSql};

use crate::store::{Stmt, StoreError, StoreResult, Value};

/// Prepared statements that a connection keeps: more than there are, so that none is parsed twice. They are a few kilobytes each.
const STATEMENTS: usize = 1_000;

/// Pages of the write-ahead log after which it is copied into the file. A page that changes often is copied once for them all;
/// the log grows to 16 MB.
const CHECKPOINT_PAGES: i64 = 4_000;

/// Bytes of a page of a database in memory. It has all its pages in one table, and goes through that after every transaction that
/// balanced a tree: half as many are gone through twice as fast. Larger ones cost more to copy than that saves.
const PAGE_IN_MEMORY: i64 = 8_192;

/// After so many steps of SQLite's machine it is asked whether it should go on: some twenty microseconds.
const STRIDE: i32 = 1_000;

/// How many strides a read may take inside a task: a millisecond or two.
const STRIDES_INSIDE: u32 = 50;

/// How a connection is opened.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// A path, or the name of a database in memory.
    pub(crate) name: String,
    pub(crate) in_memory: bool,
    /// What strays onto it and would write fails at once.
    pub(crate) reads_only: bool,
}

/// One connection.
pub(crate) struct Wire {
    // Boxed, so that a task that hands it on hands on little.
    connection: Box<Connection>,
    /// By where a statement's text is: it is literal, and does not move.
    shapes: HashMap<(usize, usize), Arc<Shape>>,
    /// Strides left to the read that runs inside a task.
    strides: Arc<AtomicU32>,
}

/// What a statement's text says once it is parsed.
struct Shape {
    /// For each of SQLite's parameters, which of our values it takes: SQLite numbers `$2` by where it comes first.
    values: Vec<usize>,
    columns: Arc<HashMap<String, usize>>,
    width: usize,
}

/// A row of its own.
pub struct SqliteRow {
    columns: Arc<HashMap<String, usize>>,
    cells: Vec<Cell>,
}

impl SqliteRow {
    /// What stands in a column.
    pub(crate) fn cell(&self, column: &str) -> Option<&Cell> {
        self.columns.get(column).and_then(|n| self.cells.get(*n))
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Value::Int(Some(number)) => ValueRef::Integer(*number),
            Value::Blob(Some(bytes)) => ValueRef::Blob(bytes),
            Value::Text(None) | Value::Int(None) | Value::Blob(None) => ValueRef::Null,
        }))
    }
}

impl Wire {
    pub(crate) fn open(source: &Source) -> StoreResult<Wire> {
        // One task has it at a time, which is all the locking it needs.
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if source.in_memory {
            flags |= OpenFlags::SQLITE_OPEN_MEMORY | OpenFlags::SQLITE_OPEN_SHARED_CACHE;
        }
        let connection = Connection::open_with_flags(Path::new(&source.name), flags)?;
        // To wait for another process is the line's part: it sleeps while it does.
        connection.busy_timeout(Duration::ZERO)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        if source.in_memory {
            connection.pragma_update(None, "page_size", PAGE_IN_MEMORY)?;
        }
        for (name, value) in [("journal_mode", "WAL"), ("synchronous", "FULL"), ("foreign_keys", "ON")] {
            connection.pragma_update(None, name, value)?;
        }
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        let strides = Arc::new(AtomicU32::new(u32::MAX));
        if source.reads_only {
            connection.pragma_update(None, "query_only", "ON")?;
            let left = Arc::clone(&strides);
            connection.progress_handler(
                STRIDE,
                Some(move || match left.load(Ordering::Relaxed) {
                    0 => true,
                    u32::MAX => false,
                    n => {
                        left.store(n - 1, Ordering::Relaxed);
                        false
                    }
                }),
            )?;
        }
        Ok(Wire { connection: Box::new(connection), shapes: HashMap::new(), strides })
    }

    /// All rows of a query.
    pub(crate) fn rows(&mut self, stmt: &Stmt) -> StoreResult<Vec<SqliteRow>> {
        let Wire { connection, shapes, .. } = self;
        let mut prepared = connection.prepare_cached(stmt.text())?;
        let shape = bind(&mut prepared, shapes, stmt)?;
        let mut found = Vec::new();
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next()? {
            let cells = (0..shape.width).map(|n| row.get(n)).collect::<rusqlite::Result<_>>()?;
            found.push(SqliteRow { columns: Arc::clone(&shape.columns), cells });
        }
        Ok(found)
    }

    /// The rows of a query if they are found in few steps; nothing when it is a long one.
    pub(crate) fn rows_soon(&mut self, stmt: &Stmt) -> Option<StoreResult<Vec<SqliteRow>>> {
        self.strides.store(STRIDES_INSIDE, Ordering::Relaxed);
        let found = self.rows(stmt);
        let given_up = self.strides.swap(u32::MAX, Ordering::Relaxed) == 0;
        (!given_up || found.is_ok()).then_some(found)
    }

    /// Runs a statement; how many rows it changed.
    pub(crate) fn execute(&mut self, stmt: &Stmt) -> StoreResult<u64> {
        let Wire { connection, shapes, .. } = self;
        let mut prepared = connection.prepare_cached(stmt.text())?;
        bind(&mut prepared, shapes, stmt)?;
        let mut rows = prepared.raw_query();
        while rows.next()?.is_some() {}
        drop(rows);
        drop(prepared);
        Ok(connection.changes())
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self, writes: bool) -> StoreResult<()> {
        let begin = if writes { "BEGIN IMMEDIATE" } else { "BEGIN" };
        Ok(self.connection.prepare_cached(begin).and_then(|mut begin| begin.raw_execute()).map(drop)?)
    }

    /// Makes a transaction durable.
    pub(crate) fn commit(&mut self) -> StoreResult<()> {
        if !self.in_transaction() {
            return Err(StoreError::unavailable("the database had given the transaction up: its disk may be full"));
        }
        Ok(self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.raw_execute()).map(drop)?)
    }

    /// Undoes what was not committed; nothing happens outside a transaction. Whether none is open now.
    pub(crate) fn roll_back(&mut self) -> bool {
        if self.in_transaction()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back; its connection is closed");
        }
        !self.in_transaction()
    }

    /// Rows written since it was opened, those of transactions that were undone included.
    pub(crate) fn rows_written(&self) -> u64 {
        self.connection.total_changes()
    }

    /// Whether a transaction is open.
    pub(crate) fn in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }
}

/// Binds a statement's values.
fn bind(
    prepared: &mut CachedStatement<'_>,
    shapes: &mut HashMap<(usize, usize), Arc<Shape>>,
    stmt: &Stmt,
) -> StoreResult<Arc<Shape>> {
    let place = (stmt.text().as_ptr() as usize, stmt.text().len());
    // Other columns than before: somebody changed the schema.
    let known = shapes.get(&place).filter(|shape| shape.width == prepared.column_count());
    let shape = match known {
        Some(shape) => Arc::clone(shape),
        None => {
            let shape = Arc::new(shape(prepared)?);
            shapes.insert(place, Arc::clone(&shape));
            shape
        }
    };
    for (n, value) in shape.values.iter().enumerate() {
        let value = stmt.values().get(*value).ok_or_else(|| StoreError::unavailable("a statement lacks a value"))?;
        prepared.raw_bind_parameter(n + 1, value)?;
    }
    Ok(shape)
}

fn shape(prepared: &CachedStatement<'_>) -> StoreResult<Shape> {
    let number = |n: usize| prepared.parameter_name(n)?.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1);
    let values = (1..=prepared.parameter_count())
        .map(|n| number(n).ok_or_else(|| StoreError::unavailable("a placeholder is not a number: $1, $2 …")))
        .collect::<StoreResult<_>>()?;
    let names = prepared.column_names();
    let columns = names.iter().enumerate().map(|(n, name)| ((*name).to_owned(), n)).collect();
    Ok(Shape { values, columns: Arc::new(columns), width: names.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql;

    fn wire(reads_only: bool) -> (tempfile::TempDir, Wire) {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("n.db").to_str().unwrap().to_owned();
        let mut first = Wire::open(&Source { name: name.clone(), in_memory: false, reads_only: false }).unwrap();
        first.execute(&sql("CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER, c BLOB)")).unwrap();
        let insert = sql("INSERT INTO t (b, c, a) VALUES ($2, $3, $1)");
        first.execute(&insert.bind("x").bind(7).bind(vec![1_u8, 2])).unwrap();
        drop(first);
        (dir, Wire::open(&Source { name, in_memory: false, reads_only }).unwrap())
    }

    #[test]
    fn a_placeholder_takes_the_value_of_its_number_wherever_it_stands() {
        let (_dir, mut wire) = wire(false);
        let asked = sql("SELECT a, b, c, NULL AS d FROM t WHERE b = $2 AND a = $1 AND b = $2").bind("x").bind(7);
        let rows = wire.rows(&asked).unwrap();
        let cell = |column| rows[0].cell(column);
        assert_eq!((cell("a"), cell("b")), (Some(&Cell::Text("x".to_owned())), Some(&Cell::Integer(7))));
        assert_eq!((cell("c"), cell("d"), cell("e")), (Some(&Cell::Blob(vec![1, 2])), Some(&Cell::Null), None));
        // A statement that is kept keeps no value of the time before.
        assert!(wire.rows(&sql("SELECT a FROM t WHERE a = $1").bind("x")).unwrap().len() == 1);
        assert!(wire.rows(&sql("SELECT a FROM t WHERE a = $1").bind(None::<String>)).unwrap().is_empty());
    }

    #[test]
    fn a_read_that_turns_out_long_is_given_up_and_whole_when_it_may_take_its_time() {
        let (_dir, mut wire) = wire(true);
        let short = sql("SELECT a FROM t");
        let long = sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT count(*) AS n FROM n",
        );
        assert_eq!(wire.rows_soon(&short).unwrap().unwrap().len(), 1);
        assert!(wire.rows_soon(&long).is_none());
        assert_eq!(wire.rows(&long).unwrap()[0].cell("n"), Some(&Cell::Integer(200_000)));
        assert_eq!(wire.rows_soon(&short).unwrap().unwrap().len(), 1, "the one before is still held against it");
        // A fault is a fault, and no long read.
        assert!(matches!(wire.rows_soon(&sql("SELECT nothing FROM t")), Some(Err(StoreError::Refused(_)))));
        assert!(wire.execute(&sql("DELETE FROM t")).is_err(), "a reader wrote");
    }

    #[test]
    fn what_sqlite_gave_up_is_not_said_to_be_committed() {
        let (_dir, mut wire) = wire(false);
        wire.begin(true).unwrap();
        wire.execute(&sql("DELETE FROM t")).unwrap();
        // As SQLite does by itself when the disk is full.
        wire.execute(&sql("ROLLBACK")).unwrap();
        assert!(matches!(wire.commit(), Err(StoreError::Unavailable(_))));
        assert_eq!(wire.rows(&sql("SELECT a FROM t")).unwrap().len(), 1);
        // A constraint is told as one, and the transaction that met it can be undone.
        wire.begin(true).unwrap();
        let twice = wire.execute(&sql("INSERT INTO t (a) VALUES ('x')"));
        assert!(matches!(&twice, Err(StoreError::Conflict { constraint }) if constraint == "t.a"), "{twice:?}");
        assert!(wire.roll_back() && !wire.in_transaction());
    }
}
