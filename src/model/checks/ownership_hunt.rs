//! When the value is not where it should be: find where it went, so that "not found" becomes advice.

use crate::model::look::{Answer, Data, Kind, OwnershipAsk, name};
use crate::model::reason::Reason;

use super::hints;
use super::lookup_failure;
use super::ownership::{Conclusion, Said, Word};
use super::reader::Reader;
use super::txt_value::{Text, joined, normalised};

/// Says why no server has the value.
pub fn diagnose<'a>(
    reader: &Reader<'a>,
    ask: &OwnershipAsk,
    expected: &str,
    words: Vec<Word<'a>>,
) -> Option<Conclusion<'a>> {
    let (reason, place) = reason(reader, ask, expected, &words)?;
    Some(Conclusion { reason, place, words, failure: None })
}

fn reason(reader: &Reader<'_>, ask: &OwnershipAsk, expected: &str, words: &[Word<'_>]) -> Option<(Reason, String)> {
    let values: Vec<&Text> =
        words.iter().filter_map(|w| if let Said::Values(v) = &w.said { Some(v) } else { None }).flatten().collect();
    if let Some(found) = wrong_value(ask, &values) {
        return Some(found);
    }
    let above = words.iter().any(|w| w.path.is_empty() && !name::within(&w.zone, &reader.ask.registered_domain));
    if above && lookup_failure::unregistered(reader)? {
        return Some((Reason::DomainNotRegistered, reader.ask.registered_domain.clone()));
    }
    // Everything that may explain an absence is asked for at once.
    let appended = appended_names(reader, expected, words);
    let wrong = wrong_names(reader, ask, expected);
    let asked: Vec<Option<&Answer>> = appended.iter().chain(&wrong).map(|n| reader.any(n, Kind::Txt)).collect();
    let alias = words.iter().find(|w| !w.path.is_empty());
    let swallowed = match (alias, name::parent(expected)) {
        (Some(_), Some(parent)) => Some(hints::wildcard_alias_beneath(reader, parent)),
        _ => None,
    };
    let asked: Vec<&Answer> = asked.into_iter().collect::<Option<_>>()?;
    let covered = match swallowed {
        Some(answer) => answer?.is_some_and(|to| alias.is_some_and(|w| w.path.first() == Some(&to))),
        None => false,
    };
    if let Some(word) = alias.filter(|_| !covered) {
        // An explicit alias that leads to no text blocks the TXT record (RFC 1034 §3.6.2).
        if matches!(word.said, Said::Nothing(_) | Said::IntoOurs | Said::NoEnd) {
            return Some((Reason::WrongRecordType, word.path.first().cloned().unwrap_or_default()));
        }
    }
    let found = |names: &[String], answers: &[&Answer]| {
        names.iter().zip(answers).find(|(n, a)| holds(a, n, &ask.value)).map(|(n, _)| n.clone())
    };
    if let Some(place) = found(&appended, &asked) {
        return Some((Reason::TxtZoneAppended, place));
    }
    if let Some(place) = found(&wrong, &asked[appended.len()..]) {
        return Some((Reason::TxtWrongName, place));
    }
    if let Some(host) = elsewhere(reader, ask, expected, words)? {
        return Some((Reason::RecordsAtWrongProvider, host));
    }
    if covered && words.iter().any(|w| matches!(w.said, Said::IntoOurs)) {
        let owner = hints::wildcard_above(reader, expected)?.map(|(owner, _)| owner).unwrap_or_default();
        return Some((Reason::TxtCoveredByWildcardCname, owner));
    }
    Some((Reason::TxtMissing, expected.to_owned()))
}

/// A value at the right place that is not the right one.
fn wrong_value(ask: &OwnershipAsk, values: &[&Text]) -> Option<(Reason, String)> {
    let wanted = normalised(&ask.value);
    let prefix = normalised(&ask.prefix);
    let found = |test: &dyn Fn(&str) -> bool| values.iter().find(|v| test(&normalised(&v.value))).map(|v| v.shown.clone());
    if let Some(v) = found(&|v| ask.superseded.iter().any(|old| normalised(old) == v)) {
        return Some((Reason::TxtStaleValue, v));
    }
    if let Some(v) = found(&|v| !v.is_empty() && v != wanted && wanted.starts_with(v)) {
        return Some((Reason::TxtValueTruncated, v));
    }
    found(&|v| v.starts_with(&prefix)).map(|v| (Reason::TxtValueMismatch, v))
}

fn holds(answer: &Answer, at: &str, value: &str) -> bool {
    let last = answer.aliases(at).pop().unwrap_or_else(|| at.to_owned());
    answer.at(&last, Kind::Txt).any(|d| matches!(d, Data::Txt(s) if normalised(&joined(s)) == normalised(value)))
}

/// The expected name with the zone once more behind it, as panels make it from a full name.
fn appended_names(reader: &Reader<'_>, expected: &str, words: &[Word<'_>]) -> Vec<String> {
    let mut zones = vec![reader.ask.registered_domain.clone()];
    if let Some(apex) = words.iter().find(|w| w.path.is_empty()).map(|w| w.zone.clone())
        && name::within(expected, &apex)
        && !zones.contains(&apex)
    {
        zones.push(apex);
    }
    zones.into_iter().map(|zone| format!("{expected}.{zone}")).collect()
}

/// Other names people choose: the hostname, the registered domain, the label there, the label without its underscore.
fn wrong_names(reader: &Reader<'_>, ask: &OwnershipAsk, expected: &str) -> Vec<String> {
    let hostname = reader.ask.hostname.as_str();
    let domain = &reader.ask.registered_domain;
    let label = ask.name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let mut names = Vec::new();
    for candidate in
        [hostname.to_owned(), format!("{label}.{domain}"), domain.clone(), expected.trim_start_matches('_').to_owned()]
    {
        if candidate != expected && !names.contains(&candidate) {
            names.push(candidate);
        }
    }
    names
}

/// A server that has the value but is not asked by anybody: one we were told of, or one of the zone above.
fn elsewhere(reader: &Reader<'_>, ask: &OwnershipAsk, expected: &str, words: &[Word<'_>]) -> Option<Option<String>> {
    let mut candidates = Vec::new();
    for host in &ask.other_servers {
        candidates.push(reader.server(&name::canonical(host), &[])?);
    }
    let apex = words.first().map_or("", |w| w.zone.as_str());
    if apex != reader.ask.registered_domain
        && name::within(apex, &reader.ask.registered_domain)
        && let Some(above) = name::parent(apex)
    {
        candidates.extend(reader.zone_of(above)?.servers);
    }
    candidates.retain(|c| words.iter().all(|w| w.server.host != c.host));
    for server in candidates {
        if reader.at(&server, expected, Kind::Txt)?.is_some_and(|a| holds(a, expected, &ask.value)) {
            return Some(Some(server.host));
        }
    }
    Some(None)
}
