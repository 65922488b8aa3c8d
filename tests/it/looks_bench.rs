//! `nameplate bench looks` measures what it says; whether the figures are good is for an optimised build to show.

use std::time::Duration;

use nameplate::env::Env;
use nameplate::sandbox::bench::{LooksSettings, looks};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_run_looks_at_every_domain_and_counts_what_it_sent() {
    let report = looks(LooksSettings { time: Duration::from_secs(2), domains: 40 }, &Env::real()).await.unwrap();
    assert!(report.routine.looks > 20 && report.full.looks > 5, "{report:?}");
    // As many as tests/it/dns_limits.rs counts without sockets, and none twice.
    assert!((9.0..=12.5).contains(&report.routine.packets_per_look), "{report:?}");
    assert!((15.0..=31.0).contains(&report.full.packets_per_look), "{report:?}");
    assert!(report.memory.as_ref().is_some_and(|m| m.most_mb >= m.early_mb && m.early_mb > 1.0), "{report:?}");
    let lines = report.lines().join("\n");
    assert!(lines.contains("target 1000") && lines.contains("p50 under 50 ms"), "{lines}");
    assert_eq!(report.optimised, !cfg!(debug_assertions));
    let document = serde_json::to_value(&report).unwrap();
    assert!(document["full"]["p50_ms"].is_number() && document["routine"]["per_second"].is_number());
}
