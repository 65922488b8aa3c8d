//! The vault: sealing and opening what the store keeps.

use std::fmt;

use super::aead::{self, SALT, TAG};
use super::master_key::MasterKey;
use crate::env::Env;
use crate::model::secret::Secret;

/// The format of a sealed value: HKDF-SHA256 and AES-256-GCM. Another first byte is another format.
const FORMAT: u8 = 1;
/// Format, version of the master key, salt.
const HEADER: usize = 1 + 4 + SALT;

/// What a sealed value is and which row it belongs to. It opens nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context(Vec<u8>);

impl Context {
    /// For one purpose (`certificate-key`) and one row. Two kinds of rows need two purposes.
    pub fn new(purpose: &'static str, id: &str) -> Self {
        Context(aead::joined(&[b"nameplate vault", purpose.as_bytes(), id.as_bytes()]))
    }
}

/// Bytes that are no sealed value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSealed {
    /// Cut short.
    #[error("a sealed value has at least {} bytes, this has {seen}", HEADER + TAG)]
    TooShort {
        /// How many bytes there are.
        seen: usize,
    },
    /// A format this build does not know.
    #[error(
        "sealed format {seen} is unknown here: this build reads format {FORMAT}; a newer build wrote it, or it is no sealed value"
    )]
    UnknownFormat {
        /// The first byte.
        seen: u8,
    },
}

/// A sealed value, as the store keeps it in a blob: format, version of the master key, salt, cipher text, tag.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Vec<u8>);

impl Sealed {
    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The version of the master key it was sealed under.
    pub fn version(&self) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[1..5]);
        u32::from_be_bytes(bytes)
    }
}

impl TryFrom<Vec<u8>> for Sealed {
    type Error = NotSealed;
    fn try_from(bytes: Vec<u8>) -> Result<Self, NotSealed> {
        match bytes.first() {
            Some(&format) if format != FORMAT => Err(NotSealed::UnknownFormat { seen: format }),
            _ if bytes.len() < HEADER + TAG => Err(NotSealed::TooShort { seen: bytes.len() }),
            _ => Ok(Sealed(bytes)),
        }
    }
}

impl From<Sealed> for Vec<u8> {
    fn from(sealed: Sealed) -> Self {
        sealed.0
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes under version {})", self.0.len(), self.version())
    }
}

/// Why a value was not sealed or not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// The version it was sealed under is not loaded.
    #[error(
        "sealed under master key version {seen}, but only {have:?} are configured: add the missing version to the older keys"
    )]
    UnknownVersion {
        /// The version needed.
        seen: u32,
        /// The versions at hand.
        have: Vec<u32>,
    },
    /// Wrong key, wrong row, or changed bytes: the cipher cannot tell which.
    #[error(
        "a value sealed under master key version {version} does not open: another key of that version sealed it, or it was moved or changed"
    )]
    DoesNotOpen {
        /// The version tried.
        version: u32,
    },
    /// The cryptographic library refused to seal.
    #[error("the cryptographic library refused to seal under master key version {version}")]
    CannotSeal {
        /// The version used.
        version: u32,
    },
}

/// Seals under the current master key, opens under it and the older ones.
#[derive(Clone, Debug)]
pub struct Vault {
    current: MasterKey,
    older: Vec<MasterKey>,
}

impl Vault {
    /// A vault that seals under `current` and still opens what `older` keys sealed.
    pub fn new(current: MasterKey, older: Vec<MasterKey>) -> Self {
        Vault { current, older }
    }

    /// The version that new values are sealed under.
    pub fn current_version(&self) -> u32 {
        self.current.version()
    }

    /// Seals a secret for one row.
    pub fn seal(&self, env: &Env, context: &Context, secret: &Secret) -> Result<Sealed, VaultError> {
        let mut out = Vec::with_capacity(HEADER + secret.expose().len() + TAG);
        out.push(FORMAT);
        out.extend_from_slice(&self.current.version().to_be_bytes());
        let salt = env.draw::<SALT>();
        out.extend_from_slice(&salt);
        let aad = aead::joined(&[&out, &context.0]);
        let body = aead::seal(self.current.expose(), &salt, &[&context.0], &aad, secret.expose())
            .map_err(|_| VaultError::CannotSeal { version: self.current.version() })?;
        out.extend_from_slice(&body);
        Ok(Sealed(out))
    }

    /// Opens what was sealed for the same row.
    pub fn open(&self, context: &Context, sealed: &Sealed) -> Result<Secret, VaultError> {
        let version = sealed.version();
        let key = self.key(version)?;
        let (header, body) = sealed.0.split_at(HEADER);
        let aad = aead::joined(&[header, &context.0]);
        aead::open(key.expose(), &header[5..], &[&context.0], &aad, body).map_err(|_| VaultError::DoesNotOpen { version })
    }

    /// Seals anew under the current version what an older one sealed; `None` when it is current already.
    pub fn rewrap(&self, env: &Env, context: &Context, sealed: &Sealed) -> Result<Option<Sealed>, VaultError> {
        if sealed.version() == self.current_version() {
            return Ok(None);
        }
        self.seal(env, context, &self.open(context, sealed)?).map(Some)
    }

    /// A value for the store to keep beside the current version's number: who opens it holds the key that sealed the rest.
    pub fn canary(&self, env: &Env) -> Result<Sealed, VaultError> {
        self.seal(env, &canary_context(self.current_version()), &Secret::new(CANARY.to_vec()))
    }

    /// Whether this vault's keys are the ones that made the canary. Asked at start, so that a wrong key stops the start rather
    /// than every later step.
    pub fn opens(&self, canary: &Sealed) -> bool {
        self.open(&canary_context(canary.version()), canary).is_ok_and(|plain| plain.expose() == CANARY)
    }

    fn key(&self, version: u32) -> Result<&MasterKey, VaultError> {
        let mut keys = std::iter::once(&self.current).chain(&self.older);
        keys.find(|k| k.version() == version).ok_or_else(|| VaultError::UnknownVersion {
            seen: version,
            have: std::iter::once(&self.current).chain(&self.older).map(MasterKey::version).collect(),
        })
    }
}

const CANARY: &[u8] = b"tweet";

fn canary_context(version: u32) -> Context {
    Context::new("vault-canary", &version.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::env::manual::Hand;
    use crate::model::moment::Moment;

    fn env(seed: u64) -> Env {
        Hand::new(Moment::default(), seed).env()
    }

    fn vault(version: u32, seed: u64) -> Vault {
        Vault::new(MasterKey::generate(version, &env(seed)), vec![])
    }

    fn secret() -> Secret {
        Secret::new(b"-----BEGIN PRIVATE KEY-----".to_vec())
    }

    #[test]
    fn a_value_opens_in_its_own_place_only() {
        let (vault, env) = (vault(1, 1), env(2));
        let here = Context::new("certificate-key", "crt_1");
        let sealed = vault.seal(&env, &here, &secret()).unwrap();
        assert_eq!(vault.open(&here, &sealed).unwrap(), secret());
        for elsewhere in [
            Context::new("certificate-key", "crt_2"),
            Context::new("account-key", "crt_1"),
            Context::new("certificate-keyc", "rt_1"),
        ] {
            assert_eq!(vault.open(&elsewhere, &sealed), Err(VaultError::DoesNotOpen { version: 1 }));
        }
    }

    #[test]
    fn the_same_secret_never_looks_the_same() {
        let (vault, env) = (vault(1, 1), env(2));
        let here = Context::new("certificate-key", "crt_1");
        let (a, b) = (vault.seal(&env, &here, &secret()).unwrap(), vault.seal(&env, &here, &secret()).unwrap());
        assert_ne!(a.as_bytes()[HEADER..], b.as_bytes()[HEADER..]);
    }

    #[test]
    fn one_changed_bit_anywhere_and_it_does_not_open() {
        let (vault, env) = (vault(1, 1), env(2));
        let here = Context::new("certificate-key", "crt_1");
        let sealed = vault.seal(&env, &here, &secret()).unwrap();
        for at in 0..sealed.as_bytes().len() {
            for bit in 0..8 {
                let mut bytes = sealed.as_bytes().to_vec();
                bytes[at] ^= 1 << bit;
                let opened = Sealed::try_from(bytes).map(|s| vault.open(&here, &s));
                assert!(!matches!(opened, Ok(Ok(_))), "byte {at}, bit {bit}");
            }
        }
        for cut in 0..sealed.as_bytes().len() {
            let opened = Sealed::try_from(sealed.as_bytes()[..cut].to_vec()).map(|s| vault.open(&here, &s));
            assert!(!matches!(opened, Ok(Ok(_))), "cut at {cut}");
        }
    }

    #[test]
    fn another_key_opens_nothing_and_says_which_version_is_missing() {
        let env = env(2);
        let here = Context::new("certificate-key", "crt_1");
        let sealed = vault(1, 1).seal(&env, &here, &secret()).unwrap();
        assert_eq!(vault(1, 9).open(&here, &sealed), Err(VaultError::DoesNotOpen { version: 1 }));
        assert_eq!(vault(2, 1).open(&here, &sealed), Err(VaultError::UnknownVersion { seen: 1, have: vec![2] }));
    }

    #[test]
    fn rotation_seals_anew_and_the_canary_tells_a_wrong_key_at_start() {
        let env = env(2);
        let here = Context::new("certificate-key", "crt_1");
        let (old, new) = (MasterKey::generate(1, &self::env(1)), MasterKey::generate(2, &self::env(3)));
        let before = Vault::new(old.clone(), vec![]);
        let sealed = before.seal(&env, &here, &secret()).unwrap();
        let canary = before.canary(&env).unwrap();

        let during = Vault::new(new.clone(), vec![old]);
        let moved = during.rewrap(&env, &here, &sealed).unwrap().unwrap();
        assert_eq!((moved.version(), during.rewrap(&env, &here, &moved).unwrap()), (2, None));
        assert!(during.opens(&canary));

        let after = Vault::new(new, vec![]);
        assert_eq!(after.open(&here, &moved).unwrap(), secret());
        assert!(!after.opens(&canary));
        assert!(after.opens(&during.canary(&env).unwrap()));
        assert!(!vault(1, 8).opens(&canary));
    }

    #[test]
    fn debug_prints_no_bytes() {
        let (vault, env) = (vault(1, 1), env(2));
        let sealed = vault.seal(&env, &Context::new("p", "i"), &secret()).unwrap();
        assert_eq!(format!("{sealed:?}"), format!("Sealed({} bytes under version 1)", sealed.as_bytes().len()));
        assert_eq!(format!("{vault:?}"), "Vault { current: MasterKey(version 1), older: [] }");
    }

    proptest! {
        #[test]
        fn junk_never_opens_and_never_panics(junk in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(sealed) = Sealed::try_from(junk.clone()) {
                prop_assert!(vault(sealed.version(), 1).open(&Context::new("p", "i"), &sealed).is_err());
                prop_assert_eq!(sealed.as_bytes(), &junk[..]);
            }
        }

        #[test]
        fn anything_sealed_opens_again(plain in prop::collection::vec(any::<u8>(), 0..300), id in ".{0,20}", seed: u64) {
            let (vault, env) = (vault(7, seed), env(seed ^ 1));
            let here = Context::new("p", &id);
            let sealed = vault.seal(&env, &here, &Secret::new(plain.clone())).unwrap();
            let stored = Sealed::try_from(sealed.as_bytes().to_vec()).unwrap();
            prop_assert_eq!(vault.open(&here, &stored).unwrap(), Secret::new(plain));
        }
    }
}
