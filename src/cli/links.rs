//! `nameplate portal-link` and `nameplate hand-off-link`: over the API, like any application that sends its customers here.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::client::ApiClient;
use super::domain::find;
use super::{Out, Surroundings};
use crate::config::Setting as _;

#[derive(Args)]
pub(super) struct PortalLinkArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    /// For which tenant, by slug or id; a tenant's own token may leave it out
    #[arg(long)]
    pub tenant: Option<String>,
    /// Lead to this domain, by id or hostname, instead of the list
    #[arg(long)]
    pub domain: Option<String>,
    /// Where "back to the application" leads; must be under one of portal.return_urls
    #[arg(long, value_name = "URL")]
    pub return_url: Option<String>,
}

#[derive(Args)]
pub(super) struct HandOffLinkArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    /// Which domain, by id or hostname
    #[arg(long)]
    pub domain: String,
    /// After which time it ends, such as 12h or 7d [default: portal.hand_off_lifetime]
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
}

#[derive(Args)]
pub(super) struct ServerArgs {
    /// Where the API is [default: NAMEPLATE_SERVER, else http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// API token [default: NAMEPLATE_TOKEN, which other users of the machine cannot see]
    #[arg(long)]
    pub token: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Made {
    url: String,
    expires_at: String,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

pub(super) async fn portal(surroundings: &Surroundings, args: PortalLinkArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let api = ApiClient::new(surroundings, args.server.server, args.server.token)?;
    let domain = match args.domain {
        Some(named) => Some(find(&api, &named).await?),
        None => None,
    };
    let body = json!({ "tenant": args.tenant, "domain": domain, "return_url": args.return_url });
    let made: Made = api.send(api.request(Method::POST, "/api/v1/portal-links").json(&body)).await?;
    tell(&made, "It signs in once", out)
}

pub(super) async fn hand_off(surroundings: &Surroundings, args: HandOffLinkArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let api = ApiClient::new(surroundings, args.server.server, args.server.token)?;
    let expires_in = match args.expires.as_deref() {
        Some(text) => {
            let time =
                Duration::read(text).with_context(|| format!("--expires is {text:?}; expected {}", Duration::EXPECTED))?;
            Some(time.as_secs())
        }
        None => None,
    };
    let body = json!({ "domain": find(&api, &args.domain).await?, "expires_in": expires_in });
    let made: Made = api.send(api.request(Method::POST, "/api/v1/hand-off-links").json(&body)).await?;
    tell(&made, "It shows one domain and changes nothing", out)
}

/// The link on a line of its own, so that it can be piped on.
fn tell(made: &Made, what: &str, out: &mut Out<'_>) -> anyhow::Result<()> {
    if out.json {
        out.document(made)?;
    } else {
        out.line(&made.url)?;
        out.line(&format!("{what}; good until {}.", made.expires_at))?;
    }
    Ok(())
}
