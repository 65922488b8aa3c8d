//! `nameplate doctor`: what is wrong with this installation, and what to do.

use std::path::Path;

use anyhow::bail;
use clap::Args;

use super::args::RoleName;
use super::compose::{file_in_use, no_file};
use super::out::many;
use super::{Out, Surroundings, load};
use crate::config::Role;
use crate::env::Env;
use crate::roles::doctor::{self, Finding, Report, Verdict};

#[derive(Args)]
pub(super) struct DoctorArgs {
    /// For this role only [default: those that the configuration is made for]
    #[arg(long)]
    pub role: Option<RoleName>,
}

pub(super) async fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    env: &Env,
    args: DoctorArgs,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, file)?;
    let roles = match args.role {
        Some(RoleName::Serve) => vec![Role::Serve],
        Some(RoleName::Work) => vec![Role::Work],
        Some(RoleName::Edge) => vec![Role::Edge],
        None => doctor::roles_of(&config),
    };
    let mut report = doctor::examine(&config, &roles, env).await;
    report.findings.insert(0, configuration_file(surroundings, file));
    told(&report, out)?;
    let broken = report.findings.iter().filter(|f| f.verdict == Verdict::Broken).count();
    if report.is_broken() {
        let are = if broken == 1 { "is" } else { "are" };
        bail!("{broken} of {} looked at {are} broken", many(report.findings.len(), "thing"))
    }
    Ok(())
}

/// Which file all else was read from: an installation that is looked at without its own seems to be another.
fn configuration_file(surroundings: &Surroundings, file: Option<&Path>) -> Finding {
    let (part, what) = ("configuration", "configuration file".to_owned());
    match file_in_use(file) {
        Some(path) => Finding { part, what, seen: path.display().to_string(), verdict: Verdict::Ok, advice: None },
        None => Finding {
            part,
            what,
            seen: no_file(surroundings),
            verdict: Verdict::Warning,
            advice: Some("name the one that `nameplate serve` reads: nameplate --config FILE doctor".to_owned()),
        },
    }
}

fn told(report: &Report, out: &mut Out<'_>) -> std::io::Result<()> {
    if out.json {
        return out.document(report);
    }
    for finding in &report.findings {
        let mark = match finding.verdict {
            Verdict::Ok => "ok      ",
            Verdict::Warning => "warning ",
            Verdict::Broken => "BROKEN  ",
            Verdict::Skipped => "skipped ",
        };
        out.line(&format!("{mark} {:<13} {}: {}", finding.part, finding.what, finding.seen))?;
        if let Some(advice) = &finding.advice {
            out.line(&format!("{:<23}→ {advice}", ""))?;
        }
    }
    Ok(())
}
