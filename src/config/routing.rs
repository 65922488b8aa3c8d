//! `routing`: what tenants are told to point their names at.

use std::net::IpAddr;

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
        }
    }
}
