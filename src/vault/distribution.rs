//! How certificate keys travel to edges and rest there: sealed under a distribution key, which is wrapped for each edge.
//!
//! The control plane makes a [`DistributionKey`] and wraps it for the X25519 key each edge enrolled with; revoking an edge
//! makes a new one. An edge holds its [`EdgeKeyPair`], unwraps, and opens what the feed brings. The edge uses this file without
//! the vault and without a store.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::error::Unspecified;
use serde::{Deserialize, Serialize};

use super::aead::{self, SALT, TAG};
use super::hex;
use crate::env::Env;
use crate::model::secret::Secret;

mod preflight;

pub use preflight::{Preflight, Question, is_preflight};

const FORMAT: u8 = 1;
const KEY_ID: usize = 16;
const KEY: usize = 32;
const PUBLIC: usize = 32;
const PACKET_HEADER: usize = 1 + KEY_ID + SALT;
const WRAPPED: usize = 1 + KEY_ID + PUBLIC + KEY + TAG;

/// Why something did not travel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// The bytes are not of the kind they should be.
    #[error("not a {expected}: {seen} bytes of format {format:?}")]
    Malformed {
        /// What it should be.
        expected: &'static str,
        /// How many bytes there are.
        seen: usize,
        /// The first byte.
        format: Option<u8>,
    },
    /// It was sealed under another distribution key.
    #[error("sealed under distribution key {seen}, this is {have}: fetch the wrapped key the feed names")]
    OtherKey {
        /// The key it names.
        seen: DistributionKeyId,
        /// The key at hand.
        have: DistributionKeyId,
    },
    /// It was changed, moved to another label, or wrapped for another edge.
    #[error("what key {key} sealed does not open: it was changed, belongs to another label or was meant for another edge")]
    DoesNotOpen {
        /// The distribution key it names.
        key: DistributionKeyId,
    },
    /// A public key that cannot be agreed with.
    #[error("the edge's public key is no usable X25519 key: enrol the edge again with a fresh key")]
    BadPublicKey,
    /// The cryptographic library refused.
    #[error("the cryptographic library refused to seal under distribution key {key}")]
    CannotSeal {
        /// The distribution key used.
        key: DistributionKeyId,
    },
}

/// The random name of a distribution key; 32 hex digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DistributionKeyId([u8; KEY_ID]);

/// A text that names no distribution key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a distribution key id: expected 32 hex digits, seen {0} characters")]
pub struct NotAKeyId(usize);

impl FromStr for DistributionKeyId {
    type Err = NotAKeyId;
    fn from_str(s: &str) -> Result<Self, NotAKeyId> {
        hex::decode(s).map(Self).ok_or_else(|| NotAKeyId(s.chars().count()))
    }
}

impl TryFrom<String> for DistributionKeyId {
    type Error = NotAKeyId;
    fn try_from(s: String) -> Result<Self, NotAKeyId> {
        s.parse()
    }
}

impl From<DistributionKeyId> for String {
    fn from(id: DistributionKeyId) -> String {
        id.to_string()
    }
}

impl fmt::Display for DistributionKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for DistributionKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a packet holds: it opens under the same label only.
#[derive(Clone, Copy, Debug)]
pub struct Label<'a> {
    /// The kind of feed row, `certificate`.
    pub kind: &'a str,
    /// The row's id.
    pub id: &'a str,
    /// The row's version.
    pub version: u64,
}

impl Label<'_> {
    fn aad(&self, header: &[u8]) -> Vec<u8> {
        aead::joined(&[header, self.kind.as_bytes(), self.id.as_bytes(), &self.version.to_be_bytes()])
    }
}

fn key_id_of(bytes: &[u8]) -> DistributionKeyId {
    let mut id = [0; KEY_ID];
    id.copy_from_slice(&bytes[1..=KEY_ID]);
    DistributionKeyId(id)
}

macro_rules! blob {
    ($(#[$doc:meta])* $name:ident, $what:literal, $fits:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(Vec<u8>);

        impl $name {
            /// The bytes to send or to keep.
            pub fn as_bytes(&self) -> &[u8] {
                &self.0
            }

            /// The distribution key it names.
            pub fn key_id(&self) -> DistributionKeyId {
                key_id_of(&self.0)
            }
        }

        impl TryFrom<Vec<u8>> for $name {
            type Error = DistributionError;
            fn try_from(bytes: Vec<u8>) -> Result<Self, DistributionError> {
                let fits: fn(usize) -> bool = $fits;
                match bytes.first() {
                    Some(&FORMAT) if fits(bytes.len()) => Ok($name(bytes)),
                    format => Err(DistributionError::Malformed { expected: $what, seen: bytes.len(), format: format.copied() }),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} bytes under {})"), self.0.len(), self.key_id())
            }
        }
    };
}

blob! {
    /// A secret sealed under a distribution key.
    Packet, "packet sealed under a distribution key", |len| len >= PACKET_HEADER + TAG
}

blob! {
    /// A distribution key wrapped for one edge.
    Wrapped, "wrapped distribution key", |len| len == WRAPPED
}

/// The key that certificate keys are sealed under on their way to edges and on edges' disks.
#[derive(Clone, PartialEq, Eq)]
pub struct DistributionKey {
    id: DistributionKeyId,
    key: Secret,
}

impl DistributionKey {
    /// A new key with a random id.
    pub fn generate(env: &Env) -> Self {
        DistributionKey { id: DistributionKeyId(env.draw()), key: Secret::new(env.draw::<KEY>().to_vec()) }
    }

    /// Its id.
    pub fn id(&self) -> DistributionKeyId {
        self.id
    }

    /// Id and key as one secret, for the vault to seal.
    pub fn to_secret(&self) -> Secret {
        Secret::new([self.id.0.as_slice(), self.key.expose()].concat())
    }

    /// From what [`DistributionKey::to_secret`] gave.
    pub fn from_secret(secret: &Secret) -> Result<Self, DistributionError> {
        let bytes = secret.expose();
        match bytes.split_first_chunk::<KEY_ID>() {
            Some((id, key)) if key.len() == KEY => {
                Ok(DistributionKey { id: DistributionKeyId(*id), key: Secret::new(key.to_vec()) })
            }
            _ => Err(DistributionError::Malformed { expected: "distribution key", seen: bytes.len(), format: None }),
        }
    }

    /// Seals a secret under a label.
    pub fn seal(&self, env: &Env, label: Label<'_>, secret: &Secret) -> Result<Packet, DistributionError> {
        let salt = env.draw::<SALT>();
        let mut out = [&[FORMAT], self.id.0.as_slice(), &salt].concat();
        let body = aead::seal(self.key.expose(), &salt, &[PACKET_INFO], &label.aad(&out), secret.expose())
            .map_err(|_| DistributionError::CannotSeal { key: self.id })?;
        out.extend_from_slice(&body);
        Ok(Packet(out))
    }

    /// Opens what was sealed under the same label.
    pub fn open(&self, label: Label<'_>, packet: &Packet) -> Result<Secret, DistributionError> {
        if packet.key_id() != self.id {
            return Err(DistributionError::OtherKey { seen: packet.key_id(), have: self.id });
        }
        let (header, body) = packet.0.split_at(PACKET_HEADER);
        aead::open(self.key.expose(), &header[1 + KEY_ID..], &[PACKET_INFO], &label.aad(header), body)
            .map_err(|_| DistributionError::DoesNotOpen { key: self.id })
    }

    /// Wraps this key for the edge that holds the private half of `edge_public`.
    pub fn wrap_for(&self, env: &Env, edge_public: &[u8; PUBLIC]) -> Result<Wrapped, DistributionError> {
        let once = EdgeKeyPair::generate(env)?;
        let mut out = [&[FORMAT], self.id.0.as_slice(), &once.public].concat();
        let body = agree(&once.pair, UnparsedPublicKey::new(&X25519, edge_public), Unspecified, |shared| {
            aead::seal(shared, &[], &[WRAP_INFO, &once.public, edge_public], &out, self.key.expose())
        })
        .map_err(|_| DistributionError::BadPublicKey)?;
        out.extend_from_slice(&body);
        Ok(Wrapped(out))
    }
}

const PACKET_INFO: &[u8] = b"nameplate distribution packet";
const WRAP_INFO: &[u8] = b"nameplate distribution wrap";

impl fmt::Debug for DistributionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistributionKey({})", self.id)
    }
}

/// An edge's own key: made on the edge, its private half never leaves it.
pub struct EdgeKeyPair {
    private: Secret,
    pair: PrivateKey,
    public: [u8; PUBLIC],
}

impl EdgeKeyPair {
    /// A new key from drawn bytes.
    pub fn generate(env: &Env) -> Result<Self, DistributionError> {
        Self::from_private(Secret::new(env.draw::<KEY>().to_vec()))
    }

    /// From the private half that [`EdgeKeyPair::private`] gave.
    pub fn from_private(private: Secret) -> Result<Self, DistributionError> {
        let seen = private.expose().len();
        let malformed = DistributionError::Malformed { expected: "32-byte X25519 private key", seen, format: None };
        let made = PrivateKey::from_private_key(&X25519, private.expose())
            .ok()
            .and_then(|pair| Some((<[u8; PUBLIC]>::try_from(pair.compute_public_key().ok()?.as_ref()).ok()?, pair)));
        match made {
            Some((public, pair)) => Ok(EdgeKeyPair { private, pair, public }),
            None => Err(malformed),
        }
    }

    /// The private half, for the edge's own 0600 file.
    pub fn private(&self) -> &Secret {
        &self.private
    }

    /// The half the edge enrols with.
    pub fn public(&self) -> [u8; PUBLIC] {
        self.public
    }

    /// Unwraps a distribution key that was wrapped for this edge.
    pub fn unwrap(&self, wrapped: &Wrapped) -> Result<DistributionKey, DistributionError> {
        let (header, body) = wrapped.0.split_at(1 + KEY_ID + PUBLIC);
        let once = &header[1 + KEY_ID..];
        agree(&self.pair, UnparsedPublicKey::new(&X25519, once), Unspecified, |shared| {
            aead::open(shared, &[], &[WRAP_INFO, once, &self.public], header, body)
        })
        .map(|key| DistributionKey { id: wrapped.key_id(), key })
        .map_err(|_| DistributionError::DoesNotOpen { key: wrapped.key_id() })
    }
}

impl fmt::Debug for EdgeKeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EdgeKeyPair({})", hex::encode(&self.public))
    }
}

#[cfg(test)]
mod tests;
