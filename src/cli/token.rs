//! `nameplate token …`: on the store, no server needed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::args::{NewToken, TokenCommand};
use super::{Out, Surroundings, load};
use crate::app::show::TokenView;
use crate::app::tenants;
use crate::app::tokens::{self, Principal};
use crate::config::{Config, Setting as _};
use crate::env::Env;
use crate::model::id::{TenantId, TokenId};
use crate::model::label::Label;
use crate::model::tenant::{Tenant, TenantStatus};
use crate::roles::{open_current, open_feed};
use crate::store::tokens::TokenRow;
use crate::store::{self, Store, StoreError};

/// The longest that a token may be good for, where it ends at all.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
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
            let store = open_current(&config).await?;
            create(&store, env, &new, out).await?;
            store.close().await;
        }
        TokenCommand::List { tenant } => {
            let store = open_current(&config).await?;
            list(&store, tenant.as_deref(), out).await?;
            store.close().await;
        }
        TokenCommand::Revoke { id } => {
            let id: TokenId = id.parse()?;
            let store = open_current(&config).await?;
            revoke(&store, env, &id).await?;
            let row = tokens::find(&store, &Principal::Operator, &id).await?;
            store.close().await;
            if out.json {
                out.document(&row.map(TokenView::from))?;
            } else {
                out.line(&format!("{id} opens nothing any more."))?;
            }
        }
    }
    Ok(())
}

async fn revoke(store: &Store, env: &Env, id: &TokenId) -> anyhow::Result<()> {
    match tokens::revoke(store, env, id).await {
        Err(StoreError::NotFound { .. }) => match tokens::find(store, &Principal::Operator, id).await? {
            Some(TokenRow { revoked_at: Some(at), .. }) => bail!("the token {id} was taken back before, at {at}"),
            _ => bail!("there is no token {id}; see: nameplate token list"),
        },
        done => Ok(done?),
    }
}

async fn named(store: &Store, named: &str) -> anyhow::Result<Tenant> {
    match tenants::find(store, named).await? {
        Some(tenant) => Ok(tenant),
        None => bail!("there is no tenant {named:?}; add it with: nameplate tenant add {named}"),
    }
}

/// A tenant that can still be given something.
async fn with_a_future(store: &Store, slug: &str) -> anyhow::Result<TenantId> {
    let tenant = named(store, slug).await?;
    if tenant.status == TenantStatus::Deleted {
        bail!("the tenant {} was removed", tenant.slug);
    }
    Ok(tenant.id)
}

/// Tokens read at a time.
const PAGE: i64 = 500;

async fn list(store: &Store, tenant: Option<&str>, out: &mut Out<'_>) -> anyhow::Result<()> {
    let tenant = match tenant {
        Some(slug) => Some(named(store, slug).await?.id),
        None => None,
    };
    let mut all: Vec<TokenView> = Vec::new();
    loop {
        let after = all.last().map(|last| last.id.to_string()).unwrap_or_default();
        let page = store::tokens::list(&mut store.read().await?, tenant.as_ref(), &after, PAGE).await?;
        if page.is_empty() {
            break;
        }
        all.extend(page.into_iter().map(TokenView::from));
    }
    if out.json {
        out.document(&all)?;
        return Ok(());
    }
    let line = |t: &TokenView| {
        let state = match (t.revoked_at, t.used_at, t.expires_at) {
            (Some(at), _, _) => format!("taken back {at}"),
            (None, Some(at), _) => format!("used {at}"),
            (None, None, Some(at)) => format!("until {at}"),
            (None, None, None) => "for good".to_owned(),
        };
        let whose = t.tenant_id.as_ref().map_or_else(|| "-".to_owned(), TenantId::to_string);
        vec![t.scope.clone(), t.label.clone(), state, whose, t.id.to_string()]
    };
    out.table(&["SCOPE", "LABEL", "VALID", "TENANT", "ID"], &all.iter().map(line).collect::<Vec<_>>())?;
    Ok(())
}

/// The time that `--expires` gives.
fn lasts(new: &NewToken) -> anyhow::Result<Option<Duration>> {
    let Some(text) = &new.expires else { return Ok(None) };
    let wrong = || format!("--expires {text:?} is not {}", Duration::EXPECTED);
    let lasts = Duration::read(text).with_context(wrong)?;
    if lasts.is_zero() {
        bail!("--expires {text:?} makes a token that has ended before it is used; give a time like 1h or 90d");
    }
    if lasts > LONGEST {
        bail!(
            "--expires {text:?} is more than a hundred years; leave it out for a token that is good until it is taken back"
        );
    }
    Ok(Some(lasts))
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
        Some(slug) => Principal::Tenant(with_a_future(store, slug).await?),
    };
    let label = Label::TOKEN.read(&new.label)?;
    let expires_at = lasts(new)?.map(|lasts| env.now() + lasts);
    let minted = tokens::mint(store, env, &principal, &label, expires_at).await?;
    let text = minted.text.expose_str().unwrap_or_default();
    if out.json {
        let mut document = serde_json::to_value(TokenView::from(minted.row))?;
        document["token"] = text.into();
        out.document(&document)?;
    } else {
        // The token alone, so that it can be piped; `--json` gives the id by which it is taken back.
        out.line(text)?;
    }
    Ok(())
}
