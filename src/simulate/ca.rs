//! The CA of a simulation: the sandbox's, with its own count of what it allows. Its answers come late and out of order; in a
//! year it is away for hours, refuses to replace, and says windows that cannot be meant.

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
use crate::model::ledger;
use crate::model::limits::LimitName;
use crate::model::moment::Moment;
use crate::model::renewal::{Advice, Window};
use crate::model::secret::Secret;
use crate::sandbox::ca::{DirectCa, Limit, Rate};

/// How long it asks not to be asked about a window again, as Let's Encrypt does.
const ASK_AGAIN: Duration = Duration::from_secs(6 * 3600);
const DAY: Duration = Duration::from_secs(86_400);

/// What the CA allows, and the product is told.
#[derive(Clone, Copy, Debug)]
pub struct CaLimits {
    /// New orders of an account.
    pub orders: ledger::Limit,
    /// Certificates under one registered domain.
    pub registered_domain: ledger::Limit,
    /// Certificates for one set of names.
    pub exact_set: ledger::Limit,
}

impl CaLimits {
    fn each(&self) -> [(Limit, ledger::Limit); 4] {
        [
            (Limit::NewOrders, self.orders),
            (Limit::RegisteredDomain, self.registered_domain),
            (Limit::ExactSet, self.exact_set),
            (Limit::FailedAuthorizations, LimitName::FailuresPerName.usual()),
        ]
    }
}

/// How near a limit was come to.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Used {
    /// The limit, as the CA calls it.
    pub limit: &'static str,
    /// The fullest that it was for any key, of 100.
    pub fullest_pct: f64,
}

/// What happened at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Happened {
    pub(super) orders: u64,
    pub(super) polls: u64,
    pub(super) refused_replaces: u64,
    pub(super) odd_windows: u64,
}

#[derive(Default)]
struct State {
    away: bool,
    happened: Happened,
    /// What was issued and not looked at yet.
    issued: Vec<Issued>,
}

/// A certificate that the CA issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Issued {
    pub(super) host: String,
    pub(super) at: Moment,
    pub(super) from: Moment,
    pub(super) until: Moment,
}

/// The CA as the application sees it.
pub(super) struct MoodyCa {
    direct: Arc<DirectCa>,
    gate: Gate,
    hand: Hand,
    /// An answer takes up to so long.
    latest: Duration,
    /// So many of a hundred orders that replace something are refused for that, and so many windows are odd.
    odd_percent: u64,
    state: Mutex<State>,
}

impl MoodyCa {
    /// Allows no more than `limits` from now on.
    pub(super) fn new(
        direct: Arc<DirectCa>,
        limits: CaLimits,
        gate: Gate,
        hand: &Hand,
        latest: Duration,
        odd_percent: u64,
    ) -> Self {
        for (limit, numbers) in limits.each() {
            let rate = Rate { burst: numbers.burst, per: Duration::from_secs(numbers.per_secs) };
            direct.state().allow(limit, rate);
        }
        MoodyCa { direct, gate, hand: hand.clone(), latest, odd_percent, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it answers nobody from now on.
    pub(super) fn away(&self, yes: bool) {
        self.state().away = yes;
    }

    /// How near each limit was come to.
    pub(super) fn used(&self) -> Vec<Used> {
        const SAID: [(Limit, &str); 3] = [
            (Limit::NewOrders, "orders_per_account"),
            (Limit::RegisteredDomain, "certificates_per_registered_domain"),
            (Limit::ExactSet, "certificates_per_exact_set"),
        ];
        let state = self.direct.state();
        SAID.map(|(limit, said)| Used { limit: said, fullest_pct: state.fullest_pct(limit) }).to_vec()
    }

    pub(super) fn happened(&self) -> Happened {
        self.state().happened
    }

    /// What was issued since it was last asked.
    pub(super) fn news(&self) -> Vec<Issued> {
        std::mem::take(&mut self.state().issued)
    }

    /// Lets a call take its time, half of it on the way there; nobody answers while the CA is away.
    async fn late<T>(&self, call: Call, act: impl Future<Output = Result<T, AcmeError>>) -> Result<T, AcmeError> {
        let micros = u64::try_from(self.latest.as_micros()).unwrap_or(u64::MAX);
        let half = Duration::from_micros(self.hand.below(micros.saturating_add(1)) / 2);
        self.gate.wait(half).await;
        if self.state().away {
            return Err(error(call, Kind::Unreached));
        }
        let answer = act.await;
        self.gate.wait(half).await;
        answer
    }

    fn is_odd(&self) -> bool {
        self.hand.below(100) < self.odd_percent
    }
}

/// A number by a certificate's serial number, which is drawn (FNV-1a). The rest of its id comes of the CA's key, which no seed makes.
fn drawn_by(id: &str) -> u64 {
    let serial = id.rsplit_once('.').map_or(id, |(_, serial)| serial);
    serial.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn error(call: Call, kind: Kind) -> AcmeError {
    AcmeError { call, kind, problem: None, status: None, retry_after: None, acted_on: false, cause: None }
}

fn already_replaced() -> AcmeError {
    let problem = json!({
        "type": "urn:ietf:params:acme:error:alreadyReplaced", "status": 409, "detail": "replaced already, says the simulation",
    });
    AcmeError { problem: ProblemDoc::new(problem), status: Some(409), ..error(Call::NewOrder, Kind::Refused) }
}

#[async_trait]
impl Authority for MoodyCa {
    async fn directory(&self) -> Result<DirectoryFacts, AcmeError> {
        self.late(Call::Directory, self.direct.directory()).await
    }

    async fn register(&self, key: &Secret, contacts: &[String]) -> Result<AccountUrl, AcmeError> {
        self.late(Call::NewAccount, self.direct.register(key, contacts)).await
    }

    async fn register_bound(&self, key: &Secret, contacts: &[String], to: &Binding) -> Result<AccountUrl, AcmeError> {
        self.late(Call::NewAccount, self.direct.register_bound(key, contacts, to)).await
    }

    async fn account(&self, account: &AccountRef) -> Result<AccountStatus, AcmeError> {
        self.late(Call::Account, self.direct.account(account)).await
    }

    async fn change_key(&self, account: &AccountRef, new_key: &Secret) -> Result<(), AcmeError> {
        self.late(Call::KeyChange, self.direct.change_key(account, new_key)).await
    }

    async fn new_order(
        &self,
        account: &AccountRef,
        names: &[Hostname],
        replaces: Option<&str>,
    ) -> Result<PlacedOrder, AcmeError> {
        self.late(Call::NewOrder, async {
            if replaces.is_some() && self.is_odd() {
                self.state().happened.refused_replaces += 1;
                return Err(already_replaced());
            }
            let placed = self.direct.new_order(account, names, replaces).await?;
            self.state().happened.orders += 1;
            Ok(placed)
        })
        .await
    }

    async fn revoke(&self, account: &AccountRef, leaf_der: &[u8]) -> Result<(), AcmeError> {
        self.late(Call::Revocation, self.direct.revoke(account, leaf_der)).await
    }

    async fn order(&self, account: &AccountRef, order_url: &str) -> Result<OrderView, AcmeError> {
        self.late(Call::Order, self.direct.order(account, order_url)).await
    }

    async fn authorizations(&self, account: &AccountRef, order_url: &str) -> Result<Vec<Authorization>, AcmeError> {
        self.late(Call::Authorization, self.direct.authorizations(account, order_url)).await
    }

    async fn announce(&self, account: &AccountRef, order_url: &str, challenge_url: &str) -> Result<(), AcmeError> {
        self.late(Call::Challenge, self.direct.announce(account, order_url, challenge_url)).await
    }

    async fn finalize(&self, account: &AccountRef, order_url: &str, csr_der: &[u8]) -> Result<OrderView, AcmeError> {
        self.late(Call::Finalize, async {
            let authorizations = self.direct.authorizations(account, order_url).await?;
            let made = |name: &str| -> u64 {
                self.direct.state().counters().certificates_by_name.get(name).copied().unwrap_or_default()
            };
            let before: Vec<u64> = authorizations.iter().map(|a| made(a.name.as_str())).collect();
            let view = self.direct.finalize(account, order_url, csr_der).await?;
            let at = self.hand.now();
            let (from, until) = {
                let state = self.direct.state();
                (at - state.settings().backdated, at + state.settings().certificate_lifetime)
            };
            for (a, before) in authorizations.into_iter().zip(before) {
                if made(a.name.as_str()) > before {
                    self.state().issued.push(Issued { host: a.name.to_string(), at, from, until });
                }
            }
            Ok(view)
        })
        .await
    }

    async fn certificate(&self, account: &AccountRef, order_url: &str) -> Result<String, AcmeError> {
        self.late(Call::Certificate, self.direct.certificate(account, order_url)).await
    }

    /// Answered at once: many are asked for together, and nothing else waits for it.
    async fn renewal_info(&self, certificate: &str) -> Result<Option<Advice>, AcmeError> {
        if self.state().away {
            return Err(error(Call::RenewalInfo, Kind::Unreached));
        }
        let now = self.hand.now();
        self.state().happened.polls += 1;
        // What it says of one certificate it says at every poll.
        let drawn = drawn_by(certificate);
        if drawn % 100 < self.odd_percent {
            self.state().happened.odd_windows += 1;
            let (start, end) = match drawn / 100 % 3 {
                0 => (now - 9 * DAY, now - DAY),
                1 => (now + 4_000 * DAY, now + 4_001 * DAY),
                _ => return Err(error(Call::RenewalInfo, Kind::Unanswered)),
            };
            return Ok(Some(Advice { window: Window { start, end }, explanation: None, retry_after: Some(ASK_AGAIN) }));
        }
        let told = self.direct.state().renewal_window(certificate, now);
        let (start, end) = told.map_err(|_| error(Call::RenewalInfo, Kind::Refused))?;
        Ok(Some(Advice { window: Window { start, end }, explanation: None, retry_after: Some(ASK_AGAIN) }))
    }
}
