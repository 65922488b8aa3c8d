//! An edge from the configuration, without a database.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{StartError, bind, observe};
use crate::config::{Config, Role};
use crate::edge::{Edge, EdgeListeners, EdgeSettings};
use crate::env::Env;

/// How long an edge lets running requests finish, where nobody is waiting for it to end.
pub const EDGE_DRAIN: Duration = Duration::from_secs(20);

/// Runs an edge until told to stop, then drains for so long at most. Without listeners it binds those of the configuration.
pub async fn run_edge(
    config: &Config,
    env: &Env,
    listeners: Option<EdgeListeners>,
    drain: Duration,
    stop: CancellationToken,
) -> Result<(), StartError> {
    config.check_for(Role::Edge)?;
    let settings = EdgeSettings {
        state_dir: config.edge.state_dir.clone(),
        name: config.edge.name.clone().unwrap_or_default(),
        upstream: config.edge.upstream.as_ref().map(|url| url.as_str().to_owned()).unwrap_or_default(),
        https_port: config.edge.external_port,
        join_token: config.edge.join_token.clone(),
        drain,
        limits: config.edge.limits.clone(),
        access_log: config.edge.access_log.clone().map(|path| (path, config.edge.access_log_sample)),
        proof_secret: config.edge.proof_secret.clone(),
    };
    let edge = Edge::open(settings, env.clone())?;
    let listeners = match listeners {
        Some(listeners) => listeners,
        None => EdgeListeners {
            plain: bind("edge.plain_listen", config.edge.plain_listen).await?,
            tls: bind("edge.tls_listen", config.edge.tls_listen).await?,
        },
    };
    let _watching = observe::start(config, Arc::new(edge.view()), env).await?;
    Ok(edge.run(listeners, stop).await?)
}
