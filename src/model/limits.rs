//! The limits of a CA by name: what each counts, by which key, and when the CA counts it.
//!
//! The numbers are Let's Encrypt's unless configuration says otherwise; a limit that an issuer does not have is not in its
//! table. One certificate is ordered per hostname, so the exact set of names is the hostname itself.

use std::collections::BTreeMap;

use super::hostname::Hostname;
use super::ledger::Limit;
use super::order::OrderState;
use super::vocabulary::vocabulary;

vocabulary! {
    /// A limit.
    LimitName {
        /// New orders of the account.
        OrdersPerAccount = "orders_per_account",
        /// Certificates under one registered domain, whoever orders them.
        CertificatesPerDomain = "certificates_per_domain",
        /// Certificates for exactly this name, whoever orders them.
        CertificatesPerName = "certificates_per_name",
        /// Failed validations of one name by the account.
        FailuresPerName = "failures_per_name",
        /// Failed validations of one name without a success between them: a stop of our own, long before the CA pauses the name.
        FailuresInARow = "failures_in_a_row",
    }

    /// What it is that the CA counts.
    Counted {
        /// The order, when it is made.
        Order = "order",
        /// A validation that failed.
        Failure = "failure",
        /// The certificate, when it is issued.
        Certificate = "certificate",
    }

    /// Why a key of a limit is closed although we had not used it up.
    Closed {
        /// Somebody else used it up, or the CA counts otherwise than we do.
        Others = "used_up_by_others",
        /// The CA paused the name, or the account, until somebody visits its page.
        Paused = "paused_by_ca",
    }
}

/// The limits of one issuer.
pub type Limits = BTreeMap<LimitName, Limit>;

/// The key of a limit that the whole account shares.
pub const ACCOUNT: &str = "account";

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

impl LimitName {
    /// What it counts.
    pub const fn counts(self) -> Counted {
        match self {
            LimitName::OrdersPerAccount => Counted::Order,
            LimitName::CertificatesPerDomain | LimitName::CertificatesPerName => Counted::Certificate,
            LimitName::FailuresPerName | LimitName::FailuresInARow => Counted::Failure,
        }
    }

    /// The key by which this limit counts an order for the name.
    pub fn key(self, name: &Hostname) -> &str {
        match self {
            LimitName::OrdersPerAccount => ACCOUNT,
            LimitName::CertificatesPerDomain => name.registered_domain(),
            LimitName::CertificatesPerName | LimitName::FailuresPerName | LimitName::FailuresInARow => name.as_str(),
        }
    }

    /// Let's Encrypt's numbers. The CA pauses a name after 1,152 failures in a row and forgives one a day; a name that failed
    /// a hundred times is tried once a day, at which pace it never gets there.
    pub const fn usual(self) -> Limit {
        match self {
            LimitName::OrdersPerAccount => Limit { burst: 300, per_secs: 3 * HOUR },
            LimitName::CertificatesPerDomain => Limit { burst: 50, per_secs: 7 * DAY },
            LimitName::CertificatesPerName => Limit { burst: 5, per_secs: 7 * DAY },
            LimitName::FailuresPerName => Limit { burst: 5, per_secs: HOUR },
            LimitName::FailuresInARow => Limit { burst: 100, per_secs: 100 * DAY },
        }
    }

    /// As people read it.
    pub const fn words(self) -> &'static str {
        match self {
            LimitName::OrdersPerAccount => "new orders of the account",
            LimitName::CertificatesPerDomain => "certificates under one registered domain",
            LimitName::CertificatesPerName => "certificates for exactly one name",
            LimitName::FailuresPerName => "failed validations of one name",
            LimitName::FailuresInARow => "failed validations in a row of one name",
        }
    }
}

/// Let's Encrypt's limits.
pub fn usual() -> Limits {
    LimitName::ALL.iter().map(|name| (*name, name.usual())).collect()
}

/// What one order for the name spends: a limit, what one spend costs, and the key.
pub fn spends<'a>(limits: &'a Limits, name: &'a Hostname) -> impl Iterator<Item = (LimitName, Limit, &'a str)> {
    limits.iter().map(move |(limit, numbers)| (*limit, *numbers, limit.key(name)))
}

/// What becomes of a spend when its order ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The CA counted it, or may have.
    Counted,
    /// It surely did not.
    Released,
}

/// What becomes of the spends that an order's outcome decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Those that are counted when a validation fails.
    pub failure: Fate,
    /// Whether the validation succeeded: failures in a row begin anew.
    pub validated: bool,
    /// Those that are counted when a certificate is issued.
    pub certificate: Fate,
}

/// How an order ends that stood at `was`. Nothing fails before a challenge was published; once the name was validated nothing
/// can fail any more, but from then on a CSR may be at the CA, and with it a certificate that we never saw.
pub fn ending(was: OrderState, end: OrderState) -> Ending {
    let validated = end == OrderState::Issued || matches!(was, OrderState::Ready | OrderState::Finalizing);
    let counted = |yes: bool| if yes { Fate::Counted } else { Fate::Released };
    Ending { failure: counted(was == OrderState::Authorizing && !validated), validated, certificate: counted(validated) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_the_account_the_registered_domain_and_the_name() {
        let name = Hostname::trusted("a.b.acme.co.uk");
        let limits = usual();
        let keys: Vec<_> = spends(&limits, &name).map(|(limit, _, key)| (limit.as_str(), key)).collect();
        assert_eq!(
            keys,
            [
                ("orders_per_account", "account"),
                ("certificates_per_domain", "acme.co.uk"),
                ("certificates_per_name", "a.b.acme.co.uk"),
                ("failures_per_name", "a.b.acme.co.uk"),
                ("failures_in_a_row", "a.b.acme.co.uk"),
            ]
        );
    }

    #[test]
    fn an_ending_counts_what_the_ca_may_have_counted() {
        use Fate::{Counted, Released};
        use OrderState::{Authorizing, Failed, Finalizing, Granted, Issued, Lost, Placed, Ready, Waiting};
        for (was, end, failure, certificate) in [
            (Finalizing, Issued, Released, Counted),
            (Waiting, Failed, Released, Released),
            (Granted, Failed, Released, Released),
            (Granted, Lost, Released, Released),
            (Placed, Failed, Released, Released),
            (Authorizing, Failed, Counted, Released),
            (Ready, Failed, Released, Counted),
            (Finalizing, Failed, Released, Counted),
        ] {
            let ending = ending(was, end);
            assert_eq!((ending.failure, ending.certificate), (failure, certificate), "{was} to {end}");
        }
    }

    #[test]
    fn limits_read_back_from_what_is_stored() {
        let text = serde_json::to_string(&usual()).unwrap();
        assert_eq!(serde_json::from_str::<Limits>(&text).unwrap(), usual());
        let early: Limits = serde_json::from_str(r#"{"orders_per_account":{"burst":300,"per_secs":10800}}"#).unwrap();
        assert_eq!(early.keys().copied().collect::<Vec<_>>(), [LimitName::OrdersPerAccount]);
    }
}
