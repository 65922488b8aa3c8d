//! A finding worded for the panel of the DNS host that serves the zone.

use crate::model::evidence::{Actor, Finding, Verdict};
use crate::model::look::name;
use crate::model::providers;
use crate::model::reason::Reason;

use super::reader::Reader;

/// Shows the records to publish as the zone's own panel wants them, as far as this look saw whose it is. Asks nothing.
pub fn word(reader: &Reader<'_>, finding: &mut Finding) {
    let Some(first) = finding.record_to_publish.first() else { return };
    let Some((zone, hosts)) = reader.known_servers(&first.name) else { return };
    if !name::within(&zone, &reader.ask.registered_domain) {
        return;
    }
    if finding.record_to_publish.iter().any(|r| !name::within(&r.name, &zone)) {
        return;
    }
    let Some(provider) = providers::recognise(&hosts) else { return };
    let host = providers::describe(provider, &zone, &finding.record_to_publish);
    if asks_for_records(finding.reason) {
        for step in &host.steps {
            finding.advice.push(' ');
            finding.advice.push_str(step);
        }
    }
    finding.dns_host = Some(host);
}

/// Whether publishing the records is what mends it.
fn asks_for_records(reason: Reason) -> bool {
    let elsewhere = [
        Reason::DomainNotRegistered,
        Reason::DnssecBogus,
        Reason::ZoneLame,
        Reason::NameserverNotPublic,
        // The value itself has to be replaced first.
        Reason::TxtTokenExpired,
        // Something has to go, nothing has to come.
        Reason::AddressMixed,
        Reason::HttpsRrPointsElsewhere,
    ];
    let open = matches!(reason.verdict(), Verdict::Wait | Verdict::Fail) || reason == Reason::CnameOkWildcard;
    open && reason.acts() == Actor::Tenant && !elsewhere.contains(&reason)
}
