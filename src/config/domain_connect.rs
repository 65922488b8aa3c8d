//! `domain_connect`: records set by the DNS provider itself, when its customer agrees.

use super::reader::Reader;
use super::setting::DnsName;
use crate::model::domain_connect::is_id;
use crate::model::secret::Secret;

/// The section, where it is used at all.
#[derive(Clone, Debug)]
pub struct DomainConnectConfig {
    /// Who we are to DNS providers.
    pub provider_id: String,
    /// What our template for names beneath a zone is called.
    pub service_id: String,
    /// What our template for a zone itself is called.
    pub apex_service_id: String,
    /// What we are called on the provider's page.
    pub provider_name: Option<String>,
    /// What the service is called there.
    pub service_name: String,
    /// The private key, in PEM.
    pub key: Option<Secret>,
    /// Beneath which name the public key is published.
    pub key_domain: String,
    /// At which label.
    pub key_label: String,
    /// Registered domains of providers whose pages live elsewhere than their settings.
    pub known_hosts: Vec<DnsName>,
}

/// Providers whose customers agree at another domain than the one that answers for their zones.
const KNOWN: [&str; 4] = ["cloudflare.com", "godaddy.com", "ionos.com", "1and1.com"];

impl DomainConnectConfig {
    /// The section; `None` while no provider id is given.
    pub(super) fn read(r: &mut Reader<'_>) -> Option<Self> {
        let provider_id: Option<String> = r.optional(
            "domain_connect.provider_id",
            "Who the platform is to DNS providers that speak Domain Connect, such as app.example; nothing is offered without it.",
        );
        let config = DomainConnectConfig {
            service_id: r.value(
                "domain_connect.service_id",
                "custom-domain".to_owned(),
                "Name of the template that DNS providers took in for the platform.",
            ),
            apex_service_id: r.value(
                "domain_connect.apex_service_id",
                "custom-domain-apex".to_owned(),
                "Name of the template for bare domains, where no CNAME may stand.",
            ),
            provider_name: r.optional(
                "domain_connect.provider_name",
                "What the platform is called on a DNS provider's page; brand.name where nothing is said.",
            ),
            service_name: r.value(
                "domain_connect.service_name",
                "Custom domain".to_owned(),
                "What the service is called on a DNS provider's page.",
            ),
            key: r.secret(
                "domain_connect.key",
                "RSA private key in PEM that signs the links; `nameplate domain-connect new-key` makes one.",
                "File that holds domain_connect.key.",
            ),
            key_domain: r.value(
                "domain_connect.key_domain",
                String::new(),
                "Name beneath which the public key is published; domain_connect.provider_id where nothing is said.",
            ),
            key_label: r.value(
                "domain_connect.key_label",
                "_dcpubkeyv1".to_owned(),
                "Label at which the public key is published; another one with every new key.",
            ),
            known_hosts: r.value(
                "domain_connect.known_hosts",
                KNOWN.iter().filter_map(|name| super::setting::Setting::read(name)).collect(),
                "Domains of DNS providers whose pages may be linked to though their settings live at another domain.",
            ),
            provider_id: provider_id.clone().unwrap_or_default(),
        };
        provider_id?;
        let config = DomainConnectConfig {
            key_domain: if config.key_domain.is_empty() { config.provider_id.clone() } else { config.key_domain.clone() },
            ..config
        };
        for (key, text) in [
            ("domain_connect.provider_id", &config.provider_id),
            ("domain_connect.service_id", &config.service_id),
            ("domain_connect.apex_service_id", &config.apex_service_id),
            ("domain_connect.key_domain", &config.key_domain),
            ("domain_connect.key_label", &config.key_label),
        ] {
            if !is_id(text) {
                r.problem(key, "", format!("{text:?} is not a name of letters, digits, dots, hyphens and underscores"));
            }
        }
        Some(config)
    }
}
