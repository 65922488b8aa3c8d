//! The database of a configuration.

use super::StartError;
use crate::config::Config;
use crate::jobs::queue::Queue;
use crate::store::{OpenSettings, Schema, Store};

/// Opens the database without a look at its schema.
pub(super) async fn connect(config: &Config) -> Result<Store, StartError> {
    let url = config.database.url.expose_str().unwrap_or_default().to_owned();
    Ok(Store::open(&OpenSettings { url, connections: config.database.connections }).await?)
}

/// Opens the database and brings it to this binary's schema, the queue's tables included; refuses a newer one.
pub async fn open_store(config: &Config) -> Result<Store, StartError> {
    let store = connect(config).await?;
    // The queue's first: who finds our schema current finds everything.
    Queue::migrate(&store).await?;
    store.migrate().await?;
    Ok(store)
}

/// Opens a database whose schema is current, and changes nothing about it.
pub(super) async fn open_current(config: &Config) -> Result<Store, StartError> {
    let store = connect(config).await?;
    match store.schema().await? {
        Schema::Current => Ok(store),
        Schema::Older => Err(StartError::NotMigrated),
        Schema::Newer => Err(StartError::NewerSchema),
    }
}
