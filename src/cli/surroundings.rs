//! What the process was started in.

use std::ffi::OsString;

/// Arguments and environment, as `main` found them.
pub struct Surroundings {
    /// The arguments, the program's own name first.
    pub arguments: Vec<OsString>,
    /// The environment variables that are text.
    pub variables: Vec<(String, String)>,
    /// The names of those that are not, as far as they can be shown.
    pub unreadable: Vec<String>,
}

impl Surroundings {
    /// Tells the variables that are text from those that are not.
    pub fn new(
        arguments: impl IntoIterator<Item = OsString>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let mut read = Surroundings { arguments: arguments.into_iter().collect(), variables: vec![], unreadable: vec![] };
        for (name, value) in variables {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => read.variables.push((name, value)),
                (Ok(name), Err(_)) => read.unreadable.push(name),
                (Err(name), _) => read.unreadable.push(name.to_string_lossy().into_owned()),
            }
        }
        read
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }
}
