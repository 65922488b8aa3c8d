//! `nameplate webhook …` and `nameplate alerts`: over the API, like any application.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::ApiClient;
use super::links::ServerArgs;
use super::out::many;
use super::{Out, Surroundings};
use crate::app::show::{AlertView, DeliveryView, WebhookView};
use crate::web::query;

#[derive(Args)]
pub(super) struct WebhookArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(subcommand)]
    pub command: WebhookCommand,
}

#[derive(Subcommand)]
pub(super) enum WebhookCommand {
    /// Add a place that events are sent to; its secret is shown this once
    Add {
        /// Where requests go: https, a host name
        url: String,
        /// Of which kinds of events; may be given several times
        #[arg(long = "kind", value_name = "KIND", default_value = "*")]
        kinds: Vec<String>,
        /// For which tenant, by slug or id; a tenant's token may leave it out
        #[arg(long, value_name = "SLUG")]
        tenant: Option<String>,
        /// For the platform: told of every tenant and of the platform itself
        #[arg(long, conflicts_with = "tenant")]
        platform: bool,
    },
    /// List webhooks
    List {
        /// Of one tenant only, by slug or id
        #[arg(long, value_name = "SLUG")]
        tenant: Option<String>,
    },
    /// Remove a webhook, and what waits to be sent to it
    Remove {
        /// Its id, whk_…
        id: String,
    },
    /// Replace its secret; for a day both are good
    Rotate {
        /// Its id, whk_…
        id: String,
    },
    /// Switch it on again, after it failed for days
    Enable {
        /// Its id, whk_…
        id: String,
    },
    /// Send it an event to try it
    Test {
        /// Its id, whk_…
        id: String,
    },
    /// List what was sent to it, the latest first
    Deliveries {
        /// Its id, whk_…
        id: String,
        /// In this state only: pending, delivered, dropped, given_up
        #[arg(long)]
        state: Option<String>,
    },
    /// Send an event again, or everything that was given up since a time
    Replay {
        /// Its id, whk_…
        id: String,
        /// The event, evt_…
        #[arg(required_unless_present = "given_up_since")]
        event: Option<String>,
        /// Since when, such as 2027-01-15T08:00:00Z
        #[arg(long, value_name = "TIME", conflicts_with = "event")]
        given_up_since: Option<String>,
    },
}

#[derive(Args)]
pub(super) struct AlertsArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    /// Of one tenant only, by slug or id
    #[arg(long, value_name = "SLUG")]
    pub tenant: Option<String>,
    /// Those that are over, too
    #[arg(long)]
    pub resolved: bool,
}

fn dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

pub(super) async fn run(surroundings: &Surroundings, args: WebhookArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let api = ApiClient::new(surroundings, args.server.server, args.server.token)?;
    let at = |id: &str, rest: &str| format!("/api/v1/webhooks/{id}{rest}");
    match args.command {
        WebhookCommand::Add { url, kinds, tenant, platform } => {
            let body = json!({ "url": url, "kinds": kinds, "tenant": tenant, "platform": platform });
            let made: Value = api.send(api.request(Method::POST, "/api/v1/webhooks").json(&body)).await?;
            secret(&made, out)
        }
        WebhookCommand::Rotate { id } => {
            let made: Value = api.send(api.request(Method::POST, &at(&id, "/rotate-secret"))).await?;
            secret(&made, out)
        }
        WebhookCommand::List { tenant } => {
            let question: Vec<_> = tenant.iter().map(|tenant| ("tenant", tenant.as_str())).collect();
            list(&api.all("/api/v1/webhooks", &question).await?, out)
        }
        WebhookCommand::Remove { id } => {
            api.done(api.request(Method::DELETE, &at(&id, ""))).await?;
            if !out.json {
                out.line(&format!("Removed {id}."))?;
            }
            Ok(())
        }
        WebhookCommand::Enable { id } => {
            let view: WebhookView = api.send(api.request(Method::POST, &at(&id, "/enable"))).await?;
            if out.json {
                out.document(&view)?;
            } else {
                out.line(&format!("{id} is on; {} to be sent.", many(view.pending, "event")))?;
            }
            Ok(())
        }
        WebhookCommand::Test { id } => {
            let sent: Value = api.send(api.request(Method::POST, &at(&id, "/test"))).await?;
            if out.json {
                out.document(&sent)?;
            } else {
                let event = sent["event"].as_str().unwrap_or_default();
                out.line(&format!("Sending {event}; see: nameplate webhook deliveries {id}"))?;
            }
            Ok(())
        }
        WebhookCommand::Deliveries { id, state } => {
            let question: Vec<_> = state.iter().map(|state| ("state", state.as_str())).collect();
            deliveries(&api.all(&at(&id, "/deliveries"), &question).await?, out)
        }
        WebhookCommand::Replay { id, event, given_up_since } => {
            let question = match (&event, &given_up_since) {
                (Some(event), _) => query(&[("event", event)]),
                (None, since) => query(&[("given_up_since", since.as_deref().unwrap_or_default())]),
            };
            let done: Value = api.send(api.request(Method::POST, &at(&id, &format!("/replay?{question}")))).await?;
            if out.json {
                out.document(&done)?;
            } else {
                let n = done["replayed"].as_u64().unwrap_or(0);
                out.line(&format!(
                    "Sending {} again.",
                    if n == 1 { "1 delivery".to_owned() } else { format!("{n} deliveries") }
                ))?;
            }
            Ok(())
        }
    }
}

/// The secret on a line of its own, so that it can be piped on.
fn secret(made: &Value, out: &mut Out<'_>) -> anyhow::Result<()> {
    if out.json {
        out.document(made)?;
    } else {
        out.line(made["secret"].as_str().unwrap_or_default())?;
        out.line(&format!("The secret of {}; it is shown this once.", made["id"].as_str().unwrap_or_default()))?;
    }
    Ok(())
}

fn list(all: &[WebhookView], out: &mut Out<'_>) -> anyhow::Result<()> {
    if out.json {
        return Ok(out.document(&all)?);
    }
    let state = |w: &WebhookView| match (&w.disabled_why, w.failures) {
        (Some(why), _) => format!("off ({why})"),
        (None, 0) => "on".to_owned(),
        (None, n) => format!("failing ({n} times)"),
    };
    let rows: Vec<_> = all
        .iter()
        .map(|w| {
            let whose = w.tenant_id.as_ref().map_or_else(|| "platform".to_owned(), ToString::to_string);
            vec![
                w.id.to_string(),
                state(w),
                w.pending.to_string(),
                w.url.clone().unwrap_or_else(|| format!("{} ({})", w.host, w.fingerprint)),
                w.kinds.join(","),
                whose,
            ]
        })
        .collect();
    Ok(out.table(&["ID", "STATE", "PENDING", "URL", "KINDS", "WHOSE"], &rows)?)
}

fn deliveries(all: &[DeliveryView], out: &mut Out<'_>) -> anyhow::Result<()> {
    if out.json {
        return Ok(out.document(&all)?);
    }
    let rows: Vec<_> = all
        .iter()
        .map(|d| {
            vec![
                d.event.to_string(),
                d.kind.clone(),
                d.state.clone(),
                d.attempts.to_string(),
                dash(d.status.map(|s| s.to_string())),
                dash(d.due_at.map(|at| at.rfc3339())),
                dash(d.error.clone()),
            ]
        })
        .collect();
    Ok(out.table(&["EVENT", "KIND", "STATE", "TRIES", "STATUS", "NEXT", "ERROR"], &rows)?)
}

pub(super) async fn alerts(surroundings: &Surroundings, args: AlertsArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let api = ApiClient::new(surroundings, args.server.server, args.server.token)?;
    let mut question: Vec<_> = args.tenant.iter().map(|tenant| ("tenant", tenant.as_str())).collect();
    if args.resolved {
        question.push(("resolved", "true"));
    }
    let all: Vec<AlertView> = api.all("/api/v1/alerts", &question).await?;
    if out.json {
        return Ok(out.document(&all)?);
    }
    if all.is_empty() {
        return Ok(out.line("Nothing.")?);
    }
    let rows: Vec<_> = all
        .iter()
        .map(|a| {
            let over = dash(a.resolved_at.map(|at| at.rfc3339()));
            vec![a.raised_at.rfc3339(), a.kind.clone(), a.count.to_string(), a.cause.clone(), over, a.said.clone()]
        })
        .collect();
    Ok(out.table(&["RAISED", "KIND", "COUNT", "CAUSE", "OVER", "WHAT"], &rows)?)
}
