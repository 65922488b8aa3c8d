//! When the challenge name has no record of its own: where the delegation went.

use crate::model::look::{DelegationAsk, Kind, name};
use crate::model::reason::Reason;

use super::reader::Reader;
use super::{hints, lookup_failure};

/// The reason for the absence, with the name that explains it. `covered`: what a wildcard answers meanwhile.
pub fn missing(reader: &Reader<'_>, ask: &DelegationAsk, expected: &str, covered: Option<&str>) -> Option<(Reason, String)> {
    let domain = &reader.ask.registered_domain;
    let unregistered = covered.is_none().then(|| lookup_failure::unregistered(reader));
    // All at once: none depends on another.
    let zone = reader.zone_of(expected).map(|z| z.apex);
    let appended = here(reader, ask, &appended_names(expected, domain, zone.as_deref()));
    let typo = here(reader, ask, &[expected.trim_start_matches('_').to_owned()]);
    let wrong = here(reader, ask, &wrong_names(reader, expected));
    if unregistered.unwrap_or(Some(false))? {
        return Some((Reason::DomainNotRegistered, domain.clone()));
    }
    if let Some(place) = appended? {
        return Some((Reason::DelegationZoneAppended, place));
    }
    if let Some(place) = typo? {
        return Some((Reason::DelegationLabelTypo, place));
    }
    if let Some(place) = wrong? {
        return Some((Reason::DelegationWrongName, place));
    }
    if let Some(to) = covered {
        let owner = hints::wildcard_above(reader, expected)?.map_or_else(|| to.to_owned(), |(owner, _)| owner);
        return Some((Reason::DelegationCoveredByWildcard, owner));
    }
    Some((Reason::DelegationMissing, expected.to_owned()))
}

/// The challenge name with the zone once more behind it, as panels make it from a full name.
fn appended_names(expected: &str, domain: &str, zone: Option<&str>) -> Vec<String> {
    let mut zones = vec![domain];
    zones.extend(zone.filter(|z| *z != domain && name::within(expected, z)));
    zones.into_iter().map(|zone| format!("{expected}.{zone}")).collect()
}

/// Other names people choose: the label at every name above the hostname, and the hostname and the domain themselves.
fn wrong_names(reader: &Reader<'_>, expected: &str) -> Vec<String> {
    let hostname = reader.ask.hostname.as_str();
    let domain = &reader.ask.registered_domain;
    let label = expected.split('.').next().unwrap_or_default();
    let mut names = Vec::new();
    let above = name::climb(hostname).skip(1).take_while(|n| name::within(n, domain)).map(|n| format!("{label}.{n}"));
    for candidate in above.chain([hostname.to_owned(), domain.clone()]) {
        if candidate != expected && !names.contains(&candidate) {
            names.push(candidate);
        }
    }
    names
}

/// The first of `names` that leads to the validation name, or is delegated to our servers.
fn here(reader: &Reader<'_>, ask: &DelegationAsk, names: &[String]) -> Option<Option<String>> {
    let target = name::canonical(&ask.target);
    let answers: Vec<_> = names.iter().map(|n| reader.any(n, Kind::Cname)).collect();
    for (n, answer) in names.iter().zip(answers) {
        if answer?.aliases(n).contains(&target) {
            return Some(Some(n.clone()));
        }
    }
    Some(None)
}
