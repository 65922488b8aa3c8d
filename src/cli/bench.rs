//! `nameplate bench`: what this machine can do, and whether that is what was promised.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::Out;
use crate::env::Env;
use crate::sandbox::bench::{LooksSettings, looks};

#[derive(Subcommand)]
pub(super) enum BenchCommand {
    /// Look at DNS on loopback as fast as it goes; exit 1 when a target is missed
    Looks(LooksArgs),
}

#[derive(Args)]
pub(super) struct LooksArgs {
    /// How long, half of it routine looks and half full ones
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    seconds: u64,
    /// How many domains there are
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    domains: u32,
}

pub(super) async fn run(env: &Env, command: BenchCommand, out: &mut Out<'_>) -> anyhow::Result<()> {
    let BenchCommand::Looks(args) = command;
    let domains = usize::try_from(args.domains)?;
    let report = looks(LooksSettings { time: Duration::from_secs(args.seconds), domains }, env).await?;
    if out.json {
        out.document(&report)?;
    } else {
        for line in report.lines() {
            out.line(&line)?;
        }
    }
    let missed = report.missed();
    anyhow::ensure!(missed.is_empty(), "missed: {}", missed.join("; "));
    Ok(())
}
