//! Families whose labels come from short lists.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// One label.
pub(super) type One = [(&'static str, &'static str); 1];
/// Two labels.
pub(super) type Two = [(&'static str, &'static str); 2];
/// Three labels.
pub(super) type Three = [(&'static str, &'static str); 3];

/// A counter for each value of one label, all of them there from the start: what never happened is 0, not missing.
pub(super) fn counters(label: &'static str, values: &[&'static str]) -> Family<One, Counter> {
    let family = Family::<One, Counter>::default();
    for value in values {
        drop(family.get_or_create(&[(label, *value)]));
    }
    family
}

/// A gauge for each value of one label.
pub(super) fn gauges<G: Default>(label: &'static str, values: &[&'static str]) -> Family<One, G> {
    let family = Family::<One, G>::default();
    for value in values {
        drop(family.get_or_create(&[(label, *value)]));
    }
    family
}

/// The classes of statuses.
pub(super) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The class of a status.
pub(super) fn class(status: u16) -> &'static str {
    let at = usize::from(status / 100).clamp(1, CLASSES.len());
    CLASSES[at - 1]
}

/// A histogram of times for each value of one label.
pub(super) fn times_by(label: &'static str, values: &[&'static str]) -> Family<One, Histogram> {
    let family = Family::<One, Histogram>::new_with_constructor(times);
    for value in values {
        drop(family.get_or_create(&[(label, *value)]));
    }
    family
}

/// From 1 ms to a minute.
pub(super) fn times() -> Histogram {
    Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0])
}

/// The release.
pub(super) fn build() -> Family<One, Gauge> {
    let family = Family::<One, Gauge>::default();
    family.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);
    family
}

/// A count as a gauge holds it.
pub(super) fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
