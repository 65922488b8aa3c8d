//! What the process was started in.

use std::ffi::OsString;

/// Arguments and environment, as `main` found them.
pub struct Surroundings {
    /// The arguments, the program's own name first.
    pub arguments: Vec<OsString>,
    /// The environment variables that are text.
    pub variables: Vec<(String, String)>,
}

impl Surroundings {
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }
}
