//! Bulk imports: files of names, read as they arrive, row by row.
//!
//! - [`Reader`] takes the pieces of an upload in any sizes and hands out rows; it keeps one line at most, so a file of any length
//!   is read in the same memory. A line is a row: cells hold no line breaks, so an opened quote spoils its own row and no other.
//! - A [`FileError`] says that the file as a whole is none (encoding, header, separator, length); a [`RowProblem`] that one row
//!   cannot be taken. The first names a line where there is one; the second never stops its neighbours.
//! - [`sheet`] writes what spreadsheets read, so that no cell of somebody else's making is executed there.
//! - [`Verdict`] and [`ImportState`] are the words that store, API and pages use.
//!
//! What always holds: text from a file is data, cut to a length and freed of control characters before it goes on; hostnames
//! pass the one parser; a row can name tenant, hostname and method, and never where requests go. Pure: no I/O. To fake it: feed
//! bytes. How to get it wrong: read a file whole, or turn a bad row into a bad file.

mod columns;
mod lines;
mod problem;
mod reader;
mod row;
pub mod sheet;
#[cfg(test)]
mod tests;
mod words;

pub use problem::{FileError, RowProblem};
pub use reader::Reader;
pub use row::{METHOD, Row, RowRules};
pub use words::{Format, Hold, ImportState, Verdict};
