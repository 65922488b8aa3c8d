//! The signed envelope of every POST: a flattened JWS (RFC 7515 §7.2.2) as RFC 8555 §6.2 narrows it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::jwk::{Algorithm, Jwk, RawJwk};
use super::problem::{Kind, Problem};

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
    algorithm: Algorithm,
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
        let algorithm = Algorithm::read(&header.alg)?;
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
            algorithm,
            nonce,
            url: header.url.ok_or_else(|| Problem::malformed("the protected header has no url"))?,
            payload: decode("payload", &outer.payload)?,
            signature: decode("signature", &outer.signature)?,
            signed: format!("{}.{}", outer.protected, outer.payload),
        })
    }

    /// Checks the signature by `key`.
    pub fn verify(&self, key: &Jwk) -> Result<(), Problem> {
        let fits = key.signed(self.algorithm, self.signed.as_bytes(), &self.signature);
        if fits { Ok(()) } else { Err(Problem::malformed("the signature does not fit the key")) }
    }
}

/// Base64url without padding, strictly (RFC 8555 §6.1): padding, other alphabets and stray bits are refused.
pub(super) fn decode(what: &str, text: &str) -> Result<Vec<u8>, Problem> {
    BASE64_URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|e| Problem::malformed(format!("{what} is not base64url without padding: {e}")))
}
