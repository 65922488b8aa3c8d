//! The lines of a report.

use serde::Serialize;

/// Whether something will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Works now; will hurt some day.
    Warning,
    /// Does not work.
    Broken,
    /// Could not be looked at, for a reason told elsewhere.
    Skipped,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `configuration`, `dns`, `ports`, `clock`, `database`, `vault`, `issuers`, `edges`, `certificates`.
    pub part: &'static str,
    /// What was looked at.
    pub what: String,
    /// What was seen.
    pub seen: String,
    /// Whether that will do.
    pub verdict: Verdict,
    /// What to do where it will not.
    pub advice: Option<String>,
}

/// All lines, in the order of looking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The lines.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether anything is broken.
    pub fn is_broken(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict == Verdict::Broken)
    }

    pub(super) fn ok(&mut self, part: &'static str, what: impl Into<String>, seen: impl Into<String>) {
        self.add(part, what.into(), seen.into(), Verdict::Ok, None);
    }

    pub(super) fn warn(
        &mut self,
        part: &'static str,
        what: impl Into<String>,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(part, what.into(), seen.into(), Verdict::Warning, Some(advice.into()));
    }

    pub(super) fn broken(
        &mut self,
        part: &'static str,
        what: impl Into<String>,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(part, what.into(), seen.into(), Verdict::Broken, Some(advice.into()));
    }

    pub(super) fn skipped(&mut self, part: &'static str, what: impl Into<String>, why: impl Into<String>) {
        self.add(part, what.into(), why.into(), Verdict::Skipped, None);
    }

    fn add(&mut self, part: &'static str, what: String, seen: String, verdict: Verdict, advice: Option<String>) {
        self.findings.push(Finding { part, what, seen, verdict, advice });
    }
}
