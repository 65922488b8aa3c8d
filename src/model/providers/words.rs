//! What to enter in a provider's panel, in its own terms.

use crate::model::evidence::{DnsHost, Record};
use crate::model::look::name;

use super::table::{Apex, HostField, Provider};

/// Words the records for `provider`, which hosts `zone`.
pub fn describe(provider: &Provider, zone: &str, records: &[Record]) -> DnsHost {
    let steps = records.iter().map(|r| step(provider, zone, r)).collect();
    DnsHost { provider: provider.name.to_owned(), zone: zone.to_owned(), steps }
}

/// What goes into the host field for a name.
pub(super) fn host(provider: &Provider, zone: &str, owner: &str) -> String {
    match (provider.host_field, name::host_field(owner, zone)) {
        (HostField::Whole, _) => owner.to_owned(),
        (HostField::Relative, relative) if relative == "@" => provider.zone_itself.to_owned(),
        (HostField::Relative, relative) => relative,
    }
}

/// What goes into the value field.
fn value(provider: &Provider, record: &Record) -> String {
    let is_name = matches!(record.kind.as_str(), "CNAME" | "ALIAS");
    let bare = if is_name { record.value.trim_end_matches('.') } else { record.value.as_str() };
    if is_name && provider.final_dot { format!("{bare}.") } else { bare.to_owned() }
}

/// The type to choose for a record, as the panel calls it.
fn kind<'a>(provider: &Provider, record: &'a Record) -> &'a str {
    match (record.kind.as_str(), provider.apex) {
        ("ALIAS", Apex::Flattens) => "CNAME",
        ("ALIAS", Apex::Alias(theirs)) => theirs,
        (kind, _) => kind,
    }
}

fn step(provider: &Provider, zone: &str, record: &Record) -> String {
    let name = provider.name;
    if record.kind == "ALIAS" && provider.apex == Apex::Addresses {
        return format!(
            "{name} has no record type that can lead {zone} itself to {}; enter A and AAAA records, or use a name beneath it such \
             as www.{zone}.",
            record.value
        );
    }
    let host = host(provider, zone, &record.name);
    let host = match host.as_str() {
        "" => format!("leave {} empty", provider.host_label),
        text => format!("{}: {text}", provider.host_label),
    };
    let (kind, value) = (kind(provider, record), value(provider, record));
    let mut out = format!("At {name}, in {zone}: type {kind}, {host}, {}: {value}", provider.value_label);
    if !provider.ttl.is_empty() {
        out += &format!(", TTL: {}", provider.ttl);
    }
    out.push('.');
    if provider.host_field == HostField::Relative && record.name != zone {
        out += &format!(" {name} adds {zone} to the name by itself.");
    }
    if matches!(record.kind.as_str(), "CNAME" | "ALIAS") {
        if provider.final_dot {
            out += " The dot at the end belongs to it.";
        }
        if provider.proxies {
            out += " Set its proxy to \"DNS only\".";
        }
    }
    out
}
