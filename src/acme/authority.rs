//! The role of a CA in the application, and what it answers.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::error::AcmeError;
use super::problem::ProblemDoc;
use crate::model::hostname::Hostname;
use crate::model::moment::Moment;
use crate::model::renewal::Advice;
use crate::model::secret::Secret;

/// One CA at one directory. Each call has at most one effect and never polls.
#[async_trait]
pub trait Authority: Send + Sync {
    /// What the directory says of the CA.
    async fn directory(&self) -> Result<DirectoryFacts, AcmeError>;

    /// Makes the account of a key, or finds it: a known key answers with its account (RFC 8555 §7.3.1), so this is repeat-safe.
    /// The terms of service are agreed to.
    async fn register(&self, key_pkcs8: &Secret, contacts: &[String]) -> Result<AccountUrl, AcmeError>;

    /// The same, bound to an account that the CA keeps elsewhere (RFC 8555 §7.3.4).
    async fn register_bound(
        &self,
        key_pkcs8: &Secret,
        contacts: &[String],
        binding: &Binding,
    ) -> Result<AccountUrl, AcmeError>;

    /// How the account stands at the CA: whether it is there, knows its key, and may be used.
    async fn account(&self, account: &AccountRef) -> Result<AccountStatus, AcmeError>;

    /// Gives the account another key (RFC 8555 §7.3.5). Afterwards the CA knows the new one alone.
    async fn change_key(&self, account: &AccountRef, new_key_pkcs8: &Secret) -> Result<(), AcmeError>;

    /// Places an order. With `replaces`, the ARI id of the certificate it follows; a CA without ARI gets a plain order.
    async fn new_order(
        &self,
        account: &AccountRef,
        names: &[Hostname],
        replaces: Option<&str>,
    ) -> Result<PlacedOrder, AcmeError>;

    /// Reads an order.
    async fn order(&self, account: &AccountRef, order_url: &str) -> Result<OrderView, AcmeError>;

    /// Reads the authorizations of an order.
    async fn authorizations(&self, account: &AccountRef, order_url: &str) -> Result<Vec<Authorization>, AcmeError>;

    /// Tells the CA that the HTTP-01 challenge can be fetched. Does nothing when the CA has begun or finished with it.
    async fn announce(&self, account: &AccountRef, order_url: &str, challenge_url: &str) -> Result<(), AcmeError>;

    /// Hands in the CSR and answers with the order as it then is. Hands in nothing when the order is past that.
    async fn finalize(&self, account: &AccountRef, order_url: &str, csr_der: &[u8]) -> Result<OrderView, AcmeError>;

    /// Downloads the chain of a valid order, as PEM.
    async fn certificate(&self, account: &AccountRef, order_url: &str) -> Result<String, AcmeError>;

    /// Revokes a certificate that the account got, because what it was for has ended (RFC 8555 §7.6, RFC 5280 §5.3.1 reason 5). One
    /// that is revoked already is as good.
    async fn revoke(&self, account: &AccountRef, leaf_der: &[u8]) -> Result<(), AcmeError>;

    /// When the CA would like the certificate of this id to be renewed (ARI, RFC 9773 §4); nothing where its directory names no
    /// such resource. Asked without an account.
    async fn renewal_info(&self, certificate: &str) -> Result<Option<Advice>, AcmeError>;
}

/// What a directory says (RFC 8555 §7.1.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryFacts {
    /// The names the CA accepts in CAA records.
    pub caa_identities: Vec<String>,
    /// Where the terms of service are.
    pub terms_of_service: Option<String>,
    /// Whether an account needs an external account binding.
    pub external_account_required: bool,
    /// Certificate profiles and their descriptions.
    pub profiles: BTreeMap<String, String>,
    /// Whether the CA tells renewal windows (ARI, RFC 9773).
    pub renewal_info: bool,
}

/// The URL that names an account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccountUrl(pub String);

/// An account and the key that speaks for it.
#[derive(Clone, Debug)]
pub struct AccountRef {
    /// Its URL.
    pub url: AccountUrl,
    /// Its key, PKCS#8.
    pub key: Secret,
}

/// An account that the CA keeps elsewhere: a contract, a customer's number.
#[derive(Clone, Debug)]
pub struct Binding {
    /// What the CA calls it.
    pub key_id: String,
    /// The key that both know.
    pub hmac: Secret,
}

/// RFC 8555 §7.1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccountStatus {
    /// May be used.
    Valid,
    /// Its holder gave it up.
    Deactivated,
    /// The CA took it away.
    Revoked,
}

/// RFC 8555 §7.1.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderStatus {
    /// Authorizations are open.
    Pending,
    /// Waits for the CSR.
    Ready,
    /// The CA is issuing.
    Processing,
    /// The certificate is there.
    Valid,
    /// Dead.
    Invalid,
}

/// An order that the CA has surely made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedOrder {
    /// Its URL: to be stored before anything else.
    pub url: String,
    /// Whether the CA took it as the successor of the certificate it names.
    pub replaces: bool,
    /// The order; `None` when the CA made it but what it said of it was unreadable, so read it.
    pub order: Option<OrderView>,
}

/// An order as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderView {
    /// Its status.
    pub status: OrderStatus,
    /// URLs of its authorizations.
    pub authorizations: Vec<String>,
    /// Where the CSR goes.
    pub finalize: String,
    /// Where the certificate is, once valid.
    pub certificate: Option<String>,
    /// Why it is invalid.
    pub problem: Option<ProblemDoc>,
    /// When the CA drops it.
    pub expires: Option<Moment>,
    /// How long the CA asks to wait before the next look.
    pub retry_after: Option<Duration>,
}

/// RFC 8555 §7.1.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the RFC's")]
pub enum AuthorizationStatus {
    Pending,
    Valid,
    Invalid,
    Deactivated,
    Expired,
    Revoked,
}

/// RFC 8555 §7.1.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the RFC's")]
pub enum ChallengeStatus {
    Pending,
    Processing,
    Valid,
    Invalid,
}

/// What the CA wants proven for one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    /// The name.
    pub name: Hostname,
    /// Its status.
    pub status: AuthorizationStatus,
    /// The HTTP-01 challenge. A valid authorization lists only the challenge that was used, which may be another.
    pub http01: Option<Challenge>,
    /// What the CA found wrong, of whichever challenge failed.
    pub problem: Option<ProblemDoc>,
    /// When the CA drops it.
    pub expires: Option<Moment>,
    /// How long the CA asks to wait before the next look.
    pub retry_after: Option<Duration>,
}

/// An HTTP-01 challenge (RFC 8555 §8.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Its URL.
    pub url: String,
    /// The last part of the path `/.well-known/acme-challenge/<token>`; checked to be base64url.
    pub token: String,
    /// What is answered there.
    pub key_authorization: String,
    /// Its status.
    pub status: ChallengeStatus,
    /// What the CA found wrong.
    pub problem: Option<ProblemDoc>,
}
