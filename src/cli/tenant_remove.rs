//! `nameplate tenant remove`: on the store; a running control plane does the rest.

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::Out;
use super::out::many;
use crate::app::{offboard, tenants};
use crate::env::Env;
use crate::store::Store;

#[derive(Args)]
pub(super) struct RemoveArgs {
    /// Slug or id of the tenant
    pub tenant: String,
    /// Do it: there is no way back, and the slug never returns
    #[arg(long)]
    pub yes: bool,
}

pub(super) async fn run(store: &Store, env: &Env, args: RemoveArgs, out: &mut Out<'_>) -> anyhow::Result<()> {
    let Some(tenant) = tenants::find(store, &args.tenant).await? else {
        bail!("there is no tenant {:?}; see: nameplate tenant list", args.tenant)
    };
    if !args.yes {
        bail!(
            "removing {} cannot be undone: its hosts are served no more, its tokens and sessions end, its domains are \
             released and the slug never returns; say --yes to do it",
            tenant.slug
        )
    }
    let left = offboard::begin(store, env, &tenant.id, "command line").await?;
    let (slug, progress) = (&left.tenant.slug, left.progress);
    if out.json {
        out.document(&json!({
            "tenant_id": left.tenant.id, "slug": slug, "status": left.tenant.status, "new": left.new,
            "claims_open": progress.open, "names_releasing": progress.releasing,
            "finished_at": progress.finished_at.map(|at| at.rfc3339()),
        }))?;
        return Ok(());
    }
    if left.new {
        out.line(&format!("Removed {slug}; edges answer for none of its hosts any more."))?;
    } else {
        out.line(&format!("{slug} was removed already, at {}.", progress.begun_at.rfc3339()))?;
    }
    if progress.open > 0 {
        out.line(&format!("The control plane lets go of its {} now, one after the other.", many(progress.open, "claim")))?;
    }
    out.line(&format!(
        "Names that still lead here: GET /api/v1/tenants/{}/dangling, with an operator's token.",
        left.tenant.id
    ))?;
    Ok(())
}
