//! `nameplate domain-connect …`: what the platform gives to DNS providers, and publishes, before a link can be made.

use std::path::Path;

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::json;

use super::{Out, Surroundings, load};
use crate::config::{Config, DomainConnectConfig};
use crate::model::domain_connect::{Route, Target, TemplateFacts, key_records, template};
use crate::model::records::{OWNERSHIP_LABEL, OWNERSHIP_PREFIX};
use crate::vault::request_signing::RequestSigner;

#[derive(Subcommand)]
pub(super) enum DomainConnectCommand {
    /// Print a template that DNS providers take in, as the configuration has it
    Template {
        /// The one for bare domains, where no CNAME may stand
        #[arg(long)]
        apex: bool,
    },
    /// Print the TXT records that publish the public key
    Records,
    /// Make a private key for domain_connect.key_file
    NewKey,
}

pub(super) fn run(
    surroundings: &Surroundings,
    file: Option<&Path>,
    command: DomainConnectCommand,
    out: &mut Out<'_>,
) -> anyhow::Result<()> {
    if matches!(command, DomainConnectCommand::NewKey) {
        let key = RequestSigner::new_key()?;
        for line in key.expose_str().unwrap_or_default().lines() {
            out.line(line)?;
        }
        return Ok(());
    }
    let config = load(surroundings, file)?;
    let connect = config.domain_connect.as_ref().context("domain_connect.provider_id is not set: Domain Connect is off")?;
    match command {
        DomainConnectCommand::Records => records(connect, out),
        DomainConnectCommand::Template { apex } => out.document(&template_of(&config, connect, apex)?).map_err(Into::into),
        DomainConnectCommand::NewKey => Ok(()),
    }
}

fn records(connect: &DomainConnectConfig, out: &mut Out<'_>) -> anyhow::Result<()> {
    let key = connect.key.as_ref().context("domain_connect.key is not set; nameplate domain-connect new-key makes one")?;
    let public = RequestSigner::from_pem(key).context("domain_connect.key cannot be used")?.public_key()?;
    let name = format!("{}.{}", connect.key_label, connect.key_domain);
    let texts = key_records(&public);
    if out.json {
        return out.document(&json!({ "name": name, "texts": texts })).map_err(Into::into);
    }
    for text in texts {
        out.line(&format!("{name}. 3600 IN TXT \"{text}\""))?;
    }
    Ok(())
}

fn template_of(config: &Config, connect: &DomainConnectConfig, apex: bool) -> anyhow::Result<serde_json::Value> {
    let tenants = config.tenant_zone();
    let shared = config.routing.shared_target.as_ref().map(|name| name.as_str());
    let target = match (&tenants, shared) {
        (Some(zone), _) => Target::PerTenant(zone),
        (None, Some(name)) => Target::Shared(name),
        (None, None) => {
            anyhow::bail!("neither routing.canonical_suffix nor routing.shared_target is set: names lead nowhere")
        }
    };
    let alias = config.routing.apex_target.as_ref().map(|name| Target::Shared(name.as_str()));
    let route = match apex {
        false => Route::Beneath(target),
        true if config.routing.apex_addresses.is_empty() => Route::Alias(alias.unwrap_or(target)),
        true => Route::Addresses(&config.routing.apex_addresses),
    };
    let redirect = config.server.public_url.as_ref().context("server.public_url is not set: browsers come back to it")?;
    Ok(template(&TemplateFacts {
        provider_id: &connect.provider_id,
        provider_name: connect.provider_name.as_deref().unwrap_or(&config.brand.name),
        service_id: if apex { &connect.apex_service_id } else { &connect.service_id },
        service_name: &connect.service_name,
        key_domain: &connect.key_domain,
        redirect_host: redirect.host(),
        label: OWNERSHIP_LABEL,
        prefix: OWNERSHIP_PREFIX,
        route,
    }))
}
