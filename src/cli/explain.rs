//! `nameplate explain HOST`: the whole story of one name, over the API.

use std::io;

use clap::Args;
use reqwest::Method;

use super::client::ApiClient;
use super::out::many;
use super::{Out, Surroundings};
use crate::app::explain::{Explanation, Story};
use crate::model::evidence::{Actor, Verdict};
use crate::web::query;

#[derive(Args)]
pub(super) struct ExplainArgs {
    /// The hostname, in any spelling
    hostname: String,
    /// Where the API is [default: NAMEPLATE_SERVER, else http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// API token [default: NAMEPLATE_TOKEN, which other users of the machine cannot see]
    #[arg(long)]
    token: Option<String>,
}

/// How much of each history is printed.
const EVENTS: usize = 8;

pub(super) async fn run(surroundings: &Surroundings, args: ExplainArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let api = ApiClient::new(surroundings, args.server, args.token)?;
    let path = format!("/api/v1/explain?{}", query(&[("hostname", &args.hostname)]));
    let told: Explanation = api.send(api.request(Method::GET, &path)).await?;
    if out.json {
        out.document(&told)?;
    } else {
        print(&told, out)?;
    }
    Ok(())
}

fn print(told: &Explanation, out: &mut Out<'_>) -> io::Result<()> {
    let ascii = match told.hostname_display == told.hostname.as_str() {
        true => String::new(),
        false => format!(" ({})", told.hostname),
    };
    out.line(&format!("{}{ascii}, under {}", told.hostname_display, told.registered_domain))?;
    if let Some(holding) = &told.holding {
        let by = holding.tenant.as_deref().map(|slug| format!(" by {slug}")).unwrap_or_default();
        out.line(&format!("The name is {}{by} since {} (term {}).", holding.state, holding.since, holding.term))?;
    }
    for story in &told.claims {
        out.line("")?;
        claim(story, out)?;
    }
    if told.more_claims > 0 {
        out.line("")?;
        let are = if told.more_claims == 1 { "is" } else { "are" };
        out.line(&format!("{} on this name {are} not told.", many(told.more_claims, "older claim")))?;
    }
    Ok(())
}

fn mover(actor: Actor) -> &'static str {
    match actor {
        Actor::Tenant => "the tenant's move",
        Actor::DnsProvider => "the DNS provider's move",
        Actor::Platform => "the platform's move",
        Actor::Ca => "the certificate authority's move",
        Actor::Nobody => "nobody has to act",
    }
}

fn claim(story: &Story, out: &mut Out<'_>) -> io::Result<()> {
    let d = &story.domain;
    out.line(&format!("Claim of {}  {} since {}  {}", d.tenant.slug, d.claim, story.claim_since, d.id))?;
    out.line(&format!("  {}", d.sentence))?;
    let (code, since) = (&story.standing.code, story.standing.since);
    out.line(&format!("  Stands at {code} since {since}: {}. The tie is {}.", mover(story.standing.who_acts), story.tie))?;
    for check in &d.checks {
        let verdict = match check.verdict {
            Verdict::Pass => "right",
            Verdict::Wait => "waits",
            Verdict::Fail => "wrong",
            Verdict::Unknown => "unknown",
        };
        out.line(&format!("  {verdict:<8}{}  ({}, looked at {})", check.sentence, check.code, check.looked_at))?;
        if check.verdict != Verdict::Pass {
            out.line(&format!("          expected  {}", check.expected))?;
            for seen in &check.observed {
                out.line(&format!("          seen      {seen}"))?;
            }
            if !check.advice.is_empty() {
                out.line(&format!("          to do     {}", check.advice))?;
            }
        }
    }
    for order in &story.orders {
        let grant = order.grant_state.as_deref().map(|g| format!(", grant {g}")).unwrap_or_default();
        out.line(&format!(
            "  Order {} ({}, lane {}) at {}: {} since {}{grant}",
            order.id, order.purpose, order.lane, order.issuer, order.state, order.state_since
        ))?;
        if let Some(problem) = &order.problem {
            out.line(&format!("          the CA said  {problem}"))?;
        }
    }
    if let Some(certificate) = &d.certificate {
        out.line(&format!("  Certificate {} until {}", certificate.serial, certificate.not_after))?;
    }
    for edge in &story.edges {
        let has = match (&edge.observed, edge.has_it) {
            (Some(observed), _) => format!("has it and serves something else: {observed}"),
            (None, true) => "serves it".to_owned(),
            (None, false) => "does not have it yet".to_owned(),
        };
        let counted = if edge.counted { "" } else { ", not counted" };
        out.line(&format!("  Edge {} ({}{counted}): {has}", edge.name, edge.status))?;
    }
    if let Some(inside) = &story.inside {
        let lease = match &inside.lease_owner {
            Some(owner) => format!("leased by {owner} until {}", inside.lease_until),
            None => "not leased".to_owned(),
        };
        out.line(&format!(
            "  Generation {}, settled {}, failures {}, {lease}",
            inside.generation, inside.settled, inside.failures
        ))?;
        if let Some(import) = &inside.import_id {
            out.line(&format!("  Brought by import {import}"))?;
        }
        if let Some(intent) = inside.intent.as_ref().filter(|i| i.open) {
            out.line(&format!(
                "  Begun and not recorded: {} of {} at {}",
                intent.effect, intent.object_id, intent.recorded_at
            ))?;
        }
    }
    for event in d.events.iter().take(EVENTS) {
        out.line(&format!("  {}  {:<20}  {} (by {})", event.at, event.kind, event.cause, event.actor))?;
    }
    out.line("  Next:")?;
    for sentence in &story.next {
        out.line(&format!("  - {sentence}"))?;
    }
    Ok(())
}
