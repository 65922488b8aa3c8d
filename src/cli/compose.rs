//! From what the process was started in to a configuration, and to the roles that run by it.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Surroundings;
use crate::config::{Config, Role, Sources};
use crate::env::Env;
use crate::roles::{ControlPlane, EDGE_DRAIN, ServeListeners, run_edge};
use crate::telemetry;

/// The file that is read where no other is named.
const DEFAULT_FILE: &str = "nameplate.toml";

/// Reads the configuration: the named file, or `nameplate.toml` where there is one, then the environment.
pub fn load(surroundings: &Surroundings, file: Option<&Path>) -> anyhow::Result<Config> {
    let mut sources = Sources::none()
        .variables(surroundings.variables.iter().cloned())
        .unreadable(surroundings.unreadable.iter().cloned());
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    match std::fs::read_to_string(path) {
        Ok(text) => sources = sources.file(path.display().to_string(), text),
        Err(e) if e.kind() == io::ErrorKind::NotFound && file.is_none() => {}
        Err(e) => return Err(e).with_context(|| format!("the configuration file {} cannot be read", path.display())),
    }
    Ok(Config::read(sources)?)
}

/// The file that [`load`] reads, if there is one.
pub(super) fn file_in_use(file: Option<&Path>) -> Option<PathBuf> {
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    (file.is_some() || path.exists()).then(|| path.to_owned())
}

/// What is said where no file was found.
pub(super) fn no_file(surroundings: &Surroundings) -> String {
    let from_environment = surroundings.variables.iter().filter(|(name, _)| name.starts_with("NAMEPLATE__")).count();
    let read = match from_environment {
        0 => "nothing but defaults is in use".to_owned(),
        n => format!("{} of the environment and defaults are in use", super::out::many(n, "setting")),
    };
    format!("no configuration file was found: there is no {DEFAULT_FILE} here, and none was named; {read}")
}

/// Runs one role until the process is told to stop, then drains it.
pub(super) async fn run_role(surroundings: &Surroundings, file: Option<&Path>, env: &Env, role: Role) -> anyhow::Result<()> {
    let config = load(surroundings, file)?;
    telemetry::init(&config.log)?;
    let stop = stop_at_signal()?;
    match role {
        Role::Serve => {
            let control = ControlPlane::open(&config, role, env).await?;
            let listeners = ServeListeners::bind(&config).await?;
            control.serve(listeners, stop).await?;
        }
        Role::Work => ControlPlane::open(&config, role, env).await?.work(stop).await?,
        Role::Edge => run_edge(&config, env, None, EDGE_DRAIN, stop).await?,
    }
    Ok(())
}

/// What shells report of a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// A token that is cancelled at the first SIGINT or SIGTERM: from then on the process drains. The second ends it at once.
pub(super) fn stop_at_signal() -> io::Result<CancellationToken> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::spawn(async move {
        let mut signalled = async || {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        signalled().await;
        tracing::info!("told to stop: finishing what has begun; a second signal ends it at once");
        told.cancel();
        signalled().await;
        std::process::exit(INTERRUPTED);
    });
    Ok(stop)
}
