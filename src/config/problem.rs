//! What is wrong with a configuration, each problem with its key's name.

use std::fmt;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key, such as `server.listen`.
    pub key: String,
    /// Where it was set: the file's name or the variable's; empty for a key that is missing.
    pub origin: String,
    /// What was seen and what is expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)?;
        if self.origin.is_empty() { Ok(()) } else { write!(f, " (set in {})", self.origin) }
    }
}

/// All problems of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {} to solve:{}", count(.0.len()), lines(.0))]
pub struct ConfigError(pub Vec<Problem>);

fn count(n: usize) -> String {
    if n == 1 { "1 problem".into() } else { format!("{n} problems") }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(|p| format!("\n  {p}")).collect()
}
