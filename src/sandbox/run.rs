//! `nameplate sandbox`: a world to play in, until told to stop.

use std::io::{self, Write};

use super::outside::TENANT_ZONE;
use super::walk::{Failed, TENANT, Walk};
use super::world::{World, WorldError, WorldSettings, shown};
use crate::env::Env;
use crate::roles::StartError;

/// The sandbox ended other than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It did not start.
    #[error("the sandbox did not start")]
    World(#[from] WorldError),
    /// Its tenant could not be made.
    #[error("the sandbox is of no use without its tenant")]
    Tenant(#[from] Failed),
    /// A role ended.
    #[error("a part of the sandbox stopped")]
    Stopped(#[source] StartError),
    /// Nobody reads.
    #[error("the list of addresses could not be written")]
    Report(#[from] io::Error),
}

/// Starts a sandbox, tells what to open, and drains it once `stop` resolves.
pub async fn run(
    settings: WorldSettings,
    env: &Env,
    out: &mut dyn Write,
    stop: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let mut world = World::start(settings, env).await?;
    let walk = Walk::new(&world)?;
    walk.tenant().await?;
    out.write_all(invitation(&world, &walk.portal_link().await?).as_bytes())?;
    out.flush()?;
    let ended = tokio::select! {
        () = stop => Ok(()),
        ended = world.broken() => ended,
    };
    writeln!(out, "\nStopping: finishing what has begun…")?;
    let drained = world.drain().await;
    ended.and(drained).map_err(RunError::Stopped)
}

fn invitation(world: &World, portal: &str) -> String {
    let host = format!("support.{TENANT_ZONE}");
    let (url, port) = (world.url(), world.https_port());
    let token = world.operator.expose_str().unwrap_or_default();
    let (config, roots) = (shown(&world.config_file), shown(&world.roots_file));
    // The line must work as it stands, wherever this binary was built.
    let program = std::env::current_exe().map_or_else(|_| "nameplate".to_owned(), |path| shown(&path));
    let bad_days = match world.outside.issuer.script() {
        Some(_) => format!("  The CA's bad days     http://{}/ca\n", world.outside.provider),
        None => String::new(),
    };
    let (provider, origin) = (world.outside.provider, world.outside.origin);
    format!(
        "\nNameplate's sandbox is running, all of it on this machine.\n\
         \n  Portal of {TENANT}        {portal}\n  \
         Operators' sign-in    {url}/operator/sign-in\n  \
         Operator's token      {token}\n  \
         Pretend DNS provider  http://{provider}  (zone {TENANT_ZONE})\n{bad_days}  \
         Mailbox               http://{provider}/mail\n  \
         Application           http://{origin}\n  API                   {url}/api/v1\n  Configuration         {config}\n\
         \n1. Open the portal's link, which signs in once as an admin of {TENANT}. Add {host}, paste the two records it\n   \
         shows at http://{provider}, and watch the page turn green. A fresh link:\n\
         \n   NAMEPLATE_TOKEN={token} {program} portal-link --server {url} --tenant {TENANT}\n\
         \n2. Visit the tenant's site, trusting the sandbox's CA alone:\n\
         \n   curl --resolve {host}:{port}:127.0.0.1 --cacert {roots} https://{host}:{port}/\n\
         \nThe same without a browser:\n\
         \n   NAMEPLATE_TOKEN={token} {program} domain --server {url} add {host} --tenant {TENANT}\n\
         \n   curl -s {url}/api/v1/domains -H 'Authorization: Bearer {token}' \\\n        \
         -H 'Content-Type: application/json' -d '{{\"tenant\":\"{TENANT}\",\"hostname\":\"{host}\"}}'\n\
         \nCtrl-C stops it.\n"
    )
}
