//! The six ways in which the store can say no.

use sqlx::error::{DatabaseError, ErrorKind};

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What was asked for is not there, or not in the state the caller counted on.
    #[error("{what} is not in the store")]
    NotFound {
        /// The thing.
        what: String,
    },
    /// A constraint refused the write: somebody else was first.
    #[error("the store refused the write: {constraint} would no longer be unique")]
    Conflict {
        /// The index or table that refused.
        constraint: String,
    },
    /// Another writer holds what this one needs, past its patience; the transaction can be tried again.
    #[error("the database is busy with other work; try again")]
    Busy,
    /// A row that cannot become what it should be.
    #[error("column {column} holds {seen:?}, which is not {expected}")]
    Inconsistent {
        /// The column.
        column: String,
        /// What it holds, shortened.
        seen: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// The database refused a statement, as it will again: a mistake of ours, or a row that may not be.
    #[error("the database refused what it was asked")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database cannot be used now.
    #[error("the database did not do what it was asked")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A result of the store.
pub type StoreResult<T> = Result<T, StoreError>;

impl StoreError {
    /// For a thing that is not there.
    pub fn not_found(what: impl Into<String>) -> Self {
        StoreError::NotFound { what: what.into() }
    }

    /// Whether another try can be expected to do better: the database is away or busy, and nobody's data is at fault.
    pub fn passes_by_itself(&self) -> bool {
        matches!(self, StoreError::Busy | StoreError::Unavailable(_))
    }

    pub(crate) fn unavailable(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        StoreError::Unavailable(e.into())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(e: sqlx::Error) -> Self {
        if let sqlx::Error::Database(d) = &e {
            if d.is_unique_violation() {
                // PostgreSQL names the index, SQLite the columns.
                let columns = || d.message().trim_start_matches("UNIQUE constraint failed: ");
                let constraint = d.constraint().unwrap_or_else(columns).to_owned();
                return StoreError::Conflict { constraint };
            }
            // SQLITE_BUSY and its extended codes; PostgreSQL: serialization failure, deadlock, lock not available.
            if matches!(d.code().as_deref(), Some("5" | "261" | "517" | "773" | "40001" | "40P01" | "55P03")) {
                return StoreError::Busy;
            }
        }
        let refused = matches!(&e, sqlx::Error::Database(d) if is_refusal(d.as_ref()));
        // The driver's own errors repeat their cause in their text; only the cause is kept.
        match e {
            sqlx::Error::PoolTimedOut => StoreError::unavailable(
                "there was no connection to be had in time; check that the database is up and that database.connections suffices",
            ),
            sqlx::Error::Database(d) if refused => StoreError::Refused(d.into_error()),
            sqlx::Error::Database(d) => StoreError::unavailable(d.into_error()),
            sqlx::Error::Io(io) => StoreError::unavailable(io),
            e => StoreError::unavailable(e.to_string()),
        }
    }
}

/// Whether a statement was refused for what it says or would leave behind, and not for the state that the database is in.
fn is_refusal(d: &dyn DatabaseError) -> bool {
    let constraint = matches!(
        d.kind(),
        ErrorKind::ForeignKeyViolation
            | ErrorKind::NotNullViolation
            | ErrorKind::CheckViolation
            | ErrorKind::ExclusionViolation
    );
    // PostgreSQL: data exception, integrity constraint violation, syntax error or access rule violation, raised by a function;
    // SQLite: a statement in error, SQLITE_CONSTRAINT with what it is extended by, SQLITE_MISMATCH.
    constraint
        || d.code().is_some_and(|code| match code.len() {
            5 => ["22", "23", "42", "P0"].iter().any(|class| code.starts_with(class)),
            _ => code.parse::<i32>().is_ok_and(|code| matches!(code & 0xff, 1 | 19 | 20)),
        })
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(e: sqlx::migrate::MigrateError) -> Self {
        match e {
            sqlx::migrate::MigrateError::Execute(e) => e.into(),
            e => StoreError::unavailable(e.to_string()),
        }
    }
}
