//! One row: what it names, checked as far as that goes without a store.

use super::RowProblem;
use super::problem::tame;
use crate::model::hostname::{Hostname, NameRules};

/// The way in which certificates are proven to the CA; the only one there is.
pub const METHOD: &str = "http-01";

/// Characters of a hostname that are kept as they were typed, of a tenant's name, and of a method.
const KEPT_NAME: usize = 260;
const KEPT_TENANT: usize = 80;
const KEPT_METHOD: usize = 40;

/// What holds for every row of a file.
#[derive(Clone, Debug)]
pub struct RowRules {
    /// Which hostnames may be claimed.
    pub names: NameRules,
    /// Whether a row may leave its tenant out: the sender is one, or said which.
    pub tenant_known: bool,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its line in the file, counted from 1.
    pub line: u64,
    /// The tenant, by slug or id, as it was typed; none where it was left out.
    pub tenant: Option<String>,
    /// The method as it was typed; none where it was left out.
    pub method: Option<String>,
    /// The hostname as it was typed, safe to keep and to show.
    pub typed: String,
    /// The hostname, or why the row is not taken.
    pub read: Result<Hostname, RowProblem>,
}

impl Row {
    /// A row of which nothing can be read.
    pub(super) fn unreadable(line: u64, seen: &str, problem: RowProblem, rules: &RowRules) -> Row {
        let mut typed = tame(seen, KEPT_NAME);
        // What was refused is refused again when the result file is sent as it is.
        if Hostname::parse(unmarked(&typed), &rules.names).is_ok() {
            typed = format!("“{typed}”");
        }
        Row { line, tenant: None, method: None, typed, read: Err(problem) }
    }

    pub(super) fn new(line: u64, hostname: &str, tenant: Option<&str>, method: Option<&str>, rules: &RowRules) -> Row {
        let tenant = tenant.map(|t| tame(unmarked(t), KEPT_TENANT)).filter(|t| !t.is_empty());
        let typed = tame(unmarked(hostname), KEPT_NAME);
        let method = method.map(|m| tame(unmarked(m), KEPT_METHOD)).filter(|m| !m.is_empty());
        let read = check_method(method.as_deref())
            .and_then(|()| if tenant.is_none() && !rules.tenant_known { Err(no_tenant()) } else { Ok(()) })
            .and_then(|()| Hostname::parse(unmarked(hostname), &rules.names).map_err(RowProblem::from));
        Row { line, tenant, method, typed, read }
    }
}

/// A cell without the mark that our result file puts before what a spreadsheet would execute.
fn unmarked(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| super::sheet::is_formula(rest)).unwrap_or(cell)
}

fn no_tenant() -> RowProblem {
    RowProblem::new("tenant_missing", "The row names no tenant. Give its slug or id in the column tenant.")
}

fn check_method(method: Option<&str>) -> Result<(), RowProblem> {
    match method {
        None => Ok(()),
        Some(m) if m.eq_ignore_ascii_case(METHOD) => Ok(()),
        Some(m) => Err(RowProblem::new("method_unknown", format!("The method is “{m}”; leave it out, or give {METHOD}."))),
    }
}
