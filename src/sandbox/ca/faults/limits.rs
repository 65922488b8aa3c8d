//! Refusals of Let's Encrypt, in its own words (Boulder's `ratelimits` and `wfe2`), so that a client learns to read the real ones.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::hostname::Hostname;
use crate::model::moment::Moment;
use crate::sandbox::ca::problem::{Kind, Problem};

const PAGE: &str = "see https://letsencrypt.org/docs/rate-limits/";

/// A limit of Let's Encrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// New orders per account.
    NewOrders,
    /// New certificates per registered domain, whoever orders them.
    RegisteredDomain,
    /// New certificates per exact set of names.
    ExactSet,
    /// Failed authorizations per name and account.
    FailedAuthorizations,
    /// The account is paused for this name: only a visit to the CA's portal ends it, and no time is given.
    Paused,
    /// New accounts per address.
    NewAccounts,
    /// The load balancer in front is asked too much.
    Busy,
}

impl Limit {
    /// All of them.
    pub const ALL: [Limit; 7] = [
        Limit::NewOrders,
        Limit::RegisteredDomain,
        Limit::ExactSet,
        Limit::FailedAuthorizations,
        Limit::Paused,
        Limit::NewAccounts,
        Limit::Busy,
    ];

    /// The refusal for an order of `name`, lifted at `until`.
    pub(in crate::sandbox::ca) fn problem(self, name: &str, until: Moment) -> Problem {
        let until = retry(until);
        let registered = Hostname::trusted(name).registered_domain().to_owned();
        let detail = match self {
            Limit::NewOrders => {
                format!(
                    "too many new orders (300) from this account in the last 3h0m0s, {until}: {PAGE}#new-orders-per-account"
                )
            }
            Limit::RegisteredDomain => format!(
                "too many certificates (50) already issued for \"{registered}\" in the last 168h0m0s, {until}: \
                 {PAGE}#new-certificates-per-registered-domain"
            ),
            Limit::ExactSet => format!(
                "too many certificates (5) already issued for this exact set of identifiers in the last 168h0m0s, {until}: \
                 {PAGE}#new-certificates-per-exact-set-of-identifiers"
            ),
            Limit::FailedAuthorizations => format!(
                "too many failed authorizations (5) for \"{name}\" in the last 1h0m0s, {until}: \
                 {PAGE}#authorization-failures-per-identifier-per-account"
            ),
            Limit::Paused => format!(
                "Your account is temporarily prevented from requesting certificates for {name} and possibly others. \
                 Please visit: https://portal.ca.test/sfe/v1/unpause?jwt=eyJhbGciOiJIUzI1NiJ9.e30.c2FuZGJveA"
            ),
            Limit::NewAccounts => format!(
                "too many new registrations (10) from this IP address in the last 3h0m0s, {until}: \
                 {PAGE}#new-registrations-per-ip-address"
            ),
            Limit::Busy => "Service busy; retry later.".to_owned(),
        };
        let problem = Problem::new(Kind::RateLimited, detail);
        if self == Limit::Busy { problem.with_status(503) } else { problem }
    }

    /// When the CA lets go where the script does not say: the time in which one more fits.
    pub(super) fn refills_in(self) -> Duration {
        Duration::from_secs(match self {
            Limit::NewOrders => 36,
            Limit::RegisteredDomain => 202 * 60,
            Limit::ExactSet => 34 * 3600,
            Limit::FailedAuthorizations => 12 * 60,
            Limit::Paused | Limit::Busy => 1,
            Limit::NewAccounts => 18 * 60,
        })
    }
}

/// `retry after 2026-08-15 19:14:33 UTC`, as Go prints it.
fn retry(until: Moment) -> String {
    let whole = Moment::from_secs(until.secs()).rfc3339();
    format!("retry after {} UTC", whole.trim_end_matches('Z').replacen('T', " ", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_real_ca() {
        let until = Moment::from_secs(1_787_080_473);
        let said = |limit: Limit| limit.problem("support.acme.test", until).detail;
        assert_eq!(
            said(Limit::ExactSet),
            "too many certificates (5) already issued for this exact set of identifiers in the last 168h0m0s, retry after \
             2026-08-18 19:14:33 UTC: see https://letsencrypt.org/docs/rate-limits/#new-certificates-per-exact-set-of-identifiers"
        );
        assert!(said(Limit::RegisteredDomain).contains("already issued for \"acme.test\" in the last"));
        assert!(
            said(Limit::FailedAuthorizations).starts_with("too many failed authorizations (5) for \"support.acme.test\"")
        );
        assert!(
            said(Limit::Paused).contains("certificates for support.acme.test and possibly others. Please visit: https://")
        );
        for limit in Limit::ALL {
            assert_eq!(limit.problem("a.test", until).kind, Kind::RateLimited);
        }
    }
}
