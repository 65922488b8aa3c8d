//! What to enter in a provider's panel, in its own terms as far as they are known.

use crate::model::evidence::{DnsHost, Record};
use crate::model::look::name;

use super::table::{Apex, Provider, Target, ZoneItself};

/// Words the records for `provider`, which hosts `zone`.
pub fn describe(provider: &Provider, zone: &str, records: &[Record]) -> DnsHost {
    let steps = records.iter().map(|r| step(provider, zone, r)).collect();
    DnsHost { provider: provider.name.to_owned(), zone: zone.to_owned(), steps }
}

/// Whether the record leads to a name.
pub(super) fn leads(record: &Record) -> bool {
    matches!(record.kind.as_str(), "CNAME" | "ALIAS")
}

/// What to do with the field for the name.
pub(super) fn owner(provider: &Provider, zone: &str, owner: &str) -> String {
    let label = provider.name_label;
    match (name::host_field(owner, zone), provider.zone_itself) {
        (at, ZoneItself::At) if at == "@" => format!("{label}: @"),
        (at, ZoneItself::Empty) if at == "@" => format!("leave {label} empty"),
        (at, ZoneItself::Unknown) if at == "@" => format!("{label}: {zone} itself (@ in most panels, empty in others)"),
        (relative, _) if provider.adds_zone => format!("{label}: {relative}"),
        (relative, _) => format!("{label}: {relative} (in full {owner})"),
    }
}

/// What to do with the field for the value.
fn value(provider: &Provider, record: &Record) -> String {
    let label = match record.kind.as_str() {
        "TXT" => provider.text_label,
        _ if leads(record) => provider.target_label,
        _ => "value",
    };
    if record.kind == "TXT" && provider.quotes {
        return format!("{label}: \"{}\" (with the quotation marks)", record.value);
    }
    if !leads(record) {
        return format!("{label}: {}", record.value);
    }
    // Named in words as well: a dot at the end of what is typed is easily taken for the sentence's own.
    let dot = if provider.target == Target::Dotted { ". (the dot at the end belongs to it)" } else { "" };
    format!("{label}: {}{dot}", record.value.trim_end_matches('.'))
}

/// The type to choose for a record, as the panel calls it.
pub(super) fn kind<'a>(provider: &Provider, record: &'a Record) -> &'a str {
    match (record.kind.as_str(), provider.apex) {
        ("ALIAS", Apex::Flattens) => "CNAME",
        ("ALIAS", Apex::Alias(theirs)) => theirs,
        (kind, _) => kind,
    }
}

fn step(provider: &Provider, zone: &str, record: &Record) -> String {
    let name = provider.name;
    let (kind, owner, value) = (kind(provider, record), owner(provider, zone, &record.name), value(provider, record));
    let mut out = format!("At {name}, in {zone}: type {kind}, {owner}, {value}");
    if !provider.ttl.is_empty() {
        out += &format!(", TTL: {}", provider.ttl);
    }
    out.push('.');
    if record.kind == "ALIAS" && provider.apex == Apex::Unknown {
        out += &format!(
            " Some panels call it ANAME; without either, enter A and AAAA records, or use a name beneath it such as www.{zone}."
        );
    }
    let beneath = record.name != zone;
    if provider.adds_zone && beneath {
        out += &format!(" {name} adds {zone} to the name by itself.");
    }
    out += &doubts(provider, record, beneath);
    if leads(record) && provider.proxies {
        out += " Set its proxy to \"DNS only\".";
    }
    out
}

/// What to compare after saving, where nobody here knows what the panel adds.
fn doubts(provider: &Provider, record: &Record, beneath: bool) -> String {
    let owner = (beneath && !provider.adds_zone).then(|| format!("its whole name is {}", record.name));
    let target = (leads(record) && provider.target == Target::Unknown)
        .then(|| format!("nothing follows {}", record.value.trim_end_matches('.')));
    let parts: Vec<String> = owner.into_iter().chain(target).collect();
    if parts.is_empty() { String::new() } else { format!(" Look at the saved record: {}.", parts.join(", and ")) }
}
