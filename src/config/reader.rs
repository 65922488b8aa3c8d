//! Hands out values by key and keeps the list of keys that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::problem::Problem;
use super::setting::Setting;
use super::sources::{PREFIX, Sources};
use crate::model::secret::Secret;

/// A key as the documentation lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name, such as `server.listen`.
    pub name: String,
    /// One line on what it means.
    pub doc: &'static str,
    /// What holds without it; `None` where it has to be set by whoever needs it.
    pub default: Option<String>,
}

struct Raw {
    text: String,
    origin: String,
}

/// The values given, the keys asked for, the problems met.
pub struct Reader<'a> {
    sources: Sources<'a>,
    values: BTreeMap<String, Raw>,
    keys: Vec<Key>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// Takes in the texts.
    pub fn new(sources: Sources<'a>) -> Self {
        let mut reader = Reader { values: BTreeMap::new(), keys: Vec::new(), problems: Vec::new(), sources };
        if let Some((name, text)) = reader.sources.file.take() {
            match text.parse::<toml::Table>() {
                Ok(table) => reader.flatten("", &name, toml::Value::Table(table)),
                // The snippet of the message could show a secret: say where, not what.
                Err(e) => {
                    let line =
                        e.span().map_or(1, |span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
                    reader.problem("line", &name, format!("line {line} is not TOML: {}", e.message()));
                }
            }
        }
        for (name, text) in std::mem::take(&mut reader.sources.variables) {
            let key = name[PREFIX.len()..].to_ascii_lowercase().replace("__", ".");
            reader.values.insert(key, Raw { text, origin: name });
        }
        for name in std::mem::take(&mut reader.sources.unreadable) {
            reader.problem(&name, "", "the environment variable is not UTF-8 text".into());
        }
        reader
    }

    fn flatten(&mut self, prefix: &str, origin: &str, value: toml::Value) {
        let text = match value {
            toml::Value::Table(table) => {
                for (name, value) in table {
                    let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
                    self.flatten(&key, origin, value);
                }
                return;
            }
            toml::Value::Array(items) => {
                let texts: Option<Vec<String>> = items.into_iter().map(scalar).collect();
                match texts {
                    Some(texts) => texts.join(","),
                    None => return self.problem(prefix, origin, "a list may hold texts and numbers only".into()),
                }
            }
            other => match scalar(other) {
                Some(text) => text,
                None => return self.problem(prefix, origin, "dates are not used here; expected a text".into()),
            },
        };
        self.values.insert(prefix.to_owned(), Raw { text, origin: origin.to_owned() });
    }

    pub(super) fn problem(&mut self, key: &str, origin: &str, message: String) {
        self.problems.push(Problem { key: key.to_owned(), origin: origin.to_owned(), message });
    }

    fn list(&mut self, name: &str, default: Option<String>, doc: &'static str) {
        self.keys.push(Key { name: name.to_owned(), doc, default });
    }

    fn take<T: Setting>(&mut self, name: &str) -> Option<T> {
        let raw = self.values.remove(name)?;
        let read = T::read(&raw.text);
        if read.is_none() {
            self.problem(name, &raw.origin, format!("{:?} is not {}", raw.text, T::EXPECTED));
        }
        read
    }

    /// The value of a key that has a default.
    pub fn value<T: Setting>(&mut self, name: &str, default: T, doc: &'static str) -> T {
        self.list(name, Some(default.show()), doc);
        self.take(name).unwrap_or(default)
    }

    /// The value of a key that may be missing.
    pub fn optional<T: Setting>(&mut self, name: &str, doc: &'static str) -> Option<T> {
        self.list(name, None, doc);
        self.take(name)
    }

    /// A secret, from the key itself or from the file that `NAME_file` names.
    pub fn secret(&mut self, name: &str, doc: &'static str, file_doc: &'static str) -> Option<Secret> {
        self.list(name, None, doc);
        let file_key = format!("{name}_file");
        let path: Option<PathBuf> = self.optional(&file_key, file_doc);
        let direct = self.values.remove(name);
        match (direct, path) {
            (Some(raw), Some(_)) => {
                self.problem(name, &raw.origin, format!("is set, and {file_key} too; keep one of them"));
                None
            }
            (Some(raw), None) if raw.text.trim().is_empty() => {
                self.problem(name, &raw.origin, "is empty".into());
                None
            }
            (Some(raw), None) => Some(Secret::from(raw.text)),
            (None, Some(path)) => match (self.sources.read_file)(&path) {
                Ok(text) => Some(Secret::from(text.trim_end_matches(['\r', '\n']).to_owned())),
                Err(e) => {
                    self.problem(&file_key, "", format!("the file {} cannot be read: {e}", path.display()));
                    None
                }
            },
            (None, None) => None,
        }
    }

    /// Whether a key that was not asked for yet has a value, of whatever worth.
    pub fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The names that stand in the place of `NAME` in keys like `issuers.NAME.directory`.
    pub fn names_under(&self, section: &str) -> BTreeSet<String> {
        let prefix = format!("{section}.");
        self.values
            .keys()
            .filter_map(|key| key.strip_prefix(&prefix)?.split_once('.'))
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// Ends the reading: whatever nobody asked for is a problem. The keys that exist, and the problems.
    pub fn finish(mut self) -> (Vec<Key>, Vec<Problem>) {
        for (name, raw) in std::mem::take(&mut self.values) {
            if name.is_empty() {
                let told = "names no key; keys are SECTION.KEY in the file, NAMEPLATE__SECTION__KEY in the environment";
                self.problem(&raw.origin, "", told.into());
                continue;
            }
            let hint = match nearest(&name, &self.keys) {
                Some(key) => format!("there is no such key; did you mean {key}?"),
                None => "there is no such key".to_owned(),
            };
            self.problem(&name, &raw.origin, hint);
        }
        self.problems.sort_by(|a, b| a.key.cmp(&b.key));
        (self.keys, self.problems)
    }
}

fn scalar(value: toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

/// The key nearest in spelling, if any is near.
fn nearest<'k>(name: &str, keys: &'k [Key]) -> Option<&'k str> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let mut best: Option<(usize, &str)> = None;
    for key in keys {
        // The right key in the wrong section is near, too.
        let elsewhere = if last(&key.name) == last(name) { 2 } else { usize::MAX };
        let distance = edits(name, &key.name).min(elsewhere);
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, &key.name));
        }
    }
    best.filter(|(distance, _)| *distance <= 1 + name.len() / 4).map(|(_, key)| key)
}

/// Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
