//! The vault of a configuration, held against what the database was sealed under.

use super::StartError;
use crate::config::VaultConfig;
use crate::env::Env;
use crate::store::Store;
use crate::store::vault_keys::{self, VaultKeyRow};
use crate::vault::{MasterKey, MasterKeyError, Sealed, Vault};

/// Opens the vault. A master key that is not the one that sealed this database's secrets stops the start here, before any
/// of them is asked for.
pub(super) async fn open(config: &VaultConfig, store: &Store, env: &Env) -> Result<Vault, StartError> {
    let vault = from_config(config)?;
    let version = vault.current_version();
    if vault_keys::list(store).await?.iter().all(|row| row.version != version) {
        let others = vault_keys::list(store).await?;
        if !others.is_empty() && !others.iter().any(|row| opens(&vault, row)) {
            return Err(wrong(&others, version));
        }
        let canary = vault.canary(env)?;
        store.execute(vault_keys::insert(version, canary.as_bytes(), env.now())).await?;
    }
    // Read again: another process may have written its canary first, and the stored one counts.
    let rows = vault_keys::list(store).await?;
    match rows.iter().find(|row| row.version == version) {
        Some(row) if opens(&vault, row) => Ok(vault),
        _ => Err(wrong(&rows, version)),
    }
}

/// The newest version that this database's vault is sealed under, opened with the configured keys; nothing when nothing is
/// sealed yet. Writes nothing.
pub(super) async fn sealed_under(config: &VaultConfig, store: &Store) -> Result<Option<u32>, StartError> {
    let vault = from_config(config)?;
    let rows = vault_keys::list(store).await?;
    let Some(newest) = rows.last() else { return Ok(None) };
    match rows.iter().rev().find(|row| opens(&vault, row)) {
        Some(row) => Ok(Some(row.version)),
        None => Err(wrong(std::slice::from_ref(newest), vault.current_version())),
    }
}

/// Whether the configured keys open what a vault is sealed under; its rows come from elsewhere than an open database.
pub(super) fn check(config: &VaultConfig, rows: &[VaultKeyRow]) -> Result<(), StartError> {
    let vault = from_config(config)?;
    let version = vault.current_version();
    // As it is opened: by the version in use where there is one sealed under it, else by any.
    let fits = match rows.iter().find(|row| row.version == version) {
        Some(row) => opens(&vault, row),
        None => rows.is_empty() || rows.iter().any(|row| opens(&vault, row)),
    };
    if fits { Ok(()) } else { Err(wrong(rows, version)) }
}

fn from_config(config: &VaultConfig) -> Result<Vault, MasterKeyError> {
    let read = |version: u32, text: &crate::model::secret::Secret| {
        MasterKey::from_text(version, text.expose_str().unwrap_or_default())
    };
    let none = crate::model::secret::Secret::new(Vec::new());
    let current = read(config.master_key_version, config.master_key.as_ref().unwrap_or(&none))?;
    let older: Result<Vec<_>, _> = config.older_keys.iter().map(|(version, text)| read(*version, text)).collect();
    Ok(Vault::new(current, older?))
}

fn opens(vault: &Vault, row: &VaultKeyRow) -> bool {
    Sealed::try_from(row.canary.clone()).is_ok_and(|canary| vault.opens(&canary))
}

fn wrong(rows: &[VaultKeyRow], version: u32) -> StartError {
    StartError::WrongMasterKey { version, sealed: rows.iter().map(|row| row.version).max().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::manual::Hand;
    use crate::model::moment::Moment;
    use crate::model::secret::Secret;
    use crate::store::OpenSettings;

    fn config(version: u32, key: u8, older: &[(u32, u8)]) -> VaultConfig {
        let text = |b: u8| Secret::from(format!("{b:02x}").repeat(32));
        VaultConfig {
            master_key: Some(text(key)),
            master_key_version: version,
            older_keys: older.iter().map(|(version, key)| (*version, text(*key))).collect(),
        }
    }

    #[tokio::test]
    async fn a_key_that_opens_nothing_stops_the_start_and_a_rotation_does_not() {
        let store = Store::open(&OpenSettings { url: "sqlite::memory:".into(), connections: 1 }).await.unwrap();
        store.migrate().await.unwrap();
        let env = Hand::new(Moment::from_secs(1), 1).env();
        for _ in 0..2 {
            assert!(open(&config(1, 7, &[]), &store, &env).await.is_ok());
        }
        for wrong in [config(1, 8, &[]), config(2, 8, &[]), config(2, 8, &[(1, 9)])] {
            let said = open(&wrong, &store, &env).await.err().unwrap().to_string();
            assert!(said.contains("sealed under version 1") && !said.contains("0808"), "{said}");
        }
        assert!(open(&config(2, 8, &[(1, 7)]), &store, &env).await.is_ok());
        assert!(open(&config(2, 8, &[]), &store, &env).await.is_ok());
        assert!(open(&config(2, 9, &[(1, 7)]), &store, &env).await.is_err());
    }
}
