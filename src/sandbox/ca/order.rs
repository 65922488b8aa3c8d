//! Orders and authorizations: the state machines of RFC 8555 §7.1.6.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::csr;
use super::numbers::{AccountNo, AuthorizationNo, OrderNo};
use super::problem::{Kind, Problem, Subproblem};
use super::state::CaState;
use super::validation::ToValidate;
use super::views::{AuthorizationStatus, AuthorizationView, ChallengeStatus, OrderStatus, OrderView};
use crate::model::moment::Moment;

pub(super) struct Order {
    account: AccountNo,
    names: Vec<String>,
    authorizations: Vec<AuthorizationNo>,
    expires: Moment,
    error: Option<Problem>,
    pub issuance: Option<Issuance>,
}

pub(super) struct Issuance {
    pub leaf: Vec<u8>,
    pub revoked: bool,
    pub account: AccountNo,
    chain_pem: String,
    ready_at: Moment,
}

pub(super) struct Authorization {
    account: AccountNo,
    name: String,
    token: String,
    expires: Moment,
    outcome: Outcome,
}

enum Outcome {
    Awaited,
    Looking,
    Met(Moment),
    Failed(Problem),
    GivenUp,
}

impl CaState {
    /// Makes an order, always a new one, with a new authorization for each name.
    pub fn new_order(&mut self, account: &AccountNo, names: &[String], now: Moment) -> Result<OrderView, Problem> {
        self.open_account(account)?;
        let names: Vec<String> = names.iter().map(|n| n.to_ascii_lowercase()).collect::<BTreeSet<_>>().into_iter().collect();
        if names.is_empty() || names.len() > self.settings.names_per_order {
            let most = self.settings.names_per_order;
            return Err(Problem::malformed(format!("an order holds 1 to {most} names, not {}", names.len())));
        }
        let refused: Vec<Subproblem> = names.iter().filter_map(|n| refuse(n)).collect();
        if !refused.is_empty() {
            return Err(Problem::of_names(refused));
        }
        let authorizations = names.iter().map(|name| self.new_authorization(account, name, now)).collect();
        let no = OrderNo::drawn(self.draw());
        self.counters.orders_created += 1;
        for name in &names {
            *self.counters.orders_by_name.entry(name.clone()).or_default() += 1;
        }
        let expires = now + self.settings.order_lifetime;
        let order = Order { account: account.clone(), names, authorizations, expires, error: None, issuance: None };
        self.orders.insert(no.clone(), order);
        self.order(account, &no, now)
    }

    fn new_authorization(&mut self, account: &AccountNo, name: &str, now: Moment) -> AuthorizationNo {
        let no = AuthorizationNo::drawn(self.draw());
        let authorization = Authorization {
            account: account.clone(),
            name: name.to_owned(),
            token: BASE64_URL_SAFE_NO_PAD.encode(self.draw::<32>()),
            expires: now + self.settings.authorization_lifetime,
            outcome: Outcome::Awaited,
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
        })
    }

    fn own_order(&self, account: &AccountNo, no: &OrderNo) -> Result<&Order, Problem> {
        let order = self.orders.get(no).ok_or_else(|| Problem::not_found("order", no))?;
        if order.account == *account { Ok(order) } else { Err(not_yours()) }
    }

    fn order_status(&self, order: &Order, now: Moment) -> OrderStatus {
        if let Some(issuance) = &order.issuance {
            return if issuance.ready_at <= now { OrderStatus::Valid } else { OrderStatus::Processing };
        }
        let all = || order.authorizations.iter().filter_map(|no| self.authorizations.get(no)).map(|a| a.status(now));
        if order.error.is_some() || order.expires <= now {
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
            Outcome::Awaited | Outcome::GivenUp => (ChallengeStatus::Pending, None, None),
            Outcome::Looking => (ChallengeStatus::Processing, None, None),
            Outcome::Met(at) => (ChallengeStatus::Valid, Some(*at), None),
            Outcome::Failed(problem) => (ChallengeStatus::Invalid, None, Some(problem.clone())),
        };
        Ok(AuthorizationView {
            no: no.clone(),
            name: a.name.clone(),
            status: a.status(now),
            expires: a.expires,
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
        match outcome {
            Ok(()) => {
                a.expires = now + self.settings.authorization_lifetime;
                a.outcome = Outcome::Met(now);
            }
            Err(problem) => {
                *self.counters.failed_validations_by_name.entry(a.name.clone()).or_default() += 1;
                a.outcome = Outcome::Failed(problem);
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
            a.outcome = Outcome::GivenUp;
        }
        Ok(())
    }

    /// Issues by a CSR when the order is ready (§7.4). A refused CSR leaves the order ready.
    pub fn finalize(
        &mut self,
        account: &AccountNo,
        no: &OrderNo,
        csr_der: &[u8],
        now: Moment,
    ) -> Result<OrderView, Problem> {
        let thumbprint = self.open_account(account)?.thumbprint.clone();
        let order = self.own_order(account, no)?;
        let status = self.order_status(order, now);
        if status != OrderStatus::Ready {
            return Err(Problem::new(Kind::OrderNotReady, format!("order {no} is {}, not ready", status.as_str())));
        }
        let names = order.names.clone();
        let key = csr::accept(csr_der, &names, &thumbprint)?;
        let mut serial: [u8; 16] = self.draw();
        // Positive and of full length in DER, whatever was drawn.
        serial[0] = serial[0] & 0x7f | 0x40;
        // Backdated by an hour as public CAs do, for clients whose clocks are slow.
        let from = now - Duration::from_secs(3600);
        let signed = self.authority.sign(&names, &key, serial, from, now + self.settings.certificate_lifetime);
        let ready_at = now + self.settings.issuance_takes;
        let chain = signed.map(|leaf| (self.authority.chain_pem(&leaf), leaf.der().to_vec()));
        if let Some(order) = self.orders.get_mut(no) {
            match chain {
                Ok((chain_pem, leaf)) => {
                    for name in names {
                        *self.counters.certificates_by_name.entry(name).or_default() += 1;
                    }
                    let account = account.clone();
                    order.issuance = Some(Issuance { leaf, revoked: false, account, chain_pem, ready_at });
                }
                Err(e) => order.error = Some(Problem::new(Kind::ServerInternal, e.to_string())),
            }
        }
        self.order(account, no, now)
    }

    /// The chain of a valid order: leaf and intermediate, as PEM.
    pub fn certificate(&self, account: &AccountNo, no: &OrderNo, now: Moment) -> Result<&str, Problem> {
        let issuance = self.own_order(account, no)?.issuance.as_ref().filter(|i| i.ready_at <= now);
        Ok(&issuance.ok_or_else(|| Problem::not_found("certificate", no))?.chain_pem)
    }
}

impl Authorization {
    fn status(&self, now: Moment) -> AuthorizationStatus {
        match self.outcome {
            Outcome::Failed(_) => AuthorizationStatus::Invalid,
            Outcome::GivenUp => AuthorizationStatus::Deactivated,
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
