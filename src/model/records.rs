//! The records a claim asks for: known when it is made, unchanged while it lasts.

use std::net::IpAddr;

use super::domain::RoutingMode;
use super::evidence::Record;
use super::hostname::Hostname;

/// The label under which ownership is proven: one of its own, since a CNAME may not share its owner name (RFC 1034 §3.6.2).
pub const OWNERSHIP_LABEL: &str = "_nameplate-challenge";
/// What every ownership value begins with.
pub const OWNERSHIP_PREFIX: &str = "nameplate-verify=";

/// Where an apex points, since a CNAME cannot be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApexRoute {
    /// A name for DNS providers that offer ALIAS or ANAME.
    pub target: Option<String>,
    /// Our addresses, for those that do not.
    pub addresses: Vec<IpAddr>,
}

/// All records, ownership first.
pub fn records(hostname: &Hostname, value: &str, mode: RoutingMode, target: &str, apex: &ApexRoute) -> Vec<Record> {
    let at_apex = hostname.is_apex();
    let host = hostname.relative_to_registered().to_owned();
    let mut records = vec![Record {
        name: format!("{OWNERSHIP_LABEL}.{hostname}"),
        host: if at_apex { OWNERSHIP_LABEL.to_owned() } else { format!("{OWNERSHIP_LABEL}.{host}") },
        kind: "TXT".into(),
        value: value.to_owned(),
        // With a target of its own the tenant's CNAME ties the name as well; everywhere else the TXT is the only tie.
        keep: at_apex || mode == RoutingMode::Shared,
    }];
    let record = |kind: &str, value: String| Record {
        name: hostname.to_string(),
        host: host.clone(),
        kind: kind.into(),
        value,
        keep: true,
    };
    if !at_apex {
        records.push(record("CNAME", target.to_owned()));
    } else if apex.addresses.is_empty() {
        records.push(record("ALIAS", apex.target.clone().unwrap_or_else(|| target.to_owned())));
    } else {
        records.extend(apex.addresses.iter().map(|a| record(if a.is_ipv4() { "A" } else { "AAAA" }, a.to_string())));
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, mode: RoutingMode, apex: &ApexRoute) -> Vec<String> {
        let all = records(&Hostname::trusted(name), "nameplate-verify=ab", mode, "acme.app.example", apex);
        all.iter().map(|r| format!("{} {} {} {}", r.host, r.kind, r.value, r.keep)).collect()
    }

    #[test]
    fn a_subdomain_gets_a_cname_and_an_apex_addresses() {
        let none = ApexRoute::default();
        assert_eq!(
            lines("support.acme.co.uk", RoutingMode::PerTenant, &none),
            ["_nameplate-challenge.support TXT nameplate-verify=ab false", "support CNAME acme.app.example true"]
        );
        let ours = ApexRoute { target: None, addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()] };
        assert_eq!(
            lines("acme.co.uk", RoutingMode::PerTenant, &ours),
            ["_nameplate-challenge TXT nameplate-verify=ab true", "@ A 192.0.2.1 true", "@ AAAA 2001:db8::1 true"]
        );
        let alias = ApexRoute { target: Some("apex.app.example".into()), addresses: vec![] };
        assert_eq!(lines("acme.co.uk", RoutingMode::Shared, &alias)[1], "@ ALIAS apex.app.example true");
    }
}
