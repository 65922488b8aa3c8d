//! `nameplate tenant …`: on the store, no server needed.

use std::path::Path;

use super::args::TenantCommand;
use super::{Out, Surroundings, load, tenant_remove};
use crate::app::show::TenantView;
use crate::app::tenants::{self, NewTenant};
use crate::config::Config;
use crate::env::Env;
use crate::model::tenant::Tenant;
use crate::roles::open_current;

/// The document that the API gives out, too.
fn view(config: &Config, tenant: Tenant) -> TenantView {
    let host = config.canonical_host(&tenant.slug);
    TenantView::new(tenant, host)
}

/// Tenants read at a time.
const PAGE: i64 = 500;

pub(super) async fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    env: &Env,
    command: TenantCommand,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    let config = load(surroundings, file)?;
    let store = open_current(&config).await?;
    match command {
        TenantCommand::Add { slug, name } => {
            let new = NewTenant { slug: &slug, name: name.as_deref() };
            let tenant = tenants::add(&store, env, new, |slug| config.canonical_host(slug), "command line").await?;
            if out.json {
                out.document(&view(&config, tenant))?;
            } else {
                out.line(&format!("Added {} as {}.", tenant.slug, tenant.id))?;
            }
        }
        TenantCommand::Remove(args) => tenant_remove::run(&store, env, args, out).await?,
        TenantCommand::List => {
            let mut all: Vec<Tenant> = Vec::new();
            loop {
                let page = tenants::list(&store, all.last().map(|last| &last.id), PAGE).await?;
                if page.is_empty() {
                    break;
                }
                all.extend(page);
            }
            if out.json {
                out.document(&all.into_iter().map(|tenant| view(&config, tenant)).collect::<Vec<_>>())?;
            } else {
                let rows: Vec<_> = all
                    .iter()
                    .map(|t| {
                        vec![
                            t.slug.to_string(),
                            t.name.clone(),
                            t.status.to_string(),
                            t.created_at.rfc3339(),
                            t.id.to_string(),
                        ]
                    })
                    .collect();
                out.table(&["SLUG", "NAME", "STATUS", "ADDED", "ID"], &rows)?;
            }
        }
    }
    store.close().await;
    Ok(())
}
