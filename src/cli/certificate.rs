//! `nameplate certificate …`: the certificate of the platform's own hosts, on the store, no server needed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use super::out::many;
use super::{Out, Surroundings, load};
use crate::app::imports::{self, Files, Imported, Listed};
use crate::env::Env;
use crate::model::moment::Moment;
use crate::model::secret::Secret;
use crate::roles::{open_current, open_vault};

/// Days before its end from which a certificate is pointed out.
const SOON_DAYS: i64 = 21;

#[derive(Subcommand)]
pub(super) enum CertificateCommand {
    /// Import the certificate of the canonical hosts, a wildcard as a rule; edges serve it at once
    Import(ImportArgs),
    /// List the imported certificates and when they end
    List,
}

#[derive(Args)]
pub(super) struct ImportArgs {
    /// The certificate with its intermediates, PEM, the server's own first
    #[arg(long, value_name = "FILE")]
    pub chain: PathBuf,
    /// Its private key, PEM, not encrypted
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// Also when hosts that are served now would be left without a certificate
    #[arg(long)]
    pub force: bool,
}

pub(super) async fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    env: &Env,
    command: CertificateCommand,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, file)?;
    match command {
        CertificateCommand::Import(args) => {
            let Some(suffix) = &config.routing.canonical_suffix else {
                bail!("routing.canonical_suffix is missing: the certificate is for the hosts below it")
            };
            let read = |path: &Path| std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()));
            let chain = String::from_utf8_lossy(&read(&args.chain)?).into_owned();
            let key = Secret::new(read(&args.key)?);
            let (store, vault) = open_vault(&config, env).await?;
            let files = Files { chain: &chain, key: &key, force: args.force };
            let done = imports::import(&store, env, &vault, suffix.as_str(), files, "command line").await;
            store.close().await;
            told(&done?, out)?;
        }
        CertificateCommand::List => {
            let store = open_current(&config).await?;
            let (listed, uncovered) = imports::list(&store).await?;
            store.close().await;
            list(&listed, uncovered, env.now(), out)?;
        }
    }
    Ok(())
}

fn told(done: &Imported, out: &mut Out<'_>) -> anyhow::Result<()> {
    let c = &done.certificate;
    if out.json {
        out.document(&json!({
            "id": c.id, "names": c.names, "serial": c.serial, "not_after": c.not_after.rfc3339(), "new": done.new,
            "replaced": done.replaced, "hosts_covered": done.covered, "hosts_uncovered": done.uncovered,
            "without_intermediate": done.without_intermediate,
        }))?;
        return Ok(());
    }
    if !done.new {
        out.line(&format!("This certificate is in use already, as {}.", c.id))?;
        return Ok(());
    }
    out.line(&format!("Imported {} as {}, good until {}.", c.names.join(", "), c.id, c.not_after.rfc3339()))?;
    match done.replaced.len() {
        0 => {}
        n => out.line(&format!("It replaces {n} imported before, whose keys are destroyed."))?,
    }
    out.line(&format!("Canonical hosts with a certificate: {}; without: {}.", done.covered, done.uncovered))?;
    if done.without_intermediate {
        out.line("The chain file holds no intermediate: browsers that do not know its issuer will not trust it.")?;
    }
    Ok(())
}

fn list(listed: &[Listed], uncovered: usize, now: Moment, out: &mut Out<'_>) -> anyhow::Result<()> {
    let days = |l: &Listed| (l.certificate.not_after.secs() - now.secs()).div_euclid(86_400);
    if out.json {
        let document = |l: &Listed| {
            let c = &l.certificate;
            json!({
                "id": c.id, "names": c.names, "serial": c.serial, "not_before": c.not_before.rfc3339(),
                "not_after": c.not_after.rfc3339(), "days_left": days(l), "hosts": l.hosts,
                "imported_at": c.stored_at.rfc3339(),
            })
        };
        let certificates: Vec<_> = listed.iter().map(document).collect();
        out.document(&json!({ "certificates": certificates, "hosts_uncovered": uncovered }))?;
        return Ok(());
    }
    let row = |l: &Listed| {
        let c = &l.certificate;
        let left = match days(l) {
            n if c.not_after <= now => format!("ended {} d ago", -n),
            n if n < SOON_DAYS => format!("{n} d: import its successor"),
            n => format!("{n} d"),
        };
        vec![c.names.join(" "), c.not_after.rfc3339(), left, l.hosts.to_string(), c.id.to_string()]
    };
    out.table(&["NAMES", "ENDS", "LEFT", "HOSTS", "ID"], &listed.iter().map(row).collect::<Vec<_>>())?;
    if uncovered > 0 {
        let have = if uncovered == 1 { "has" } else { "have" };
        out.line(&format!("{} {have} no certificate.", many(uncovered, "canonical host")))?;
    }
    Ok(())
}
