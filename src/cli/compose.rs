//! The composition root: where configuration becomes a store, a router, a process.

use std::io;
use std::path::Path;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::Surroundings;
use crate::config::{Config, Sources};
use crate::store::{OpenSettings, Store};
use crate::web::{WebState, router, serve};

/// The file that is read where no other is named.
const DEFAULT_FILE: &str = "nameplate.toml";

/// Reads the configuration: the named file, or `nameplate.toml` where there is one, then the environment.
pub fn load(surroundings: &Surroundings, file: Option<&Path>) -> anyhow::Result<Config> {
    let mut sources = Sources::none().variables(surroundings.variables.iter().cloned());
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    match std::fs::read_to_string(path) {
        Ok(text) => sources = sources.file(path.display().to_string(), text),
        Err(e) if e.kind() == io::ErrorKind::NotFound && file.is_none() => {}
        Err(e) => return Err(e).with_context(|| format!("the configuration file {} cannot be read", path.display())),
    }
    Ok(Config::read(sources)?)
}

/// Opens the store and brings it to this version's schema; refuses one that is newer.
pub async fn open_store(config: &Config) -> anyhow::Result<Store> {
    let Some(url) = config.database.url.expose_str() else { bail!("database.url is not text") };
    let settings = OpenSettings { url: url.to_owned(), connections: config.database.connections };
    let store = Store::open(&settings).await.context("the database cannot be opened")?;
    store.migrate().await.context("the database cannot be migrated")?;
    Ok(store)
}

/// Serves API and pages until `stop`, then answers what is under way.
pub async fn serve_web(
    state: WebState,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    serve(listener, router(state), stop).await.context("the API stopped")
}

/// Resolves at the first SIGINT or SIGTERM: from then on the process drains.
pub async fn stop_signal() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed,
        _ = terminate.recv() => Ok(()),
    }
}
