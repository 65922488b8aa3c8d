//! Why a file, or a row of it, is not taken.

use crate::model::hostname::{HostnameError, invisible};

/// Why a file as a whole is not taken. Nothing of it is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct FileError {
    /// Stable code, such as `file_not_utf8`.
    pub code: &'static str,
    /// The line where it was seen, counted from 1.
    pub line: Option<u64>,
    /// What was seen and what to do.
    pub detail: String,
}

impl FileError {
    pub(super) fn new(code: &'static str, line: Option<u64>, detail: impl Into<String>) -> Self {
        FileError { code, line, detail: detail.into() }
    }
}

/// Why one row is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowProblem {
    /// Stable code, such as `hostname_has_port`.
    pub code: &'static str,
    /// What was seen and what to give instead.
    pub detail: String,
    /// A hostname that would be accepted.
    pub suggestion: Option<String>,
}

impl RowProblem {
    /// Without a suggestion.
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        RowProblem { code, detail: detail.into(), suggestion: None }
    }
}

impl From<HostnameError> for RowProblem {
    fn from(e: HostnameError) -> Self {
        RowProblem { code: e.code, detail: e.message, suggestion: e.suggestion }
    }
}

/// Text of a file as it may be kept and quoted: what cannot be seen is spelled out, what is too long is cut.
pub(super) fn tame(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (n, c) in text.trim().chars().enumerate() {
        if n == most {
            out.push('…');
            break;
        }
        match invisible(c) {
            Some(_) => out.push_str(&format!("[U+{:04X}]", u32::from(c))),
            None => out.push(c),
        }
    }
    out
}
