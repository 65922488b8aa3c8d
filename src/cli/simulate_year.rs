//! `nameplate simulate year`: a year in the life of names that are served, in a world that is not kind.

use anyhow::bail;
use clap::Args;

use super::Out;
use super::out::many;
use super::simulate::moment;
use crate::env::Env;
use crate::model::moment::Moment;
use crate::simulate::{self, YearOptions, YearReport};

#[derive(Args)]
pub(super) struct YearArgs {
    /// Names that are served
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    domains: u32,
    /// How long it lasts
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3_650))]
    days: u32,
    /// How long a certificate is good
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(2..=398))]
    certificate_days: u32,
    /// So many of a hundred names meet something hostile in each month; 0 for a kind world
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=100))]
    hostile_percent: u32,
    /// When it begins, as RFC 3339 [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    start: Option<Moment>,
    /// What all chance is drawn from; the same seed makes the same history
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) async fn run(env: &Env, args: YearArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let mut options = YearOptions::of(usize::try_from(args.domains)?, args.seed, args.start.unwrap_or_else(|| env.now()));
    options.days = args.days;
    options.certificate_days = args.certificate_days;
    options.hostile_percent = args.hostile_percent;
    let env = env.clone();
    // One thread has it all, as with an import.
    let simulated = tokio::task::spawn_blocking(move || {
        let one = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        anyhow::Ok(one.block_on(simulate::simulate_year(options, &env, &mut |_| {}))?)
    });
    let report = simulated.await??;
    if out.json {
        out.document(&report)?;
    } else {
        print(&report, out)?;
    }
    if !report.holds() {
        bail!("something did not hold; --seed {} shows it again", report.seed);
    }
    Ok(())
}

fn print(report: &YearReport, out: &mut Out<'_>) -> std::io::Result<()> {
    for line in simulate::year_terminal(&report.course) {
        out.line(&line)?;
    }
    out.line(&format!(
        "{} for {} days: {}, {}, {} at the CA, {} refused for a limit.",
        many(report.domains, "name"),
        report.days,
        many(report.renewals, "renewal"),
        many(report.looks, "look"),
        many(report.polls, "question"),
        report.rate_limited
    ))?;
    out.line(&format!(
        "{} of names that were well ended; {} of names with which something was wrong did.",
        many(report.expired_healthy, "certificate"),
        report.expired_others
    ))?;
    out.line(&format!(
        "{} taken over, {} released while dangling, {} of what must always hold.",
        many(report.takeovers, "name"),
        report.released_dangling,
        many(report.invariant_violations, "violation")
    ))?;
    out.line(&format!(
        "{} taken: {} missing, {} twice, {} untrue; the slowest of a threshold came after {:.0} s, where a process died on the way after {:.0} s.",
        many(report.webhooks, "webhook"),
        report.alerts_missed,
        report.alerts_doubled,
        report.alerts_untrue,
        report.slowest_alert_s,
        report.slowest_alert_after_crash_s
    ))?;
    for (kind, n) in &report.events {
        let kind = serde_json::to_value(kind).unwrap_or_default();
        out.line(&format!("{n:>8} {}", kind.as_str().unwrap_or_default()))?;
    }
    for finding in &report.findings {
        out.line(finding)?;
    }
    out.line(&format!("Simulated in {:.1} s.", report.wall_s))
}
