//! `vault`: the master key that private keys are sealed under.

use super::reader::Reader;
use crate::model::secret::Secret;

/// The section. Key texts are decoded by the vault.
#[derive(Clone, Debug)]
pub struct VaultConfig {
    /// The current master key's text.
    pub master_key: Option<Secret>,
    /// Its version.
    pub master_key_version: u32,
    /// Older keys, by version, that rows may still be sealed under.
    pub older_keys: Vec<(u32, Secret)>,
}

impl VaultConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let master_key = r.secret(
            "vault.master_key",
            "Master key: 32 bytes as 64 hex digits or base64 (`openssl rand -base64 32`). `serve` and `work` need it.",
            "File that holds `vault.master_key`.",
        );
        let master_key_version =
            r.value("vault.master_key_version", 1, "Version of the master key; raise it by one at each rotation.");
        let older = r.secret(
            "vault.older_keys",
            "Older master keys while a rotation is under way, as `VERSION:KEY`, separated by commas.",
            "File that holds `vault.older_keys`, one `VERSION:KEY` a line.",
        );
        let older_keys = older.map(|text| read_older(r, &text)).unwrap_or_default();
        VaultConfig { master_key, master_key_version, older_keys }
    }
}

fn read_older(r: &mut Reader<'_>, text: &Secret) -> Vec<(u32, Secret)> {
    let entries = text.expose_str().unwrap_or_default().split([',', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
    let mut keys = Vec::new();
    for (i, entry) in entries.enumerate() {
        match entry.split_once(':').and_then(|(version, key)| Some((version.parse().ok()?, key))) {
            Some((version, key)) => keys.push((version, Secret::from(key.to_owned()))),
            None => r.problem("vault.older_keys", "", format!("entry {} is not of the form VERSION:KEY", i + 1)),
        }
    }
    keys
}
