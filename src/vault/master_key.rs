//! The master key: 32 bytes from configuration, a file or, in the sandbox, made on first start.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::hex;
use crate::env::Env;
use crate::model::secret::Secret;

/// Why a master key was refused. Never quotes what it was given.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    /// The text is no 32-byte key.
    #[error(
        "the master key text is {seen}; expected 32 bytes as 64 hex digits or as base64 (make one: openssl rand -base64 32)"
    )]
    NotAKey {
        /// What it looked like.
        seen: String,
    },
    /// The file could not be read.
    #[error("could not read the master key file {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file could not be written.
    #[error("could not write the master key file {path:?}, which must not exist yet")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// One version of the key that the vault seals under.
#[derive(Clone)]
pub struct MasterKey {
    version: u32,
    key: Secret,
}

impl MasterKey {
    /// Bytes of a master key.
    pub const LEN: usize = 32;

    /// From text: 64 hex digits, or base64 of 32 bytes in either alphabet, with or without padding.
    pub fn from_text(version: u32, text: &str) -> Result<Self, MasterKeyError> {
        let text = text.trim();
        if let Some(bytes) = hex::decode::<{ Self::LEN }>(text) {
            return Ok(MasterKey { version, key: Secret::new(bytes.to_vec()) });
        }
        let decoded = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].iter().find_map(|form| form.decode(text).ok());
        let refused = |seen| Err(MasterKeyError::NotAKey { seen });
        match decoded.map(Zeroizing::new) {
            Some(bytes) if bytes.len() == Self::LEN => Ok(MasterKey { version, key: Secret::new(bytes.to_vec()) }),
            _ if text.is_empty() => refused("empty".to_owned()),
            _ if text.bytes().all(|b| b.is_ascii_hexdigit()) => refused(format!("{} hex digits", text.len())),
            Some(bytes) => refused(format!("base64 of {} bytes", bytes.len())),
            None => refused(format!("{} characters that are neither hex nor base64", text.chars().count())),
        }
    }

    /// From a file that holds the text.
    pub fn from_file(version: u32, path: &Path) -> Result<Self, MasterKeyError> {
        let read = std::fs::read(path).map_err(|source| MasterKeyError::Read { path: path.to_owned(), source })?;
        let bytes = Zeroizing::new(read);
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::from_text(version, text),
            Err(_) => Err(MasterKeyError::NotAKey { seen: format!("a file of {} bytes that is no text", bytes.len()) }),
        }
    }

    /// A new key from drawn bytes.
    pub fn generate(version: u32, env: &Env) -> Self {
        MasterKey { version, key: Secret::new(Zeroizing::new(env.draw::<{ Self::LEN }>()).to_vec()) }
    }

    /// Writes the key as base64 into a new file that only its owner may read. For the sandbox: elsewhere the operator brings
    /// the key and keeps it apart from the store.
    pub fn write_new(&self, path: &Path) -> Result<(), MasterKeyError> {
        let text = Zeroizing::new(STANDARD.encode(self.key.expose()) + "\n");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .map_err(|source| MasterKeyError::Write { path: path.to_owned(), source })
    }

    /// Which version this is; the higher is the newer.
    pub fn version(&self) -> u32 {
        self.version
    }

    pub(super) fn expose(&self) -> &[u8] {
        self.key.expose()
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey(version {})", self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::manual::Hand;
    use crate::model::moment::Moment;

    #[test]
    fn text_in_any_usual_form_is_read_and_other_lengths_are_refused_without_quoting_them() {
        let bytes = [0xfb; 32];
        for text in [
            hex::encode(&bytes),
            STANDARD.encode(bytes),
            URL_SAFE_NO_PAD.encode(bytes),
            format!("  {}\n", STANDARD_NO_PAD.encode(bytes)),
        ] {
            assert_eq!(MasterKey::from_text(1, &text).unwrap().expose(), bytes);
        }
        for (text, seen) in [
            ("", "empty"),
            ("AAAz", "base64 of 3 bytes"),
            ("not a key at all", "16 characters"),
            (&"ab".repeat(33), "66 hex digits"),
        ] {
            let message = MasterKey::from_text(1, text).unwrap_err().to_string();
            assert!(message.contains(seen), "{message}");
            assert!(text.is_empty() || !message.contains(text), "{message}");
        }
    }

    #[test]
    fn a_written_key_reads_back_is_private_and_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("master.key");
        let key = MasterKey::generate(3, &Hand::new(Moment::default(), 1).env());
        key.write_new(&path).unwrap();
        assert_eq!(MasterKey::from_file(3, &path).unwrap().expose(), key.expose());
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
        assert!(matches!(key.write_new(&path), Err(MasterKeyError::Write { .. })));
        assert!(matches!(MasterKey::from_file(1, &dir.path().join("none")), Err(MasterKeyError::Read { .. })));
        std::fs::write(dir.path().join("binary"), [0xff, 0xfe]).unwrap();
        assert!(matches!(MasterKey::from_file(1, &dir.path().join("binary")), Err(MasterKeyError::NotAKey { .. })));
        assert_eq!(format!("{key:?}"), "MasterKey(version 3)");
    }
}
