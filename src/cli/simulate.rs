//! `nameplate simulate`: the product on virtual time, to plan capacity with.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};

use super::Out;
use super::out::many;
use super::simulate_year::{self, YearArgs};
use crate::env::Env;
use crate::model::ledger::Limit;
use crate::model::limits::LimitName;
use crate::model::moment::Moment;
use crate::simulate::{self, ImportOptions, ImportReport};

#[derive(Subcommand)]
pub(super) enum SimulateCommand {
    /// An import of thousands of names at one CA account: when it ends, and how near the limits it comes
    Import(ImportArgs),
    /// A year in the life of names that are served: renewals, alerts and releases, in a world that is not kind
    Year(YearArgs),
}

#[derive(Args)]
pub(super) struct ImportArgs {
    /// Names in the import
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    domains: u32,
    /// Registered domains that they are under [default: one each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    registered_domains: Option<u32>,
    /// Claims made by hand meanwhile [default: one for a hundred names]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    single_claims: Option<u32>,
    /// Workers
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// A limit unlike Let's Encrypt's, BURST/SECONDS, of the account's new orders unless a name is before it, as in
    /// certificates_per_domain=50/604800; may be given for each
    #[arg(long, value_name = "[NAME=]BURST/SECONDS", value_parser = limit)]
    limits: Vec<(LimitName, Limit)>,
    /// When it begins, as RFC 3339 [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    start: Option<Moment>,
    /// What all chance is drawn from; the same seed makes the same history
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Let no worker die
    #[arg(long)]
    no_crashes: bool,
    /// Write the chart there
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// What the simulated CA can be told.
const SIMULATED: [LimitName; 3] =
    [LimitName::OrdersPerAccount, LimitName::CertificatesPerDomain, LimitName::CertificatesPerName];

fn limit(text: &str) -> Result<(LimitName, Limit), String> {
    let (name, numbers) = text.split_once('=').unwrap_or((LimitName::OrdersPerAccount.as_str(), text));
    let read = || -> Option<(LimitName, Limit)> {
        let (burst, per) = numbers.split_once('/')?;
        let limit = Limit { burst: burst.parse().ok()?, per_secs: per.parse().ok()? };
        let name = name.parse().ok().filter(|name| SIMULATED.contains(name))?;
        (limit.burst > 0 && limit.per_secs > 0).then_some((name, limit))
    };
    read().ok_or_else(|| {
        let names = SIMULATED.map(LimitName::as_str).join(", ");
        format!("expected BURST/SECONDS, both at least 1, like 300/10800; before it, if anything, one of {names}, and =")
    })
}

pub(super) fn moment(text: &str) -> Result<Moment, String> {
    Moment::from_rfc3339(text).ok_or_else(|| "expected a time like 2027-01-15T08:00:00Z".to_owned())
}

pub(super) async fn run(env: &Env, command: SimulateCommand, out: &mut Out<'_>) -> anyhow::Result<()> {
    match command {
        SimulateCommand::Import(args) => import(env, args, out).await,
        SimulateCommand::Year(args) => simulate_year::run(env, args, out).await,
    }
}

async fn import(env: &Env, args: ImportArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let domains = usize::try_from(args.domains)?;
    if let Some(registered) = args.registered_domains.filter(|n| *n > args.domains) {
        bail!(
            "--registered-domains {registered} is more than --domains {}: each registered domain has one name at least",
            args.domains
        );
    }
    // Before the hours are simulated that it is to show.
    let mut svg = match &args.svg {
        Some(path) => {
            let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
            Some((file.with_context(|| format!("--svg {} cannot be written", path.display()))?, path))
        }
        None => None,
    };
    let mut options = ImportOptions::of(domains, args.seed, args.start.unwrap_or_else(|| env.now()));
    options.registered_domains = args.registered_domains.map(usize::try_from).transpose()?;
    options.workers = usize::try_from(args.workers)?;
    for (name, limit) in args.limits {
        match name {
            LimitName::CertificatesPerDomain => options.limits.registered_domain = limit,
            LimitName::CertificatesPerName => options.limits.exact_set = limit,
            _ => options.limits.orders = limit,
        }
    }
    options.crashes = !args.no_crashes;
    if let Some(singles) = args.single_claims {
        options.singles = usize::try_from(singles)?;
    }
    let env = env.clone();
    // One thread has it all: it is one task after another, and none is to wake another thread.
    let simulated = tokio::task::spawn_blocking(move || {
        let one = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        anyhow::Ok(one.block_on(simulate::simulate_import(options, &env, &mut |_| {}))?)
    });
    let report = simulated.await??;
    if let Some((file, path)) = &mut svg {
        let drawn = simulate::svg(&report.hours, report.domains + report.single_claims);
        let written = file.set_len(0).and_then(|()| file.write_all(drawn.as_bytes()));
        written.with_context(|| format!("--svg {} cannot be written", path.display()))?;
    }
    if out.json {
        out.document(&report)?;
    } else {
        print(&report, out)?;
    }
    Ok(())
}

fn print(report: &ImportReport, out: &mut Out<'_>) -> std::io::Result<()> {
    for line in simulate::terminal(&report.hours, report.domains + report.single_claims) {
        out.line(&line)?;
    }
    out.line(&format!(
        "{} and {} by hand: the last certificate after {:.2} h; {} allows {:.2} h at best{}.",
        many(report.domains, "name"),
        many(report.single_claims, "claim"),
        report.last_certificate_hours,
        report.floor_limit.words(),
        report.floor_hours,
        report.above_floor_pct.map(|above| format!(" ({above:+.2} %)")).unwrap_or_default()
    ))?;
    out.line(&format!(
        "{}, {} refused for a limit, {} placed twice, {}; {} died, {} lost with them.",
        many(report.orders, "order"),
        report.rate_limited,
        report.duplicate_orders,
        many(report.second_certificates, "second certificate"),
        many(report.crashes, "worker"),
        many(report.lost_orders, "answer")
    ))?;
    for lane in &report.lanes {
        out.line(&format!(
            "{:>8}: {}, waited {:.1} s in the middle, {:.1} s at p99",
            lane.lane,
            many(lane.grants, "grant"),
            lane.p50_s,
            lane.p99_s
        ))?;
    }
    match (report.eta_error_p95_pct, report.eta_samples) {
        (None, _) => out.line("No samples of times that were told: nobody waited for longer than an hour.")?,
        (Some(off), 1) => out.line(&format!("The one time that was told was off by {off:.2} % of what remained."))?,
        (Some(off), n) => out.line(&format!("Times told were off by {off:.2} % of what remained at p95 ({n} of them)."))?,
    }
    for used in &report.limits {
        out.line(&format!("{}: {:.1} % full at most", used.limit, used.fullest_pct))?;
    }
    out.line(&format!("Simulated in {:.1} s.", report.wall_s))
}
