//! What every signed request passes before it is acted on (RFC 8555 §6): content type, JWS, URL, signature, nonce, account.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::account::unknown;
use super::jwk::Jwk;
use super::jws::{Jws, Signer};
use super::numbers::AccountNo;
use super::problem::{Kind, Problem};
use super::server::Desk;

macro_rules! endpoints {
    ($($(#[$doc:meta])* $endpoint:ident = $name:literal;)*) => {
        /// The resources of the CA.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Endpoint { $($(#[$doc])* $endpoint),* }

        impl Endpoint {
            /// All of them.
            pub const ALL: [Endpoint; [$(Endpoint::$endpoint),*].len()] = [$(Endpoint::$endpoint),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Endpoint::$endpoint => $name),* }
            }
        }
    };
}

endpoints! {
    /// The directory.
    Directory = "directory";
    /// newNonce.
    NewNonce = "new-nonce";
    /// newAccount.
    NewAccount = "new-account";
    /// An account.
    Account = "account";
    /// newOrder.
    NewOrder = "new-order";
    /// An order.
    Order = "order";
    /// An order's finalize URL.
    Finalize = "finalize";
    /// An authorization.
    Authorization = "authorization";
    /// A challenge.
    Challenge = "challenge";
    /// A certificate.
    Certificate = "certificate";
    /// revokeCert.
    RevokeCertificate = "revoke-certificate";
    /// When to renew a certificate (ARI, RFC 9773).
    RenewalInfo = "renewal-info";
    /// Anything else.
    Unknown = "unknown";
}

impl Endpoint {
    /// The resource at a path, and the number in it.
    pub(super) fn of(path: &str) -> (Self, Option<&str>) {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let endpoint = match parts.as_slice() {
            ["directory"] => Endpoint::Directory,
            ["new-nonce"] => Endpoint::NewNonce,
            ["new-account"] => Endpoint::NewAccount,
            ["account", _] => Endpoint::Account,
            ["new-order"] => Endpoint::NewOrder,
            ["order", _] => Endpoint::Order,
            ["order", _, "finalize"] => Endpoint::Finalize,
            ["authorization", _] => Endpoint::Authorization,
            ["challenge", _] => Endpoint::Challenge,
            ["certificate", _] => Endpoint::Certificate,
            ["revoke-certificate"] => Endpoint::RevokeCertificate,
            ["renewal-info", _] => Endpoint::RenewalInfo,
            _ => Endpoint::Unknown,
        };
        (endpoint, parts.get(1).copied())
    }

    /// Whether requests to it carry a JWS.
    pub fn is_signed(self) -> bool {
        !matches!(self, Endpoint::Directory | Endpoint::NewNonce | Endpoint::RenewalInfo | Endpoint::Unknown)
    }
}

/// A request signed by a known, open account.
pub(super) struct ByAccount {
    pub account: AccountNo,
    pub payload: Vec<u8>,
}

/// A request signed by a key that it shows.
pub(super) struct ByKey {
    pub key: Jwk,
    pub payload: Vec<u8>,
}

impl ByAccount {
    /// POST-as-GET (§6.3): nothing but the wish to see.
    pub fn only_looks(&self) -> Result<(), Problem> {
        if self.payload.is_empty() {
            Ok(())
        } else {
            Err(Problem::malformed("this is read by POST-as-GET: an empty payload"))
        }
    }
}

/// Reads a payload.
pub(super) fn read<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(payload).map_err(|e| Problem::malformed(format!("the payload cannot be read: {e}")))
}

impl FromRequest<Arc<Desk>> for ByAccount {
    type Rejection = Problem;

    async fn from_request(request: Request, desk: &Arc<Desk>) -> Result<Self, Problem> {
        let jws = envelope(request, desk).await?;
        let Signer::Account(kid) = &jws.signer else {
            return Err(Problem::malformed("this is asked with kid, the account's URL, not with jwk"));
        };
        let account = AccountNo::from(kid.strip_prefix(&desk.account_url("")).unwrap_or(kid));
        let key = desk.door().keys.get(&account).cloned().ok_or_else(|| unknown(&account))?;
        enter(desk, &jws, &key)?;
        desk.state().open_account(&account)?;
        Ok(ByAccount { account, payload: jws.payload })
    }
}

impl FromRequest<Arc<Desk>> for ByKey {
    type Rejection = Problem;

    async fn from_request(request: Request, desk: &Arc<Desk>) -> Result<Self, Problem> {
        let jws = envelope(request, desk).await?;
        let Signer::Key(key) = jws.signer.clone() else {
            return Err(Problem::malformed("this is asked with jwk, the key itself, not with kid"));
        };
        enter(desk, &jws, &key)?;
        Ok(ByKey { key, payload: jws.payload })
    }
}

async fn envelope(request: Request, desk: &Arc<Desk>) -> Result<Jws, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("nothing");
    if kind != "application/jose+json" {
        return Err(
            Problem::malformed(format!("the content type is {kind}, expected application/jose+json")).with_status(415)
        );
    }
    let url = desk.url(request.uri().path());
    let body = Bytes::from_request(request, desk).await;
    let jws = Jws::parse(&body.map_err(|e| Problem::malformed(format!("the body cannot be read: {e}")))?)?;
    if jws.url != url {
        let detail = format!("the JWS was made for {:?} and sent to {url:?}", jws.url);
        return Err(Problem::new(Kind::Unauthorized, detail));
    }
    Ok(jws)
}

/// Signature first, nonce last: a request nobody signed uses no nonce up.
fn enter(desk: &Desk, jws: &Jws, key: &Jwk) -> Result<(), Problem> {
    jws.verify(key)?;
    if desk.door().nonces.spend(&jws.nonce) {
        return Ok(());
    }
    Err(Problem::new(Kind::BadNonce, format!("nonce {:?} is not one to be used now", jws.nonce)))
}
