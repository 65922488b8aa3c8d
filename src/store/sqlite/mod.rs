//! SQLite, run where it is asked.
//!
//! A statement of ours takes microseconds; handing it to another thread and waiting for the answer takes fifty. So a statement
//! runs in the task that asks for it, and three things alone leave for a thread of their own: a commit, which waits for the
//! disk; a read that turns out long (it is begun inside, given up after a bounded number of steps, and begun again outside);
//! a statement that says itself that it is [`long`](super::Stmt::long). A database in memory has none of these.
//!
//! - [`wire`] is one connection: statements kept prepared, their values bound by number, their rows owned;
//! - [`mod@line`] is where tasks wait for a connection: one for writers, in order, several for readers; [`line::Turn`] is a place
//!   at its head, which rolls back what was not committed when it is let go of.
//!
//! Whoever waits for the file's lock, because another process writes, waits asleep and not on a thread of the runtime. To get it
//! wrong: run a statement over a whole large table inside a write transaction without saying `long`.

mod line;
mod wire;

pub(super) use line::{Line, Turn};
pub use wire::SqliteRow;
pub(super) use wire::{Source, Wire};

use super::StoreError;

impl From<rusqlite::Error> for StoreError {
    fn from(e: rusqlite::Error) -> Self {
        use rusqlite::ffi;
        let rusqlite::Error::SqliteFailure(failure, said) = e else { return StoreError::unavailable(e.to_string()) };
        let said = said.unwrap_or_else(|| ffi::code_to_str(failure.extended_code).to_owned());
        match failure.extended_code {
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
                // The columns stand for the index.
                return StoreError::Conflict {
                    constraint: said.trim_start_matches("UNIQUE constraint failed: ").to_owned(),
                };
            }
            _ => {}
        }
        match failure.extended_code & 0xff {
            ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => StoreError::Busy,
            // A statement in error, a constraint, a value that does not fit.
            ffi::SQLITE_ERROR | ffi::SQLITE_CONSTRAINT | ffi::SQLITE_MISMATCH => {
                StoreError::Refused(format!("{said} (code {})", failure.extended_code).into())
            }
            _ => StoreError::unavailable(format!("{said} (code {})", failure.extended_code)),
        }
    }
}
