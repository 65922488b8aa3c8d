//! Where the texts come from: one file, the environment, and the files that secrets are kept in.

use std::io;
use std::path::Path;

/// Reads a file that a `_file` key names.
type ReadFile<'a> = Box<dyn Fn(&Path) -> io::Result<String> + 'a>;

/// The raw texts of a configuration.
pub struct Sources<'a> {
    pub(super) file: Option<(String, String)>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) unreadable: Vec<String>,
    pub(super) read_file: ReadFile<'a>,
}

/// The prefix of the variables that are read; every one that carries it must name a key.
pub(super) const PREFIX: &str = "NAMEPLATE__";

impl<'a> Sources<'a> {
    /// No file, no variables.
    pub fn none() -> Self {
        Sources {
            file: None,
            variables: Vec::new(),
            unreadable: Vec::new(),
            read_file: Box::new(|path| std::fs::read_to_string(path)),
        }
    }

    /// A TOML text and the name it goes by in messages.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.file = Some((name.into(), text.into()));
        self
    }

    /// Environment variables; those without the prefix are not looked at.
    #[must_use]
    pub fn variables(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.variables.extend(variables.into_iter().filter(|(name, _)| name.starts_with(PREFIX)));
        self.variables.sort();
        self
    }

    /// Names of environment variables that are not UTF-8 text; those with the prefix are refused.
    #[must_use]
    pub fn unreadable(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.unreadable.extend(names.into_iter().filter(|name| name.starts_with(PREFIX)));
        self.unreadable.sort();
        self
    }

    /// Another way to read the files of secrets.
    #[must_use]
    pub fn files_from(mut self, read: impl Fn(&Path) -> io::Result<String> + 'a) -> Self {
        self.read_file = Box::new(read);
        self
    }
}
