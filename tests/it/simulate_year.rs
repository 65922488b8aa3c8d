//! A year in the life of names: all is kept in a hard world, and the judges notice what is not.

use nameplate::env::Env;
use nameplate::model::moment::Moment;
use nameplate::simulate::{EventKind, Sabotage, YearOptions, YearReport, simulate_year, year_terminal};
use serde_json::Value;

const START: Moment = Moment::from_secs(1_800_000_000);

fn small(domains: usize, days: u32, certificate_days: u32, hostile_percent: u32, seed: u64) -> YearOptions {
    let mut options = YearOptions::of(domains, seed, START);
    (options.days, options.certificate_days, options.hostile_percent) = (days, certificate_days, hostile_percent);
    options
}

async fn run(options: YearOptions) -> YearReport {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    simulate_year(options, &Env::real(), &mut |_| {}).await.unwrap()
}

async fn holds(options: YearOptions) -> YearReport {
    let mut report = run(options).await;
    if !report.holds() {
        report.course.clear();
        panic!("{report:#?}");
    }
    report
}

#[tokio::test]
async fn simulate_year_in_a_kind_world_renews_everything_and_alerts_nobody() {
    let report = holds(small(8, 140, 90, 0, 1)).await;
    // Each name has its first certificate within the first days, and the next about every sixty.
    assert!((12..=24).contains(&report.renewals), "{}", report.renewals);
    assert_eq!((report.webhooks, report.expired_others, report.crashes), (0, 0, 0), "{report:?}");
    // Once a day each, from the day after it was served on.
    assert!((1_000..=1_120).contains(&report.looks), "{}", report.looks);
    let last = report.course.last().unwrap();
    assert_eq!((last.day, last.by_life.iter().sum::<usize>()), (140, 8));
    assert!(year_terminal(&report.course).len() > 20);
}

#[tokio::test]
async fn simulate_year_one_seed_makes_one_history() {
    let told = |report: &YearReport| {
        let mut told = serde_json::to_value(report).unwrap();
        told["wall_s"] = Value::Null;
        told
    };
    let first = holds(small(6, 40, 20, 100, 5)).await;
    assert_eq!(told(&first), told(&holds(small(6, 40, 20, 100, 5)).await));
    assert_ne!(told(&first), told(&holds(small(6, 40, 20, 100, 6)).await));
}

#[tokio::test]
async fn simulate_year_holds_whatever_the_seed() {
    let mut seen = std::collections::BTreeSet::new();
    for (seed, days, certificate_days) in [(11, 100, 90), (12, 80, 45)] {
        let report = holds(small(30, days, certificate_days, 60, seed)).await;
        assert!(report.renewals > 10 && report.webhooks > 10 && report.crashes > 30, "{report:?}");
        assert!(report.reminders > 3, "{report:?}");
        seen.extend(report.events.keys().copied());
    }
    assert_eq!(seen.len(), 17, "every kind of event: {seen:?}");
    assert!(seen.contains(&EventKind::Moved));
}

#[tokio::test]
async fn simulate_year_holds_with_certificates_of_six_days() {
    for seed in [21, 22] {
        let report = holds(small(10, 24, 6, 100, seed)).await;
        assert!(report.renewals > 30, "{report:?}");
    }
}

/// Every judge notices what it is there for.
#[tokio::test]
async fn simulate_year_notices_what_is_done_behind_its_back() {
    let sabotaged = |what, days| {
        let mut options = small(6, days, 30, 0, 3);
        options.sabotage = Some(what);
        run(options)
    };
    let report = sabotaged(Sabotage::RouteToStranger, 22).await;
    assert!(report.invariant_violations > 0 && report.takeovers > 0, "{report:?}");
    let report = sabotaged(Sabotage::LetGo, 22).await;
    assert!(report.invariant_violations > 0, "{report:?}");
    let report = sabotaged(Sabotage::Forget, 22).await;
    assert!(report.invariant_violations > 0, "{report:?}");
    let report = sabotaged(Sabotage::Free, 22).await;
    assert!(report.released_dangling > 0 && report.invariant_violations > 0, "{report:?}");
    let mut options = small(20, 70, 90, 100, 3);
    options.sabotage = Some(Sabotage::SilenceTheLeft);
    let report = run(options).await;
    assert!(report.alerts_missed > 0 && report.findings.iter().any(|said| said.contains("who let go of it")), "{report:?}");
    // Nothing is renewed, so that alerts are due: all of them come, and certificates end although all is well.
    let report = sabotaged(Sabotage::StopRenewals, 55).await;
    assert!(report.expired_healthy > 0 && report.webhooks > 0, "{report:?}");
    assert_eq!((report.alerts_missed, report.alerts_doubled, report.alerts_untrue), (0, 0, 0), "{report:?}");
    assert!(report.slowest_alert_s > 0.0 && report.slowest_alert_s < 60.0, "{report:?}");
    let report = sabotaged(Sabotage::SwallowAlerts, 55).await;
    assert!(report.alerts_missed > 0, "{report:?}");
    let report = sabotaged(Sabotage::DoubleAlerts, 55).await;
    assert!(report.alerts_doubled > 0, "{report:?}");
}
