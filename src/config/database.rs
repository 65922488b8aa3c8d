//! `database`: where the store is.

use super::reader::Reader;
use super::setting::Setting;
use crate::model::secret::Secret;

/// The section.
#[derive(Clone, Debug)]
pub struct DatabaseConfig {
    /// `sqlite:PATH` or `postgres://…`; a secret, for it may hold a password.
    pub url: Secret,
    /// Connections, or readers for SQLite.
    pub connections: u32,
}

/// What is used where nothing is said.
const DEFAULT_URL: &str = "sqlite:nameplate.db";

/// The `database.connections` value, at least one.
struct Connections(u32);

impl Setting for Connections {
    const EXPECTED: &'static str = "a whole number from 1 to 1000";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|n| (1..=1000).contains(n)).map(Connections)
    }
    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl DatabaseConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let url = r.secret(
            "database.url",
            "`sqlite:PATH` or `postgres://USER:PASSWORD@HOST/NAME`; without it `sqlite:nameplate.db` in the working directory.",
            "File that holds `database.url`.",
        );
        let schemes = ["sqlite:", "postgres:", "postgresql:"];
        let url = url.unwrap_or_else(|| Secret::from(DEFAULT_URL.to_owned()));
        if !url.expose_str().is_some_and(|url| schemes.iter().any(|scheme| url.starts_with(scheme))) {
            r.problem("database.url", "", "does not begin with sqlite: or postgres:".into());
        }
        let connections =
            r.value("database.connections", Connections(8), "Connections to PostgreSQL, or readers of SQLite.").0;
        DatabaseConfig { url, connections }
    }
}
