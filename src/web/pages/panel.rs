//! The records as they are entered: in the fields of the provider's own form where the DNS host is known, in the words of most
//! panels where it is not.

use crate::app::show::DomainView;
use crate::model::evidence::{DnsHost, Record};
use crate::model::providers::{self, Named};
use crate::web::texts as t;

/// Who hosts the zone, as its name servers show it.
pub(super) struct Panel<'a> {
    pub(super) host: &'a DnsHost,
    /// The way through its panel to where a record is added; empty where it is not known.
    pub(super) menu: Vec<String>,
}

/// One field of a form.
pub(super) struct Field {
    /// What it is called there.
    pub(super) label: String,
    /// What to enter, ready to be copied; none where nothing is.
    pub(super) value: Option<String>,
    /// What is to be done where nothing is entered.
    pub(super) instead: &'static str,
    /// What to mind.
    pub(super) mind: String,
    /// `host`, `value`, or another short name that its ids end in.
    pub(super) id: &'static str,
}

/// A record with its fields.
pub(super) struct Entered<'a> {
    pub(super) record: &'a Record,
    /// The type, as the panel calls it.
    pub(super) kind: String,
    pub(super) fields: Vec<Field>,
    pub(super) line: String,
}

/// The panel in which the records are entered, where it is known.
pub(super) fn panel(view: &DomainView) -> Option<Panel<'_>> {
    let host = view.checks.iter().find_map(|check| check.dns_host.as_ref())?;
    let menu = providers::by_name(&host.provider).map(|p| p.menu).unwrap_or_default();
    Some(Panel { host, menu: menu.iter().map(|step| step.replace("{zone}", &host.zone)).collect() })
}

/// Every record with its fields.
pub(super) fn entered(view: &DomainView) -> Vec<Entered<'_>> {
    let known = panel(view).and_then(|panel| Some((providers::by_name(&panel.host.provider)?, panel.host)));
    let one = |record| {
        let (kind, mut fields) = match &known {
            // A record of another zone is none of this panel's.
            Some((provider, host)) if within(record, &host.zone) => theirs(provider, host, record),
            _ => (record.kind.clone(), neutral(record)),
        };
        fields.push(field(t::full_name(), &record.name, "name"));
        Entered { record, kind, fields, line: record.zone_line() }
    };
    view.records.iter().map(one).collect()
}

fn within(record: &Record, zone: &str) -> bool {
    record.name.strip_suffix(zone).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn field(label: &str, value: &str, id: &'static str) -> Field {
    Field { label: label.to_owned(), value: Some(value.to_owned()), instead: "", mind: String::new(), id }
}

fn neutral(record: &Record) -> Vec<Field> {
    vec![field(t::host(), &record.host, "host"), field(t::value(), &record.value, "value")]
}

fn theirs(provider: &providers::Provider, host: &DnsHost, record: &Record) -> (String, Vec<Field>) {
    let entry = providers::entry(provider, &host.zone, record);
    let mut name = field(&titled(entry.name_label), &entry.name, "host");
    match entry.named {
        Named::AsIs => {}
        Named::Empty => (name.value, name.instead) = (None, t::leave_empty()),
        Named::ZoneItself => name.mind = t::zone_itself().to_owned(),
    }
    if entry.adds_zone {
        name.mind = t::adds_zone(provider.name, &host.zone).plain();
    }
    let mut value = field(&titled(entry.value_label), &entry.value, "value");
    if entry.dotted {
        value.mind = t::with_dot().to_owned();
    } else if entry.quoted {
        value.mind = t::with_quotes().to_owned();
    }
    let mut fields = vec![name, value];
    let choose = |label: &str, what: &'static str, id| Field { value: None, instead: what, ..field(label, "", id) };
    if !entry.ttl.is_empty() {
        fields.push(choose(t::time_to_live(), entry.ttl, "ttl"));
    }
    if entry.proxy_off {
        fields.push(choose(t::proxy(), t::proxy_off(), "proxy"));
    }
    (entry.kind, fields)
}

/// A neutral label with a capital, as fields have it.
fn titled(label: &str) -> String {
    let mut letters = label.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
