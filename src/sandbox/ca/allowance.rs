//! What the CA allows, as Let's Encrypt counts it (<https://letsencrypt.org/docs/rate-limits/>): an order of an account counts
//! when it is made, a certificate of a registered domain or of a set of names when it is issued, a failure when it happened.
//!
//! Nothing is limited until somebody says so. The arithmetic is the CA's own, not the client's: one theoretical arrival time
//! for each limit and key.

use std::collections::BTreeMap;
use std::time::Duration;

use super::faults::Limit;
use super::numbers::AccountNo;
use super::problem::Problem;
use super::state::CaState;
use crate::model::hostname::Hostname;
use crate::model::moment::Moment;

/// So many at once, and as many again in so much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// At once.
    pub burst: u32,
    /// The time in which that many become free again.
    pub per: Duration,
}

impl Rate {
    fn interval(self) -> Duration {
        self.per / self.burst.max(1)
    }
}

/// The limits in force, and what counts against them.
#[derive(Default)]
pub(super) struct Allowance {
    rates: BTreeMap<Limit, Rate>,
    arrivals: BTreeMap<(Limit, String), Moment>,
    /// The fullest that each was for any key, of a thousand.
    fullest: BTreeMap<Limit, u32>,
}

impl Allowance {
    /// When one more fits; nothing where it does now.
    fn closed_until(&self, limit: Limit, key: &str, now: Moment) -> Option<Moment> {
        let rate = self.rates.get(&limit)?;
        let arrival = *self.arrivals.get(&(limit, key.to_owned()))?;
        let at = arrival + rate.interval() - rate.per;
        (at > now).then_some(at)
    }

    fn count(&mut self, limit: Limit, key: &str, now: Moment) {
        let Some(rate) = self.rates.get(&limit) else { return };
        let arrival = self.arrivals.entry((limit, key.to_owned())).or_default();
        *arrival = (*arrival).max(now) + rate.interval();
        let full = arrival.since(now).as_micros() * 1_000 / rate.per.as_micros().max(1);
        let fullest = self.fullest.entry(limit).or_default();
        *fullest = (*fullest).max(u32::try_from(full).unwrap_or(u32::MAX));
    }
}

impl CaState {
    /// Limits how many there may be from now on: of [`Limit::NewOrders`], [`Limit::RegisteredDomain`], [`Limit::ExactSet`] and
    /// [`Limit::FailedAuthorizations`].
    pub fn allow(&mut self, limit: Limit, rate: Rate) {
        self.allowance.rates.insert(limit, rate);
    }

    /// The fullest that a limit ever was for any key, of 100.
    pub fn fullest_pct(&self, limit: Limit) -> f64 {
        f64::from(self.allowance.fullest.get(&limit).copied().unwrap_or_default()) / 10.0
    }

    /// Refuses an order that passes a limit, else counts it.
    pub(super) fn count_order(&mut self, account: &AccountNo, names: &[String], now: Moment) -> Result<(), Problem> {
        let account = account.to_string();
        let of_names = names.iter().flat_map(|name| {
            let registered = Hostname::trusted(name).registered_domain().to_owned();
            [(Limit::RegisteredDomain, registered, name), (Limit::FailedAuthorizations, failing(&account, name), name)]
        });
        let whole = names
            .first()
            .into_iter()
            .flat_map(|name| [(Limit::ExactSet, names.join(","), name), (Limit::NewOrders, account.clone(), name)]);
        for (limit, key, name) in whole.chain(of_names) {
            if let Some(until) = self.allowance.closed_until(limit, &key, now) {
                self.counters.limits_passed += 1;
                return Err(limit.problem(name, until).with_retry_after(until.since(now)));
            }
        }
        self.allowance.count(Limit::NewOrders, &account, now);
        Ok(())
    }

    /// Counts a certificate that was issued.
    pub(super) fn count_certificate(&mut self, names: &[String], now: Moment) {
        self.allowance.count(Limit::ExactSet, &names.join(","), now);
        for name in names {
            self.allowance.count(Limit::RegisteredDomain, Hostname::trusted(name).registered_domain(), now);
        }
    }

    /// Counts a validation that failed.
    pub(super) fn count_failure(&mut self, account: &AccountNo, name: &str, now: Moment) {
        self.allowance.count(Limit::FailedAuthorizations, &failing(&account.to_string(), name), now);
    }
}

fn failing(account: &str, name: &str) -> String {
    format!("{account} {name}")
}
