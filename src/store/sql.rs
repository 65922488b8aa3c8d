//! The seam between portable statements and the two databases.
//!
//! A [`Stmt`] is a text with `$n` placeholders and its values. A transaction runs statements one by one, or several that do
//! not depend on each other's results as one [`Tx::batch`]: PostgreSQL gets them as one statement of data-modifying CTEs.
//! A step of the one door therefore ends in three round trips, however much it records. Inside a batch no two statements may
//! touch the same row, and none sees what another wrote.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::postgres::PgArguments;
use sqlx::{Arguments as _, AssertSqlSafe, Postgres, Transaction};

use super::sqlite::{SqliteRow, Turn};
use super::{Row, StoreError, StoreResult};
use crate::model::moment::Moment;

/// A value to bind.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text or null.
    Text(Option<String>),
    /// A whole number or null.
    Int(Option<i64>),
    /// Bytes or null.
    Blob(Option<Vec<u8>>),
}

macro_rules! into_value {
    ($($ty:ty => |$x:ident| $value:expr;)*) => {$(
        impl From<$ty> for Value {
            fn from($x: $ty) -> Value { $value }
        }
    )*};
}

into_value! {
    &str => |x| Value::Text(Some(x.to_owned()));
    String => |x| Value::Text(Some(x));
    Option<String> => |x| Value::Text(x);
    Option<&str> => |x| Value::Text(x.map(str::to_owned));
    i64 => |x| Value::Int(Some(x));
    Option<i64> => |x| Value::Int(x);
    bool => |x| Value::Int(Some(i64::from(x)));
    Moment => |x| Value::Int(Some(x.micros()));
    Option<Moment> => |x| Value::Int(x.map(Moment::micros));
    Vec<u8> => |x| Value::Blob(Some(x));
    &[u8] => |x| Value::Blob(Some(x.to_vec()));
    Option<Vec<u8>> => |x| Value::Blob(x);
}

/// A statement with its values.
#[derive(Clone, Debug)]
pub struct Stmt {
    text: &'static str,
    values: Vec<Value>,
    long: bool,
}

/// Begins a statement.
pub fn sql(text: &'static str) -> Stmt {
    Stmt { text, values: Vec::new(), long: false }
}

/// Begins a statement that SQLite alone understands.
pub fn of_sqlite(text: &'static str) -> Stmt {
    sql(text)
}

impl Stmt {
    /// Binds the next value.
    #[must_use]
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Says that it may go through many rows: on SQLite it runs on a thread of its own, where it holds up no other task.
    #[must_use]
    pub fn long(self) -> Self {
        Stmt { long: true, ..self }
    }

    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(super) fn is_long(&self) -> bool {
        self.long
    }

    /// That as many values are bound as the text asks for. SQLite would read a missing one as null without a word, and in
    /// a batch a statement would take its neighbour's.
    pub(super) fn checked(self) -> StoreResult<Self> {
        let asked = highest_placeholder(self.text);
        if asked == self.values.len() {
            return Ok(self);
        }
        Err(StoreError::unavailable(format!(
            "a statement asks for {asked} values and was given {}: {}",
            self.values.len(),
            self.text
        )))
    }
}

/// How a statement runs by itself on PostgreSQL.
impl Stmt {
    pub(super) async fn execute_on(self, pool: &sqlx::PgPool) -> StoreResult<u64> {
        let stmt = self.checked()?;
        Ok(sqlx::query_with(stmt.text, pg_arguments(stmt.values)?).execute(pool).await?.rows_affected())
    }

    pub(super) async fn fetch_on(self, pool: &sqlx::PgPool) -> StoreResult<Vec<Row>> {
        let stmt = self.checked()?;
        let rows = sqlx::query_with(stmt.text, pg_arguments(stmt.values)?).fetch_all(pool).await?;
        Ok(rows.into_iter().map(Row::Postgres).collect())
    }
}

fn pg_arguments(values: Vec<Value>) -> StoreResult<PgArguments> {
    let mut arguments = PgArguments::default();
    for value in values {
        match value {
            Value::Text(v) => arguments.add(v),
            Value::Int(v) => arguments.add(v),
            Value::Blob(v) => arguments.add(v),
        }
        .map_err(StoreError::unavailable)?;
    }
    Ok(arguments)
}

/// The highest `n` of all `$n` in a statement.
fn highest_placeholder(text: &str) -> usize {
    let after_dollar = text.split('$').skip(1);
    after_dollar.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()).max().unwrap_or(0)
}

/// Moves every `$n` of a statement up by `by`. Statements hold no string literal with a dollar sign in it.
fn shift_placeholders(text: &str, by: usize, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(&rest[..=at]);
        match rest[at + 1..at + 1 + digits].parse::<usize>() {
            Ok(n) => {
                let _ = write!(out, "{}", n + by);
            }
            Err(_) => out.push_str(&rest[at + 1..at + 1 + digits]),
        }
        rest = &rest[at + 1 + digits..];
    }
    out.push_str(rest);
}

/// Which database a transaction runs on.
enum Inner {
    /// Nothing once a statement failed: it is rolled back then, as PostgreSQL would refuse all that follows.
    Sqlite(Option<Turn>),
    Postgres(Transaction<'static, Postgres>),
}

/// A transaction; dropped without [`Tx::commit`] it leaves no trace.
pub struct Tx {
    inner: Inner,
    trips: Arc<AtomicU64>,
    after_commit: Vec<Box<dyn FnOnce() + Send>>,
}

fn given_up() -> StoreError {
    StoreError::unavailable("the transaction was given up by what failed before")
}

/// Runs one statement in a SQLite transaction.
async fn on_sqlite(held: &mut Option<Turn>, stmt: Stmt) -> StoreResult<u64> {
    let (turn, changed) = held.take().ok_or_else(given_up)?.execute(stmt.checked()?).await?;
    *held = Some(turn);
    Ok(changed)
}

async fn rows_on_sqlite(held: &mut Option<Turn>, stmt: Stmt) -> StoreResult<Vec<SqliteRow>> {
    let (turn, rows) = held.take().ok_or_else(given_up)?.rows(stmt.checked()?).await?;
    *held = Some(turn);
    Ok(rows)
}

impl Tx {
    pub(super) fn sqlite(turn: Turn, trips: Arc<AtomicU64>) -> Self {
        Tx { inner: Inner::Sqlite(Some(turn)), trips, after_commit: Vec::new() }
    }

    pub(super) fn postgres(tx: Transaction<'static, Postgres>, trips: Arc<AtomicU64>) -> Self {
        Tx { inner: Inner::Postgres(tx), trips, after_commit: Vec::new() }
    }

    fn trip(&self) {
        self.trips.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a statement; how many rows it changed.
    pub async fn execute(&mut self, stmt: Stmt) -> StoreResult<u64> {
        self.trip();
        match &mut self.inner {
            Inner::Sqlite(held) => on_sqlite(held, stmt).await,
            Inner::Postgres(tx) => {
                let stmt = stmt.checked()?;
                Ok(sqlx::query_with(stmt.text, pg_arguments(stmt.values)?).execute(&mut **tx).await?.rows_affected())
            }
        }
    }

    /// All rows of a query.
    pub async fn fetch_all(&mut self, stmt: Stmt) -> StoreResult<Vec<Row>> {
        self.trip();
        Ok(match &mut self.inner {
            Inner::Sqlite(held) => rows_on_sqlite(held, stmt).await?.into_iter().map(Row::Sqlite).collect(),
            Inner::Postgres(tx) => {
                let stmt = stmt.checked()?;
                let rows = sqlx::query_with(stmt.text, pg_arguments(stmt.values)?).fetch_all(&mut **tx).await?;
                rows.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    /// The first row of a query.
    pub async fn fetch_optional(&mut self, stmt: Stmt) -> StoreResult<Option<Row>> {
        Ok(self.fetch_all(stmt).await?.into_iter().next())
    }

    /// Runs independent statements in one round trip; how many rows each changed.
    pub async fn batch(&mut self, stmts: Vec<Stmt>) -> StoreResult<Vec<u64>> {
        let count = stmts.len();
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut changed = Vec::with_capacity(count);
        if count == 1 {
            for stmt in stmts {
                changed.push(self.execute(stmt).await?);
            }
            return Ok(changed);
        }
        self.trip();
        match &mut self.inner {
            Inner::Sqlite(held) => {
                for stmt in stmts {
                    changed.push(on_sqlite(held, stmt).await?);
                }
                Ok(changed)
            }
            Inner::Postgres(tx) => {
                let (mut text, mut values) = (String::new(), Vec::new());
                for (i, stmt) in stmts.into_iter().enumerate() {
                    let stmt = stmt.checked()?;
                    let _ = write!(text, "{} s{i} AS (", if i == 0 { "WITH" } else { "," });
                    shift_placeholders(stmt.text, values.len(), &mut text);
                    text.push_str(" RETURNING 1)");
                    values.extend(stmt.values);
                }
                for i in 0..count {
                    let _ = write!(text, "{} (SELECT count(*) FROM s{i}) AS c{i}", if i == 0 { " SELECT" } else { "," });
                }
                let row = sqlx::query_with(AssertSqlSafe(text), pg_arguments(values)?).fetch_one(&mut **tx).await?;
                (0..count)
                    .map(|i| {
                        let changed: i64 = sqlx::Row::try_get(&row, i)?;
                        Ok(u64::try_from(changed).unwrap_or(0))
                    })
                    .collect()
            }
        }
    }

    /// Something to do once this transaction is durable (ring a bell); forgotten when it is rolled back.
    pub fn after_commit(&mut self, act: impl FnOnce() + Send + 'static) {
        self.after_commit.push(Box::new(act));
    }

    /// The raw PostgreSQL transaction, for the queue that enqueues inside ours; nothing on SQLite.
    pub fn as_postgres(&mut self) -> Option<&mut Transaction<'static, Postgres>> {
        match &mut self.inner {
            Inner::Sqlite(_) => None,
            Inner::Postgres(tx) => Some(tx),
        }
    }

    /// Makes it durable.
    pub async fn commit(self) -> StoreResult<()> {
        self.trip();
        match self.inner {
            Inner::Sqlite(held) => held.ok_or_else(given_up)?.commit().await?,
            Inner::Postgres(tx) => tx.commit().await?,
        }
        for act in self.after_commit {
            act();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{highest_placeholder, shift_placeholders, sql};

    #[test]
    fn placeholders_move_up_together() {
        let mut out = String::new();
        shift_placeholders("UPDATE t SET a = $1, b = $12 WHERE c = $2", 3, &mut out);
        assert_eq!(out, "UPDATE t SET a = $4, b = $15 WHERE c = $5");
    }

    #[test]
    fn a_statement_short_of_a_value_is_refused_before_it_runs() {
        assert_eq!(highest_placeholder("SELECT 1"), 0);
        assert_eq!(highest_placeholder("SELECT $1, $12, $2"), 12);
        assert!(sql("UPDATE t SET a = $1 WHERE b = $2").bind(1).bind(2).checked().is_ok());
        let refusal = sql("UPDATE t SET a = $1 WHERE b = $2").bind(1).checked().unwrap_err();
        let why = std::error::Error::source(&refusal).unwrap().to_string();
        assert!(why.starts_with("a statement asks for 2 values and was given 1"), "{why}");
    }
}
