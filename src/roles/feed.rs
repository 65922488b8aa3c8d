//! The feed alone, for commands that administer edges beside a running control plane.

use std::sync::Arc;

use super::{StartError, seal, store};
use crate::config::Config;
use crate::env::Env;
use crate::feed::Feed;
use crate::store::Store;
use crate::vault::Vault;

/// Opens database and vault, for commands that seal; the master key is checked as at any start.
pub async fn open_vault(config: &Config, env: &Env) -> Result<(Store, Arc<Vault>), StartError> {
    let store = store::open_current(config).await?;
    let vault = Arc::new(seal::open(&config.vault, &store, env).await?);
    Ok((store, vault))
}

/// Opens database, vault and feed; nothing runs. The master key is checked as at any start: a feed made under a wrong one
/// would be of no use to the right one.
pub async fn open_feed(config: &Config, env: &Env) -> Result<(Store, Feed), StartError> {
    let (store, vault) = open_vault(config, env).await?;
    let feed = Feed::open(store.clone(), vault, env.clone(), Arc::default()).await?;
    Ok((store, feed))
}
