//! `nameplate token …`: on the store, no server needed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::args::{NewToken, TokenCommand};
use super::{Out, Surroundings, load, open_store};
use crate::app::tenants;
use crate::app::tokens::{self, Principal};
use crate::config::{Config, Setting as _};
use crate::env::Env;
use crate::model::id::TokenId;
use crate::model::tenant::TenantStatus;
use crate::roles::open_feed;
use crate::store::Store;

/// How long a join token lasts where nothing is said.
const JOIN_LASTS: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    env: &Env,
    command: TokenCommand,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, file)?;
    match command {
        TokenCommand::Create(new) if new.edge => create_join(&config, env, &new, out).await?,
        TokenCommand::Create(new) => {
            let store = open_store(&config).await?;
            create(&store, env, &new, out).await?;
            store.close().await;
        }
        TokenCommand::Revoke { id } => {
            let id: TokenId = id.parse()?;
            let store = open_store(&config).await?;
            tokens::revoke(&store, env, &id).await?;
            store.close().await;
            if out.json {
                out.document(&serde_json::json!({ "revoked": id }))?;
            } else {
                out.line(&format!("{id} opens nothing any more."))?;
            }
        }
    }
    Ok(())
}

/// The time that `--expires` gives.
fn lasts(new: &NewToken) -> anyhow::Result<Option<Duration>> {
    let Some(text) = &new.expires else { return Ok(None) };
    let wrong = || format!("--expires {text:?} is not {}", Duration::EXPECTED);
    Duration::read(text).map(Some).with_context(wrong)
}

/// A token for one edge: it carries the feed's address and what to know the feed by.
async fn create_join(config: &Config, env: &Env, new: &NewToken, out: &mut Out<'_>) -> anyhow::Result<()> {
    let Some(url) = &config.feed.url else { bail!("feed.url is missing: join tokens carry it") };
    let lasts = lasts(new)?.unwrap_or(JOIN_LASTS);
    let (store, feed) = open_feed(config, env).await?;
    let text = feed.mint_join_token(url.as_str(), &new.label, lasts).await?;
    store.close().await;
    let text = text.expose_str().unwrap_or_default();
    if out.json {
        out.document(&serde_json::json!({ "token": text }))?
    } else {
        out.line(text)?
    }
    Ok(())
}

async fn create(store: &Store, env: &Env, new: &NewToken, out: &mut Out<'_>) -> anyhow::Result<()> {
    let principal = match &new.tenant {
        None => Principal::Operator,
        Some(named) => match tenants::find(store, named).await? {
            Some(tenant) if tenant.status == TenantStatus::Deleted => bail!("the tenant {} was removed", tenant.slug),
            Some(tenant) => Principal::Tenant(tenant.id),
            None => bail!("there is no tenant {named:?}; add it with: nameplate tenant add {named}"),
        },
    };
    let expires_at = lasts(new)?.map(|lasts| env.now() + lasts);
    let minted = tokens::mint(store, env, &principal, &new.label, expires_at).await?;
    let text = minted.text.expose_str().unwrap_or_default();
    if out.json {
        out.document(&serde_json::json!({ "id": minted.id, "token": text }))?;
    } else {
        // The token alone, so that it can be piped; `--json` gives the id by which it is taken back.
        out.line(text)?;
    }
    Ok(())
}
