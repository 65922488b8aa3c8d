//! Signing the feed: Ed25519, so that an edge believes only what its control plane said.
//!
//! The signer's secret is sealed in the vault; edges pin the verifier in their join token. Every signature is over a prefix and
//! the message, so that nothing signed here can be passed off as something else.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::hex;
use crate::env::Env;
use crate::model::secret::Secret;

const PREFIX: &[u8] = b"nameplate feed\0";

/// Why a signature or a key was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    /// The secret is no Ed25519 seed.
    #[error("the feed's signing secret has {seen} bytes; expected a 32-byte Ed25519 seed")]
    BadSecret {
        /// How many bytes there are.
        seen: usize,
    },
    /// The message was not signed by this key.
    #[error("the signature is not by feed key {key}: the message was changed, or another control plane sent it")]
    BadSignature {
        /// The key it was checked against.
        key: String,
    },
    /// The cryptographic library refused to sign.
    #[error("the cryptographic library refused to sign with feed key {key}")]
    CannotSign {
        /// The key used.
        key: String,
    },
}

/// Signs what the feed sends.
pub struct FeedSigner {
    seed: Secret,
    pair: Ed25519KeyPair,
    verifier: FeedVerifier,
}

impl FeedSigner {
    /// A new signer from drawn bytes.
    pub fn generate(env: &Env) -> Result<Self, SigningError> {
        Self::from_secret(Secret::new(env.draw::<32>().to_vec()))
    }

    /// From the secret that [`FeedSigner::secret`] gave.
    pub fn from_secret(seed: Secret) -> Result<Self, SigningError> {
        let bad = SigningError::BadSecret { seen: seed.expose().len() };
        let Ok(pair) = Ed25519KeyPair::from_seed_unchecked(seed.expose()) else { return Err(bad) };
        let Ok(public) = <[u8; 32]>::try_from(pair.public_key().as_ref()) else { return Err(bad) };
        Ok(FeedSigner { seed, pair, verifier: FeedVerifier::new(public) })
    }

    /// The secret, for the vault to seal.
    pub fn secret(&self) -> &Secret {
        &self.seed
    }

    /// The name of the key, sent with each message.
    pub fn key_id(&self) -> &str {
        self.verifier.key_id()
    }

    /// What edges pin.
    pub fn verifier(&self) -> &FeedVerifier {
        &self.verifier
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> Result<[u8; 64], SigningError> {
        let cannot = || SigningError::CannotSign { key: self.key_id().to_owned() };
        let signature = self.pair.try_sign(&[PREFIX, message].concat()).map_err(|_| cannot())?;
        signature.as_ref().try_into().map_err(|_| cannot())
    }
}

impl fmt::Debug for FeedSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeedSigner({})", self.key_id())
    }
}

/// Checks what the feed brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedVerifier {
    key_id: String,
    public: [u8; 32],
}

impl FeedVerifier {
    /// From the public key.
    pub fn new(public: [u8; 32]) -> Self {
        FeedVerifier { key_id: hex::encode(&digest(&SHA256, &public).as_ref()[..16]), public }
    }

    /// The name of the key: the first half of its SHA-256, in hex.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The public key.
    pub fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// Whether this key signed the message.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SigningError> {
        UnparsedPublicKey::new(&ED25519, &self.public)
            .verify(&[PREFIX, message].concat(), signature)
            .map_err(|_| SigningError::BadSignature { key: self.key_id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::manual::Hand;
    use crate::model::moment::Moment;

    fn signer(seed: u64) -> FeedSigner {
        FeedSigner::generate(&Hand::new(Moment::default(), seed).env()).unwrap()
    }

    #[test]
    fn only_the_signer_and_the_very_message_pass() {
        let (signer, other) = (signer(1), signer(2));
        let signature = signer.sign(b"seq 7").unwrap();
        assert_eq!(signer.verifier().verify(b"seq 7", &signature), Ok(()));
        assert_eq!(FeedVerifier::new(*signer.verifier().public()).verify(b"seq 7", &signature), Ok(()));
        assert!(signer.verifier().verify(b"seq 8", &signature).is_err());
        assert!(other.verifier().verify(b"seq 7", &signature).is_err());
        for at in 0..signature.len() {
            let mut changed = signature;
            changed[at] ^= 1;
            assert!(signer.verifier().verify(b"seq 7", &changed).is_err(), "byte {at}");
        }
        assert!(signer.verifier().verify(b"seq 7", &[]).is_err());
    }

    #[test]
    fn a_signer_comes_back_from_its_secret_and_prints_only_its_id() {
        let signer = signer(1);
        let again = FeedSigner::from_secret(signer.secret().clone()).unwrap();
        assert_eq!(again.key_id(), signer.key_id());
        assert_eq!(again.sign(b"m").unwrap(), signer.sign(b"m").unwrap());
        assert_eq!(format!("{signer:?}"), format!("FeedSigner({})", signer.key_id()));
        assert_eq!(FeedSigner::from_secret(Secret::new(vec![1; 31])).unwrap_err(), SigningError::BadSecret { seen: 31 });
    }
}
