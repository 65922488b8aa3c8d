//! `nameplate restore` and `nameplate restored`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::out::many;
use super::{Out, Surroundings, load};
use crate::app::restore::{self, Restored};
use crate::env::Env;
use crate::roles::open_vault;
use crate::roles::put_back::put_back;
use crate::store::restore::Ahead;

#[derive(Args)]
pub(super) struct RestoreArgs {
    /// The copy, as `nameplate backup` or pg_dump --format=custom made it
    pub file: PathBuf,
    /// Where PostgreSQL's pg_restore is, if not where the system finds it
    #[arg(long, value_name = "DIRECTORY")]
    pub programs: Option<PathBuf>,
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
    // Stops here when the master key is not the copy's.
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
    declared(&done?, out)
}

/// What a restore that was declared means.
fn declared(done: &Restored, out: &mut Out<'_>) -> anyhow::Result<()> {
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

/// Puts a copy back where nothing is, and declares it.
pub(super) async fn restore(
    surroundings: &Surroundings,
    config: Option<&Path>,
    env: &Env,
    args: RestoreArgs,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, config)?;
    let done = put_back(&config, env, &args.file, args.programs).await?;
    if !out.json {
        out.line(&format!("Put back {}.", args.file.display()))?;
    }
    declared(&done, out)
}
