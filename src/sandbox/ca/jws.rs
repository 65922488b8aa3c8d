//! The signed envelope of every POST: a flattened JWS (RFC 7515 §7.2.2) as RFC 8555 §6.2 narrows it.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::problem::{Kind, Problem};

/// A P-256 public key as a JSON Web Key (RFC 7518 §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwk {
    x: [u8; 32],
    y: [u8; 32],
}

#[derive(Deserialize)]
struct RawJwk {
    kty: String,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

impl Jwk {
    /// From an uncompressed point (0x04, x, y), as a CSR carries it; `None` when it is not one of P-256.
    pub fn from_point(point: &[u8]) -> Option<Self> {
        let (tag, rest) = point.split_first()?;
        let (x, y) = rest.split_at_checked(32)?;
        (*tag == 4).then_some(())?;
        Some(Jwk { x: x.try_into().ok()?, y: y.try_into().ok()? })
    }

    fn from_raw(raw: &RawJwk) -> Result<Self, Problem> {
        if raw.kty != "EC" || raw.crv != "P-256" {
            let seen = format!("an account key of type {:?}, curve {:?}; this CA takes EC on P-256", raw.kty, raw.crv);
            return Err(Problem::new(Kind::BadPublicKey, seen));
        }
        let part = |name: &str, text: &str| {
            let bytes = decode(name, text)?;
            let fixed = <[u8; 32]>::try_from(bytes.as_slice());
            fixed.map_err(|_| Problem::new(Kind::BadPublicKey, format!("{name} has {} bytes, expected 32", bytes.len())))
        };
        Ok(Jwk { x: part("jwk.x", &raw.x)?, y: part("jwk.y", &raw.y)? })
    }

    /// The key's thumbprint (RFC 7638), as it stands in key authorizations.
    pub fn thumbprint(&self) -> String {
        let (x, y) = (BASE64_URL_SAFE_NO_PAD.encode(self.x), BASE64_URL_SAFE_NO_PAD.encode(self.y));
        let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes()))
    }

    fn point(&self) -> Vec<u8> {
        [&[4][..], &self.x, &self.y].concat()
    }
}

/// Who signed: a key shown, or an account named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    /// The key itself, in newAccount.
    Key(Jwk),
    /// An account's URL, everywhere else.
    Account(String),
}

/// A signed request, parsed and not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jws {
    /// Who says to have signed it.
    pub signer: Signer,
    /// The nonce it uses up.
    pub nonce: String,
    /// The URL it was made for.
    pub url: String,
    /// What it asks; empty for POST-as-GET.
    pub payload: Vec<u8>,
    signed: String,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flattened {
    protected: String,
    payload: String,
    signature: String,
}

#[derive(Deserialize)]
struct Protected {
    alg: String,
    nonce: Option<String>,
    url: Option<String>,
    jwk: Option<RawJwk>,
    kid: Option<String>,
    crit: Option<serde_json::Value>,
}

impl Jws {
    /// Reads a request's body.
    pub fn parse(body: &[u8]) -> Result<Self, Problem> {
        // Unknown fields are refused: an unprotected header must not be there, nor several signatures (§6.2).
        let outer: Flattened = serde_json::from_slice(body).map_err(|e| {
            Problem::malformed(format!("the body is not a flattened JWS of protected, payload, signature: {e}"))
        })?;
        let header: Protected = serde_json::from_slice(&decode("protected", &outer.protected)?)
            .map_err(|e| Problem::malformed(format!("the protected header cannot be read: {e}")))?;
        if header.alg != "ES256" {
            let seen = format!("the JWS is signed by {:?}; this CA takes ES256", header.alg);
            return Err(Problem::new(Kind::BadSignatureAlgorithm, seen));
        }
        if header.crit.is_some() {
            return Err(Problem::malformed("the protected header has a crit list; no extension is known here"));
        }
        let signer = match (header.jwk, header.kid) {
            (Some(raw), None) => Signer::Key(Jwk::from_raw(&raw)?),
            (None, Some(kid)) => Signer::Account(kid),
            _ => return Err(Problem::malformed("the protected header must have either jwk or kid")),
        };
        let nonce = header.nonce.ok_or_else(|| Problem::new(Kind::BadNonce, "the protected header has no nonce"))?;
        decode("nonce", &nonce).map_err(|p| Problem::new(Kind::BadNonce, p.detail))?;
        Ok(Jws {
            signer,
            nonce,
            url: header.url.ok_or_else(|| Problem::malformed("the protected header has no url"))?,
            payload: decode("payload", &outer.payload)?,
            signature: decode("signature", &outer.signature)?,
            signed: format!("{}.{}", outer.protected, outer.payload),
        })
    }

    /// Checks the signature by `key`.
    pub fn verify(&self, key: &Jwk) -> Result<(), Problem> {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.point())
            .verify(self.signed.as_bytes(), &self.signature)
            .map_err(|_| Problem::malformed("the signature does not fit the key"))
    }
}

/// Base64url without padding, strictly (RFC 8555 §6.1): padding, other alphabets and stray bits are refused.
pub(super) fn decode(what: &str, text: &str) -> Result<Vec<u8>, Problem> {
    BASE64_URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|e| Problem::malformed(format!("{what} is not base64url without padding: {e}")))
}
