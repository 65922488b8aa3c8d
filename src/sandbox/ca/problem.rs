//! Problem documents (RFC 7807) with the error types of RFC 8555 §6.7.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $status:literal;)*) => {
        /// The error types of RFC 8555 §6.7 and of the documents that add to it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Kind { $($(#[$doc])* #[serde(rename = $name)] $kind),* }

        impl Kind {
            /// The last part of the type's URN.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name),* }
            }

            fn status(self) -> u16 {
                match self { $(Kind::$kind => $status),* }
            }
        }
    };
}

kinds! {
    /// The account that signed is not known here.
    AccountDoesNotExist = "accountDoesNotExist", 400;
    /// The certificate to replace has a successor already (RFC 9773 §5).
    AlreadyReplaced = "alreadyReplaced", 409;
    /// The certificate is revoked already.
    AlreadyRevoked = "alreadyRevoked", 400;
    /// The CSR cannot be accepted.
    BadCsr = "badCSR", 400;
    /// The nonce was used before, or never given out.
    BadNonce = "badNonce", 400;
    /// The account's key is of a kind not supported.
    BadPublicKey = "badPublicKey", 400;
    /// The revocation reason is not allowed.
    BadRevocationReason = "badRevocationReason", 400;
    /// The JWS is signed by an algorithm not supported.
    BadSignatureAlgorithm = "badSignatureAlgorithm", 400;
    /// CAA records forbid issuance.
    Caa = "caa", 403;
    /// Several errors; the subproblems tell.
    Compound = "compound", 400;
    /// The server to validate could not be reached.
    Connection = "connection", 400;
    /// A look-up during validation failed.
    Dns = "dns", 400;
    /// An account needs an external account binding.
    ExternalAccountRequired = "externalAccountRequired", 403;
    /// The answer to the challenge was wrong.
    IncorrectResponse = "incorrectResponse", 403;
    /// The profile is not offered.
    InvalidProfile = "invalidProfile", 400;
    /// The request makes no sense.
    Malformed = "malformed", 400;
    /// The order is not ready to be finalized.
    OrderNotReady = "orderNotReady", 403;
    /// A limit was passed.
    RateLimited = "rateLimited", 429;
    /// No certificate is issued for this name.
    RejectedIdentifier = "rejectedIdentifier", 400;
    /// The CA itself failed.
    ServerInternal = "serverInternal", 500;
    /// The client may not do this.
    Unauthorized = "unauthorized", 403;
    /// A contact URL uses a scheme not supported.
    UnsupportedContact = "unsupportedContact", 400;
    /// An identifier is of a type not supported.
    UnsupportedIdentifier = "unsupportedIdentifier", 400;
    /// Somebody has to act first (agree to the terms).
    UserActionRequired = "userActionRequired", 403;
}

/// An error as the CA tells it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", kind.name())]
pub struct Problem {
    /// Its type.
    pub kind: Kind,
    /// Its sentence.
    pub detail: String,
    /// Its HTTP status.
    pub status: u16,
    /// Its parts, one per identifier (RFC 8555 §6.7.1).
    pub subproblems: Vec<Subproblem>,
    /// When to come back.
    pub retry_after: Option<Duration>,
}

/// The part of a problem that belongs to one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subproblem {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: Kind,
    /// The sentence.
    pub detail: String,
}

impl Problem {
    /// A problem with its type's usual status.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Problem { kind, detail: detail.into(), status: kind.status(), subproblems: Vec::new(), retry_after: None }
    }

    /// A request that makes no sense.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Problem::new(Kind::Malformed, detail)
    }

    /// A request for something this CA does not have.
    pub fn not_found(what: &str, no: &dyn std::fmt::Display) -> Self {
        Problem::malformed(format!("there is no {what} {no} here")).with_status(404)
    }

    /// The same with another HTTP status.
    pub fn with_status(self, status: u16) -> Self {
        Problem { status, ..self }
    }

    /// The same with a `Retry-After`.
    pub fn with_retry_after(self, wait: Duration) -> Self {
        Problem { retry_after: Some(wait), ..self }
    }

    /// One problem for several names: the part itself when there is only one, else a compound.
    pub fn of_names(parts: Vec<Subproblem>) -> Self {
        let (kind, detail) = match parts.as_slice() {
            [one] => (one.kind, one.detail.clone()),
            [first, rest @ ..] if rest.iter().all(|p| p.kind == first.kind) => {
                (first.kind, format!("{} (and {} more)", first.detail, rest.len()))
            }
            _ => (Kind::Compound, "several names were refused; see the subproblems".to_owned()),
        };
        Problem { subproblems: parts, ..Problem::new(kind, detail) }
    }

    /// The document.
    pub fn json(&self) -> Value {
        let mut doc = json!({ "type": urn(self.kind), "detail": self.detail, "status": self.status });
        if !self.subproblems.is_empty() {
            let part = |p: &Subproblem| json!({ "type": urn(p.kind), "detail": p.detail, "identifier": { "type": "dns", "value": p.name } });
            doc["subproblems"] = self.subproblems.iter().map(part).collect();
        }
        if self.kind == Kind::BadSignatureAlgorithm {
            // RFC 8555 §6.2: the refusal names what would have been accepted.
            doc["algorithms"] = json!(super::jwk::Algorithm::NAMES);
        }
        doc
    }
}

fn urn(kind: Kind) -> String {
    format!("urn:ietf:params:acme:error:{}", kind.name())
}

/// Whole seconds, rounded up and at least one: "come back in 0 seconds" is a hot loop.
pub(super) fn retry_after(wait: Duration) -> HeaderValue {
    HeaderValue::from(wait.as_millis().div_ceil(1000).clamp(1, u128::from(u32::MAX)) as u64)
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, self.json().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, retry_after(wait));
        }
        response
    }
}
