//! Canaries: for each master key version in use, one sealed value by which a wrong key is recognised at start.

use super::{Stmt, Store, StoreError, StoreResult, sql};
use crate::model::moment::Moment;

/// A version that secrets are sealed under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultKeyRow {
    /// The version.
    pub version: u32,
    /// The sealed value.
    pub canary: Vec<u8>,
}

/// All of them, oldest first.
pub async fn list(store: &Store) -> StoreResult<Vec<VaultKeyRow>> {
    let rows = store.query(sql("SELECT version, canary FROM vault_keys ORDER BY version")).await?;
    let read = |row: &super::Row| {
        let version = row.int("version")?;
        let version = u32::try_from(version).map_err(|_| StoreError::Inconsistent {
            column: "version".to_owned(),
            seen: version.to_string(),
            expected: "a version from 0 up",
        })?;
        Ok(VaultKeyRow { version, canary: row.blob("canary")? })
    };
    rows.iter().map(read).collect()
}

/// Notes a version, unless somebody did.
pub fn insert(version: u32, canary: &[u8], now: Moment) -> Stmt {
    sql("INSERT INTO vault_keys (version, canary, created_at) VALUES ($1, $2, $3) ON CONFLICT (version) DO NOTHING")
        .bind(i64::from(version))
        .bind(canary.to_vec())
        .bind(now)
}
