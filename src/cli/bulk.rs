//! `nameplate import FILE` and `nameplate imports …`: thousands of names over the API, like any client of it.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::bulk_follow::{self, Progress};
use super::bulk_send;
use super::client::ApiClient;
use super::links::ServerArgs;
use super::out::many;
use super::{Out, Surroundings};
use crate::app::show::{ImportRowView, ImportView};
use crate::env::Env;
use crate::model::bulk::ImportState;
use crate::model::id::ImportId;

/// Refused rows that are printed; the result file has all.
const PRINTED: usize = 20;

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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FileFormat {
    Csv,
    Ndjson,
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

/// What the API says of an import.
#[derive(Serialize, Deserialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub view: ImportView,
    pub page: String,
    pub results: String,
    pub records: String,
}

#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

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
    let mut progress = Progress::new(err, env);
    let file = bulk_send::FileToSend::open(&args.file, args.format)?;
    let sent = match under_way(&api, &file, &args).await? {
        Some(shown) => {
            let is = if shown.view.state.is_over() { "was" } else { "is being" };
            progress.say(&format!("This file {is} imported already, as {}: following it.", shown.view.id))?;
            shown
        }
        None => bulk_send::send(&api, env, &file, &args, &mut progress).await?,
    };
    let judged = bulk_follow::until_judged(&api, env, sent, &mut progress).await?;
    let shown = if args.wait { bulk_follow::until_served(&api, env, judged, &mut progress).await? } else { judged };
    if let Some(path) = &args.results {
        let ndjson = path.extension().is_some_and(|end| end == "ndjson" || end == "jsonl");
        let format = if ndjson { "ndjson" } else { "csv" };
        let mut to = std::fs::File::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
        api.copy(&format!("/api/v1/imports/{}/results?format={format}", shown.view.id), &mut to).await?;
    }
    if out.json {
        out.document(&shown)?;
    } else {
        print(&api, &shown, out).await?;
    }
    let (refused, rows) = (shown.view.verdicts.refused, shown.view.rows);
    if shown.view.verdicts.cancelled > 0 {
        let cancelled = shown.view.verdicts.cancelled;
        let have = if cancelled == 1 { "has" } else { "have" };
        bail!("the import was cancelled; {} {have} no verdict", many(cancelled, "row"));
    }
    if refused > 0 { Err(SomeRefused { refused, rows }.into()) } else { Ok(()) }
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

/// `nameplate imports …`
pub(super) async fn imports(surroundings: &Surroundings, args: ImportsArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let client = |server: ServerArgs| ApiClient::new(surroundings, server.server, server.token);
    let (one, turn) = match args.command {
        ImportsCommand::List { server } => return list(&client(server)?, out).await,
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
    print(&api, &shown, out).await
}

async fn list(api: &ApiClient, out: &mut Out<'_>) -> anyhow::Result<()> {
    let mut all: Vec<Shown> = Vec::new();
    let mut question = "limit=200".to_owned();
    loop {
        let page: Page<Shown> = api.send(api.request(Method::GET, &format!("/api/v1/imports?{question}"))).await?;
        all.extend(page.items);
        match page.next.as_deref().and_then(|next| next.split_once('?')) {
            Some((_, next)) => question = next.to_owned(),
            None => break,
        }
    }
    if out.json {
        out.document(&all)?;
        return Ok(());
    }
    let row = |shown: &Shown| {
        let v = &shown.view;
        let state = if v.dry_run { format!("{} (dry run)", v.state) } else { v.state.to_string() };
        vec![
            v.name.clone(),
            state,
            v.rows.to_string(),
            v.verdicts.refused.to_string(),
            v.created_at.rfc3339(),
            v.id.to_string(),
        ]
    };
    out.table(&["NAME", "STATE", "ROWS", "REFUSED", "SENT", "ID"], &all.iter().map(row).collect::<Vec<_>>())?;
    Ok(())
}

async fn print(api: &ApiClient, shown: &Shown, out: &mut Out<'_>) -> anyhow::Result<()> {
    let view = &shown.view;
    let v = &view.verdicts;
    let what = if view.dry_run { " (dry run: nothing is claimed)" } else { "" };
    out.line(&format!("{} {}: {}{what}", view.id, view.name, view.state))?;
    let counts = [
        ("waiting for a verdict", v.pending),
        ("claimed", v.claimed),
        ("would be claimed", v.would_be_claimed),
        ("yours already", v.already_yours),
        ("repeated", v.duplicate),
        ("not taken", v.refused),
        ("cancelled", v.cancelled),
    ];
    let said: Vec<String> = counts.iter().filter(|(_, n)| *n > 0).map(|(words, n)| format!("{n} {words}")).collect();
    let rows = many(view.rows, "row");
    out.line(&format!("{rows}: {}", if said.is_empty() { "none so far".into() } else { said.join(", ") }))?;
    if view.tenants_added > 0 {
        out.line(&format!("tenants {}added: {}", if view.dry_run { "to be " } else { "" }, view.tenants_added))?;
    }
    let c = &view.claims;
    if c.awaiting_dns + c.queued + c.live + c.expired > 0 {
        out.line(&format!(
            "its claims: {} live, {} with their certificate under way, {} waiting for DNS, {} out of time",
            c.live, c.queued, c.awaiting_dns, c.expired
        ))?;
    }
    if let Some(plan) = &view.plan {
        let end = plan
            .last_order_at
            .map(|at| format!("; the last at {}, if all is set up right", at.in_words()))
            .unwrap_or_default();
        let (orders, domains) = (many(plan.orders, "order"), many(plan.registered_domains, "registered domain"));
        out.line(&format!("{orders} for names under {domains}{end}"))?;
        for c in plan.collisions.iter().take(PRINTED) {
            out.line(&format!(
                "  {}: {}, {} at once, the last at {}",
                c.registered_domain,
                many(c.names, "name"),
                c.at_once,
                c.last_order_at.in_words()
            ))?;
        }
        let more = plan.colliding.saturating_sub(u64::try_from(PRINTED).unwrap_or(0));
        if more > 0 {
            out.line(&format!("  and {} more", many(more, "registered domain")))?;
        }
    }
    if v.refused > 0 {
        let path = format!("/api/v1/imports/{}/rows?verdict=refused&limit={PRINTED}", view.id);
        let rows: Page<ImportRowView> = api.send(api.request(Method::GET, &path)).await?;
        for row in rows.items {
            out.line(&format!("  line {}: {}: {}", row.line, row.hostname, row.detail.unwrap_or_default()))?;
        }
        if rows.next.is_some() {
            out.line(&format!("  all of them: nameplate imports results {}", view.id))?;
        }
    }
    if v.claimed > 0 {
        out.line(&format!("records to publish: nameplate imports records {}", view.id))?;
    }
    if view.dry_run && view.state == ImportState::Done {
        out.line(&format!("to claim them: nameplate imports start {}", view.id))?;
    }
    out.line(&shown.page)?;
    Ok(())
}
