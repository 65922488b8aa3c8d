//! From the catalogue to a registry, to the text that is scraped, and to the page that lists it all.

use std::fmt::Write as _;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::{Metric as Encodes, Registry, Unit};

use super::catalogue::{CONTROL, EDGE, Kind, Metric};

/// The form of what is scraped.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn registry() -> Registry {
    Registry::with_prefix("nameplate")
}

/// Registers what measures `metric` under the catalogue's words. The encoder ends the sentence itself.
pub(super) fn register(registry: &mut Registry, metric: &Metric, measures: impl Encodes) {
    let help = metric.help.trim_end_matches('.');
    match metric.unit {
        None => registry.register(metric.name, help, measures),
        Some("bytes") => registry.register_with_unit(metric.name, help, Unit::Bytes, measures),
        Some(_) => registry.register_with_unit(metric.name, help, Unit::Seconds, measures),
    }
}

/// What is scraped.
pub(super) fn text(registry: &Registry) -> String {
    let mut out = String::with_capacity(16 * 1024);
    // Writing to a string cannot fail.
    let _ = encode(&mut out, registry);
    out
}

/// The tables of `docs/metrics.md`.
pub fn reference() -> String {
    let mut out = String::new();
    for (title, list) in [("Edge", EDGE), ("Control plane", CONTROL)] {
        let _ = write!(out, "\n## {title}\n\n| Name | Kind | Labels | Meaning |\n|---|---|---|---|\n");
        for metric in list {
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            let _ = writeln!(out, "| `{}` | {kind} | {} | {} |", metric.scraped(), metric.labels, metric.help);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{ControlMeters, EdgeMeters};
    use super::*;

    /// Names and kinds as a scrape declares them.
    fn declared(text: &str) -> BTreeSet<String> {
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
    }

    fn listed(list: &[Metric]) -> BTreeSet<String> {
        let kind = |m: &Metric| match m.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        list.iter().map(|m| format!("{} {}", m.scraped().trim_end_matches("_total"), kind(m))).collect()
    }

    #[test]
    fn what_is_scraped_is_what_is_listed() {
        let control = ControlMeters::default();
        control.api_request("GET", "/", 200, std::time::Duration::from_millis(3));
        for (list, text) in [(EDGE, EdgeMeters::default().text()), (CONTROL, control.text())] {
            assert_eq!(declared(&text), listed(list));
            assert!(text.ends_with("# EOF\n"));
            assert_eq!(text.lines().filter(|l| l.starts_with("# HELP ") && !l.ends_with('.')).count(), 0, "{text}");
        }
    }

    #[test]
    fn the_page_lists_exactly_the_metrics_there_are() {
        let page = include_str!("../../../docs/metrics.md");
        let told = reference();
        assert!(page.ends_with(&told), "docs/metrics.md must end with these tables:\n{told}");
    }
}
