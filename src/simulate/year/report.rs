//! What a simulated year came to.

use std::collections::BTreeMap;

use serde::Serialize;

use super::script::EventKind;

/// The state at the end of a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DayPoint {
    /// Days since the start.
    pub day: u32,
    /// Certificates issued in it for names that had one.
    pub renewals: u64,
    /// Names served with more than half of the certificate's life left, with less, with less than a quarter, and with an
    /// ended one.
    pub by_life: [usize; 4],
}

/// What a simulated year came to.
#[derive(Clone, Debug, Serialize)]
pub struct YearReport {
    /// The seed.
    pub seed: u64,
    /// Names that were served at a time.
    pub domains: usize,
    /// Virtual days.
    pub days: u32,
    /// How long a certificate is good.
    pub certificate_days: u32,
    /// So many of a hundred names met something hostile in each month.
    pub hostile_percent: u32,
    /// Certificates that followed another.
    pub renewals: u64,
    /// Names with which all was well for a day, and whose served certificate had ended.
    pub expired_healthy: u64,
    /// Names whose certificate ended while something was wrong with them.
    pub expired_others: u64,
    /// Findings of the oracle.
    pub invariant_violations: u64,
    /// Alerts that should have come and did not.
    pub alerts_missed: u64,
    /// Alerts that came twice.
    pub alerts_doubled: u64,
    /// Alerts that came although nothing of it was so.
    pub alerts_untrue: u64,
    /// Names that became free for anybody while they still led to us.
    pub released_dangling: u64,
    /// Claims that held or served a name without a proof of their own.
    pub takeovers: u64,
    /// Calls that the CA refused for a limit.
    pub rate_limited: u64,
    /// Messages that the receiver took.
    pub webhooks: u64,
    /// How often a tenant was told of a name that it let go of and that still leads to us.
    pub reminders: u64,
    /// The longest between a threshold and the webhook's acceptance, while the receiver was up and no process died; in seconds.
    pub slowest_alert_s: f64,
    /// The same where a process died meanwhile: what it was about to send is nobody else's for a while.
    pub slowest_alert_after_crash_s: f64,
    /// Looks of the daily batches, and those of them that saw a difference.
    pub looks: u64,
    /// Of those, how many saw something else than before.
    pub differences: u64,
    /// Questions to the CA when to renew.
    pub polls: u64,
    /// Orders that the CA took.
    pub orders: u64,
    /// Orders that the CA refused to take as a replacement.
    pub refused_replaces: u64,
    /// Answers of the CA about a window that could not be used.
    pub odd_windows: u64,
    /// Steps of the one door.
    pub steps: u64,
    /// Processes that died.
    pub crashes: u64,
    /// How often the oracle looked at a name.
    pub checks: u64,
    /// What befell the world, by kind.
    pub events: BTreeMap<EventKind, u64>,
    /// The course of it.
    pub course: Vec<DayPoint>,
    /// What was found, in words; the first ones, where they are many.
    pub findings: Vec<String>,
    /// Real seconds that it took.
    pub wall_s: f64,
}

/// A threshold that is crossed is told within this.
const ALERTED_S: f64 = 60.0;

impl YearReport {
    /// Whether everything that must be so was so.
    pub fn holds(&self) -> bool {
        let counts = [
            self.expired_healthy,
            self.invariant_violations,
            self.alerts_missed,
            self.alerts_doubled,
            self.alerts_untrue,
            self.released_dangling,
            self.takeovers,
            self.rate_limited,
        ];
        counts.iter().all(|n| *n == 0) && self.slowest_alert_s <= ALERTED_S
    }
}
