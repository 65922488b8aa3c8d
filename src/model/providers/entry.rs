//! A record as the fields of a provider's form: what a page shows field by field, with what can be copied as it stands.

use crate::model::evidence::Record;
use crate::model::look::name;

use super::table::{Provider, Target, ZoneItself};
use super::words::{kind, leads};

/// How a panel takes the name of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// As the value stands.
    AsIs,
    /// By leaving the field empty.
    Empty,
    /// Nobody here knows what stands for the zone itself in it: `@` in most panels, nothing in others.
    ZoneItself,
}

/// One record in one panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The type to choose.
    pub kind: String,
    /// What the panel calls the field for the name.
    pub name_label: &'static str,
    /// What goes into it.
    pub name: String,
    /// How it is taken.
    pub named: Named,
    /// Whether the panel adds the zone to it.
    pub adds_zone: bool,
    /// What the panel calls the field for the value.
    pub value_label: &'static str,
    /// What goes into it, with the quotation marks or the final dot that the panel wants.
    pub value: String,
    /// Whether the dot at its end has to be there.
    pub dotted: bool,
    /// Whether the quotation marks around it have to be there.
    pub quoted: bool,
    /// What to choose for the time to live; empty: leave it as it stands.
    pub ttl: &'static str,
    /// Whether a proxy has to be turned off.
    pub proxy_off: bool,
}

/// The record in the provider's own fields.
pub fn entry(provider: &Provider, zone: &str, record: &Record) -> Entry {
    let relative = name::host_field(&record.name, zone);
    let named = match (relative.as_str(), provider.zone_itself) {
        ("@", ZoneItself::Empty) => Named::Empty,
        ("@", ZoneItself::Unknown) => Named::ZoneItself,
        _ => Named::AsIs,
    };
    let leads = leads(record);
    let (dotted, quoted) = (leads && provider.target == Target::Dotted, record.kind == "TXT" && provider.quotes);
    let bare = record.value.trim_end_matches('.');
    Entry {
        kind: kind(provider, record).to_owned(),
        name_label: provider.name_label,
        name: relative,
        named,
        adds_zone: provider.adds_zone && record.name != zone,
        value_label: match record.kind.as_str() {
            "TXT" => provider.text_label,
            _ if leads => provider.target_label,
            _ => "value",
        },
        value: if dotted {
            format!("{bare}.")
        } else if quoted {
            format!("\"{}\"", record.value)
        } else if leads {
            bare.to_owned()
        } else {
            record.value.clone()
        },
        dotted,
        quoted,
        ttl: provider.ttl,
        proxy_off: leads && provider.proxies,
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_name;
    use super::*;

    fn at(provider: &str, zone: &str, name: &str, kind: &str, value: &str) -> Entry {
        let record = Record { name: name.into(), host: String::new(), kind: kind.into(), value: value.into(), keep: true };
        entry(by_name(provider).unwrap(), zone, &record)
    }

    #[test]
    fn each_panel_gets_its_own_fields() {
        let e = at("Cloudflare", "acme.example", "shop.acme.example", "CNAME", "acme.app.example.");
        assert_eq!(
            (e.name_label, e.name.as_str(), e.value_label, e.value.as_str()),
            ("Name", "shop", "Target", "acme.app.example")
        );
        assert!(e.proxy_off && e.adds_zone && !e.dotted && e.ttl == "Auto");
        let e = at("OVHcloud", "acme.example", "shop.acme.example", "CNAME", "acme.app.example");
        assert_eq!((e.value.as_str(), e.dotted, e.proxy_off), ("acme.app.example.", true, false));
        let e = at("Amazon Route 53", "acme.example", "_x.acme.example", "TXT", "v");
        assert_eq!((e.value.as_str(), e.quoted, e.named), ("\"v\"", true, Named::AsIs));
        let e = at("Amazon Route 53", "acme.example", "acme.example", "A", "192.0.2.1");
        assert_eq!((e.named, e.value_label, e.adds_zone), (Named::Empty, "value", false));
        let e = at("Vercel", "acme.example", "acme.example", "ALIAS", "app.example");
        assert_eq!((e.kind.as_str(), e.named, e.name.as_str()), ("ALIAS", Named::ZoneItself, "@"));
        // A zone beneath the registered domain: names are relative to it.
        assert_eq!(at("GoDaddy", "eu.acme.example", "a.eu.acme.example", "A", "192.0.2.1").name, "a");
    }
}
