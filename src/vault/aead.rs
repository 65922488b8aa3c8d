//! The one construction everything here is sealed with: HKDF-SHA256 over a random salt, then AES-256-GCM.
//!
//! Key and nonce both come out of the derivation. A salt of 32 random bytes gives every sealing a key of its own, so that the
//! nonce can neither run out nor repeat, however many rows one master key seals.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use zeroize::Zeroizing;

use crate::model::secret::Secret;

/// Bytes of a salt.
pub(super) const SALT: usize = 32;
/// Bytes that sealing adds to the plain text.
pub(super) const TAG: usize = 16;

const KEY: usize = 32;
const NONCE: usize = 12;

struct KeyAndNonce;

impl KeyType for KeyAndNonce {
    fn len(&self) -> usize {
        KEY + NONCE
    }
}

fn derive(secret: &[u8], salt: &[u8], info: &[&[u8]]) -> Result<(LessSafeKey, Nonce), Unspecified> {
    let mut out = Zeroizing::new([0; KEY + NONCE]);
    Salt::new(HKDF_SHA256, salt).extract(secret).expand(info, KeyAndNonce)?.fill(out.as_mut_slice())?;
    let (key, nonce) = out.split_at(KEY);
    Ok((LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key)?), Nonce::try_assume_unique_for_key(nonce)?))
}

/// Seals `plain`; `aad` must be given again to open it. The salt must be fresh unless `secret` is.
pub(super) fn seal(secret: &[u8], salt: &[u8], info: &[&[u8]], aad: &[u8], plain: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let (key, nonce) = derive(secret, salt, info)?;
    // Room for the tag up front: a buffer that grows would leave a copy of the plain text behind.
    let mut buffer = Vec::with_capacity(plain.len() + TAG);
    buffer.extend_from_slice(plain);
    key.seal_in_place_append_tag(nonce, Aad::from(aad), &mut buffer)?;
    Ok(buffer)
}

/// Opens what [`seal`] made.
pub(super) fn open(secret: &[u8], salt: &[u8], info: &[&[u8]], aad: &[u8], sealed: &[u8]) -> Result<Secret, Unspecified> {
    let (key, nonce) = derive(secret, salt, info)?;
    let mut buffer = Zeroizing::new(sealed.to_vec());
    let plain = key.open_in_place(nonce, Aad::from(aad), &mut buffer)?;
    Ok(Secret::new(plain.to_vec()))
}

/// Parts joined so that no two different lists of parts give the same bytes.
pub(super) fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        out.extend_from_slice(&(part.len() as u64).to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}
