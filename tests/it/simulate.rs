//! The capacity planner: the real product on virtual time, at a CA that counts and answers late.

use nameplate::env::Env;
use nameplate::model::ledger::Limit;
use nameplate::model::moment::Moment;
use nameplate::simulate::{FloorLimit, ImportOptions, ImportReport, simulate_import, svg, terminal};
use serde_json::Value;

const START: Moment = Moment::from_secs(1_800_000_000);

/// A small import at a CA that takes an order every 72 s.
fn small(domains: usize, seed: u64) -> ImportOptions {
    let mut options = ImportOptions::of(domains, seed, START);
    options.limits.orders = Limit { burst: 10, per_secs: 720 };
    options.singles = 4;
    options
}

async fn run(options: ImportOptions) -> ImportReport {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    simulate_import(options, &Env::real(), &mut |_| {}).await.unwrap()
}

/// What must hold of every run: nothing was asked for too often, nothing made twice.
fn holds(report: &ImportReport) {
    assert_eq!((report.rate_limited, report.duplicate_orders, report.second_certificates), (0, 0, 0), "{report:?}");
    assert!(report.limits.iter().all(|used| used.fullest_pct <= 100.0), "{:?}", report.limits);
}

#[tokio::test]
async fn an_import_ends_when_the_limit_allows_and_one_seed_makes_one_history() {
    let told = |report: &ImportReport| {
        let mut told = serde_json::to_value(report).unwrap();
        told["wall_s"] = Value::Null;
        told
    };
    let first = run(small(70, 1)).await;
    holds(&first);
    assert!(first.crashes > 0, "a worker dies every hour");
    let (last, floor) = (first.last_certificate_hours, first.floor_hours);
    // Beyond the floor lie the answers of the last order, and the lease of a worker that died with it.
    assert!(last >= floor - 0.01 && last <= floor + 0.2, "{last} h, at best {floor} h");
    assert!(first.single_claim_wait_p99_s <= 120.0, "{first:?}");
    assert_eq!(told(&first), told(&run(small(70, 1)).await));
    assert_eq!(terminal(&first.hours, 74).len(), first.hours.len().min(25));
    assert!(svg(&first.hours, 74).contains("74 names"));
    // From nobody to the last certificate, which lies within the last hour.
    let (begins, ends) = (&first.hours[0], first.hours.last().unwrap());
    assert_eq!((begins.hour, begins.certificates, ends.certificates), (0, 0, 74), "{:?}", first.hours);
    assert!(first.eta_error_p95_pct.is_some() && first.floor_limit == FloorLimit::OrdersPerAccount);
}

#[tokio::test]
async fn crowded_registered_domains_wait_for_their_own_week() {
    let mut options = small(45, 2);
    options.registered_domains = Some(3);
    options.limits.registered_domain = Limit { burst: 10, per_secs: 10 * 3_600 };
    options.singles = 0;
    let report = run(options).await;
    holds(&report);
    // Fifteen names each, ten at once, then one an hour.
    assert!((5.0..6.0).contains(&report.last_certificate_hours), "{}", report.last_certificate_hours);
    assert_eq!((report.floor_hours, report.floor_limit), (5.0, FloorLimit::CertificatesPerDomain));
}

/// Under a limit of their own names wait in a line, and are told when its end comes to them.
#[tokio::test]
async fn who_waits_for_a_registered_domain_is_told_when_and_it_is_so() {
    let mut options = small(240, 5);
    options.registered_domains = Some(4);
    options.limits.orders = Limit { burst: 100, per_secs: 3_600 };
    options.limits.registered_domain = Limit { burst: 10, per_secs: 10 * 3_600 };
    (options.singles, options.crashes) = (0, false);
    let report = run(options).await;
    holds(&report);
    assert_eq!(report.floor_hours, 50.0);
    // A fortieth of an hour is what answers take; of the last hour before a grant that is more than of the fifty before.
    let off = report.eta_error_p95_pct.unwrap();
    assert!(off <= 5.0 && report.eta_samples > 4_000, "{off} % of {} samples", report.eta_samples);
}

#[tokio::test]
async fn what_is_through_at_once_has_no_samples_and_a_whole_picture() {
    let mut options = small(6, 4);
    (options.singles, options.crashes) = (0, false);
    let report = run(options).await;
    assert_eq!((report.eta_samples, report.eta_error_p95_pct, report.above_floor_pct), (0, None, None), "{report:?}");
    assert_eq!(report.hours.iter().map(|h| (h.hour, h.certificates)).collect::<Vec<_>>(), [(0, 0), (1, 6)]);
    let drawn = svg(&report.hours, 6);
    assert!(drawn.split("points=\"").nth(2).unwrap().split('"').next().unwrap().contains(' '), "a line: {drawn}");
}

#[test]
fn what_cannot_be_simulated_or_written_is_refused_before_it_begins() {
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_nameplate"))
            .args(["simulate", "import"])
            .args(arguments)
            .env_clear()
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(&["--domains", "10", "--registered-domains", "11"]);
    assert!(code == Some(1) && said.contains("--registered-domains 11 is more than --domains 10"), "{said}");
    for limits in ["failures_per_name=5/3600", "certificates_per_domain=0/10", "300"] {
        let (code, said) = run(&["--limits", limits]);
        assert!(code == Some(2) && said.contains("one of orders_per_account, certificates_per_domain"), "{limits}: {said}");
    }
    // So many names would take a while.
    let (code, said) = run(&["--domains", "1000000", "--svg", "/nowhere/at/all.svg"]);
    assert!(code == Some(1) && said.contains("--svg /nowhere/at/all.svg cannot be written"), "{said}");
}

#[tokio::test]
async fn whatever_the_seed_no_worker_that_dies_costs_a_second_certificate_or_leaves_a_name_behind() {
    for seed in [7, 8, 9, 10, 11, 12] {
        let mut options = small(60, seed);
        options.singles = 12;
        let report = run(options).await;
        holds(&report);
        assert!(report.crashes > 0, "a worker dies every hour");
        // A claim whose worker died waits for the end of its lease, two minutes, and for a slot or two.
        assert!(report.single_claim_wait_p99_s <= 400.0, "{seed}: {report:?}");
    }
}

#[tokio::test]
async fn more_names_than_workers_can_hold_wait_for_one() {
    let mut options = small(40, 3);
    (options.workers, options.concurrency) = (1, 2);
    options.limits.orders = Limit { burst: 60, per_secs: 720 };
    holds(&run(options).await);
}
