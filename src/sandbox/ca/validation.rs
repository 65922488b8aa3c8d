//! What the CA sees when it looks at the world: the seam between the protocol and DNS or HTTP.

use async_trait::async_trait;

use super::numbers::{AccountNo, AuthorizationNo};
use super::problem::{Kind, Problem};

/// How the CA looks. The real one is [`OverHttp`](super::OverHttp); tests script their own.
#[async_trait]
pub trait Validation: Send + Sync + 'static {
    /// The body at `http://host/.well-known/acme-challenge/token`, or why there was none.
    async fn fetch_http01(&self, host: &str, token: &str) -> Result<Vec<u8>, Problem>;

    /// Whether CAA lets this CA certify `host` for the account at `account_uri` by http-01 (RFC 8659, RFC 8657).
    async fn caa_permits(&self, host: &str, account_uri: &str) -> Result<(), Problem>;
}

/// A challenge the CA is to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToValidate {
    /// Its authorization.
    pub authorization: AuthorizationNo,
    /// The account that answers.
    pub account: AccountNo,
    /// The name to prove.
    pub host: String,
    /// The token to ask for.
    pub token: String,
    /// What must come back: token and the thumbprint of the account's key (RFC 8555 §8.1).
    pub key_authorization: String,
}

impl ToValidate {
    /// Judges what came back. White space at the end is forgiven (§8.3).
    pub fn judge(&self, body: &[u8]) -> Result<(), Problem> {
        if body.trim_ascii_end() == self.key_authorization.as_bytes() {
            return Ok(());
        }
        let seen: String = String::from_utf8_lossy(body).chars().take(80).collect();
        let detail = format!("{} answered {seen:?}, expected {:?}", self.host, self.key_authorization);
        Err(Problem::new(Kind::IncorrectResponse, detail))
    }

    /// Looks: the token first, then CAA.
    pub async fn look(&self, through: &dyn Validation, account_uri: &str) -> Result<(), Problem> {
        let body = through.fetch_http01(&self.host, &self.token).await?;
        self.judge(&body)?;
        through.caa_permits(&self.host, account_uri).await
    }
}
