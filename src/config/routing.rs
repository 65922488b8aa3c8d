//! `routing`: what tenants are told to point their names at.

use std::net::IpAddr;

use super::proxies::PROXIES;
use super::reader::Reader;
use super::setting::{DnsName, Setting};
use crate::model::domain::RoutingMode;

impl Setting for RoutingMode {
    const EXPECTED: &'static str = "per_tenant or shared";
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn show(&self) -> String {
        self.as_str().to_owned()
    }
}

/// The section.
#[derive(Clone, Debug)]
pub struct RoutingConfig {
    /// Whether each tenant has a target of its own.
    pub mode: RoutingMode,
    /// The zone of canonical hosts.
    pub canonical_suffix: Option<DnsName>,
    /// The one target of the shared mode.
    pub shared_target: Option<DnsName>,
    /// The name whose addresses an apex must have.
    pub apex_target: Option<DnsName>,
    /// Further addresses an apex may have.
    pub apex_addresses: Vec<IpAddr>,
    /// Addresses that were ours once.
    pub retired_addresses: Vec<IpAddr>,
    /// Where known proxies have their addresses.
    pub proxy_prefixes: Vec<Prefix>,
}

/// A range of addresses, like `104.16.0.0/13`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// The range as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for Prefix {
    const EXPECTED: &'static str = "a range of addresses such as 104.16.0.0/13";
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let (base, bits) = text.split_once('/')?;
        let most = if base.parse::<IpAddr>().ok()?.is_ipv4() { 32 } else { 128 };
        bits.parse::<u32>().ok().filter(|bits| *bits <= most).map(|_| Prefix(text.to_owned()))
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}

impl RoutingConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        RoutingConfig {
            mode: r.value(
                "routing.mode",
                RoutingMode::PerTenant,
                "`per_tenant`: each tenant points names at `SLUG.canonical_suffix`; `shared`: all at `shared_target`.",
            ),
            canonical_suffix: r.optional(
                "routing.canonical_suffix",
                "Zone of the tenants' canonical hosts: `app.example.com` gives `acme.app.example.com`. `serve` needs it.",
            ),
            shared_target: r
                .optional("routing.shared_target", "CNAME target of all tenants; needed when `routing.mode` is `shared`."),
            apex_target: r.optional(
                "routing.apex_target",
                "Name whose addresses an apex must have (ALIAS, ANAME or plain addresses), where a CNAME cannot be.",
            ),
            apex_addresses: r.value("routing.apex_addresses", vec![], "Further addresses of ours that an apex may have."),
            retired_addresses: r.value(
                "routing.retired_addresses",
                vec![],
                "Addresses that were ours once: a name that still has one is told which to use instead.",
            ),
            proxy_prefixes: r.value(
                "routing.proxy_prefixes",
                PROXIES.iter().map(|prefix| Prefix((*prefix).to_owned())).collect(),
                "Address ranges of proxies that tenants put in front of their names: what hides behind one is found out by a \
                 request. The default is what Cloudflare and Fastly publish.",
            ),
        }
    }
}
