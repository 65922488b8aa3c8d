//! Account keys as JSON Web Keys (RFC 7517): the two kinds that ACME clients come with.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::jws::decode;
use super::problem::{Kind, Problem};

/// What signatures are made by (RFC 7518 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256: what every ACME server must take.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256: what older clients' accounts use.
    Rs256,
}

impl Algorithm {
    /// Their names, as a problem's `algorithms` lists them.
    pub const NAMES: [&'static str; 2] = ["ES256", "RS256"];

    pub(super) fn read(name: &str) -> Result<Self, Problem> {
        match name {
            "ES256" => Ok(Algorithm::Es256),
            "RS256" => Ok(Algorithm::Rs256),
            _ => {
                let seen = format!("the JWS is signed by {name:?}; this CA takes {}", Self::NAMES.join(" and "));
                Err(Problem::new(Kind::BadSignatureAlgorithm, seen))
            }
        }
    }
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jwk {
    /// On P-256 (RFC 7518 §6.2).
    P256 {
        /// The point's coordinates, one after the other.
        point: [u8; 64],
    },
    /// RSA of 2048 bits or more (RFC 7518 §6.3).
    Rsa {
        /// The modulus, without zeros in front.
        n: Vec<u8>,
        /// The exponent, likewise.
        e: Vec<u8>,
    },
}

#[derive(Deserialize)]
pub(super) struct RawJwk {
    kty: String,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
}

impl Jwk {
    /// From an uncompressed point (0x04, x, y), as a CSR carries it; `None` when it is not one of P-256.
    pub fn from_point(point: &[u8]) -> Option<Self> {
        let (tag, rest) = point.split_first()?;
        (*tag == 4).then_some(Jwk::P256 { point: rest.try_into().ok()? })
    }

    pub(super) fn from_raw(raw: &RawJwk) -> Result<Self, Problem> {
        match (raw.kty.as_str(), raw.crv.as_str()) {
            ("EC", "P-256") => {
                let (x, y) = (coordinate("jwk.x", &raw.x)?, coordinate("jwk.y", &raw.y)?);
                let mut point = [0; 64];
                point[..32].copy_from_slice(&x);
                point[32..].copy_from_slice(&y);
                Ok(Jwk::P256 { point })
            }
            ("RSA", "") => {
                let (n, e) = (number("jwk.n", &raw.n)?, number("jwk.e", &raw.e)?);
                if !(256..=1024).contains(&n.len()) {
                    let seen = format!("an RSA key of {} bits; this CA takes 2048 to 8192", n.len() * 8);
                    return Err(Problem::new(Kind::BadPublicKey, seen));
                }
                Ok(Jwk::Rsa { n, e })
            }
            (kty, crv) => {
                let seen = format!("an account key of type {kty:?}, curve {crv:?}; this CA takes EC on P-256, and RSA");
                Err(Problem::new(Kind::BadPublicKey, seen))
            }
        }
    }

    /// The key's thumbprint (RFC 7638), as it stands in key authorizations.
    pub fn thumbprint(&self) -> String {
        let text = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let canonical = match self {
            Jwk::P256 { point } => {
                format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, text(&point[..32]), text(&point[32..]))
            }
            Jwk::Rsa { n, e } => format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, text(e), text(n)),
        };
        text(digest(&SHA256, canonical.as_bytes()).as_ref())
    }

    /// Whether this key made the signature, by an algorithm that is its own.
    pub(super) fn signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Jwk::P256 { point }, Algorithm::Es256) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, [&[4][..], point].concat());
                key.verify(message, signature).is_ok()
            }
            (Jwk::Rsa { n, e }, Algorithm::Rs256) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).is_ok()
            }
            (Jwk::P256 { .. }, Algorithm::Rs256) | (Jwk::Rsa { .. }, Algorithm::Es256) => false,
        }
    }
}

fn coordinate(name: &str, text: &str) -> Result<[u8; 32], Problem> {
    let bytes = decode(name, text)?;
    let fixed = <[u8; 32]>::try_from(bytes.as_slice());
    fixed.map_err(|_| Problem::new(Kind::BadPublicKey, format!("{name} has {} bytes, expected 32", bytes.len())))
}

/// A positive number in as few bytes as it needs (RFC 7518 §6.3.1.1).
fn number(name: &str, text: &str) -> Result<Vec<u8>, Problem> {
    let bytes = decode(name, text)?;
    match bytes.first() {
        None | Some(0) => Err(Problem::new(Kind::BadPublicKey, format!("{name} is empty or begins with a zero byte"))),
        Some(_) => Ok(bytes),
    }
}
