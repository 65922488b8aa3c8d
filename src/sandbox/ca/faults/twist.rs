//! What can be wrong in the CA's books.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::moment::Moment;
use crate::sandbox::ca::account::AccountStatus;
use crate::sandbox::ca::entry::Endpoint;
use crate::sandbox::ca::numbers::{AuthorizationNo, OrderNo};
use crate::sandbox::ca::order::{Authorization, Order, Outcome};
use crate::sandbox::ca::problem::{Kind, Problem};
use crate::sandbox::ca::state::CaState;
use crate::sandbox::ca::views::AuthorizationStatus;

/// Something wrong in the books. It concerns the order or authorization that is asked for, or the order about to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Twist {
    /// The order has failed, with this sentence.
    OrderInvalid {
        /// The sentence.
        detail: String,
    },
    /// The order's time is over.
    OrderExpired,
    /// The order is not in the books any more.
    OrderVanished,
    /// The order is shown as pending for so many seconds, whatever its authorizations say.
    OrderLags {
        /// For how long.
        seconds: u64,
    },
    /// Issuing takes so many seconds.
    ProcessingLasts {
        /// For how long.
        seconds: u64,
    },
    /// The names count as proven already.
    AuthorizationReused,
    /// The authorization is over: `revoked`, `deactivated` or `expired`.
    AuthorizationEnds {
        /// As what.
        status: Ended,
    },
    /// The authorization is shown as pending for so many seconds, whatever its challenge says.
    AuthorizationLags {
        /// For how long.
        seconds: u64,
    },
    /// The authorizations offer these types of challenge.
    Offers {
        /// The types.
        challenges: Vec<String>,
    },
    /// The CA will look at the name and see this.
    ValidationFails {
        /// The problem's type.
        kind: Kind,
        /// Its sentence.
        detail: String,
    },
    /// The certificate is not the one that was asked for.
    Certificate {
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// The CA knows none of its accounts any more.
    AccountsVanish,
    /// All accounts are closed.
    AccountsDeactivated,
    /// The renewal window (RFC 9773), in seconds from now.
    Window {
        /// Its start.
        starts_in: i64,
        /// Its end.
        ends_in: i64,
    },
}

/// How an authorization ends without having failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words of RFC 8555 §7.1.6")]
pub enum Ended {
    Revoked,
    Deactivated,
    Expired,
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// It is for another key.
    OtherKey,
    /// It is for other names.
    OtherNames,
    /// The chain holds somebody else's intermediate.
    OtherChain,
    /// Its time is over.
    Expired,
    /// Its time begins a day from now.
    NotYetValid,
}

impl Twist {
    /// Its name, as JSON has it.
    pub fn name(&self) -> &'static str {
        match self {
            Twist::OrderInvalid { .. } => "order_invalid",
            Twist::OrderExpired => "order_expired",
            Twist::OrderVanished => "order_vanished",
            Twist::OrderLags { .. } => "order_lags",
            Twist::ProcessingLasts { .. } => "processing_lasts",
            Twist::AuthorizationReused => "authorization_reused",
            Twist::AuthorizationEnds { .. } => "authorization_ends",
            Twist::AuthorizationLags { .. } => "authorization_lags",
            Twist::Offers { .. } => "offers",
            Twist::ValidationFails { .. } => "validation_fails",
            Twist::Certificate { .. } => "certificate",
            Twist::AccountsVanish => "accounts_vanish",
            Twist::AccountsDeactivated => "accounts_deactivated",
            Twist::Window { .. } => "window",
        }
    }
}

impl CaState {
    /// Puts something wrong into the books, about what stands at the number `subject` of a resource.
    pub fn twist(&mut self, twist: &Twist, endpoint: Endpoint, subject: Option<&str>, now: Moment) {
        match twist {
            Twist::AccountsVanish => self.accounts.clear(),
            Twist::AccountsDeactivated => {
                self.accounts.values_mut().for_each(|a| a.status = AccountStatus::Deactivated);
            }
            Twist::Window { starts_in, ends_in } => self.next_window = Some((*starts_in, *ends_in)),
            _ if endpoint == Endpoint::NewOrder => self.next_order.push(twist.clone()),
            _ => {
                if let Some(no) = self.order_at(endpoint, subject.unwrap_or_default()) {
                    self.twist_order(twist, &no, now);
                }
            }
        }
    }

    fn order_at(&self, endpoint: Endpoint, subject: &str) -> Option<OrderNo> {
        if !matches!(endpoint, Endpoint::Authorization | Endpoint::Challenge) {
            return Some(OrderNo::from(subject));
        }
        let no = AuthorizationNo::from(subject);
        self.orders.iter().find(|(_, order)| order.authorizations.contains(&no)).map(|(no, _)| no.clone())
    }

    pub(in crate::sandbox::ca) fn twist_order(&mut self, twist: &Twist, no: &OrderNo, now: Moment) {
        let Some(order) = self.orders.get_mut(no) else { return };
        match twist {
            Twist::OrderVanished => {
                self.orders.remove(no);
            }
            Twist::OrderInvalid { detail } => order.error = Some(Problem::new(Kind::ServerInternal, detail.clone())),
            Twist::OrderExpired => order.expires = now,
            Twist::OrderLags { seconds } => order.lags_until = Some(now + Duration::from_secs(*seconds)),
            Twist::ProcessingLasts { seconds } => order.issuance_takes = Some(Duration::from_secs(*seconds)),
            Twist::Certificate { flaw } => order.flaw = Some(*flaw),
            _ => {
                let touched = order.authorizations.clone();
                for no in touched {
                    if let Some(authorization) = self.authorizations.get_mut(&no) {
                        authorization.twist(twist, now);
                    }
                }
            }
        }
    }
}

impl Authorization {
    fn twist(&mut self, twist: &Twist, now: Moment) {
        match twist {
            Twist::AuthorizationReused => self.outcome = Outcome::Met(now),
            Twist::AuthorizationEnds { status } => {
                self.outcome = Outcome::Over(match status {
                    Ended::Revoked => AuthorizationStatus::Revoked,
                    Ended::Deactivated => AuthorizationStatus::Deactivated,
                    Ended::Expired => AuthorizationStatus::Expired,
                });
            }
            Twist::AuthorizationLags { seconds } => self.lags_until = Some(now + Duration::from_secs(*seconds)),
            Twist::Offers { challenges } => self.offers.clone_from(challenges),
            Twist::ValidationFails { kind, detail } => self.verdict = Some(Problem::new(*kind, detail.clone())),
            _ => {}
        }
    }
}

impl Order {
    /// Whether its authorizations' end is not noticed yet.
    pub(in crate::sandbox::ca) fn lags(&self, now: Moment) -> bool {
        self.lags_until.is_some_and(|until| now < until)
    }
}
