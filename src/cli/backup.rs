//! `nameplate backup` and `nameplate restored`.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;

use super::out::many;
use super::{Out, Surroundings, load};
use crate::app::restore;
use crate::env::Env;
use crate::roles::{open_existing, open_vault};
use crate::store::restore::Ahead;
use crate::store::{OpenSettings, Store};

#[derive(Args)]
pub(super) struct BackupArgs {
    /// Where the copy goes; the file must not exist
    pub file: PathBuf,
}

#[derive(Args)]
pub(super) struct RestoredArgs {
    /// All is back: edges let go of what the database does not have
    #[arg(long)]
    pub end: bool,
    /// Yes, this database is a copy that was put back, and nothing runs on it yet
    #[arg(long, conflicts_with = "end")]
    pub yes: bool,
}

/// Copies a SQLite database while it is in use.
pub(super) async fn backup(
    surroundings: &Surroundings,
    config: Option<&Path>,
    args: BackupArgs,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, config)?;
    let (file, store) = (args.file, open_existing(&config).await?);
    if store.sqlite_pool().is_none() {
        store.close().await;
        bail!(
            "nothing was copied: PostgreSQL brings its own tool, which copies it while it is in use: \
             pg_dump --format=custom --file={} \"$DATABASE_URL\"",
            file.display()
        )
    }
    // Made here first, so that nobody else may read what is copied into it; SQLite fills an empty file.
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    if let Err(e) = made {
        store.close().await;
        if e.kind() == std::io::ErrorKind::AlreadyExists {
            bail!(
                "{} is there already, and a copy never overwrites one: give another name, such as one with the date, or move it \
                 away first",
                file.display()
            );
        }
        return Err(e).with_context(|| format!("{} cannot be made", file.display()));
    }
    let copied = store.copy_to(&file).await;
    store.close().await;
    let bytes = match copied.map_err(anyhow::Error::from) {
        Ok(_) => checked(&file).await,
        Err(e) => Err(e),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(e) => {
            // A copy that is not whole must not be taken for one.
            let _ = std::fs::remove_file(&file);
            return Err(e.context(format!("{} could not be written", file.display())));
        }
    };
    if out.json {
        out.document(&json!({ "file": file.display().to_string(), "bytes": bytes }))?;
    } else {
        out.line(&format!("Copied the database to {} ({bytes} bytes).", file.display()))?;
        out.line("Its secrets are sealed: without the master key, which is not in it, the copy is of no use.")?;
    }
    Ok(())
}

/// Opens the copy as a restore would, and makes it durable.
async fn checked(file: &Path) -> anyhow::Result<u64> {
    let written = std::fs::File::open(file)?;
    written.sync_all()?;
    let url = format!("sqlite:{}", file.display());
    let copy = Store::open(&OpenSettings { url, connections: 1 }).await?;
    let whole = copy.schema().await;
    copy.close().await;
    whole.context("the copy cannot be read")?;
    Ok(written.metadata()?.len())
}

/// What the end of a recovery changes, one line a kind.
fn lost(ahead: &Ahead) -> Vec<String> {
    let lines = [
        (ahead.unknown, "that edges served are not known here: claim them anew"),
        (ahead.newer, "get a new certificate, as only edges had the newest one"),
        (ahead.let_go, "were let go of after the copy was made, and are again"),
    ];
    lines.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}.", many(n, "name"))).collect()
}

/// Tenants that nobody but edges knows to have left.
fn left(hosts: &[String]) -> impl Iterator<Item = String> {
    hosts.iter().map(|host| format!("The tenant of {host} left after the copy was made: nameplate tenant remove SLUG --yes"))
}

/// Tells a restored database that it is one.
pub(super) async fn restored(
    surroundings: &Surroundings,
    config: Option<&Path>,
    env: &Env,
    args: RestoredArgs,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    if !(args.end || args.yes) {
        anyhow::bail!(
            "on a database that was not put back this would count every CA limit as spent, end all sessions and take back open links and \
             join tokens: stop `serve` and every `work`, put the copy back, then say it with --yes"
        );
    }
    let config = load(surroundings, config)?;
    // Brings an older copy to this schema, and stops here when the master key is not the copy's.
    let (store, _) = open_vault(&config, env).await?;
    if args.end {
        let before = restore::status(&store).await?;
        let ended = restore::end(&store, env, None, "command line").await;
        store.close().await;
        let epoch = ended?;
        if out.json {
            out.document(&json!({ "epoch": epoch, "recovering": false }))?;
        } else {
            out.line("The recovery is over: edges take what is stored and let go of everything else.")?;
            for line in before.iter().flat_map(|r| lost(&r.ahead).into_iter().chain(left(&r.left))) {
                out.line(&line)?;
            }
        }
        return Ok(());
    }
    let done = restore::begin(&store, env).await;
    store.close().await;
    let done = done?;
    if out.json {
        out.document(&json!({
            "epoch": done.epoch, "recovering": true, "grants_counted": done.grants, "invitations_revoked": done.invitations,
        }))?;
        return Ok(());
    }
    for line in [
        "A new epoch of the feed begins. Edges keep what they have and add to it.",
        "The CAs' limits count as spent whole: orders go on at the pace at which they come back.",
        "Open join tokens and links are taken back and sessions end; tokens that were revoked since the copy are valid again: revoke them anew.",
        "Start `nameplate serve`. When all is back: nameplate restored --end",
    ] {
        out.line(line)?;
    }
    Ok(())
}
