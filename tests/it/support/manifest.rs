//! What the manifest says.

use std::fs;
use std::path::Path;

/// The names of the direct dependencies, those of the tests included.
pub fn dependencies() -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let names = |table: &str| manifest[table].as_table().unwrap().keys().cloned().collect::<Vec<_>>();
    [names("dependencies"), names("dev-dependencies")].concat()
}
