//! Signing requests that others check by a key we publish: RS256, as Domain Connect asks for.
//!
//! The private key is the operator's, from the configuration; the public one stands in DNS for everybody.

use std::fmt;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::model::secret::Secret;

/// The smallest key that is taken, in bits.
const SMALLEST: usize = 2048;

/// Why a key cannot sign. Never quotes what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestKeyError {
    /// The text holds no such key.
    #[error("the text is no RSA private key in PEM; make one: nameplate domain-connect new-key")]
    NotAKey,
    /// The key is too small.
    #[error("the RSA key has {0} bits; expected at least {SMALLEST}")]
    TooSmall(usize),
    /// The library refused.
    #[error("the cryptographic library refused to use the key")]
    Refused,
}

/// Signs requests.
pub struct RequestSigner {
    pair: RsaKeyPair,
}

impl RequestSigner {
    /// From a private key in PEM, PKCS #8 or PKCS #1.
    pub fn from_pem(pem: &Secret) -> Result<Self, RequestKeyError> {
        let read = PrivateKeyDer::from_pem_slice(pem.expose()).map_err(|_| RequestKeyError::NotAKey)?;
        let pair = match &read {
            PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
            _ => return Err(RequestKeyError::NotAKey),
        };
        let pair = pair.map_err(|_| RequestKeyError::NotAKey)?;
        let bits = pair.public_modulus_len() * 8;
        if bits < SMALLEST { Err(RequestKeyError::TooSmall(bits)) } else { Ok(RequestSigner { pair }) }
    }

    /// A new private key in PEM.
    pub fn new_key() -> Result<Secret, RequestKeyError> {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| RequestKeyError::Refused)?;
        let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| RequestKeyError::Refused)?;
        let text = STANDARD.encode(der.as_ref());
        let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
        // Base64 is ASCII: every octet is a character.
        for line in text.as_bytes().chunks(64) {
            pem.extend(line.iter().copied().map(char::from));
            pem.push('\n');
        }
        pem.push_str("-----END PRIVATE KEY-----\n");
        Ok(Secret::from(pem))
    }

    /// The signature over a text, in base64.
    pub fn sign(&self, text: &str) -> Result<String, RequestKeyError> {
        let mut signature = vec![0; self.pair.public_modulus_len()];
        let signed = self.pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature);
        signed.map_err(|_| RequestKeyError::Refused)?;
        Ok(STANDARD.encode(signature))
    }

    /// The public key (SubjectPublicKeyInfo, DER).
    pub fn public_key(&self) -> Result<Vec<u8>, RequestKeyError> {
        let der: PublicKeyX509Der<'_> = self.pair.public_key().as_der().map_err(|_| RequestKeyError::Refused)?;
        Ok(der.as_ref().to_vec())
    }
}

impl fmt::Debug for RequestSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestSigner")
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    #[test]
    fn what_is_signed_is_verified_by_the_public_key_and_nothing_else_is() {
        let signer = RequestSigner::from_pem(&RequestSigner::new_key().unwrap()).unwrap();
        let signature = STANDARD.decode(signer.sign("a=1&b=2").unwrap()).unwrap();
        let public = signer.public_key().unwrap();
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &public);
        assert!(key.verify(b"a=1&b=2", &signature).is_ok());
        assert!(key.verify(b"a=1&b=3", &signature).is_err());
        assert_eq!(format!("{signer:?}"), "RequestSigner");
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_quoted() {
        for text in ["", "secret", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            let error = RequestSigner::from_pem(&Secret::from(text.to_owned())).unwrap_err();
            assert!(error == RequestKeyError::NotAKey && !error.to_string().contains("AAAA"));
        }
    }
}
