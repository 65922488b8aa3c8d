//! A CA that counts as Let's Encrypt does, and whose answers come late and out of order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use super::engine::Gate;
use crate::acme::{
    AccountRef, AccountStatus, AccountUrl, AcmeError, Authority, Authorization, Binding, Call, DirectoryFacts, Kind,
    OrderView, PlacedOrder, ProblemDoc,
};
use crate::env::Clock as _;
use crate::env::manual::Hand;
use crate::model::hostname::Hostname;
use crate::model::ledger::{Bucket, Limit, settle};
use crate::model::moment::Moment;
use crate::model::renewal::Advice;
use crate::model::secret::Secret;
use crate::sandbox::ca::DirectCa;

/// What the CA allows.
#[derive(Clone, Copy, Debug)]
pub struct CaLimits {
    /// New orders of an account.
    pub orders: Limit,
    /// Certificates under one registered domain.
    pub registered_domain: Limit,
    /// Certificates for one set of names.
    pub exact_set: Limit,
}

/// How near a limit was come to.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Used {
    /// The limit.
    pub limit: &'static str,
    /// The fullest that any of its buckets was, of 100.
    pub fullest_pct: f64,
}

#[derive(Default)]
struct Counted {
    tats: HashMap<(&'static str, String), Moment>,
    fullest: HashMap<&'static str, f64>,
    refused: u64,
    orders: u64,
}

impl Counted {
    fn tat(&self, limit: &'static str, key: &str) -> Moment {
        self.tats.get(&(limit, key.to_owned())).copied().unwrap_or_default()
    }

    /// When the next one may be asked for, if that is not now.
    fn closed_until(&self, name: &'static str, key: &str, limit: Limit, now: Moment) -> Option<Moment> {
        let earliest = Bucket { tat: self.tat(name, key), ..Bucket::default() }.earliest(limit, now);
        (earliest > now).then_some(earliest)
    }

    fn spend(&mut self, name: &'static str, key: &str, limit: Limit, now: Moment) {
        let tat = settle(self.tat(name, key), now, limit);
        self.tats.insert((name, key.to_owned()), tat);
        let full = Duration::from_secs(limit.per_secs).as_secs_f64();
        let pct = (tat.since(now).as_secs_f64() / full * 1_000.0).round() / 10.0;
        let fullest = self.fullest.entry(name).or_default();
        *fullest = fullest.max(pct);
    }
}

const ORDERS: &str = "orders_per_account";
const REGISTERED: &str = "certificates_per_registered_domain";
const EXACT: &str = "certificates_per_exact_set";

/// The CA as the application sees it.
pub(super) struct CountingCa {
    inner: Arc<DirectCa>,
    gate: Gate,
    hand: Hand,
    limits: CaLimits,
    /// An answer takes up to so long, one part on the way there and one on the way back.
    latest: Duration,
    counted: Mutex<Counted>,
}

impl CountingCa {
    pub(super) fn new(inner: Arc<DirectCa>, gate: Gate, hand: &Hand, limits: CaLimits, latest: Duration) -> Self {
        CountingCa { inner, gate, hand: hand.clone(), limits, latest, counted: Mutex::default() }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that were refused because a limit was passed.
    pub(super) fn refused(&self) -> u64 {
        self.counted().refused
    }

    /// Orders that were counted.
    pub(super) fn orders(&self) -> u64 {
        self.counted().orders
    }

    /// How near each limit was come to.
    pub(super) fn used(&self) -> Vec<Used> {
        let counted = self.counted();
        let pct = |limit: &str| counted.fullest.get(limit).copied().unwrap_or_default();
        [ORDERS, REGISTERED, EXACT].map(|limit| Used { limit, fullest_pct: pct(limit) }).to_vec()
    }

    /// Lets a call take its time: there, then `act`, then back.
    async fn late<T>(&self, act: impl Future<Output = T>) -> T {
        let micros = u64::try_from(self.latest.as_micros()).unwrap_or(u64::MAX);
        let whole = self.hand.below(micros.saturating_add(1));
        let there = self.hand.below(whole.saturating_add(1));
        self.gate.wait(Duration::from_micros(there)).await;
        let answer = act.await;
        self.gate.wait(Duration::from_micros(whole - there)).await;
        answer
    }

    /// Counts an order, or says which limit forbids it.
    fn count_order(&self, account: &str, names: &[Hostname]) -> Result<(), AcmeError> {
        let now = self.hand.now();
        let mut counted = self.counted();
        let mut closed = counted.closed_until(ORDERS, account, self.limits.orders, now);
        for name in names {
            closed =
                closed.max(counted.closed_until(REGISTERED, name.registered_domain(), self.limits.registered_domain, now));
        }
        closed = closed.max(counted.closed_until(EXACT, &set_of(names), self.limits.exact_set, now));
        if let Some(until) = closed {
            counted.refused += 1;
            return Err(rate_limited(until.since(now)));
        }
        counted.orders += 1;
        counted.spend(ORDERS, account, self.limits.orders, now);
        Ok(())
    }

    fn count_certificate(&self, names: &[Hostname]) {
        let now = self.hand.now();
        let mut counted = self.counted();
        for name in names {
            counted.spend(REGISTERED, name.registered_domain(), self.limits.registered_domain, now);
        }
        counted.spend(EXACT, &set_of(names), self.limits.exact_set, now);
    }
}

fn set_of(names: &[Hostname]) -> String {
    names.iter().map(Hostname::as_str).collect::<Vec<_>>().join(",")
}

fn rate_limited(wait: Duration) -> AcmeError {
    let problem = json!({
        "type": "urn:ietf:params:acme:error:rateLimited", "status": 429, "detail": "too many requests in the simulation",
    });
    AcmeError {
        call: Call::NewOrder,
        kind: Kind::Refused,
        problem: ProblemDoc::new(problem),
        status: Some(429),
        retry_after: Some(wait),
        acted_on: false,
        cause: None,
    }
}

#[async_trait]
impl Authority for CountingCa {
    async fn directory(&self) -> Result<DirectoryFacts, AcmeError> {
        self.late(self.inner.directory()).await
    }

    async fn register(&self, key: &Secret, contacts: &[String]) -> Result<AccountUrl, AcmeError> {
        self.late(self.inner.register(key, contacts)).await
    }

    async fn register_bound(&self, key: &Secret, contacts: &[String], to: &Binding) -> Result<AccountUrl, AcmeError> {
        self.late(self.inner.register_bound(key, contacts, to)).await
    }

    async fn account(&self, account: &AccountRef) -> Result<AccountStatus, AcmeError> {
        self.late(self.inner.account(account)).await
    }

    async fn change_key(&self, account: &AccountRef, new_key: &Secret) -> Result<(), AcmeError> {
        self.late(self.inner.change_key(account, new_key)).await
    }

    async fn new_order(
        &self,
        account: &AccountRef,
        names: &[Hostname],
        replaces: Option<&str>,
    ) -> Result<PlacedOrder, AcmeError> {
        self.late(async {
            self.count_order(&account.url.0, names)?;
            self.inner.new_order(account, names, replaces).await
        })
        .await
    }

    async fn order(&self, account: &AccountRef, order_url: &str) -> Result<OrderView, AcmeError> {
        self.late(self.inner.order(account, order_url)).await
    }

    async fn authorizations(&self, account: &AccountRef, order_url: &str) -> Result<Vec<Authorization>, AcmeError> {
        self.late(self.inner.authorizations(account, order_url)).await
    }

    async fn announce(&self, account: &AccountRef, order_url: &str, challenge_url: &str) -> Result<(), AcmeError> {
        self.late(self.inner.announce(account, order_url, challenge_url)).await
    }

    async fn finalize(&self, account: &AccountRef, order_url: &str, csr_der: &[u8]) -> Result<OrderView, AcmeError> {
        self.late(async {
            let names: Vec<Hostname> =
                self.inner.authorizations(account, order_url).await?.into_iter().map(|a| a.name).collect();
            let issued = || -> u64 {
                let state = self.inner.state();
                names.iter().filter_map(|n| state.counters().certificates_by_name.get(n.as_str())).sum()
            };
            let before = issued();
            let view = self.inner.finalize(account, order_url, csr_der).await?;
            if issued() > before {
                self.count_certificate(&names);
            }
            Ok(view)
        })
        .await
    }

    async fn certificate(&self, account: &AccountRef, order_url: &str) -> Result<String, AcmeError> {
        self.late(self.inner.certificate(account, order_url)).await
    }

    async fn revoke(&self, account: &AccountRef, leaf_der: &[u8]) -> Result<(), AcmeError> {
        self.late(self.inner.revoke(account, leaf_der)).await
    }

    async fn renewal_info(&self, certificate: &str) -> Result<Option<Advice>, AcmeError> {
        self.late(self.inner.renewal_info(certificate)).await
    }
}
