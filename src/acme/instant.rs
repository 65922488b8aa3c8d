//! [`Authority`] by `instant-acme`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::{Request, StatusCode};
use hyper::body::Bytes;
use instant_acme::{
    Account, AuthorizationHandle, BodyWrapper, CertificateIdentifier, ChallengeType, HttpClient, Identifier, Key, NewOrder,
    Order, RevocationReason, RevocationRequest,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, Error as ValueError};

use super::authority::{
    AccountRef, AccountStatus, AccountUrl, Authority, Authorization, Binding, DirectoryFacts, OrderStatus, OrderView,
    PlacedOrder,
};
use super::documents;
use super::error::{AcmeError, Call};
use super::exchange::{Note, recorded};
use super::http::{AcmeHttp, HttpSettings, may_go_to};
use super::signed::Signed;
use crate::env::Env;
use crate::model::hostname::Hostname;
use crate::model::moment::Moment;
use crate::model::renewal::Advice;
use crate::model::secret::Secret;

/// How long a loaded account, and with it the CA's directory, is used before it is loaded anew.
const ACCOUNT_LASTS: Duration = Duration::from_secs(6 * 3600);

/// A CA reached through `instant-acme`.
pub struct InstantAcme {
    directory_url: String,
    profile: Option<String>,
    http: AcmeHttp,
    env: Env,
    /// Loaded accounts: each load fetches the directory.
    accounts: Mutex<HashMap<AccountUrl, Loaded>>,
    /// Where renewal windows are, if anywhere, and when the directory said so.
    windows: Mutex<Option<(Moment, Option<String>)>>,
}

struct Loaded {
    account: Account,
    key: Secret,
    at: Moment,
}

impl InstantAcme {
    /// The CA whose directory is at this URL: `https`, or `http` on loopback.
    pub fn new(directory_url: &str, settings: &HttpSettings, env: &Env) -> Result<Self, AcmeError> {
        if !directory_url.parse().is_ok_and(|uri| may_go_to(&uri)) {
            let what = format!(
                "the ACME directory {directory_url:?} is no URL to use; expected https://..., or http:// on loopback"
            );
            return Err(AcmeError::ours(Call::Directory, what));
        }
        let http = AcmeHttp::new(settings, env)?;
        let directory_url = directory_url.to_owned();
        Ok(InstantAcme {
            directory_url,
            profile: None,
            http,
            env: env.clone(),
            accounts: Mutex::default(),
            windows: Mutex::default(),
        })
    }

    /// The same CA, asked for certificates of this profile, one of those that its directory names.
    #[must_use]
    pub fn with_profile(self, profile: Option<String>) -> Self {
        InstantAcme { profile, ..self }
    }

    fn remember(&self, url: &AccountUrl, account: &Account, key: &Secret) {
        let loaded = Loaded { account: account.clone(), key: key.clone(), at: self.env.now() };
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).insert(url.clone(), loaded);
    }

    /// The directory is read anew the next time: what it named was not there.
    fn forget(&self, url: &AccountUrl) {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner).remove(url);
    }

    async fn account(&self, call: Call, reference: &AccountRef) -> Result<Account, AcmeError> {
        let fresh = |l: &Loaded| l.key == reference.key && self.env.now().since(l.at) < ACCOUNT_LASTS;
        let known = self
            .accounts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&reference.url)
            .filter(|l| fresh(l))
            .map(|l| l.account.clone());
        if let Some(account) = known {
            return Ok(account);
        }
        let note = Note::default();
        let loading = Account::builder_with_http(Box::new(self.http.clone())).from_parts(
            reference.url.0.clone(),
            PrivatePkcs8KeyDer::from(reference.key.expose()),
            self.directory_url.clone(),
        );
        let account = recorded(&note, loading).await.map_err(|e| AcmeError::judge(call, &note, &e))?;
        self.remember(&reference.url, &account, &reference.key);
        Ok(account)
    }

    /// Where renewal windows are, by the directory, which is asked once in a while.
    async fn windows(&self) -> Result<Option<String>, AcmeError> {
        let call = Call::RenewalInfo;
        let known = self.windows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, url)) = known.filter(|(at, _)| self.env.now().since(*at) < ACCOUNT_LASTS) {
            return Ok(url);
        }
        let note = Note::default();
        let url = documents::renewal_url(&self.get(call, &note, &self.directory_url).await?)
            .map_err(|e| AcmeError::judge(call, &note, &e))?;
        *self.windows.lock().unwrap_or_else(PoisonError::into_inner) = Some((self.env.now(), url.clone()));
        Ok(url)
    }

    /// The body of what is at a URL.
    async fn get(&self, call: Call, note: &Note, url: &str) -> Result<Bytes, AcmeError> {
        let request = Request::get(url)
            .body(BodyWrapper::default())
            .map_err(|e| AcmeError::ours(call, format!("the URL {url:?} is unusable: {e}")))?;
        recorded(note, self.http.request(request)).await.map_err(|e| AcmeError::judge(call, note, &e))?;
        match note.latest().is_some_and(|seen| seen.succeeded()) {
            true => Ok(note.body()),
            false => Err(AcmeError::judge(call, note, &NotGiven)),
        }
    }

    /// The order as it is now, as the library holds it and as we read it.
    async fn read(&self, call: Call, note: &Note, account: &Account, url: &str) -> Result<(Order, OrderView), AcmeError> {
        let order = recorded(note, account.order(url.to_owned())).await.map_err(|e| AcmeError::judge(call, note, &e))?;
        let view = view_of(call, note)?;
        Ok((order, view))
    }
}

fn view_of(call: Call, note: &Note) -> Result<OrderView, AcmeError> {
    match documents::order(&note.body(), note.retry_after()) {
        Ok((view, _)) => Ok(view),
        Err(e) => Err(AcmeError::judge(call, note, &e)),
    }
}

/// What the CA answered to `newOrder`, whatever the library thought of it: an order that was made must not be lost.
fn placed(note: &Note, replaces: Option<&str>) -> Option<PlacedOrder> {
    let seen = note.latest()?;
    let made = seen.method == http::Method::POST && matches!(seen.status, Some(StatusCode::CREATED | StatusCode::OK));
    let url = seen.location.filter(|_| made)?;
    let read = documents::order(&seen.body, seen.retry_after).ok();
    let replaced = read.as_ref().is_some_and(|(_, echo)| replaces.is_some() && echo.as_deref() == replaces);
    Some(PlacedOrder { url, replaces: replaced, order: read.map(|(view, _)| view) })
}

#[async_trait]
impl Authority for InstantAcme {
    async fn directory(&self) -> Result<DirectoryFacts, AcmeError> {
        let note = Note::default();
        let request = Request::get(&self.directory_url)
            .body(BodyWrapper::default())
            .map_err(|e| AcmeError::ours(Call::Directory, format!("the ACME directory's URL is unusable: {e}")))?;
        recorded(&note, self.http.request(request)).await.map_err(|e| AcmeError::judge(Call::Directory, &note, &e))?;
        documents::directory(&note.body()).map_err(|e| AcmeError::judge(Call::Directory, &note, &e))
    }

    async fn register(&self, key_pkcs8: &Secret, contacts: &[String]) -> Result<AccountUrl, AcmeError> {
        let note = Note::default();
        let failed = |e: instant_acme::Error| AcmeError::judge(Call::NewAccount, &note, &e);
        let der = PrivatePkcs8KeyDer::from(key_pkcs8.expose().to_vec());
        let key = Key::from_pkcs8_der(der.clone_key()).map_err(failed)?;
        let making = Account::builder_with_http(Box::new(self.http.clone()))
            .create_from_key((key, PrivateKeyDer::Pkcs8(der)), self.directory_url.clone());
        let (account, _) = recorded(&note, making).await.map_err(failed)?;
        if !contacts.is_empty() {
            // The library makes an account from a known key without contacts only; setting them is repeat-safe.
            let contacts: Vec<String> = contacts.iter().map(|c| contact(c)).collect();
            let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
            recorded(&note, account.update_contacts(&contacts)).await.map_err(failed)?;
        }
        let url = AccountUrl(account.id().to_owned());
        self.remember(&url, &account, key_pkcs8);
        Ok(url)
    }

    async fn register_bound(
        &self,
        key_pkcs8: &Secret,
        contacts: &[String],
        binding: &Binding,
    ) -> Result<AccountUrl, AcmeError> {
        let contacts: Vec<String> = contacts.iter().map(|c| contact(c)).collect();
        Signed::new(&self.http, &self.directory_url, Call::NewAccount).register(key_pkcs8, &contacts, binding).await
    }

    async fn account(&self, account: &AccountRef) -> Result<AccountStatus, AcmeError> {
        Signed::new(&self.http, &self.directory_url, Call::Account).account(account).await
    }

    async fn change_key(&self, account: &AccountRef, new_key_pkcs8: &Secret) -> Result<(), AcmeError> {
        Signed::new(&self.http, &self.directory_url, Call::KeyChange).change_key(account, new_key_pkcs8).await
    }

    async fn new_order(
        &self,
        account: &AccountRef,
        names: &[Hostname],
        replaces: Option<&str>,
    ) -> Result<PlacedOrder, AcmeError> {
        let url = &account.url;
        let account = self.account(Call::NewOrder, account).await?;
        let identifiers: Vec<Identifier> = names.iter().map(|n| Identifier::Dns(n.as_str().to_owned())).collect();
        let plain = || match &self.profile {
            Some(profile) => NewOrder::new(&identifiers).profile(profile),
            None => NewOrder::new(&identifiers),
        };
        let order = match replaces {
            None => plain(),
            Some(id) => {
                let id = CertificateIdentifier::deserialize(BorrowedStrDeserializer::<ValueError>::new(id))
                    .map_err(|e| AcmeError::ours(Call::NewOrder, format!("{id:?} is no ARI id: {e}")))?;
                plain().replaces(id)
            }
        };
        let note = Note::default();
        let mut outcome = recorded(&note, account.new_order(&order)).await;
        if replaces.is_some() && matches!(outcome, Err(instant_acme::Error::Unsupported(_))) {
            // The CA's directory has no ARI, which the library sees before it sends anything.
            outcome = recorded(&note, account.new_order(&plain())).await;
        }
        let failed = match (placed(&note, replaces), outcome) {
            (Some(placed), _) => return Ok(placed),
            (None, Err(e)) => AcmeError::judge(Call::NewOrder, &note, &e),
            (None, Ok(_)) => AcmeError::judge(Call::NewOrder, &note, &NoOrderUrl),
        };
        if failed.leads_nowhere() {
            self.forget(url);
        }
        Err(failed)
    }

    async fn order(&self, account: &AccountRef, order_url: &str) -> Result<OrderView, AcmeError> {
        let account = self.account(Call::Order, account).await?;
        let (_, view) = self.read(Call::Order, &Note::default(), &account, order_url).await?;
        Ok(view)
    }

    async fn authorizations(&self, account: &AccountRef, order_url: &str) -> Result<Vec<Authorization>, AcmeError> {
        let call = Call::Authorization;
        let account = self.account(call, account).await?;
        let note = Note::default();
        let (mut order, _) = self.read(call, &note, &account, order_url).await?;
        let mut stream = order.authorizations();
        let mut read = Vec::new();
        while let Some(authorization) = recorded(&note, stream.next()).await {
            authorization.map_err(|e| AcmeError::judge(call, &note, &e))?;
            let document = documents::authorization(&note.body(), account.key_thumbprint(), note.retry_after());
            read.push(document.map_err(|e| AcmeError::judge(call, &note, &e))?);
        }
        Ok(read)
    }

    async fn announce(&self, account: &AccountRef, order_url: &str, challenge_url: &str) -> Result<(), AcmeError> {
        let call = Call::Challenge;
        let account = self.account(call, account).await?;
        let note = Note::default();
        let (mut order, view) = self.read(call, &note, &account, order_url).await?;
        if view.status != OrderStatus::Pending {
            return Ok(());
        }
        let mut stream = order.authorizations();
        while let Some(authorization) = recorded(&note, stream.next()).await {
            let mut authorization = authorization.map_err(|e| AcmeError::judge(call, &note, &e))?;
            if has_pending(&authorization, challenge_url) {
                return tell(&note, &mut authorization).await;
            }
            if authorization.challenges.iter().any(|c| c.url == challenge_url) {
                return Ok(());
            }
        }
        Err(no_such_challenge(challenge_url))
    }

    async fn finalize(&self, account: &AccountRef, order_url: &str, csr_der: &[u8]) -> Result<OrderView, AcmeError> {
        let call = Call::Finalize;
        let account = self.account(call, account).await?;
        let note = Note::default();
        // What goes wrong while the order is read is no word about the CSR.
        let (mut order, view) = self.read(Call::Order, &note, &account, order_url).await?;
        match view.status {
            OrderStatus::Ready => {}
            OrderStatus::Processing | OrderStatus::Valid => return Ok(view),
            status => return Err(AcmeError::not_there(call, status, view.problem, view.retry_after)),
        }
        recorded(&note, order.finalize_csr(csr_der)).await.map_err(|e| AcmeError::judge(call, &note, &e))?;
        view_of(call, &note)
    }

    async fn certificate(&self, account: &AccountRef, order_url: &str) -> Result<String, AcmeError> {
        let call = Call::Certificate;
        let account = self.account(call, account).await?;
        let note = Note::default();
        let (mut order, view) = self.read(call, &note, &account, order_url).await?;
        if view.status != OrderStatus::Valid {
            return Err(AcmeError::not_there(call, view.status, view.problem, view.retry_after));
        }
        match recorded(&note, order.certificate()).await {
            Ok(Some(pem)) => Ok(pem),
            Ok(None) => Err(AcmeError::not_there(call, OrderStatus::Processing, None, note.retry_after())),
            Err(e) => Err(AcmeError::judge(call, &note, &e)),
        }
    }

    async fn revoke(&self, account: &AccountRef, leaf_der: &[u8]) -> Result<(), AcmeError> {
        let call = Call::Revocation;
        let account = self.account(call, account).await?;
        let certificate = CertificateDer::from(leaf_der);
        let reason = Some(RevocationReason::CessationOfOperation);
        let note = Note::default();
        match recorded(&note, account.revoke(&RevocationRequest { certificate: &certificate, reason })).await {
            Ok(()) => Ok(()),
            Err(e) => AcmeError::judge(call, &note, &e).unless_revoked(),
        }
    }

    async fn renewal_info(&self, certificate: &str) -> Result<Option<Advice>, AcmeError> {
        let call = Call::RenewalInfo;
        let Some(windows) = self.windows().await? else { return Ok(None) };
        let note = Note::default();
        let read = self.get(call, &note, &format!("{}/{certificate}", windows.trim_end_matches('/'))).await;
        // That it does not know one certificate says nothing of where it knows the others.
        if read.as_ref().is_err_and(|e| e.leads_nowhere() && e.status != Some(404)) {
            *self.windows.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let advice = documents::renewal(&read?, note.retry_after());
        advice.map(Some).map_err(|e| AcmeError::judge(call, &note, &e))
    }
}

/// A contact as CAs want it: a URL (RFC 8555 §7.1.2), where people write an address.
fn contact(address: &str) -> String {
    if address.starts_with("mailto:") { address.to_owned() } else { format!("mailto:{address}") }
}

fn has_pending(authorization: &AuthorizationHandle<'_>, challenge_url: &str) -> bool {
    use instant_acme::{AuthorizationStatus, ChallengeStatus};
    authorization.status == AuthorizationStatus::Pending
        && authorization
            .challenges
            .iter()
            .any(|c| c.url == challenge_url && c.r#type == ChallengeType::Http01 && c.status == ChallengeStatus::Pending)
}

async fn tell<'a>(note: &Note, authorization: &'a mut AuthorizationHandle<'a>) -> Result<(), AcmeError> {
    let url = authorization.url().to_owned();
    let Some(mut challenge) = authorization.challenge(ChallengeType::Http01) else {
        return Err(no_such_challenge(&url));
    };
    match recorded(note, challenge.set_ready()).await {
        Ok(()) => Ok(()),
        // The CA took it; that it has failed already is for the next read of the authorization to tell, whole.
        Err(_) if note.latest().is_some_and(|seen| seen.succeeded()) => Ok(()),
        Err(e) => Err(AcmeError::judge(Call::Challenge, note, &e)),
    }
}

fn no_such_challenge(url: &str) -> AcmeError {
    AcmeError::ours(Call::Challenge, format!("the order has no HTTP-01 challenge at {url:?}"))
}

#[derive(Debug, thiserror::Error)]
#[error("the CA did not give what was asked for")]
struct NotGiven;

#[derive(Debug, thiserror::Error)]
#[error("the CA said yes without the order's URL")]
struct NoOrderUrl;

#[cfg(test)]
mod tests;
