//! What a simulated import came to.

use std::time::Duration;

use serde::Serialize;

use super::SimulationError;
use super::ca::Used;
use super::import::{Granted, ImportOptions, grants};
use super::world::World;
use crate::model::id::OrderId;
use crate::model::ledger::Limit;
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::store::sql;

/// The state after an hour.
#[derive(Clone, Debug, Serialize)]
pub struct HourPoint {
    /// Hours since the start.
    pub hour: u64,
    /// Names that are served.
    pub certificates: usize,
    /// Orders that wait.
    pub waiting: i64,
}

/// A time that somebody was told.
pub(super) struct Told {
    pub(super) order: OrderId,
    pub(super) at: Moment,
    pub(super) eta: Moment,
}

/// How long the claims of a lane waited from the claim to the grant.
#[derive(Clone, Debug, Serialize)]
pub struct LaneWaits {
    /// The lane.
    pub lane: String,
    /// Its grants.
    pub grants: usize,
    /// The middle one, in seconds.
    pub p50_s: f64,
    /// The 99th of 100, in seconds.
    pub p99_s: f64,
}

/// What a simulated import came to.
#[derive(Clone, Debug, Serialize)]
pub struct ImportReport {
    /// The seed.
    pub seed: u64,
    /// Names in the import.
    pub domains: usize,
    /// Claims made by hand in the middle of it.
    pub single_claims: usize,
    /// From the start to the last certificate.
    pub last_certificate_hours: f64,
    /// What the limits allow at best: that of the account, (all budgeted orders - burst) x interval, or that of the registered
    /// domain with the most names, whichever takes longer.
    pub floor_hours: f64,
    /// Which of them that is.
    pub floor_limit: FloorLimit,
    /// How far above the floor it ended; nothing where all may be ordered at once.
    pub above_floor_pct: Option<f64>,
    /// Orders that the CA counted.
    pub orders: u64,
    /// Calls that the CA refused for a limit.
    pub rate_limited: u64,
    /// Orders at the CA that belong to no order of ours, but for those whose answer was lost with a worker.
    pub duplicate_orders: u64,
    /// Certificates for a name that had one.
    pub second_certificates: u64,
    /// Orders whose answer was lost with a worker.
    pub lost_orders: u64,
    /// Workers that died.
    pub crashes: u64,
    /// From the claim to the grant, for claims made by hand: the 99th of 100.
    pub single_claim_wait_p99_s: f64,
    /// How far the times that were told were off, in parts of the time that remained: the 95th of 100; nothing where there are no
    /// samples.
    pub eta_error_p95_pct: Option<f64>,
    /// Times that were told and came true or not.
    pub eta_samples: usize,
    /// Waits by lane.
    pub lanes: Vec<LaneWaits>,
    /// How near each limit was come to.
    pub limits: Vec<Used>,
    /// The course of it.
    pub hours: Vec<HourPoint>,
    /// Real seconds that it took.
    pub wall_s: f64,
}

impl ImportReport {
    pub(super) async fn of(
        world: &World,
        options: &ImportOptions,
        served_at: &[Moment],
        hours: Vec<HourPoint>,
        told: &[Told],
        crashes: u64,
        wall: Duration,
    ) -> Result<Self, SimulationError> {
        let granted = grants(&world.app.store).await?;
        let last = served_at.last().copied().unwrap_or(options.start).since(options.start);
        let orders = world.direct.state().counters().orders_created;
        let (floor, floor_limit) = floor(options, orders);
        let counts = sql("SELECT sum(CASE WHEN state = 'lost' THEN 1 ELSE 0 END) AS lost, count(url) AS known FROM orders");
        let rows = world.app.store.query(counts).await?;
        let count = |column| -> Result<u64, SimulationError> {
            let n = rows.first().map_or(Ok(None), |row| row.opt_int(column))?;
            Ok(n.and_then(|n| u64::try_from(n).ok()).unwrap_or(0))
        };
        let (lost, known) = (count("lost")?, count("known")?);
        let lanes: Vec<LaneWaits> = Lane::ALL.iter().filter_map(|lane| waits(lane.as_str(), granted.values())).collect();
        let single = lanes.iter().find(|l| l.lane == Lane::Single.as_str()).map_or(0.0, |l| l.p99_s);
        let mut errors: Vec<f64> = told
            .iter()
            .filter_map(|t| {
                let granted_at = granted.get(t.order.as_str())?.granted_at;
                let off = granted_at.since(t.eta).max(t.eta.since(granted_at));
                let remained = granted_at.since(t.at);
                (!remained.is_zero()).then(|| off.as_secs_f64() / remained.as_secs_f64() * 100.0)
            })
            .collect();
        let limits = world.ca.used();
        let state = world.direct.state();
        let second = state.counters().certificates_by_name.values().map(|n| n.saturating_sub(1)).sum();
        let (hours_of, percent) = (|d: Duration| rounded(d.as_secs_f64() / 3600.0), rounded);
        Ok(ImportReport {
            seed: options.seed,
            domains: options.domains,
            single_claims: options.singles,
            last_certificate_hours: hours_of(last),
            floor_hours: hours_of(floor),
            floor_limit,
            above_floor_pct: (!floor.is_zero()).then(|| percent((last.as_secs_f64() / floor.as_secs_f64() - 1.0) * 100.0)),
            orders,
            rate_limited: state.counters().limits_passed,
            duplicate_orders: state.counters().orders_created.saturating_sub(known).saturating_sub(lost),
            second_certificates: second,
            lost_orders: lost,
            crashes,
            single_claim_wait_p99_s: single,
            eta_samples: errors.len(),
            eta_error_p95_pct: (!errors.is_empty()).then(|| rounded(percentile(&mut errors, 95))),
            lanes,
            limits,
            hours,
            wall_s: rounded(wall.as_secs_f64()),
        })
    }
}

/// The limit that an import runs into last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorLimit {
    /// Orders of the account.
    OrdersPerAccount,
    /// Certificates under one registered domain.
    CertificatesPerDomain,
}

impl FloorLimit {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            FloorLimit::OrdersPerAccount => "the account's limit",
            FloorLimit::CertificatesPerDomain => "the limit of a registered domain",
        }
    }
}

/// What the limits allow at best for so many orders at the account, and for the names under the fullest registered domain.
fn floor(options: &ImportOptions, orders: u64) -> (Duration, FloorLimit) {
    let at_best = |limit: Limit, n: u64| limit.interval() * u32::try_from(n).unwrap_or(u32::MAX).saturating_sub(limit.burst);
    let account = at_best(options.limits.orders, orders);
    let registered = options.registered_domains.unwrap_or(options.domains).clamp(1, options.domains.max(1));
    let fullest = options.domains.div_ceil(registered);
    let domain = at_best(options.limits.registered_domain, u64::try_from(fullest).unwrap_or(u64::MAX));
    if domain > account { (domain, FloorLimit::CertificatesPerDomain) } else { (account, FloorLimit::OrdersPerAccount) }
}

fn waits<'a>(lane: &str, granted: impl Iterator<Item = &'a Granted>) -> Option<LaneWaits> {
    let mut all: Vec<f64> =
        granted.filter(|g| g.lane == lane).map(|g| g.granted_at.since(g.claimed_at).as_secs_f64()).collect();
    (!all.is_empty()).then(|| LaneWaits {
        lane: lane.to_owned(),
        grants: all.len(),
        p50_s: rounded(percentile(&mut all, 50)),
        p99_s: rounded(percentile(&mut all, 99)),
    })
}

/// The value that `of` of 100 do not exceed.
fn percentile(all: &mut [f64], of: usize) -> f64 {
    all.sort_by(f64::total_cmp);
    let at = (all.len() * of).div_ceil(100).saturating_sub(1);
    all.get(at).copied().unwrap_or_default()
}

fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{FloorLimit, floor, percentile};
    use crate::model::moment::Moment;
    use crate::simulate::ImportOptions;

    #[test]
    fn the_floor_knows_the_limit_that_is_run_into_last() {
        let mut options = ImportOptions::of(10_000, 1, Moment::from_secs(0));
        assert_eq!(floor(&options, 10_100), (Duration::from_secs(36) * 9_800, FloorLimit::OrdersPerAccount));
        // 250 names each: 200 beyond the fifty at once, a fiftieth of a week for each.
        options.registered_domains = Some(40);
        let slowest = Duration::from_secs(7 * 86_400) / 50 * 200;
        assert_eq!(floor(&options, 10_100), (slowest, FloorLimit::CertificatesPerDomain));
        assert_eq!(floor(&ImportOptions::of(300, 1, Moment::from_secs(0)), 300).0, Duration::ZERO);
    }

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let mut all: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!((percentile(&mut all, 50), percentile(&mut all, 95), percentile(&mut all, 99)), (100.0, 190.0, 198.0));
        assert_eq!(percentile(&mut [7.0], 99), 7.0);
        assert_eq!(percentile(&mut [], 99), 0.0);
    }
}
