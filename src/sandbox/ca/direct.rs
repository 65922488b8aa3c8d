//! The CA without sockets: its state behind the [`Authority`] role, for worlds whose time is driven by hand.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::acme::{
    AccountRef, AccountStatus, AccountUrl, AcmeError, Authority, Authorization, AuthorizationStatus, Binding, Call,
    Challenge, ChallengeStatus, DirectoryFacts, Kind, OrderStatus, OrderView, PlacedOrder,
};
use crate::env::Env;
use crate::model::hostname::Hostname;
use crate::model::limits::Counted;
use crate::model::moment::Moment;
use crate::model::renewal::{Advice, Window};
use crate::model::secret::Secret;
use crate::sandbox::ca::{
    self, AccountNo, AuthorityError, AuthorizationNo, CaState, Jwk, OrderNo, Problem, Settings, Wishes,
};
use async_trait::async_trait;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};

/// What the CA sees when it fetches a token by the public name.
pub type Fetch = Arc<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

/// The CA: no deduplication of orders, every call acted on at once.
pub struct DirectCa {
    state: Mutex<CaState>,
    env: Env,
    fetch: Mutex<Option<Fetch>>,
    counted: Mutex<Vec<(Counted, Hostname, Moment)>>,
    failing: Mutex<usize>,
    refusals: Mutex<VecDeque<AcmeError>>,
    asked: Mutex<usize>,
    keys: Mutex<HashMap<AccountUrl, String>>,
    silent_key_change: Mutex<bool>,
    no_key_change: Mutex<bool>,
    windows: Mutex<Windows>,
    polls: Mutex<Vec<(String, Moment)>>,
    forgets: Mutex<bool>,
}

/// What the CA says of when certificates are to be renewed.
#[derive(Clone, Debug, Default)]
pub enum Windows {
    /// What it thinks.
    #[default]
    Usual,
    /// Its directory has no such resource.
    None,
    /// This, of every certificate.
    Same(Advice),
    /// It fails.
    Fail(Box<AcmeError>),
}

/// How long it asks not to be asked again.
const ASK_AGAIN: Duration = Duration::from_secs(6 * 3600);

impl DirectCa {
    /// A CA whose clock is `env`'s.
    pub fn new(env: &Env) -> Result<Arc<Self>, AuthorityError> {
        DirectCa::called(env, "ca.test")
    }

    /// A CA that calls itself so in CAA records.
    pub fn called(env: &Env, identity: &str) -> Result<Arc<Self>, AuthorityError> {
        let settings = Settings { caa_identities: vec![identity.to_owned()], ..Settings::default() };
        let state = CaState::new(settings, env.draw())?;
        Ok(Arc::new(DirectCa {
            state: Mutex::new(state),
            env: env.clone(),
            fetch: Mutex::new(None),
            counted: Mutex::default(),
            failing: Mutex::default(),
            refusals: Mutex::default(),
            asked: Mutex::default(),
            keys: Mutex::default(),
            silent_key_change: Mutex::default(),
            no_key_change: Mutex::default(),
            windows: Mutex::default(),
            polls: Mutex::default(),
            forgets: Mutex::default(),
        }))
    }

    /// How tokens are fetched.
    pub fn fetch_by(&self, fetch: Fetch) {
        *self.fetch.lock().unwrap_or_else(PoisonError::into_inner) = Some(fetch);
    }

    /// The next newOrders end like this instead.
    pub fn refuse(&self, errors: impl IntoIterator<Item = AcmeError>) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).extend(errors);
    }

    /// Whatever newOrders were still to be refused is forgotten.
    pub fn refuse_nothing(&self) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The next change of a key is done and its answer lost.
    pub fn lose_key_change(&self) {
        *self.silent_key_change.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// The next change of a key is refused.
    pub fn refuse_key_change(&self) {
        *self.no_key_change.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// What it says from now on of when certificates are to be renewed.
    pub fn windows(&self, windows: Windows) {
        *self.windows.lock().unwrap_or_else(PoisonError::into_inner) = windows;
    }

    /// When it was asked for the window of which certificate.
    pub fn polls(&self) -> Vec<(String, Moment)> {
        self.polls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether from now on it makes orders that name what they replace, and overlooks that.
    pub fn overlook_replaces(&self, yes: bool) {
        *self.forgets.lock().unwrap_or_else(PoisonError::into_inner) = yes;
    }

    /// How many newOrders came, refused or not.
    pub fn asked(&self) -> usize {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When each newOrder was counted.
    pub fn ordered_at(&self) -> Vec<Moment> {
        self.counted().into_iter().filter(|(what, ..)| *what == Counted::Order).map(|(.., at)| at).collect()
    }

    /// All that was counted, in the order of counting.
    pub fn counted(&self) -> Vec<(Counted, Hostname, Moment)> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next so many validations fail.
    pub fn fail_validations(&self, times: usize) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = times;
    }

    fn count(&self, what: Counted, name: &str, at: Moment) {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).push((what, Hostname::trusted(name), at));
    }

    /// What the CA remembers.
    pub fn state(&self) -> MutexGuard<'_, CaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(call: Call, p: &Problem) -> AcmeError {
        AcmeError {
            call,
            kind: Kind::Refused,
            problem: crate::acme::ProblemDoc::new(p.json()),
            status: Some(400),
            retry_after: None,
            acted_on: false,
            cause: None,
        }
    }

    fn view(v: ca::OrderView) -> OrderView {
        OrderView {
            status: match v.status {
                ca::OrderStatus::Pending => OrderStatus::Pending,
                ca::OrderStatus::Ready => OrderStatus::Ready,
                ca::OrderStatus::Processing => OrderStatus::Processing,
                ca::OrderStatus::Valid => OrderStatus::Valid,
                ca::OrderStatus::Invalid => OrderStatus::Invalid,
            },
            authorizations: v.authorizations.iter().map(ToString::to_string).collect(),
            finalize: v.no.to_string(),
            certificate: None,
            problem: None,
            expires: Some(v.expires),
            retry_after: v.ready_in,
        }
    }
}

fn account(a: &AccountRef) -> AccountNo {
    AccountNo::from(a.url.0.as_str())
}

/// The thumbprint of an account's key (RFC 7638); what is no P-256 key is refused as a real CA refuses a signature by it.
fn thumbprint(call: Call, key: &Secret) -> Result<String, AcmeError> {
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.expose()).ok();
    let jwk = pair.and_then(|pair| Jwk::from_point(pair.public_key().as_ref()));
    let refused = || DirectCa::refused(call, &Problem::new(ca::Kind::BadPublicKey, "the account's key is no P-256 key"));
    jwk.map(|jwk| jwk.thumbprint()).ok_or_else(refused)
}

#[async_trait]
impl Authority for DirectCa {
    async fn directory(&self) -> Result<DirectoryFacts, AcmeError> {
        let caa_identities = self.state().settings().caa_identities.clone();
        Ok(DirectoryFacts { caa_identities, ..DirectoryFacts::default() })
    }

    async fn register(&self, key: &Secret, _contacts: &[String]) -> Result<AccountUrl, AcmeError> {
        let (no, _) = self.state().new_account(&thumbprint(Call::NewAccount, key)?);
        Ok(AccountUrl(no.to_string()))
    }

    async fn register_bound(&self, key: &Secret, contacts: &[String], _: &Binding) -> Result<AccountUrl, AcmeError> {
        self.register(key, contacts).await
    }

    async fn account(&self, a: &AccountRef) -> Result<AccountStatus, AcmeError> {
        let asked_by = thumbprint(Call::Account, &a.key)?;
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.get(&a.url).is_some_and(|known| *known != asked_by) {
            return Err(Self::refused(Call::Account, &Problem::new(ca::Kind::Unauthorized, "another key")));
        }
        Ok(AccountStatus::Valid)
    }

    async fn change_key(&self, a: &AccountRef, new_key: &Secret) -> Result<(), AcmeError> {
        self.account(a).await?;
        if std::mem::take(&mut *self.no_key_change.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Err(Self::refused(Call::KeyChange, &Problem::new(ca::Kind::Unauthorized, "no other keys")));
        }
        let new = thumbprint(Call::KeyChange, new_key)?;
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(a.url.clone(), new);
        if std::mem::take(&mut *self.silent_key_change.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Err(AcmeError {
                kind: Kind::Unanswered,
                acted_on: true,
                ..Self::refused(Call::KeyChange, &Problem::malformed("the answer is lost"))
            });
        }
        Ok(())
    }

    async fn new_order(&self, a: &AccountRef, names: &[Hostname], replaces: Option<&str>) -> Result<PlacedOrder, AcmeError> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        if let Some(error) = self.refusals.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
            return Err(error);
        }
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let now = self.env.now();
        let overlooks = *self.forgets.lock().unwrap_or_else(PoisonError::into_inner);
        let replaces = replaces.filter(|_| !overlooks).map(str::to_owned);
        let wishes = Wishes { replaces: replaces.clone(), ..Wishes::default() };
        let placed = self.state().new_order_with(&account(a), &names, wishes, now);
        let view = placed.map_err(|p| Self::refused(Call::NewOrder, &p))?;
        if replaces.is_none() {
            names.iter().for_each(|name| self.count(Counted::Order, name, now));
        }
        Ok(PlacedOrder { url: view.no.to_string(), replaces: replaces.is_some(), order: Some(Self::view(view)) })
    }

    async fn order(&self, a: &AccountRef, url: &str) -> Result<OrderView, AcmeError> {
        let now = self.env.now();
        let got = self.state().order(&account(a), &OrderNo::from(url), now);
        got.map(Self::view).map_err(|p| Self::refused(Call::Order, &p))
    }

    async fn authorizations(&self, a: &AccountRef, url: &str) -> Result<Vec<Authorization>, AcmeError> {
        let now = self.env.now();
        let state = self.state();
        let refused = |p: Problem| Self::refused(Call::Authorization, &p);
        let order = state.order(&account(a), &OrderNo::from(url), now).map_err(refused)?;
        let gone = || refused(Problem::not_found("authorization", &order.no));
        let no = order.authorizations.first().cloned().ok_or_else(gone)?;
        let v = state.authorization(&account(a), &no, now).map_err(refused)?;
        let thumb = thumbprint(Call::Authorization, &a.key)?;
        Ok(vec![Authorization {
            name: Hostname::trusted(&v.name),
            status: match v.status {
                ca::AuthorizationStatus::Pending => AuthorizationStatus::Pending,
                ca::AuthorizationStatus::Valid => AuthorizationStatus::Valid,
                ca::AuthorizationStatus::Invalid => AuthorizationStatus::Invalid,
                ca::AuthorizationStatus::Deactivated => AuthorizationStatus::Deactivated,
                ca::AuthorizationStatus::Expired => AuthorizationStatus::Expired,
                ca::AuthorizationStatus::Revoked => AuthorizationStatus::Revoked,
            },
            http01: Some(Challenge {
                url: no.to_string(),
                key_authorization: format!("{}.{thumb}", v.token),
                token: v.token,
                status: ChallengeStatus::Pending,
                problem: None,
            }),
            problem: v.error.and_then(|p| crate::acme::ProblemDoc::new(p.json())),
            expires: Some(v.expires),
            retry_after: None,
        }])
    }

    async fn announce(&self, a: &AccountRef, _order: &str, challenge: &str) -> Result<(), AcmeError> {
        let now = self.env.now();
        let no = AuthorizationNo::from(challenge);
        let asked = self.state().respond(&account(a), &no, now).map_err(|p| Self::refused(Call::Challenge, &p))?;
        if let Some(look) = asked {
            let fetch = self.fetch.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
            let body = fetch.filter(|_| *failing == 0).and_then(|f| f(&look.host, &look.token));
            *failing = failing.saturating_sub(1);
            let outcome = match body {
                Some(body) => look.judge(body.as_bytes()),
                None => Err(Problem::new(ca::Kind::Connection, "nobody answered at the name")),
            };
            if outcome.is_err() {
                self.count(Counted::Failure, &look.host, now);
            }
            self.state().validated(&no, outcome, now);
        }
        Ok(())
    }

    async fn finalize(&self, a: &AccountRef, url: &str, csr: &[u8]) -> Result<OrderView, AcmeError> {
        let now = self.env.now();
        let no = OrderNo::from(url);
        let mut state = self.state();
        let present = state.order(&account(a), &no, now).map_err(|p| Self::refused(Call::Finalize, &p))?;
        if present.status != ca::OrderStatus::Ready {
            return Ok(Self::view(present));
        }
        let done = state.finalize(&account(a), &no, csr, now).map_err(|p| Self::refused(Call::Finalize, &p))?;
        if done.replaces.is_none() {
            done.names.iter().for_each(|name| self.count(Counted::Certificate, name, now));
        }
        Ok(Self::view(done))
    }

    async fn certificate(&self, a: &AccountRef, url: &str) -> Result<String, AcmeError> {
        let now = self.env.now();
        let state = self.state();
        state
            .certificate(&account(a), &OrderNo::from(url), now)
            .map(str::to_owned)
            .map_err(|p| Self::refused(Call::Certificate, &p))
    }

    async fn revoke(&self, a: &AccountRef, leaf_der: &[u8]) -> Result<(), AcmeError> {
        let revoked = self.state().revoke(&account(a), leaf_der, Some(5));
        revoked.or_else(|p| Self::refused(Call::Revocation, &p).unless_revoked())
    }

    async fn renewal_info(&self, certificate: &str) -> Result<Option<Advice>, AcmeError> {
        let now = self.env.now();
        self.polls.lock().unwrap_or_else(PoisonError::into_inner).push((certificate.to_owned(), now));
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match windows {
            Windows::None => Ok(None),
            Windows::Same(advice) => Ok(Some(advice)),
            Windows::Fail(error) => Err(*error),
            Windows::Usual => {
                let mut state = self.state();
                let window = state.renewal_window(certificate, now);
                let (start, end) = window.map_err(|p| Self::refused(Call::RenewalInfo, &p))?;
                let explanation = state.is_revoked(certificate).then(|| "https://ca.test/revoked".to_owned());
                Ok(Some(Advice { window: Window { start, end }, explanation, retry_after: Some(ASK_AGAIN) }))
            }
        }
    }
}
