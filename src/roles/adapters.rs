//! The real parts behind the seams, as the configuration describes them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::RootCertStore;

use super::StartError;
use super::loops::{Kept, Telling};
use crate::acme::{Authority, HttpSettings, InstantAcme, Roots};
use crate::app::alerts::AlertSettings;
use crate::app::authorities::{Authorities, CaPlace};
use crate::app::connect::{Finder, FinderSettings};
use crate::app::notify::{Notifier, NotifySettings};
use crate::app::{App, AppError, Settings, account};
use crate::config::{Config, DnsConfig, DnsName, DomainConnectConfig, IssuerConfig, LooksConfig};
use crate::dns::{self, AddressMap, Caps, Gate, Limits, Observers};
use crate::env::Env;
use crate::mint;
use crate::model::domain_connect::Services;
use crate::model::hostname::Hostname;
use crate::model::id::IssuerId;
use crate::model::look::Platform;
use crate::model::secret::Secret;
use crate::model::traffic::Cap;
use crate::notify::mail::{Mailer, Smtp};
use crate::reach::document::{DocumentSettings, HttpsDocuments};
use crate::reach::hook::{HookSettings, HttpHooks};
use crate::reach::{PublicName, ReachSettings};
use crate::store::Store;
use crate::store::issuers::{self, IssuerSeed};
use crate::telemetry::metrics::ControlMeters;
use crate::vault::request_signing::RequestSigner;
use crate::vault::{Vault, VaultError};
use crate::web::Connect;

/// How long a receiver of webhooks may take for its answer.
const HOOK_PATIENCE: Duration = Duration::from_secs(15);

/// Where the operating system keeps its resolvers.
const RESOLV_CONF: &str = "/etc/resolv.conf";

pub(super) fn settings(config: &Config) -> Settings {
    let text = |name: &DnsName| name.as_str().to_owned();
    Settings {
        platform: Platform {
            suffixes: config.name_rules().reserved_zones,
            addresses: config.routing.apex_addresses.clone(),
            retired_addresses: config.routing.retired_addresses.clone(),
            cdn_prefixes: config.routing.proxy_prefixes.iter().map(|prefix| prefix.as_str().to_owned()).collect(),
            control_names: control_names(config),
        },
        canonical_suffix: config.routing.canonical_suffix.as_ref().map(text).unwrap_or_default(),
        routing_mode: config.routing.mode,
        shared_target: config.routing.shared_target.as_ref().map(text),
        apex_target: config.routing.apex_target.as_ref().map(|name| Hostname::trusted(name.as_str())),
        preflight: config.reach.preflight,
        min_edges: usize::try_from(config.feed.min_edges).unwrap_or(usize::MAX),
        letting_go: config.letting_go,
    }
}

/// The names by which an outage of our resolvers is told. Our own zones are asked unless others are configured: they must
/// answer for anything to work, be it only that they hold no address.
fn control_names(config: &Config) -> Vec<String> {
    let own = || config.routing.canonical_suffix.iter().chain(&config.routing.shared_target);
    let names = &config.dns.control_names;
    let text = |name: &DnsName| name.as_str().to_owned();
    if names.is_empty() { own().map(text).collect() } else { names.iter().map(text).collect() }
}

pub(super) fn observers(config: &DnsConfig, env: &Env) -> Result<Observers, StartError> {
    let resolvers = if config.resolvers.is_empty() { of_the_system()? } else { config.resolvers.clone() };
    let servers = if config.servers.is_empty() {
        AddressMap::Direct
    } else {
        AddressMap::table(config.servers.iter().map(|entry| (entry.address, entry.place)))
    };
    let settings = dns::Settings {
        resolvers: resolvers.into_iter().map(|at| (at.to_string(), at)).collect(),
        servers,
        limits: Limits { per_query: config.timeout, ..Limits::default() },
    };
    Ok(Observers::new(settings, env.clone()))
}

/// The gate that every look of this process passes.
pub(super) fn gate(config: &LooksConfig, env: &Env, meters: &Arc<ControlMeters>) -> Gate {
    let caps = Caps {
        looks: Cap::new(config.per_second, config.at_once),
        zone: Cap::new(config.zone_per_second, config.zone_at_once),
        tenant: Cap::new(config.tenant_per_second, config.tenant_at_once),
        imports: Cap::per_second(config.imports_per_second),
        packets: Cap::per_second(config.packets_per_second),
        server: Cap::new(config.server_per_second, config.server_at_once),
    };
    Gate::new(caps, env, Arc::clone(meters))
}

/// The resolvers that this machine uses.
fn of_the_system() -> Result<Vec<SocketAddr>, StartError> {
    let none = |seen: String| StartError::Setting { key: "dns.resolvers".to_owned(), seen };
    let text = std::fs::read_to_string(RESOLV_CONF)
        .map_err(|e| none(format!("it is empty, and {RESOLV_CONF} cannot be read: {e}")))?;
    let found = nameservers(&text);
    if found.is_empty() {
        return Err(none(format!("it is empty, and {RESOLV_CONF} names no resolver")));
    }
    Ok(found)
}

fn nameservers(resolv_conf: &str) -> Vec<SocketAddr> {
    let address = |line: &str| -> Option<SocketAddr> {
        let mut words = line.split_whitespace();
        let address: IpAddr = words.next().filter(|word| *word == "nameserver").and_then(|_| words.next())?.parse().ok()?;
        Some(SocketAddr::new(address, 53))
    };
    resolv_conf.lines().filter_map(address).collect()
}

pub(super) fn public_name(config: &Config, env: &Env) -> Result<PublicName, StartError> {
    let settings = ReachSettings {
        http_port: config.reach.http_port,
        https_port: config.reach.https_port,
        loopback: config.reach.allow_loopback,
        ..ReachSettings::default()
    };
    // Which certificate is served is told by its serial; whether a visitor's roots know it is not asked yet.
    Ok(PublicName::new(env, settings, RootCertStore::empty())?)
}

/// Who looks for offers of DNS providers, where Domain Connect is used.
pub(super) fn finder(config: &Config, app: &App) -> Result<Option<Finder>, StartError> {
    let Some(connect) = &config.domain_connect else { return Ok(None) };
    let settings = DocumentSettings {
        port: config.reach.https_port,
        loopback: config.reach.allow_loopback,
        timeout: ReachSettings::default().timeout,
    };
    let documents = Arc::new(HttpsDocuments::new(&app.env, settings, None)?);
    let settings = FinderSettings {
        provider_id: connect.provider_id.clone(),
        services: services(connect),
        known_hosts: connect.known_hosts.iter().map(|name| name.as_str().to_owned()).collect(),
    };
    Ok(Some(Finder::new(app.clone(), documents, settings)))
}

/// What tells people and machines, as configured.
pub(super) fn telling(config: &Config, app: &App) -> Result<Telling, StartError> {
    let loopback = config.reach.allow_loopback;
    let hooks = HttpHooks::new(&app.env, HookSettings { loopback, timeout: HOOK_PATIENCE }, None)?;
    let mailer = match &config.mail {
        None => None,
        Some(mail) => {
            let read = |path: &Path| {
                std::fs::read(path).map_err(|e| StartError::Setting {
                    key: "mail.roots_file".to_owned(),
                    seen: format!("the file {} cannot be read: {e}", path.display()),
                })
            };
            let roots = mail.roots_file.as_deref().map(read).transpose()?;
            Some(Arc::new(Smtp::new(&app.env, mail, roots.as_deref())?) as Arc<dyn Mailer>)
        }
    };
    let settings = NotifySettings {
        rules: config.hook_rules(),
        disable_after: config.alerts.disable_after,
        disable_silent_after: config.alerts.disable_silent_after,
        operators: config.mail.as_ref().map(|mail| mail.operators.clone()).unwrap_or_default(),
        unwanted: config.mail.as_ref().map(|mail| mail.unwanted.clone()).unwrap_or_default(),
        mail_every: config.mail.as_ref().map_or(Duration::ZERO, |mail| mail.every),
        brand: config.brand.name.clone(),
        public_url: config.server.public_url.as_ref().map(|url| url.as_str().to_owned()),
    };
    let alerts = AlertSettings::new(config.alerts.thresholds.clone(), config.alerts.workers_silent);
    let kept = Kept { deliveries: config.alerts.keep_deliveries, alerts: config.alerts.keep_alerts };
    Ok(Telling { notifier: Notifier::new(app.clone(), Arc::new(hooks), mailer, settings), alerts, kept })
}

/// Who makes the links of those offers.
pub(super) fn connect(config: &Config) -> Result<Option<Arc<Connect>>, StartError> {
    let Some((connect, key)) = config.domain_connect.as_ref().and_then(|c| Some((c, c.key.as_ref()?))) else {
        return Ok(None);
    };
    let signer = RequestSigner::from_pem(key).map_err(StartError::RequestKey)?;
    Ok(Some(Arc::new(Connect {
        provider_id: connect.provider_id.clone(),
        services: services(connect),
        key_label: connect.key_label.clone(),
        tenant_zone: config.tenant_zone(),
        signer,
    })))
}

fn services(connect: &DomainConnectConfig) -> Services {
    Services { beneath: connect.service_id.clone(), zone: connect.apex_service_id.clone() }
}

/// The CAs of the issuers' rows, each made when it is first asked for.
pub struct ByRow {
    env: Env,
    made: Mutex<HashMap<Place, Arc<dyn Authority>>>,
}

/// Directory, roots and profile: what makes one client another than the next.
type Place = (String, Option<String>, Option<String>);

impl ByRow {
    /// None made yet.
    pub fn new(env: &Env) -> Self {
        ByRow { env: env.clone(), made: Mutex::default() }
    }
}

impl Authorities for ByRow {
    fn of(&self, place: &CaPlace<'_>) -> Result<Arc<dyn Authority>, AppError> {
        let key = (place.directory.to_owned(), place.roots.map(str::to_owned), place.profile.map(str::to_owned));
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(authority) = made.get(&key) {
            return Ok(Arc::clone(authority));
        }
        let roots = place.roots.map_or(Roots::System, |pem| Roots::Pem(pem.as_bytes().to_vec()));
        let settings = HttpSettings { roots, ..HttpSettings::default() };
        let ca = InstantAcme::new(place.directory, &settings, &self.env)?.with_profile(key.2.clone());
        let authority: Arc<dyn Authority> = Arc::new(ca);
        made.insert(key, Arc::clone(&authority));
        Ok(authority)
    }
}

fn roots(issuer: &IssuerConfig) -> Result<Option<String>, StartError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|e| StartError::Setting {
            key: format!("issuers.{}.roots_file", issuer.name),
            seen: format!("the file {} cannot be read: {e}", path.display()),
        })
    };
    issuer.roots_file.as_deref().map(read).transpose()
}

/// Makes the issuers' rows, or brings them up to date. What cannot be spoken to is told before anything is written.
pub(super) async fn seed_issuers(
    config: &Config,
    store: &Store,
    vault: &Vault,
    authorities: &ByRow,
    env: &Env,
) -> Result<(), StartError> {
    let mut seeds = Vec::with_capacity(config.issuers.len());
    for issuer in &config.issuers {
        let roots = roots(issuer)?;
        let directory = issuer.directory.as_str();
        let place = CaPlace { name: &issuer.name, directory, roots: roots.as_deref(), profile: issuer.profile.as_deref() };
        if let Err(AppError::Ca(source)) = authorities.of(&place) {
            return Err(StartError::Issuer { name: issuer.name.clone(), source: Box::new(source) });
        }
        let sealed = |(key_id, hmac): &(String, Secret)| {
            Ok::<_, VaultError>((key_id.clone(), account::seal_binding(vault, env, &issuer.name, hmac)?))
        };
        seeds.push(IssuerSeed {
            name: issuer.name.clone(),
            directory: directory.to_owned(),
            preference: i64::from(issuer.preference),
            limits: issuer.limits.clone(),
            spent_before: issuer.spent_before,
            contacts: issuer.contacts.clone(),
            profile: issuer.profile.clone(),
            binding: issuer.binding.as_ref().map(sealed).transpose()?,
            roots,
        });
    }
    let mut tx = store.begin().await?;
    issuers::seed(&mut tx, &seeds, env.now(), || mint!(env, IssuerId)).await?;
    Ok(tx.commit().await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[test]
    fn the_systems_resolvers_are_those_of_its_nameserver_lines() {
        let text =
            "# comment\nsearch lan\nnameserver 192.0.2.1\n nameserver\t2001:db8::1 \nnameserver fe80::1%eth0\noptions x";
        let expected: Vec<SocketAddr> = ["192.0.2.1:53", "[2001:db8::1]:53"].map(|a| a.parse().unwrap()).to_vec();
        assert_eq!(nameservers(text), expected);
        assert!(nameservers("").is_empty());
    }

    #[test]
    fn our_own_zones_are_the_control_names_unless_others_are_configured() {
        let control_names = |dns: &str| {
            let routing = "[routing]\ncanonical_suffix = \"app.example\"\nshared_target = \"edge.example\"\n";
            let config = Config::read(Sources::none().file("test", format!("{routing}{dns}"))).unwrap();
            settings(&config).platform.control_names
        };
        assert_eq!(control_names(""), ["app.example", "edge.example"]);
        assert_eq!(control_names("[dns]\ncontrol_names = [\"always.example\"]\n"), ["always.example"]);
    }
}
