//! What handlers share.

use std::sync::Arc;

use super::doors::Doors;
use crate::config::{Config, Network};
use crate::env::Env;
use crate::model::hostname::{Hostname, NameRules};
use crate::model::records::ApexRoute;
use crate::model::slug::Slug;
use crate::store::Store;

/// Gives the canonical host of a slug.
type CanonicalHost = Arc<dyn Fn(&Slug) -> Option<Hostname> + Send + Sync>;

/// What handlers share; cheap to clone.
#[derive(Clone)]
pub struct WebState {
    /// Time and chance.
    pub env: Env,
    /// The store.
    pub store: Store,
    /// What moves a domain.
    pub doors: Arc<dyn Doors>,
    /// Which hostnames may be claimed.
    pub rules: Arc<NameRules>,
    /// Where an apex points.
    pub apex: Arc<ApexRoute>,
    /// The origin every link is built from, without a slash at its end.
    pub public_url: Arc<str>,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Arc<[Network]>,
    /// Gives the canonical host of a new tenant.
    pub canonical_host: CanonicalHost,
}

impl WebState {
    /// From the configuration; `public_url` is where the pages are reached.
    pub fn new(config: &Config, public_url: &str, env: Env, store: Store, doors: Arc<dyn Doors>) -> Self {
        let routing = config.clone();
        WebState {
            env,
            store,
            doors,
            rules: Arc::new(config.name_rules()),
            apex: Arc::new(config.apex_route()),
            public_url: public_url.trim_end_matches('/').into(),
            trusted_proxies: config.server.trusted_proxies.clone().into(),
            canonical_host: Arc::new(move |slug| routing.canonical_host(slug)),
        }
    }
}
