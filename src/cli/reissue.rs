//! `nameplate reissue start|list|cancel`: replaces certificates out of turn. On the store, no server needed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args, Subcommand};

use super::out::many;
use super::{Out, Surroundings, load};
use crate::app::reissue;
use crate::env::Env;
use crate::model::moment::Moment;
use crate::roles::open_current;
use crate::store::reissues::Selection;
use crate::store::{issuers, reissues};

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
    /// Count them only
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
    match command {
        ReissueCommand::Start(args) => {
            let selection = selection(&args)?;
            if let Selection::Issuer(name) = &selection {
                let all = issuers::list(&store).await?;
                if !all.iter().any(|issuer| issuer.name == *name) {
                    bail!("there is no issuer {name:?}; see: nameplate issuer list");
                }
            }
            let begun = reissue::begin(&store, env, &selection, "operator", args.dry_run).await?;
            let certificates = many(begun.certificates, "certificate");
            match (&begun.id, args.dry_run) {
                _ if out.json => out.document(&begun)?,
                (Some(id), _) => out.line(&format!("{id}: {certificates} will be replaced; see: nameplate reissue list"))?,
                (None, true) => out.line(&format!("{certificates} would be replaced."))?,
                (None, false) => out.line("Nothing is selected that is in use and not on its way already.")?,
            }
        }
        ReissueCommand::List => list(&reissue::list(&store, env).await?, out)?,
        ReissueCommand::Cancel { id } => {
            if !reissues::cancel(&store, &id, env.now()).await? {
                bail!("there is no replacement {id:?} to give up; see: nameplate reissue list");
            }
            out.line(&format!("{id} is given up; what is at the certificate authority already goes on."))?;
        }
    }
    store.close().await;
    Ok(())
}

fn list(rows: &[reissue::Progress], out: &mut Out<'_>) -> anyhow::Result<()> {
    if out.json {
        out.document(&rows)?;
        return Ok(());
    }
    let line = |row: &reissue::Progress| {
        let room = row.room_by.clone().or_else(|| row.cancelled_at.as_ref().map(|_| "given up".to_owned()));
        vec![
            row.id.clone(),
            row.selection.clone(),
            row.certificates.to_string(),
            row.left.to_string(),
            room.unwrap_or_else(|| "done".to_owned()),
            row.created_at.clone(),
        ]
    };
    out.table(&["ID", "SELECTED", "CERTIFICATES", "LEFT", "ROOM BY", "SINCE"], &rows.iter().map(line).collect::<Vec<_>>())?;
    Ok(())
}

fn selection(args: &StartArgs) -> anyhow::Result<Selection> {
    if let Some(name) = &args.issuer {
        return Ok(Selection::Issuer(name.clone()));
    }
    if let Some(file) = &args.serials_from {
        let text = std::fs::read_to_string(file).with_context(|| format!("{} could not be read", file.display()))?;
        return Ok(Selection::Serials(serials(&text)?));
    }
    let text = args.before.as_deref().unwrap_or_default();
    let at = Moment::from_rfc3339(text).or_else(|| Moment::from_rfc3339(&format!("{text}T00:00:00Z")));
    match at {
        Some(at) => Ok(Selection::Before(at)),
        None => bail!("{text:?} is no day such as 2027-01-15 and no time such as 2027-01-15T08:00:00Z"),
    }
}

/// Serial numbers as lists have them: hex with or without colons, `0x` or leading zeros; empty lines and those that begin with `#` are
/// passed over. Each in both forms that DER has it in, with and without a zero octet before a set first bit.
fn serials(text: &str) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let hex: String = line.chars().filter(|c| !matches!(c, ':' | ' ')).collect::<String>().to_ascii_lowercase();
        let hex = hex.trim_start_matches("0x").trim_start_matches('0');
        if hex.is_empty() || hex.len() > 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            bail!("line {} is no serial number: expected hex such as 04a7c3f1e2b95d60, saw {line:?}", n + 1);
        }
        let even = if hex.len().is_multiple_of(2) { hex.to_owned() } else { format!("0{hex}") };
        all.push(format!("00{even}"));
        all.push(even);
    }
    if all.is_empty() {
        bail!("the file has no serial numbers; expected one a line, in hex");
    }
    all.sort();
    all.dedup();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_read_as_lists_have_them() {
        let read = serials("# revoked\n\n04:A7:c3\n0xff01\r\n  4a7c3  \n").unwrap();
        assert_eq!(read, ["0004a7c3", "00ff01", "04a7c3", "ff01"]);
        for wrong in ["", "#\n", "xyz", "0", "\u{202e}04", &"f".repeat(65)] {
            assert!(serials(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_day_is_a_time() {
        let args =
            |before: &str| StartArgs { issuer: None, serials_from: None, before: Some(before.to_owned()), dry_run: true };
        let at = |text| selection(&args(text)).ok();
        assert_eq!(at("1970-01-02"), Some(Selection::Before(Moment::from_secs(86_400))));
        assert_eq!(at("1970-01-02"), at("1970-01-02T00:00:00Z"));
        assert_eq!(at("yesterday"), None);
    }
}
