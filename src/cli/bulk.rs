//! `nameplate import FILE` and `nameplate imports …`: thousands of names over the API, like any client of it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;

use super::bulk_follow::{self, Progress};
use super::bulk_send::{self, FileFormat};
use super::bulk_shown::{self, Shown};
use super::client::{ApiClient, Page};
use super::compose::stop_at_signal;
use super::links::ServerArgs;
use super::out::many;
use super::{Out, Surroundings};
use crate::app::show::{CheckedView, ImportView};
use crate::env::Env;
use crate::model::bulk::ImportState;
use crate::model::id::ImportId;

#[derive(Args)]
pub(super) struct ImportArgs {
    /// CSV in UTF-8 with a header (hostname,tenant), or one JSON object a line
    pub file: PathBuf,
    /// Whose the rows are that name no tenant, by slug or id
    #[arg(long)]
    pub tenant: Option<String>,
    /// Claim nothing: tell what would become of each row, and how long it takes
    #[arg(long)]
    pub dry_run: bool,
    /// Add tenants that rows name and that are not there; for operators' tokens
    #[arg(long)]
    pub create_tenants: bool,
    /// Stay until every claim has its certificate or ended without one
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// How the file is written [default: ndjson for .ndjson and .jsonl, else csv]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<FileFormat>,
    /// Write the verdict of every row to this file, as CSV or, for .ndjson, as NDJSON
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Args)]
pub(super) struct ImportsArgs {
    #[command(subcommand)]
    pub command: ImportsCommand,
}

#[derive(Subcommand)]
pub(super) enum ImportsCommand {
    /// List imports, the newest first
    List {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show how far an import is, and what the limits make of it
    Show(OneImport),
    /// Hold an import: no more of its rows get their verdict, and nothing is ordered for claims that wait
    Pause(OneImport),
    /// Let a held import go on
    Resume(OneImport),
    /// Give an import up; claims that were made stay
    Cancel(OneImport),
    /// Have its names that wait for their records looked at now
    Check(OneImport),
    /// Make a dry run come true, without sending the file again
    Start(OneImport),
    /// Print the verdict of every row
    Results {
        #[command(flatten)]
        import: OneImport,
        /// How to write it
        #[arg(long, value_name = "FORMAT", default_value = "csv")]
        format: FileFormat,
    },
    /// Print the DNS records of all claims, for whoever owns the DNS
    Records {
        #[command(flatten)]
        import: OneImport,
        /// How to write them
        #[arg(long, value_name = "FORMAT", default_value = "zone")]
        format: RecordsFormat,
        /// Of this tenant only, by slug or id
        #[arg(long)]
        tenant: Option<String>,
    },
}

#[derive(Args)]
pub(super) struct OneImport {
    /// Its id, imp_…
    pub import: ImportId,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RecordsFormat {
    Zone,
    Csv,
}

/// Whoever followed was told to stop.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(super) struct Interrupted;

/// Everything went its way, but not every row was taken.
#[derive(Debug, thiserror::Error)]
#[error("{refused} of {} {} not taken", many(.rows, "row"), if *.refused == 1 { "was" } else { "were" })]
pub(super) struct SomeRefused {
    refused: i64,
    rows: i64,
}

/// `nameplate import FILE`
pub(super) async fn import(
    surroundings: &Surroundings,
    env: &Env,
    args: ImportArgs,
    out: &mut Out<'_>,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let api = ApiClient::new(surroundings, args.server.server.clone(), args.server.token.clone())?;
    let stop = stop_at_signal()?;
    let mut progress = Progress::new(err, env);
    let mut known = None;
    let followed = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        shown = follow(&api, env, &args, &mut known, &mut progress) => Some(shown?),
    };
    progress.clear()?;
    let Some(shown) = followed else { return left(&api, &args, known, &mut progress).await };
    if let Some(path) = &args.results {
        write_results(&api, &shown.view.id, path).await?;
    }
    if out.json {
        out.document(&shown)?;
    } else {
        bulk_shown::print(&api, &shown, env.now(), out).await?;
    }
    let view = &shown.view;
    let (refused, rows) = (view.verdicts.refused, view.rows);
    let have = |n: i64| if n == 1 { "has" } else { "have" };
    if view.verdicts.cancelled > 0 {
        let cancelled = view.verdicts.cancelled;
        bail!("the import was cancelled; {} {} no verdict", many(cancelled, "row"), have(cancelled));
    }
    let waiting = view.claims.on_their_way();
    if args.wait && view.state == ImportState::Cancelled && waiting > 0 {
        bail!("the import was cancelled; nothing is ordered for {} that {}", many(waiting, "name"), waits(waiting));
    }
    if refused > 0 { Err(SomeRefused { refused, rows }.into()) } else { Ok(()) }
}

fn waits(n: i64) -> &'static str {
    if n == 1 { "waits" } else { "wait" }
}

/// Sends the file, or finds it sent, and follows it; `known` is its id as soon as there is one.
async fn follow(
    api: &ApiClient,
    env: &Env,
    args: &ImportArgs,
    known: &mut Option<ImportId>,
    progress: &mut Progress<'_>,
) -> anyhow::Result<Shown> {
    let file = bulk_send::FileToSend::open(&args.file, args.format)?;
    let sent = match under_way(api, &file, args).await? {
        Some(shown) => {
            let is = if shown.view.state.is_over() { "was" } else { "is being" };
            progress.say(&format!("This file {is} imported already, as {}: following it.", shown.view.id))?;
            shown
        }
        None => {
            let wanted = bulk_send::Wanted {
                tenant: args.tenant.as_deref(),
                dry_run: args.dry_run,
                create_tenants: args.create_tenants,
            };
            bulk_send::send(api, env, &file, &wanted, progress).await?
        }
    };
    *known = Some(sent.view.id.clone());
    let judged = bulk_follow::until_judged(api, env, sent, progress).await?;
    if args.wait { bulk_follow::until_served(api, env, judged, progress).await } else { Ok(judged) }
}

/// Whoever follows was told to stop: the import was not. Says what goes on, and how to follow or hold it.
async fn left(
    api: &ApiClient,
    args: &ImportArgs,
    known: Option<ImportId>,
    progress: &mut Progress<'_>,
) -> anyhow::Result<()> {
    let Some(id) = known else {
        let file = args.file.display();
        progress.say(&format!(
            "Stopped while the file was sent: what does not arrive whole is not imported. If it was whole just then, the same \
             command follows it: nameplate import {file}"
        ))?;
        if let Some(path) = &args.results {
            progress.say(&format!("{} was not written: there are no verdicts so far.", path.display()))?;
        }
        return Err(Interrupted.into());
    };
    progress.say(&format!("Stopped following {id}; the import goes on at the server."))?;
    progress.say(&format!("To follow it again, run the same command; to look: nameplate imports show {id}"))?;
    progress.say(&format!("To hold it: nameplate imports pause {id}; to give it up: nameplate imports cancel {id}"))?;
    if let Some(path) = &args.results {
        match write_results(api, &id, path).await {
            Ok(()) => progress.say(&format!("The verdicts so far are in {}.", path.display()))?,
            Err(e) => {
                progress.say(&format!("{} was not written: {e:#}. Later: nameplate imports results {id}", path.display()))?
            }
        }
    }
    Err(Interrupted.into())
}

/// Writes the verdicts to a file, which is there whole or not at all. What is there and is no file (a terminal, a pipe) is written
/// to as it is.
async fn write_results(api: &ApiClient, id: &ImportId, path: &Path) -> anyhow::Result<()> {
    let ndjson = path.extension().is_some_and(|end| end == "ndjson" || end == "jsonl");
    let format = if ndjson { "ndjson" } else { "csv" };
    let source = format!("/api/v1/imports/{id}/results?format={format}");
    let cannot = || format!("{} cannot be written", path.display());
    // A link to a file stays a link.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
        let mut to = std::fs::OpenOptions::new().write(true).open(&path).with_context(cannot)?;
        return api.copy(&source, &mut to).await;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let mut to = std::fs::File::create(&beside).with_context(cannot)?;
    let copied = api.copy(&source, &mut to).await;
    if let Err(e) = copied {
        // What is left of it is of no use to anybody.
        let _ = std::fs::remove_file(&beside);
        return Err(e);
    }
    std::fs::rename(&beside, path).with_context(cannot)
}

/// The import of this very file that is not over yet, or whose claims are still on their way where those are waited for: one that
/// was left by ^C, or is another's.
async fn under_way(api: &ApiClient, file: &bulk_send::FileToSend, args: &ImportArgs) -> anyhow::Result<Option<Shown>> {
    let path = format!("/api/v1/imports?digest={}&limit=20", file.digest);
    let found: Page<Shown> = api.send(api.request(Method::GET, &path)).await?;
    let followed = |view: &ImportView| {
        let waits = args.wait && view.state == ImportState::Done && view.claims.on_their_way() > 0;
        view.dry_run == args.dry_run && (waits || !view.state.is_over())
    };
    Ok(found.items.into_iter().find(|shown| followed(&shown.view)))
}

async fn check(api: &ApiClient, id: &ImportId, out: &mut Out<'_>) -> anyhow::Result<()> {
    let checked: CheckedView = api.send(api.request(Method::POST, &format!("/api/v1/imports/{id}/check"))).await?;
    if out.json {
        return Ok(out.document(&checked)?);
    }
    let names = i64::try_from(checked.names).unwrap_or(i64::MAX);
    let are = if names == 1 { "is" } else { "are" };
    out.line(&format!("{} {are} looked at, the last at {}.", many(names, "name"), checked.last_look_at.in_words()))?;
    Ok(())
}

/// `nameplate imports …`
pub(super) async fn imports(
    surroundings: &Surroundings,
    env: &Env,
    args: ImportsArgs,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let client = |server: ServerArgs| ApiClient::new(surroundings, server.server, server.token);
    let (one, turn) = match args.command {
        ImportsCommand::List { server } => return bulk_shown::list(&client(server)?, out).await,
        ImportsCommand::Results { import, format } => {
            let format = if format == FileFormat::Csv { "csv" } else { "ndjson" };
            let path = format!("/api/v1/imports/{}/results?format={format}", import.import);
            return client(import.server)?.copy(&path, out.writer()).await;
        }
        ImportsCommand::Records { import, format, tenant } => {
            let format = if matches!(format, RecordsFormat::Zone) { "zone" } else { "csv" };
            let mut question = vec![("format", format)];
            question.extend(tenant.as_deref().map(|tenant| ("tenant", tenant)));
            let path = format!("/api/v1/imports/{}/records?{}", import.import, crate::web::query(&question));
            return client(import.server)?.copy(&path, out.writer()).await;
        }
        ImportsCommand::Check(one) => return check(&client(one.server)?, &one.import, out).await,
        ImportsCommand::Show(one) => (one, None),
        ImportsCommand::Pause(one) => (one, Some("pause")),
        ImportsCommand::Resume(one) => (one, Some("resume")),
        ImportsCommand::Cancel(one) => (one, Some("cancel")),
        ImportsCommand::Start(one) => (one, Some("start")),
    };
    let api = client(one.server)?;
    let path = format!("/api/v1/imports/{}", one.import);
    let request = match turn {
        None => api.request(Method::GET, &path),
        Some(turn) => api.request(Method::POST, &format!("{path}/{turn}")),
    };
    let shown: Shown = api.send(request).await?;
    if out.json {
        out.document(&shown)?;
        return Ok(());
    }
    bulk_shown::print(&api, &shown, env.now(), out).await
}
