//! What the API says of an import, and how it is printed.

use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::Out;
use super::client::{ApiClient, Page};
use super::out::many;
use crate::app::show::{ImportRowView, ImportView};
use crate::model::bulk::ImportState;
use crate::model::moment::Moment;

/// Refused rows that are printed; the result file has all.
const PRINTED: usize = 20;

/// What the API says of an import.
#[derive(Serialize, Deserialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub view: ImportView,
    pub page: String,
    pub results: String,
    pub records: String,
}

/// All imports, the newest first.
pub(super) async fn list(api: &ApiClient, out: &mut Out<'_>) -> anyhow::Result<()> {
    let all: Vec<Shown> = api.all("/api/v1/imports", &[]).await?;
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

/// One import, with what there is to do.
pub(super) async fn print(api: &ApiClient, shown: &Shown, now: Moment, out: &mut Out<'_>) -> anyhow::Result<()> {
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
        if let Some(at) = view.next_look_at {
            let at = at.max(now).in_words();
            out.line(&format!("the next look at DNS is at {at}; all at once: nameplate imports check {}", view.id))?;
        }
    }
    if let Some(plan) = &view.plan {
        let past = view.state == ImportState::Cancelled || !view.dry_run && plan.last_order_at.is_some_and(|at| at < now);
        let end = plan.last_order_at.map(|at| match past {
            true => format!("; by the plan of {} the last was to be at {}", plan.made_at.in_words(), at.in_words()),
            false => format!("; the last at {}, if all is set up right", at.in_words()),
        });
        let end = end.unwrap_or_default();
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
