//! `nameplate token …`: on the store, no server needed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::args::{NewToken, TokenCommand};
use super::{Out, Surroundings, load, open_store};
use crate::app::tenants;
use crate::app::tokens::{self, Principal};
use crate::config::Setting as _;
use crate::env::Env;
use crate::model::id::TokenId;
use crate::store::Store;

pub(super) async fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    env: &Env,
    command: TokenCommand,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let store = open_store(&load(surroundings, file)?).await?;
    match command {
        TokenCommand::Create(new) => create(&store, env, &new, out).await?,
        TokenCommand::Revoke { id } => {
            let id: TokenId = id.parse()?;
            tokens::revoke(&store, env, &id).await?;
            if out.json {
                out.document(&serde_json::json!({ "revoked": id }))?;
            } else {
                out.line(&format!("{id} opens nothing any more."))?;
            }
        }
    }
    store.close().await;
    Ok(())
}

async fn create(store: &Store, env: &Env, new: &NewToken, out: &mut Out<'_>) -> anyhow::Result<()> {
    let principal = match &new.tenant {
        None => Principal::Operator,
        Some(named) => match tenants::find(store, named).await? {
            Some(tenant) => Principal::Tenant(tenant.id),
            None => bail!("there is no tenant {named:?}; add it with: nameplate tenant add {named}"),
        },
    };
    let expires_at = match &new.expires {
        None => None,
        Some(text) => {
            let wrong = || format!("--expires {text:?} is not {}", Duration::EXPECTED);
            Some(env.now() + Duration::read(text).with_context(wrong)?)
        }
    };
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
