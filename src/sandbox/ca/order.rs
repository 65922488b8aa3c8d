//! Orders and authorizations: the state machines of RFC 8555 §7.1.6.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::faults::Flaw;
use super::numbers::{AccountNo, AuthorizationNo, OrderNo};
use super::problem::{Kind, Problem, Subproblem};
use super::state::CaState;
use super::validation::ToValidate;
use super::views::{AuthorizationStatus, AuthorizationView, ChallengeStatus, OrderStatus, OrderView};
use crate::model::moment::Moment;

pub(super) struct Order {
    account: AccountNo,
    names: Vec<String>,
    pub authorizations: Vec<AuthorizationNo>,
    pub expires: Moment,
    pub error: Option<Problem>,
    pub issuance: Option<Issuance>,
    wishes: Wishes,
    /// What the script has in store for it.
    pub lags_until: Option<Moment>,
    pub issuance_takes: Option<Duration>,
    pub flaw: Option<Flaw>,
}

/// What an order may ask for beside its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// A profile of the directory.
    pub profile: Option<String>,
    /// The ARI id of the certificate it replaces (RFC 9773 §5).
    pub replaces: Option<String>,
}

pub(super) struct Issuance {
    pub leaf: Vec<u8>,
    pub revoked: bool,
    pub account: AccountNo,
    /// How long it is good.
    pub good: (Moment, Moment),
    pub chain_pem: String,
    pub ready_at: Moment,
}

pub(super) struct Authorization {
    account: AccountNo,
    name: String,
    token: String,
    expires: Moment,
    pub outcome: Outcome,
    pub offers: Vec<String>,
    /// What the script has in store for it.
    pub lags_until: Option<Moment>,
    pub verdict: Option<Problem>,
}

pub(super) enum Outcome {
    Awaited,
    Looking,
    Met(Moment),
    Failed(Problem),
    Over(AuthorizationStatus),
}

impl CaState {
    /// Makes an order, always a new one, with a new authorization for each name.
    pub fn new_order(&mut self, account: &AccountNo, names: &[String], now: Moment) -> Result<OrderView, Problem> {
        self.new_order_with(account, names, Wishes::default(), now)
    }

    /// The same, with wishes.
    pub fn new_order_with(
        &mut self,
        account: &AccountNo,
        names: &[String],
        wishes: Wishes,
        now: Moment,
    ) -> Result<OrderView, Problem> {
        self.open_account(account)?;
        self.may_wish(account, &wishes, now)?;
        let names: Vec<String> = names.iter().map(|n| n.to_ascii_lowercase()).collect::<BTreeSet<_>>().into_iter().collect();
        if names.is_empty() || names.len() > self.settings.names_per_order {
            let most = self.settings.names_per_order;
            return Err(Problem::malformed(format!("an order holds 1 to {most} names, not {}", names.len())));
        }
        let refused: Vec<Subproblem> = names.iter().filter_map(|n| refuse(n)).collect();
        if !refused.is_empty() {
            return Err(Problem::of_names(refused));
        }
        // A renewal that was asked for costs nothing, as at Let's Encrypt.
        if wishes.replaces.is_none() {
            self.count_order(account, &names, now)?;
        }
        let authorizations = names.iter().map(|name| self.new_authorization(account, name, now)).collect();
        let no = OrderNo::drawn(self.draw());
        self.counters.orders_created += 1;
        for name in &names {
            *self.counters.orders_by_name.entry(name.clone()).or_default() += 1;
        }
        let expires = now + self.settings.order_lifetime;
        if let Some(id) = &wishes.replaces {
            self.replacing.entry(id.clone()).or_default().push(no.clone());
        }
        let order = Order {
            account: account.clone(),
            names,
            authorizations,
            expires,
            error: None,
            issuance: None,
            wishes,
            lags_until: None,
            issuance_takes: None,
            flaw: None,
        };
        self.orders.insert(no.clone(), order);
        let made = self.order(account, &no, now);
        let twists = std::mem::take(&mut self.next_order);
        for twist in &twists {
            self.twist_order(twist, &no, now);
        }
        // An order that vanished at once was told of all the same.
        self.order(account, &no, now).or(made)
    }

    fn may_wish(&self, account: &AccountNo, wishes: &Wishes, now: Moment) -> Result<(), Problem> {
        if let Some(profile) = wishes.profile.as_ref().filter(|p| !self.settings.profiles.contains_key(*p)) {
            return Err(Problem::new(
                Kind::InvalidProfile,
                format!("profile {profile:?} is not offered; see the directory"),
            ));
        }
        let Some(id) = &wishes.replaces else { return Ok(()) };
        let issued = self.issued_as(id).ok_or_else(|| Problem::malformed(format!("no certificate here goes by {id:?}")))?;
        if issued.account != *account {
            return Err(Problem::new(Kind::Unauthorized, "the certificate to replace was issued to another account"));
        }
        let stands = |o: &Order| self.order_status(o, now) != OrderStatus::Invalid;
        let made = self.replacing.get(id).into_iter().flatten();
        let taken = made.filter_map(|no| self.orders.get(no)).any(stands);
        if taken {
            return Err(Problem::new(Kind::AlreadyReplaced, "the certificate has a successor already"));
        }
        Ok(())
    }

    /// The certificate that goes by this ARI id.
    pub(super) fn issued_as(&self, id: &str) -> Option<&Issuance> {
        self.orders.get(self.issued_for.get(id)?)?.issuance.as_ref()
    }

    fn new_authorization(&mut self, account: &AccountNo, name: &str, now: Moment) -> AuthorizationNo {
        let no = AuthorizationNo::drawn(self.draw());
        let authorization = Authorization {
            account: account.clone(),
            name: name.to_owned(),
            token: BASE64_URL_SAFE_NO_PAD.encode(self.draw::<32>()),
            expires: now + self.settings.authorization_lifetime,
            outcome: Outcome::Awaited,
            offers: vec!["http-01".to_owned()],
            lags_until: None,
            verdict: None,
        };
        self.authorizations.insert(no.clone(), authorization);
        no
    }

    /// An order as it stands now.
    pub fn order(&self, account: &AccountNo, no: &OrderNo, now: Moment) -> Result<OrderView, Problem> {
        let order = self.own_order(account, no)?;
        let status = self.order_status(order, now);
        let ready_in = order.issuance.as_ref().filter(|_| status == OrderStatus::Processing).map(|i| i.ready_at.since(now));
        Ok(OrderView {
            no: no.clone(),
            status,
            expires: order.expires,
            names: order.names.clone(),
            authorizations: order.authorizations.clone(),
            error: order.error.clone(),
            ready_in,
            profile: order.wishes.profile.clone(),
            replaces: order.wishes.replaces.clone(),
        })
    }

    pub(super) fn own_order(&self, account: &AccountNo, no: &OrderNo) -> Result<&Order, Problem> {
        let order = self.orders.get(no).ok_or_else(|| Problem::not_found("order", no))?;
        if order.account == *account { Ok(order) } else { Err(not_yours()) }
    }

    pub(super) fn order_status(&self, order: &Order, now: Moment) -> OrderStatus {
        // What failed comes to nothing, though it was being issued.
        if order.error.is_some() {
            return OrderStatus::Invalid;
        }
        if let Some(issuance) = &order.issuance {
            return if issuance.ready_at <= now { OrderStatus::Valid } else { OrderStatus::Processing };
        }
        if order.lags(now) {
            return OrderStatus::Pending;
        }
        let all = || order.authorizations.iter().filter_map(|no| self.authorizations.get(no)).map(|a| a.status(now));
        if order.expires <= now {
            OrderStatus::Invalid
        } else if all().all(|s| s == AuthorizationStatus::Valid) {
            OrderStatus::Ready
        } else if all().all(|s| matches!(s, AuthorizationStatus::Valid | AuthorizationStatus::Pending)) {
            OrderStatus::Pending
        } else {
            OrderStatus::Invalid
        }
    }

    /// An authorization as it stands now.
    pub fn authorization(
        &self,
        account: &AccountNo,
        no: &AuthorizationNo,
        now: Moment,
    ) -> Result<AuthorizationView, Problem> {
        let a = self.authorizations.get(no).ok_or_else(|| Problem::not_found("authorization", no))?;
        if a.account != *account {
            return Err(not_yours());
        }
        let (challenge, validated, error) = match &a.outcome {
            Outcome::Awaited | Outcome::Over(_) => (ChallengeStatus::Pending, None, None),
            Outcome::Looking => (ChallengeStatus::Processing, None, None),
            Outcome::Met(at) => (ChallengeStatus::Valid, Some(*at), None),
            Outcome::Failed(problem) => (ChallengeStatus::Invalid, None, Some(problem.clone())),
        };
        Ok(AuthorizationView {
            no: no.clone(),
            name: a.name.clone(),
            status: a.status(now),
            expires: a.expires,
            offers: a.offers.clone(),
            token: a.token.clone(),
            challenge,
            validated,
            error,
        })
    }

    /// The client says its answer is in place: what to look at, or nothing when that was said before (§7.5.1).
    pub fn respond(
        &mut self,
        account: &AccountNo,
        no: &AuthorizationNo,
        now: Moment,
    ) -> Result<Option<ToValidate>, Problem> {
        let thumbprint = self.open_account(account)?.thumbprint.clone();
        self.authorization(account, no, now)?;
        let a = self.authorizations.get_mut(no).ok_or_else(|| Problem::not_found("authorization", no))?;
        if !matches!(a.outcome, Outcome::Awaited) {
            return Ok(None);
        }
        if a.expires <= now {
            return Err(Problem::malformed(format!("authorization {no} has expired; make a new order")));
        }
        a.outcome = Outcome::Looking;
        let key_authorization = format!("{}.{thumbprint}", a.token);
        let (host, token) = (a.name.clone(), a.token.clone());
        Ok(Some(ToValidate { authorization: no.clone(), account: account.clone(), host, token, key_authorization }))
    }

    /// The CA has looked. Counts only while the challenge is `processing`: an outcome is never changed.
    pub fn validated(&mut self, no: &AuthorizationNo, outcome: Result<(), Problem>, now: Moment) {
        let Some(a) = self.authorizations.get_mut(no).filter(|a| matches!(a.outcome, Outcome::Looking)) else { return };
        match a.verdict.take().map_or(outcome, Err) {
            Ok(()) => {
                a.expires = now + self.settings.authorization_lifetime;
                a.outcome = Outcome::Met(now);
            }
            Err(problem) => {
                *self.counters.failed_validations_by_name.entry(a.name.clone()).or_default() += 1;
                a.outcome = Outcome::Failed(problem);
                let (account, name) = (a.account.clone(), a.name.clone());
                self.count_failure(&account, &name, now);
            }
        }
    }

    /// The client gives an authorization up (§7.5.2); its order becomes invalid.
    pub fn deactivate_authorization(
        &mut self,
        account: &AccountNo,
        no: &AuthorizationNo,
        now: Moment,
    ) -> Result<(), Problem> {
        let status = self.authorization(account, no, now)?.status;
        if !matches!(status, AuthorizationStatus::Pending | AuthorizationStatus::Valid) {
            return Err(Problem::malformed(format!("authorization {no} is {}, no longer to be given up", status.as_str())));
        }
        if let Some(a) = self.authorizations.get_mut(no) {
            a.outcome = Outcome::Over(AuthorizationStatus::Deactivated);
        }
        Ok(())
    }

    /// The chain of a valid order: leaf and intermediate, as PEM.
    pub fn certificate(&self, account: &AccountNo, no: &OrderNo, now: Moment) -> Result<&str, Problem> {
        let issuance = self.own_order(account, no)?.issuance.as_ref().filter(|i| i.ready_at <= now);
        Ok(&issuance.ok_or_else(|| Problem::not_found("certificate", no))?.chain_pem)
    }
}

impl Order {
    /// Whether it names a certificate that it replaces.
    pub fn renews(&self) -> bool {
        self.wishes.replaces.is_some()
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }
}

impl Authorization {
    fn status(&self, now: Moment) -> AuthorizationStatus {
        match self.outcome {
            Outcome::Over(status) => status,
            _ if self.lags_until.is_some_and(|until| now < until) => AuthorizationStatus::Pending,
            Outcome::Failed(_) => AuthorizationStatus::Invalid,
            _ if self.expires <= now => AuthorizationStatus::Expired,
            Outcome::Awaited | Outcome::Looking => AuthorizationStatus::Pending,
            Outcome::Met(_) => AuthorizationStatus::Valid,
        }
    }
}

fn not_yours() -> Problem {
    Problem::new(Kind::Unauthorized, "this belongs to another account")
}

/// Why a name cannot be certified by http-01, if so.
fn refuse(name: &str) -> Option<Subproblem> {
    let label_ok = |l: &str| {
        (1..=63).contains(&l.len())
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    let detail = if name.starts_with("*.") {
        format!("{name} is a wildcard; only dns-01 can prove one, and this CA has http-01 alone")
    } else if name.parse::<std::net::IpAddr>().is_ok() {
        format!("{name} is an address, not a DNS name")
    } else if name.len() > 253 || !name.contains('.') || !name.split('.').all(label_ok) {
        format!("{name:?} is not a host name of two labels or more, of letters, digits and inner hyphens")
    } else {
        return None;
    };
    Some(Subproblem { name: name.to_owned(), kind: Kind::RejectedIdentifier, detail })
}
