//! The services that `./scripts/test` starts answer.

use std::process::Command;

use sqlx::{Connection, PgConnection};

use crate::support::services::{pebble_path, postgres_url};

#[tokio::test]
async fn postgres_brings_the_extensions_that_the_queue_needs() {
    let mut postgres = PgConnection::connect(&postgres_url()).await.unwrap();
    let found: Vec<String> = sqlx::query_scalar(
        "SELECT name::text FROM pg_available_extensions WHERE name IN ('hstore', 'pgcrypto') ORDER BY name",
    )
    .fetch_all(&mut postgres)
    .await
    .unwrap();
    assert_eq!(found, ["hstore", "pgcrypto"]);
}

#[test]
fn pebble_has_its_strict_mode() {
    let help = Command::new(pebble_path()).arg("-help").output().unwrap();
    assert!(String::from_utf8_lossy(&help.stderr).contains("-strict"), "{help:?}");
}
