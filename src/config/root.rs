//! All sections together, and what each role cannot do without.

use super::{
    AlertsConfig, ApiConfig, BrandConfig, ConfigError, DatabaseConfig, DnsConfig, DomainConnectConfig, EdgeConfig,
    FeedConfig, ImportsConfig, IssuerConfig, JobsConfig, Key, LogConfig, LooksConfig, MailConfig, MetricsConfig,
    NamesConfig, PortalConfig, Problem, ReachConfig, Reader, RoutingConfig, ServerConfig, Sources, VaultConfig, letting_go,
};
use crate::model::domain::RoutingMode;
use crate::model::hook_url::HookRules;
use crate::model::hostname::{Hostname, NameRules};
use crate::model::letting_go::LettingGo;
use crate::model::records::ApexRoute;
use crate::model::slug::Slug;

/// The whole configuration.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is a section, described in its file")]
pub struct Config {
    pub server: ServerConfig,
    pub api: ApiConfig,
    pub portal: PortalConfig,
    pub brand: BrandConfig,
    pub database: DatabaseConfig,
    pub vault: VaultConfig,
    pub names: NamesConfig,
    pub routing: RoutingConfig,
    pub dns: DnsConfig,
    pub domain_connect: Option<DomainConnectConfig>,
    pub looks: LooksConfig,
    pub issuers: Vec<IssuerConfig>,
    pub reach: ReachConfig,
    pub feed: FeedConfig,
    pub edge: EdgeConfig,
    pub jobs: JobsConfig,
    pub imports: ImportsConfig,
    pub alerts: AlertsConfig,
    pub letting_go: LettingGo,
    pub mail: Option<MailConfig>,
    pub metrics: MetricsConfig,
    pub log: LogConfig,
}

/// What a process is started as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// API, pages, workers, feed.
    Serve,
    /// Workers alone.
    Work,
    /// A node that terminates TLS.
    Edge,
}

impl Config {
    /// Reads the sources; all problems at once.
    pub fn read(sources: Sources<'_>) -> Result<Self, ConfigError> {
        let (config, _, problems) = Config::read_with_keys(sources);
        if problems.is_empty() { Ok(config) } else { Err(ConfigError(problems)) }
    }

    /// Every key there is.
    pub fn keys() -> Vec<Key> {
        Config::read_with_keys(Sources::none()).1
    }

    fn read_with_keys(sources: Sources<'_>) -> (Self, Vec<Key>, Vec<Problem>) {
        let mut reader = Reader::new(sources);
        let r = &mut reader;
        let config = Config {
            server: ServerConfig::read(r),
            api: ApiConfig::read(r),
            portal: PortalConfig::read(r),
            brand: BrandConfig::read(r),
            database: DatabaseConfig::read(r),
            vault: VaultConfig::read(r),
            names: NamesConfig::read(r),
            routing: RoutingConfig::read(r),
            dns: DnsConfig::read(r),
            domain_connect: DomainConnectConfig::read(r),
            looks: LooksConfig::read(r),
            issuers: IssuerConfig::read_all(r),
            reach: ReachConfig::read(r),
            feed: FeedConfig::read(r),
            edge: EdgeConfig::read(r),
            jobs: JobsConfig::read(r),
            imports: ImportsConfig::read(r),
            alerts: AlertsConfig::read(r),
            letting_go: letting_go::read(r),
            mail: MailConfig::read(r),
            metrics: MetricsConfig::read(r),
            log: LogConfig::read(r),
        };
        let (keys, problems) = reader.finish();
        (config, keys, problems)
    }

    /// Whether everything is there that `role` cannot do without.
    pub fn check_for(&self, role: Role) -> Result<(), ConfigError> {
        let mut missing = Vec::new();
        let mut need = |there: bool, key: &str, why: &str| {
            if !there {
                missing.push(Problem { key: key.into(), origin: String::new(), message: format!("is missing: {why}") });
            }
        };
        if matches!(role, Role::Serve | Role::Work) {
            need(self.vault.master_key.is_some(), "vault.master_key", "private keys are sealed under it");
            need(!self.issuers.is_empty(), "issuers.NAME.directory", "there is no CA to order from");
            let suffix = self.routing.canonical_suffix.is_some();
            need(suffix, "routing.canonical_suffix", "the tenants' canonical hosts live in it");
            let shared = self.routing.mode == RoutingMode::Shared;
            need(!shared || self.routing.shared_target.is_some(), "routing.shared_target", "routing.mode is shared");
            let keyed = self.domain_connect.as_ref().is_none_or(|connect| connect.key.is_some());
            need(keyed, "domain_connect.key", "links are signed with it, as domain_connect.provider_id is set");
        }
        if role == Role::Serve {
            need(self.server.public_url.is_some(), "server.public_url", "every link is built from it");
            need(self.feed.url.is_some(), "feed.url", "edges find the feed by it");
        }
        if role == Role::Edge {
            need(self.edge.name.is_some(), "edge.name", "edges are told apart by it");
            need(self.edge.upstream.is_some(), "edge.upstream", "requests go to it");
        }
        if missing.is_empty() { Ok(()) } else { Err(ConfigError(missing)) }
    }

    /// The rules for hostnames: everything of the platform's own is reserved.
    pub fn name_rules(&self) -> NameRules {
        let r = &self.routing;
        let own = [&r.canonical_suffix, &r.shared_target, &r.apex_target].into_iter().flatten();
        let mut reserved: Vec<String> =
            self.names.reserved_zones.iter().chain(own).map(|zone| zone.as_str().to_owned()).collect();
        reserved.extend(self.server.public_url.as_ref().map(|url| url.host().to_owned()));
        reserved.sort();
        reserved.dedup();
        let extra_suffixes = self.names.extra_suffixes.iter().map(|suffix| suffix.as_str().to_owned()).collect();
        NameRules { reserved_zones: reserved, extra_suffixes }
    }

    /// Which URLs webhooks may have.
    pub fn hook_rules(&self) -> HookRules {
        HookRules { ports: self.alerts.ports.clone(), loopback: self.reach.allow_loopback }
    }

    /// Where apex names are to point.
    pub fn apex_route(&self) -> ApexRoute {
        ApexRoute {
            target: self.routing.apex_target.as_ref().map(|name| name.as_str().to_owned()),
            addresses: self.routing.apex_addresses.clone(),
        }
    }

    /// The zone in which each tenant has a target of its own; none where all share one.
    pub fn tenant_zone(&self) -> Option<String> {
        let own = self.routing.mode == RoutingMode::PerTenant;
        self.routing.canonical_suffix.as_ref().filter(|_| own).map(|suffix| suffix.as_str().to_owned())
    }

    /// The host under which a tenant is always reached, once a suffix is configured.
    pub fn canonical_host(&self, slug: &Slug) -> Option<Hostname> {
        let suffix = self.routing.canonical_suffix.as_ref()?;
        Some(Hostname::trusted(&format!("{slug}.{}", suffix.as_str())))
    }
}
