//! The rules for Prometheus and the dashboard: tried by Prometheus's own tool, and true to the metrics there are.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use nameplate::telemetry::metrics::catalogue::{CONTROL, EDGE, Kind};
use serde_json::Value;

use crate::support::services::promtool;

fn deploy(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file)
}

/// The names that queries may use.
fn known() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for metric in CONTROL.iter().chain(EDGE) {
        if metric.kind == Kind::Histogram {
            all.extend(["_bucket", "_sum", "_count"].map(|part| format!("{}{part}", metric.scraped())));
        } else {
            all.insert(metric.scraped());
        }
    }
    all
}

/// The metrics in an expression.
fn named(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("nameplate_")).map(str::to_owned).collect()
}

/// Words of a label that a query picks must be among those that the catalogue lists.
fn check_labels(expression: &str) {
    let all: String = CONTROL.iter().chain(EDGE).map(|m| m.labels).collect::<Vec<_>>().join("; ");
    for value in expression.split('"').skip(1).step_by(2).flat_map(|text| text.split('|')) {
        let words: BTreeSet<&str> = all.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        assert!(words.contains(value), "{value:?} of {expression} is no value of any label");
    }
}

#[test]
fn the_rules_do_what_their_tests_say() {
    for arguments in [["check", "rules", "nameplate.rules.yml"], ["test", "rules", "nameplate.test.yml"]] {
        let done = Command::new(promtool()).args(arguments).current_dir(deploy("prometheus")).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{said}");
        assert!(said.contains("SUCCESS"), "{said}");
    }
}

#[test]
fn every_rule_is_tested_both_ways_and_names_metrics_that_exist() {
    let rules = std::fs::read_to_string(deploy("prometheus/nameplate.rules.yml")).unwrap();
    let tests = std::fs::read_to_string(deploy("prometheus/nameplate.test.yml")).unwrap();
    let (known, mut seen) = (known(), 0);
    for line in rules.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            seen += 1;
            let fires = format!("alertname: {name}\n        exp_alerts: [{{");
            assert!(tests.contains(&fires), "{name} is not tested to fire");
            let quiet = format!("alertname: {name}, exp_alerts: []");
            assert!(tests.contains(&quiet) || name == "NameplateWatchdog", "{name} is not tested to be quiet");
        }
        if let Some(expression) = line.strip_prefix("expr: ") {
            for metric in named(expression) {
                assert!(known.contains(&metric), "no metric {metric}");
            }
            check_labels(expression);
        }
    }
    assert!(seen >= 12, "{seen}");
    for line in tests.lines().filter(|line| line.contains("series: '")) {
        for metric in named(line.split('\'').nth(1).unwrap()) {
            assert!(known.contains(&metric), "no metric {metric} as in the tests");
        }
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let text = std::fs::read_to_string(deploy("grafana/nameplate.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let (known, mut asked) = (known(), 0);
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(!panel["title"].as_str().unwrap().is_empty());
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let names = named(expression);
            assert!(!names.is_empty(), "{expression}");
            for metric in names {
                assert!(known.contains(&metric), "{}: no metric {metric}", panel["title"]);
            }
            check_labels(expression);
            asked += 1;
        }
    }
    assert!(asked >= 15, "{asked}");
}
