//! Requests that the library makes only with a key it draws itself: a binding to an outside account (RFC 8555 §7.3.4), a
//! new key for an account (§7.3.5); and the reading of an account (§7.3.3), which it does not have. Here the key comes from the
//! caller, who has stored it before the CA ever sees it.

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request};
use instant_acme::{BodyWrapper, HttpClient as _};
use serde::Deserialize;
use serde_json::{Value, json};

use super::authority::{AccountRef, AccountStatus, AccountUrl, Binding};
use super::error::{AcmeError, Call};
use super::exchange::{Note, recorded};
use super::http::AcmeHttp;
use super::nonces::REPLAY_NONCE;
use super::problem::ProblemDoc;
use crate::model::secret::Secret;

/// How often a refused nonce is followed by another try.
const NONCES: usize = 4;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoints {
    new_nonce: String,
    new_account: String,
    key_change: Option<String>,
    #[serde(default)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    terms_of_service: Option<String>,
}

/// The CA said no.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unwanted(String);

/// Who signs, and as whom the CA knows the signer.
enum As<'a> {
    Key,
    Account(&'a AccountUrl),
}

/// A P-256 key that signs (ES256, RFC 7518 §3.4).
struct Signer(EcdsaKeyPair);

impl Signer {
    fn new(call: Call, key: &Secret) -> Result<Self, AcmeError> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.expose());
        pair.map(Signer).map_err(|_| AcmeError::ours(call, "the account's key is no P-256 key in PKCS#8".to_owned()))
    }

    fn jwk(&self) -> Value {
        // An uncompressed point: one byte that says so, then both coordinates.
        let point = self.0.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at(point.len().saturating_sub(1) / 2);
        json!({ "crv": "P-256", "kty": "EC", "x": BASE64_URL_SAFE_NO_PAD.encode(x), "y": BASE64_URL_SAFE_NO_PAD.encode(y) })
    }

    fn jws(&self, call: Call, header: &Value, payload: &str) -> Result<Value, AcmeError> {
        let signed = |input: &[u8]| self.0.sign(&SystemRandom::new(), input).map(|s| s.as_ref().to_vec());
        jws(header, payload, signed).map_err(|_| AcmeError::ours(call, "the account's key does not sign".to_owned()))
    }
}

/// A flattened JWS (RFC 7515 §7.2.2).
fn jws<E>(header: &Value, payload: &str, sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, E>) -> Result<Value, E> {
    let (protected, payload) = (BASE64_URL_SAFE_NO_PAD.encode(header.to_string()), BASE64_URL_SAFE_NO_PAD.encode(payload));
    let signature = sign(format!("{protected}.{payload}").as_bytes())?;
    Ok(json!({ "protected": protected, "payload": payload, "signature": BASE64_URL_SAFE_NO_PAD.encode(signature) }))
}

/// The CA as these requests see it.
pub(super) struct Signed<'a> {
    http: &'a AcmeHttp,
    directory_url: &'a str,
    call: Call,
    note: Note,
}

impl<'a> Signed<'a> {
    pub(super) fn new(http: &'a AcmeHttp, directory_url: &'a str, call: Call) -> Self {
        Signed { http, directory_url, call, note: Note::default() }
    }

    /// Makes, or finds, the account of a key, bound to an account that the CA keeps elsewhere.
    pub(super) async fn register(
        &self,
        key: &Secret,
        contacts: &[String],
        binding: &Binding,
    ) -> Result<AccountUrl, AcmeError> {
        let at = self.endpoints().await?;
        let signer = Signer::new(self.call, key)?;
        let mac = hmac::Key::new(hmac::HMAC_SHA256, binding.hmac.expose());
        let header = json!({ "alg": "HS256", "kid": binding.key_id, "url": at.new_account });
        let bound = jws(&header, &signer.jwk().to_string(), |input| {
            Ok::<_, std::convert::Infallible>(hmac::sign(&mac, input).as_ref().to_vec())
        });
        let bound = bound.unwrap_or_else(|never| match never {});
        let mut account = json!({ "externalAccountBinding": bound, "contact": contacts });
        if at.meta.terms_of_service.is_some() {
            account["termsOfServiceAgreed"] = json!(true);
        }
        self.post(&at, &signer, &As::Key, &at.new_account, &account.to_string()).await?;
        let location = self.note.latest().and_then(|seen| seen.location);
        location.map(AccountUrl).ok_or_else(|| self.unwanted("the CA named no account in its answer"))
    }

    /// The account of a key from now on has the other key.
    pub(super) async fn change_key(&self, account: &AccountRef, new_key: &Secret) -> Result<(), AcmeError> {
        let at = self.endpoints().await?;
        let Some(url) = &at.key_change else {
            return Err(AcmeError::ours(
                self.call,
                "the CA's directory has no keyChange: it does not take new keys".to_owned(),
            ));
        };
        let (old, new) = (Signer::new(self.call, &account.key)?, Signer::new(self.call, new_key)?);
        let header = json!({ "alg": "ES256", "jwk": new.jwk(), "url": url });
        let change = json!({ "account": account.url.0, "oldKey": old.jwk() });
        let inner = new.jws(self.call, &header, &change.to_string())?;
        self.post(&at, &old, &As::Account(&account.url), url, &inner.to_string()).await
    }

    /// How the account stands at the CA.
    pub(super) async fn account(&self, account: &AccountRef) -> Result<AccountStatus, AcmeError> {
        let at = self.endpoints().await?;
        let signer = Signer::new(self.call, &account.key)?;
        // POST-as-GET (RFC 8555 §6.3): no payload at all.
        self.post(&at, &signer, &As::Account(&account.url), &account.url.0, "").await?;
        #[derive(Deserialize)]
        struct Account {
            status: AccountStatus,
        }
        let read: Account =
            serde_json::from_slice(&self.note.body()).map_err(|e| AcmeError::judge(self.call, &self.note, &e))?;
        Ok(read.status)
    }

    async fn endpoints(&self) -> Result<Endpoints, AcmeError> {
        let request = Request::get(self.directory_url)
            .body(BodyWrapper::default())
            .map_err(|e| AcmeError::ours(self.call, format!("the ACME directory's URL is unusable: {e}")))?;
        recorded(&self.note, self.http.request(request)).await.map_err(|e| AcmeError::judge(self.call, &self.note, &e))?;
        serde_json::from_slice(&self.note.body()).map_err(|e| AcmeError::judge(self.call, &self.note, &e))
    }

    /// Posts until the CA takes one of our nonces, and fails unless it says yes.
    async fn post(&self, at: &Endpoints, signer: &Signer, who: &As<'_>, url: &str, payload: &str) -> Result<(), AcmeError> {
        let mut nonce = self.nonce(&at.new_nonce).await?;
        for _ in 0..NONCES {
            let mut header = json!({ "alg": "ES256", "nonce": nonce, "url": url });
            match who {
                As::Key => header["jwk"] = signer.jwk(),
                As::Account(account) => header["kid"] = json!(account.0),
            }
            let body = signer.jws(self.call, &header, payload)?.to_string();
            let request = Request::post(url)
                .header(CONTENT_TYPE, HeaderValue::from_static("application/jose+json"))
                .body(BodyWrapper::from(body.into_bytes()))
                .map_err(|e| AcmeError::ours(self.call, format!("{url:?} is no URL to post to: {e}")))?;
            let sent = recorded(&self.note, self.http.request(request)).await;
            sent.map_err(|e| AcmeError::judge(self.call, &self.note, &e))?;
            let Some(seen) = self.note.latest() else { break };
            if seen.succeeded() {
                return Ok(());
            }
            let refused = ProblemDoc::from_body(&seen.body).is_some_and(|p| p.acme_type() == "badNonce");
            if !refused {
                break;
            }
            nonce = self.nonce(&at.new_nonce).await?;
        }
        Err(self.unwanted("the CA did not say yes"))
    }

    async fn nonce(&self, url: &str) -> Result<String, AcmeError> {
        let request = Request::builder()
            .method(Method::HEAD)
            .uri(url)
            .body(BodyWrapper::default())
            .map_err(|e| AcmeError::ours(self.call, format!("the URL for nonces is unusable: {e}")))?;
        let got = recorded(&self.note, self.http.request(request)).await;
        let response = got.map_err(|e| AcmeError::judge(self.call, &self.note, &e))?;
        let nonce = response.parts.headers.get(REPLAY_NONCE).and_then(|v| v.to_str().ok()).map(str::to_owned);
        nonce.ok_or_else(|| self.unwanted("the CA gave no nonce"))
    }

    fn unwanted(&self, what: &str) -> AcmeError {
        AcmeError::judge(self.call, &self.note, &Unwanted(what.to_owned()))
    }
}
