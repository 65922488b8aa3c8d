//! Where the real services are that `./scripts/test` starts.

use std::env;
use std::path::PathBuf;

/// The URL of a PostgreSQL superuser; a test makes a database of its own there.
pub fn postgres_url() -> String {
    told("NAMEPLATE_TEST_POSTGRES_URL")
}

/// The `pebble` program; a test starts one of its own.
pub fn pebble_path() -> PathBuf {
    told("NAMEPLATE_TEST_PEBBLE").into()
}

fn told(name: &str) -> String {
    env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run the tests by ./scripts/test, or `./scripts/test only NAME`"))
}
