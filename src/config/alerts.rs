//! `alerts` and `webhooks`: when somebody is told, and how long a place that fails is tried.

use std::time::Duration;

use super::reader::Reader;
use crate::model::alert::threshold::{LOOSEST, Thresholds};

/// The sections.
#[derive(Clone, Debug)]
pub struct AlertsConfig {
    /// With how much of its lifetime left a certificate is told of.
    pub thresholds: Thresholds,
    /// After which silence the workers count as stopped.
    pub workers_silent: Duration,
    /// A webhook that took nothing for so long is switched off.
    pub disable_after: Duration,
    /// One that did not answer at all for so long is, too.
    pub disable_silent_after: Duration,
    /// For how long what was sent is kept, and what waits for a webhook that is switched off.
    pub keep_deliveries: Duration,
    /// For how long alerts that are over are kept.
    pub keep_alerts: Duration,
    /// Ports that webhooks may name.
    pub ports: Vec<u16>,
}

impl AlertsConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let usual = Thresholds::default();
        let percents: Vec<u32> = r.value(
            "alerts.expiry_percent",
            vec![25, 10, 3],
            "With how many hundredths of its lifetime left a certificate is told of that was not renewed; its end always is.",
        );
        let thresholds = Thresholds::new(percents.iter().map(|p| i64::from(*p))).unwrap_or_else(|| {
            r.problem("alerts.expiry_percent", "", format!("each number must be from 1 to {LOOSEST}"));
            usual
        });
        AlertsConfig {
            thresholds,
            workers_silent: r.value(
                "alerts.workers_silent",
                Duration::from_secs(600),
                "After which silence of the workers, or for how long a domain may be overdue, before that is an alert.",
            ),
            disable_after: r.value(
                "webhooks.disable_after",
                Duration::from_secs(5 * 86_400),
                "A webhook that answered for so long without taking anything is switched off, with an alert.",
            ),
            disable_silent_after: r.value(
                "webhooks.disable_silent_after",
                Duration::from_secs(15 * 86_400),
                "A webhook that did not answer at all for so long is switched off, with an alert; time in which it was not tried does not count.",
            ),
            keep_deliveries: r.value(
                "webhooks.keep",
                Duration::from_secs(30 * 86_400),
                "For how long what was sent by webhook and mail is kept, and what waits for a webhook that is switched off.",
            ),
            keep_alerts: r.value(
                "alerts.keep",
                Duration::from_secs(180 * 86_400),
                "For how long alerts that are over are kept.",
            ),
            ports: r.value("webhooks.ports", vec![443, 8443], "Ports that the URLs of webhooks may name."),
        }
    }
}
