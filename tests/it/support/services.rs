//! Where the real services and programs are that `./scripts/test` starts or installs.

use std::env;
use std::path::PathBuf;

/// The URL of a PostgreSQL superuser; a test makes a database of its own there.
pub fn postgres_url() -> String {
    told("NAMEPLATE_TEST_POSTGRES_URL")
}

/// The directory of PostgreSQL's own programs, for a test that stops its server.
pub fn postgres_bin() -> PathBuf {
    told("NAMEPLATE_TEST_POSTGRES_BIN").into()
}

/// The `pebble` program; a test starts one of its own.
pub fn pebble_path() -> PathBuf {
    told("NAMEPLATE_TEST_PEBBLE").into()
}

/// Debian's certbot.
pub fn certbot() -> PathBuf {
    told("NAMEPLATE_TEST_CERTBOT").into()
}

/// BIND's server.
pub fn named() -> PathBuf {
    told("NAMEPLATE_TEST_NAMED").into()
}

/// Makes keys for zones.
pub fn dnssec_keygen() -> PathBuf {
    told("NAMEPLATE_TEST_DNSSEC_KEYGEN").into()
}

/// Signs zones.
pub fn dnssec_signzone() -> PathBuf {
    told("NAMEPLATE_TEST_DNSSEC_SIGNZONE").into()
}

/// Knot's server.
pub fn knotd() -> PathBuf {
    told("NAMEPLATE_TEST_KNOTD").into()
}

/// Unbound.
pub fn unbound() -> PathBuf {
    told("NAMEPLATE_TEST_UNBOUND").into()
}

/// Debian's Chromium.
pub fn chromium() -> PathBuf {
    told("NAMEPLATE_TEST_CHROMIUM").into()
}

/// What drives it.
pub fn chromedriver() -> PathBuf {
    told("NAMEPLATE_TEST_CHROMEDRIVER").into()
}

/// What imports roots into its certificate store.
pub fn certutil() -> PathBuf {
    told("NAMEPLATE_TEST_CERTUTIL").into()
}

/// What checks rules for Prometheus.
pub fn promtool() -> PathBuf {
    told("NAMEPLATE_TEST_PROMTOOL").into()
}

/// The script of axe-core.
pub fn axe() -> PathBuf {
    told("NAMEPLATE_TEST_AXE").into()
}

/// The schemathesis program.
pub fn schemathesis() -> PathBuf {
    told("NAMEPLATE_TEST_SCHEMATHESIS").into()
}

fn told(name: &str) -> String {
    env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run the tests by ./scripts/test, or `./scripts/test only NAME`"))
}
