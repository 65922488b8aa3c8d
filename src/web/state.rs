//! What handlers share.

use std::sync::Arc;

use super::brand::{Brand, LogoError};
use super::connect::Connect;
use super::live::Live;
use crate::app::App;
use crate::app::sessions::SessionSettings;
use crate::config::{ApiConfig, Config, ImportsConfig, Network, PortalConfig};
use crate::model::hook_url::HookRules;
use crate::model::hostname::{Hostname, NameRules};
use crate::model::records::ApexRoute;
use crate::model::slug::Slug;

/// What the operator decided about API and pages.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// The origin every link is built from, without a slash at its end.
    pub public_url: String,
    /// Which hostnames may be claimed.
    pub rules: NameRules,
    /// Where an apex points.
    pub apex: ApexRoute,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Network>,
    /// How much of the API one caller gets.
    pub api: ApiConfig,
    /// How large files of names may be.
    pub imports: ImportsConfig,
    /// Links, sessions, frames.
    pub portal: PortalConfig,
    /// How the pages present themselves.
    pub brand: Brand,
    /// Who makes links to DNS providers that set the records themselves; nobody while that is not used.
    pub connect: Option<Arc<Connect>>,
    /// Which URLs webhooks may have.
    pub hooks: HookRules,
}

impl WebSettings {
    /// From the configuration; `public_url` is where the pages are reached.
    pub fn new(config: &Config, public_url: &str) -> Result<Self, LogoError> {
        Ok(WebSettings {
            public_url: public_url.trim_end_matches('/').to_owned(),
            rules: config.name_rules(),
            apex: config.apex_route(),
            trusted_proxies: config.server.trusted_proxies.clone(),
            api: config.api,
            imports: config.imports,
            portal: config.portal.clone(),
            brand: Brand::new(&config.brand)?,
            connect: None,
            hooks: config.hook_rules(),
        })
    }

    /// How long sessions last.
    pub fn sessions(&self) -> SessionSettings {
        SessionSettings { idle: self.portal.session_idle, lifetime: self.portal.session_lifetime }
    }
}

/// What handlers share; cheap to clone.
#[derive(Clone)]
pub struct WebState {
    /// What moves and shows domains.
    pub app: App,
    /// What the operator decided.
    pub settings: Arc<WebSettings>,
    /// Who waits for changes.
    pub live: Live,
}

impl WebState {
    /// Nobody waits so far.
    pub fn new(app: App, settings: WebSettings) -> Self {
        let live = Live::new(&app, usize::try_from(settings.portal.live_connections).unwrap_or(usize::MAX));
        WebState { app, settings: Arc::new(settings), live }
    }

    /// The canonical host of a tenant.
    pub(super) fn canonical_host(&self, slug: &Slug) -> Hostname {
        Hostname::trusted(&format!("{slug}.{}", self.app.settings.canonical_suffix))
    }
}
