//! The database of a configuration.

use std::path::PathBuf;

use super::StartError;
use crate::config::Config;
use crate::jobs::queue::Queue;
use crate::store::{OpenSettings, Schema, Store};

/// Opens the database without a look at its schema.
pub(super) async fn connect(config: &Config) -> Result<Store, StartError> {
    let url = config.database.url.expose_str().unwrap_or_default().to_owned();
    Ok(Store::open(&OpenSettings { url, connections: config.database.connections }).await?)
}

/// Opens the database and brings it to this binary's schema, the queue's tables included; refuses a newer one. An empty one is told
/// of: on a disk that does not last, or under another name than before, it looks like the first start of all.
pub async fn open_store(config: &Config) -> Result<Store, StartError> {
    let store = connect(config).await?;
    if store.schema().await? == Schema::Blank {
        tracing::warn!(
            "the database was empty and is begun anew: where names were served before, stop this process and restore their \
             database; edges serve on meanwhile"
        );
    }
    migrate(&store).await?;
    Ok(store)
}

/// Brings an open database to this binary's schema, the queue's tables included.
pub(super) async fn migrate(store: &Store) -> Result<(), StartError> {
    // The queue's first: who finds our schema current finds everything.
    Queue::migrate(store).await?;
    Ok(store.migrate().await?)
}

/// Opens a database that is there, whatever its schema, and changes nothing about it.
pub async fn open_existing(config: &Config) -> Result<Store, StartError> {
    let url = config.database.url.expose_str().unwrap_or_default();
    if let Some(file) = sqlite_file(url).filter(|file| !file.exists()) {
        return Err(StartError::NoDatabase { file });
    }
    connect(config).await
}

/// The file of a SQLite database; opening makes it where it is missing.
pub(super) fn sqlite_file(url: &str) -> Option<PathBuf> {
    let rest = url.strip_prefix("sqlite:")?;
    let path = rest.strip_prefix("//").unwrap_or(rest).split('?').next().unwrap_or_default();
    (!path.contains(":memory:")).then(|| PathBuf::from(path))
}

/// Opens a database that is there and whose schema is current, and changes nothing about it: for everything beside a `serve`,
/// which must not make an empty database where the configuration named the wrong one, nor bring a new schema to an old `serve`.
pub async fn open_current(config: &Config) -> Result<Store, StartError> {
    let store = open_existing(config).await?;
    match store.schema().await? {
        Schema::Current => Ok(store),
        Schema::Older | Schema::Blank => Err(StartError::NotMigrated),
        Schema::Newer => Err(StartError::NewerSchema),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_url_is_found() {
        let file = |url| sqlite_file(url).map(|p| p.display().to_string());
        assert_eq!(file("sqlite:/var/lib/np.db?mode=rw").as_deref(), Some("/var/lib/np.db"));
        assert_eq!(file("sqlite://np.db").as_deref(), Some("np.db"));
        assert_eq!((file("sqlite::memory:"), file("postgres://x/y")), (None, None));
    }
}
