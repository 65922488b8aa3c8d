//! `nameplate reissue start|list|cancel`: replaces certificates out of turn. On the store, no server needed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args, Subcommand};

use super::out::many;
use super::{Out, Surroundings, load};
use crate::app::show::reissues::{self as shown, Progress};
use crate::app::{clocks, reissue};
use crate::env::Env;
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::roles::open_current;
use crate::store::reissues::{GivenUp, Selection};
use crate::store::{Store, issuers};

#[derive(Subcommand)]
pub(super) enum ReissueCommand {
    /// Replace the certificates in use that are selected, as the order budget has room
    Start(StartArgs),
    /// List replacements and how far they are
    List,
    /// Give up what is left of one
    Cancel {
        /// Its id
        id: String,
    },
}

#[derive(Args)]
#[command(group = ArgGroup::new("which").required(true))]
pub(super) struct StartArgs {
    /// Those of this issuer, by the name it has in the configuration
    #[arg(long, group = "which", value_name = "NAME")]
    issuer: Option<String>,
    /// Those with the serial numbers in this file, one a line, in hex
    #[arg(long, group = "which", value_name = "FILE")]
    serials_from: Option<PathBuf>,
    /// Those valid from before this day (2027-01-15) or time (RFC 3339)
    #[arg(long, group = "which", value_name = "DATE")]
    before: Option<String>,
    /// Among the renewals that are due instead of after them: for a deadline that a CA sets
    #[arg(long)]
    priority: bool,
    /// Count them only, and tell when it would be done
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    env: &Env,
    command: ReissueCommand,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, file)?;
    let store = open_current(&config).await?;
    clocks::agree(&store, env).await?;
    match command {
        ReissueCommand::Start(args) => start(&store, env, &args, out).await?,
        ReissueCommand::List => list(&shown::list(&store, env, "", LISTED).await?, out)?,
        ReissueCommand::Cancel { id } => match reissue::cancel(&store, env, &id, "operator").await? {
            GivenUp::Now => out.line(&format!("{id} is given up; what is at the certificate authority already goes on."))?,
            GivenUp::Over => bail!("{id} is over already: there is nothing to give up; see: nameplate reissue list"),
            GivenUp::Unknown => bail!("there is no replacement {id:?}; see: nameplate reissue list"),
        },
    }
    store.close().await;
    Ok(())
}

async fn start(store: &Store, env: &Env, args: &StartArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let selection = selection(args)?;
    if let Selection::Issuer(name) = &selection {
        let all = issuers::list(store).await?;
        if !all.iter().any(|issuer| issuer.name == *name) {
            bail!("there is no issuer {name:?}; see: nameplate issuer list");
        }
    }
    let lane = if args.priority { Lane::Renewal } else { Lane::Bulk };
    let plan = shown::plan(store, env, &selection, lane).await?;
    let certificates = many(u64::try_from(plan.certificates).unwrap_or(0), "certificate");
    let by = plan.eta.as_ref().map_or(String::new(), |eta| format!(" The last of them has its turn at about {eta}."));
    if args.dry_run {
        if out.json {
            return Ok(out.document(&plan)?);
        }
        return Ok(out.line(&format!("{certificates} would be replaced.{by}"))?);
    }
    if plan.certificates == 0 {
        bail!("nothing is selected that is in use and not on its way already");
    }
    let begun = reissue::begin_now(store, env, &selection, lane, "operator").await?;
    let begun = shown::show(store, env, begun.id.as_str()).await?.unwrap_or_else(|| begun.into());
    if out.json {
        return Ok(out.document(&begun)?);
    }
    let certificates = many(u64::try_from(begun.certificates).unwrap_or(0), "certificate");
    Ok(out.line(&format!("{}: {certificates} will be replaced.{by} See: nameplate reissue list", begun.id))?)
}

/// So many are listed, the latest.
const LISTED: i64 = 100;

fn list(rows: &[Progress], out: &mut Out<'_>) -> anyhow::Result<()> {
    if out.json {
        return Ok(out.document(&rows)?);
    }
    let line = |row: &Progress| {
        let by = row.eta.clone().unwrap_or_else(|| row.state.word().to_owned());
        vec![
            row.id.clone(),
            row.selection.clone(),
            format!("{} of {}", row.done, row.certificates),
            row.left.to_string(),
            row.held_back.to_string(),
            by,
            row.created_at.clone(),
        ]
    };
    let lines: Vec<_> = rows.iter().map(line).collect();
    Ok(out.table(&["ID", "SELECTED", "DONE", "LEFT", "HELD BACK", "DONE BY", "SINCE"], &lines)?)
}

fn selection(args: &StartArgs) -> anyhow::Result<Selection> {
    if let Some(name) = &args.issuer {
        return Ok(Selection::Issuer(name.clone()));
    }
    if let Some(file) = &args.serials_from {
        let text = std::fs::read_to_string(file).with_context(|| format!("{} could not be read", file.display()))?;
        return serials(&text);
    }
    let text = args.before.as_deref().unwrap_or_default();
    let at = Moment::from_rfc3339(text).or_else(|| Moment::from_rfc3339(&format!("{text}T00:00:00Z")));
    match at {
        Some(at) => Ok(Selection::Before(at)),
        None => bail!("{text:?} is no day such as 2027-01-15 and no time such as 2027-01-15T08:00:00Z"),
    }
}

/// Serial numbers, one a line; empty lines and those that begin with `#` are passed over.
fn serials(text: &str) -> anyhow::Result<Selection> {
    let mut all = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match reissue::serial_forms(line) {
            Some(forms) => all.push(forms),
            None => bail!("line {} is no serial number: expected hex such as 04a7c3f1e2b95d60, saw {line:?}", n + 1),
        }
    }
    if all.is_empty() {
        bail!("the file has no serial numbers; expected one a line, in hex");
    }
    Ok(reissue::of_serials(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_read_as_lists_have_them() {
        let read = serials("# revoked\n\n04:A7:c3\n0xff01\r\n  4a7c3  \n").unwrap();
        let forms = ["0004a7c3", "00ff01", "04a7c3", "ff01"].map(str::to_owned);
        assert_eq!(read, Selection::Serials(forms.to_vec()));
        for wrong in ["", "#\n", "xyz", "0"] {
            assert!(serials(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_day_is_a_time() {
        let args = |before: &str| StartArgs {
            issuer: None,
            serials_from: None,
            before: Some(before.to_owned()),
            priority: false,
            dry_run: true,
        };
        let at = |text| selection(&args(text)).ok();
        assert_eq!(at("1970-01-02"), Some(Selection::Before(Moment::from_secs(86_400))));
        assert_eq!(at("1970-01-02"), at("1970-01-02T00:00:00Z"));
        assert_eq!(at("yesterday"), None);
    }
}
