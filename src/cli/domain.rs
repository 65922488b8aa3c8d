//! `nameplate domain …`: over the API, like anybody else.

use anyhow::bail;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::args::{DomainArgs, DomainCommand};
use super::client::ApiClient;
use super::{Out, Surroundings, domain_text};
use crate::app::show::{DomainSummary, DomainView};
use crate::model::id::DomainId;

/// What the API says of one domain.
#[derive(Serialize, Deserialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub view: DomainView,
    pub page: String,
}

pub(super) async fn run(surroundings: &Surroundings, args: DomainArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let api = ApiClient::new(surroundings, args.server, args.token)?;
    let shown: Shown = match args.command {
        DomainCommand::List { tenant, hostname, claim } => return list(&api, tenant, hostname, claim, out).await,
        DomainCommand::Add { hostname, tenant, with_www, redirect_to } => {
            let mut body = serde_json::json!({ "hostname": hostname, "tenant": tenant });
            if with_www {
                body["with_partner"] = true.into();
                body["redirect_to"] = redirect_to.into();
            }
            api.send(api.request(Method::POST, "/api/v1/domains").json(&body)).await?
        }
        DomainCommand::Show { domain } => {
            let id = find(&api, &domain).await?;
            api.send(api.request(Method::GET, &format!("/api/v1/domains/{id}"))).await?
        }
        DomainCommand::Redirect { domain, off } => {
            let id = find(&api, &domain).await?;
            let path = format!("/api/v1/domains/{id}");
            let shown: Shown = api.send(api.request(Method::GET, &path)).await?;
            let to = shown.view.hostname.partner().filter(|_| !off);
            if to.is_none() && !off {
                bail!("{} has no other half: only a registered domain and its www belong together", shown.view.hostname);
            }
            api.send(api.request(Method::PATCH, &path).json(&serde_json::json!({ "redirect_to": to }))).await?
        }
        DomainCommand::Check { domain } => {
            let id = find(&api, &domain).await?;
            api.send(api.request(Method::POST, &format!("/api/v1/domains/{id}/check"))).await?
        }
        DomainCommand::Remove { domain } => {
            let id = find(&api, &domain).await?;
            api.send(api.request(Method::DELETE, &format!("/api/v1/domains/{id}"))).await?
        }
        DomainCommand::Undo { domain } => {
            let id = find(&api, &domain).await?;
            api.send(api.request(Method::POST, &format!("/api/v1/domains/{id}/undo-removal"))).await?
        }
        DomainCommand::EndRelease { domain, reason } => {
            let id = find(&api, &domain).await?;
            let body = serde_json::json!({ "reason": reason });
            api.send(api.request(Method::POST, &format!("/api/v1/domains/{id}/end-release")).json(&body)).await?
        }
        DomainCommand::LeftBehind => return left_behind(&api, out).await,
    };
    if out.json {
        out.document(&shown)?;
    } else {
        domain_text::print(&shown, out)?;
    }
    Ok(())
}

async fn list(
    api: &ApiClient,
    tenant: Option<String>,
    hostname: Option<String>,
    claim: Option<String>,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let all = all(api, tenant.as_deref(), hostname.as_deref(), claim.as_deref()).await?;
    if out.json {
        out.document(&all)?;
        return Ok(());
    }
    let rows: Vec<_> = all
        .into_iter()
        .map(|d| vec![d.hostname_display, d.tenant.slug, d.claim.to_string(), d.created_at.rfc3339(), d.id.to_string()])
        .collect();
    out.table(&["HOSTNAME", "TENANT", "CLAIM", "CLAIMED", "ID"], &rows)?;
    Ok(())
}

#[derive(Serialize, Deserialize)]
struct LeftBehind {
    domain_id: String,
    tenant_id: String,
    hostname: String,
    target: String,
    let_go_at: String,
    dangles_since: Option<String>,
    reminded_at: Option<String>,
}

async fn left_behind(api: &ApiClient, out: &mut Out<'_>) -> anyhow::Result<()> {
    let all: Vec<LeftBehind> = api.all("/api/v1/left-behind", &[]).await?;
    if out.json {
        out.document(&all)?;
        return Ok(());
    }
    let rows: Vec<_> = all
        .into_iter()
        .map(|n| vec![n.hostname, n.target, n.let_go_at, n.reminded_at.unwrap_or_else(|| "-".to_owned()), n.domain_id])
        .collect();
    out.table(&["HOSTNAME", "LEADS TO", "LET GO OF", "REMINDED", "ID"], &rows)?;
    Ok(())
}

async fn all(
    api: &ApiClient,
    tenant: Option<&str>,
    hostname: Option<&str>,
    claim: Option<&str>,
) -> anyhow::Result<Vec<DomainSummary>> {
    let asked = [("tenant", tenant), ("hostname", hostname), ("claim", claim)];
    let narrowed: Vec<_> = asked.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    api.all("/api/v1/domains", &narrowed).await
}

/// The domain that an id or a hostname means: of several claims on one name the open one.
pub(super) async fn find(api: &ApiClient, named: &str) -> anyhow::Result<DomainId> {
    if let Ok(id) = named.parse::<DomainId>() {
        return Ok(id);
    }
    let claims = all(api, None, Some(named), None).await?;
    let open: Vec<_> = claims.iter().filter(|claim| claim.claim.is_open()).collect();
    match (open.as_slice(), claims.last()) {
        ([one], _) => Ok(one.id.clone()),
        ([], Some(latest)) => Ok(latest.id.clone()),
        ([], None) => bail!("there is no domain {named}; claim it with: nameplate domain add {named}"),
        (several, _) => {
            let ids: Vec<String> = several.iter().map(|claim| format!("{} of {}", claim.id, claim.tenant.slug)).collect();
            bail!("several tenants claim {named}; give an id: {}", ids.join(", "))
        }
    }
}
