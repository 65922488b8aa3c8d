//! The ownership finding in words.

use crate::model::evidence::{Check, Finding, Record, View};
use crate::model::look::{OwnershipAsk, name};
use crate::model::reason::Reason;

use super::lasting::lasting;
use super::lookup_failure;
use super::ownership::{Conclusion, Said, Word};
use super::reader::Reader;
use super::side_by_side::side_by_side;
use super::txt_value::normalised;

/// The finding for a conclusion.
pub fn finding(reader: &Reader<'_>, own: &OwnershipAsk, conclusion: &Conclusion<'_>) -> Finding {
    let expected = name::canonical(&own.name);
    let mut observed: Vec<String> = Vec::new();
    let mut seen_by: Vec<String> = Vec::new();
    for word in &conclusion.words {
        let line = line(word, &expected);
        if !observed.contains(&line) {
            observed.push(line);
        }
        if !seen_by.contains(&word.server.host) {
            seen_by.push(word.server.host.clone());
        }
    }
    match conclusion.reason {
        Reason::TxtZoneAppended | Reason::TxtWrongName => {
            observed.push(format!("our resolvers: TXT {} = {:?}", conclusion.place, own.value));
        }
        Reason::RecordsAtWrongProvider => {
            observed.push(format!("{}: TXT {expected} = {:?}", conclusion.place, own.value));
        }
        _ => {}
    }
    let views = if conclusion.failure.is_none() { views(&conclusion.words, own, &expected) } else { Vec::new() };
    if let Some(failure) = &conclusion.failure {
        observed.clone_from(&failure.observed);
        seen_by.clone_from(&failure.seen_by);
    }
    Finding {
        check: Check::Ownership,
        reason: conclusion.reason,
        expected: format!("TXT {expected} = {}", own.value),
        observed,
        seen_by,
        views,
        advice: advice(reader, own, conclusion, &expected),
        found_at: None,
        found_via: None,
        record_to_publish: vec![record(reader, own, &expected)],
        dns_host: None,
    }
}

fn record(reader: &Reader<'_>, own: &OwnershipAsk, expected: &str) -> Record {
    Record {
        host: reader.host_field(expected),
        name: expected.to_owned(),
        kind: "TXT".to_owned(),
        value: own.value.clone(),
        // With a CNAME to a host of the tenant's own, that CNAME is a tie as well; elsewhere this record is the only one.
        keep: reader.ask.hostname.is_apex() || reader.ask.routing.as_ref().is_none_or(|r| r.tenant_zone.is_none()),
    }
}

/// What each server says, where they say different things.
fn views(words: &[Word<'_>], own: &OwnershipAsk, expected: &str) -> Vec<View> {
    let value = normalised(&own.value);
    side_by_side(words.iter().map(|word| {
        let (text, as_expected) = match &word.said {
            Said::Silent(_) => (None, false),
            Said::Values(values) => {
                let mut all: Vec<String> = values.iter().map(|v| normalised(&v.value)).collect();
                all.sort();
                let right = all.contains(&value);
                (Some(all), right)
            }
            Said::Nothing(_) | Said::IntoOurs | Said::NoEnd => (Some(Vec::new()), false),
        };
        let view = View { observer: word.server.host.clone(), said: said(word, expected), ttl: word.ttl, as_expected };
        (text, view)
    }))
}

fn line(word: &Word<'_>, expected: &str) -> String {
    format!("{}: {}", word.server.host, said(word, expected))
}

fn said(word: &Word<'_>, expected: &str) -> String {
    let at = word.path.last().map_or(expected, String::as_str);
    match &word.said {
        Said::Values(values) => {
            let shown: Vec<String> = values.iter().map(|v| format!("\"{}\"", v.shown)).collect();
            format!("TXT {at} = {}", shown.join(", "))
        }
        Said::Nothing(answer) => format!("TXT {at}: {}", answer.how()),
        Said::IntoOurs => format!("{expected} leads to our own name {at}, which proves nothing"),
        Said::NoEnd => format!("the aliases from {expected} have no end"),
        Said::Silent(Some(answer)) => answer.how(),
        Said::Silent(None) => "could not be asked".to_owned(),
    }
}

/// How long resolvers may keep an absence they have seen, in words.
fn negative_hint(words: &[Word<'_>]) -> String {
    let ttl = words.iter().filter_map(|w| if let Said::Nothing(a) = &w.said { a.negative_ttl() } else { None }).max();
    match ttl {
        Some(seconds) if seconds > 0 => {
            format!(" After you add it, it may take up to {} until it is seen everywhere.", lasting(u64::from(seconds)))
        }
        _ => String::new(),
    }
}

fn advice(reader: &Reader<'_>, own: &OwnershipAsk, conclusion: &Conclusion<'_>, expected: &str) -> String {
    let value = &own.value;
    let place = &conclusion.place;
    let ask = reader.ask;
    let host = reader.host_field(expected);
    let add = format!("add a TXT record at {expected} with the value {value}");
    if let Some(failure) = &conclusion.failure
        && conclusion.reason != Reason::DomainNotRegistered
    {
        return lookup_failure::advice(failure, expected);
    }
    match conclusion.reason {
        Reason::TxtOk => {
            let at = conclusion.words.iter().find_map(|w| w.path.last());
            let whole = at.map_or_else(|| expected.to_owned(), |at| format!("{expected} leads to {at}, which"));
            let older = conclusion.words.iter().any(|w| {
                matches!(&w.said, Said::Values(v) if v.iter().any(|x| own.superseded.iter().any(|s| normalised(s) == normalised(&x.value))))
            });
            let rest = if older { "the older value beside it can be deleted" } else { "nothing needs to change" };
            format!("{whole} holds the current value, so ownership is proven; {rest}.")
        }
        Reason::TxtOkNormalised => format!(
            "The value at {expected} differs from ours only in quotation marks, spaces or letter case, which we ignore; no \
             change is needed."
        ),
        Reason::OkOneServerDown => format!(
            "{expected} holds the current value; one of your name servers, {place}, does not answer, so please have your DNS \
             provider look at it."
        ),
        Reason::TxtPropagating => {
            let wanted = normalised(value);
            let holds =
                |w: &&Word<'_>| matches!(&w.said, Said::Values(v) if v.iter().any(|x| normalised(&x.value) == wanted));
            let hosts = |all: Vec<&Word<'_>>| all.iter().map(|w| w.server.host.as_str()).collect::<Vec<_>>().join(" and ");
            let speaking = conclusion.words.iter().filter(|w| !matches!(w.said, Said::Silent(_)));
            let (new, old): (Vec<_>, Vec<_>) = speaking.partition(holds);
            let (new, old) = (hosts(new), hosts(old));
            format!(
                "{expected} holds the new value at {new} and not yet at {old}; we look again by ourselves. If this lasts longer \
                 than a day, ask your DNS provider about {old}."
            )
        }
        Reason::TxtTokenExpired => format!(
            "The value at {expected} was valid for {} and its deadline passed {} ago; request a new value and publish that one \
             instead.",
            lasting(own.max_age.as_secs()),
            lasting(place.parse().unwrap_or(0))
        ),
        Reason::TxtStaleValue => {
            format!("{expected} still holds the value from an earlier attempt ({place}); replace it with {value}.")
        }
        Reason::TxtValueTruncated => {
            format!("The value at {expected} stops after {place}; paste the complete value {value}.")
        }
        Reason::TxtValueMismatch => {
            format!("{expected} holds a value that was not issued for this request ({place}); replace it with {value}.")
        }
        Reason::TxtZoneAppended => format!(
            "The TXT record was saved as {place} because your DNS panel adds the domain itself; rename its host field to {host}."
        ),
        Reason::TxtWrongName => {
            format!(
                "The value was found at {place} but is expected at {expected}; change the record's host field to {host}."
            )
        }
        Reason::WrongRecordType => format!(
            "{expected} is a CNAME to {place} but a TXT record is expected; delete the CNAME and add a TXT record with the value \
             {value}."
        ),
        Reason::TxtCoveredByWildcardCname => {
            let target = ask.routing.as_ref().map_or("our target", |r| r.target_for_record.as_str());
            format!(
                "A wildcard, {place}, answers for {expected}, which proves nothing; {add}, and also add a CNAME to {target} for \
                 {} itself, which the wildcard then no longer covers.",
                ask.hostname
            )
        }
        Reason::RecordsAtWrongProvider => {
            let apex = conclusion.words.first().map_or("", |w| w.zone.as_str());
            let servers: Vec<&str> = conclusion.words.iter().map(|w| w.server.host.as_str()).collect();
            format!(
                "Your record exists at {place}, but {apex} is served by {}; add the record there, or change the name servers of \
                 {apex}.",
                servers.join(" and ")
            )
        }
        Reason::DomainNotRegistered => format!(
            "The domain {} is not registered, has expired or is suspended; register or renew it, or settle it with your \
             registrar, then try again.",
            ask.registered_domain
        ),
        _ => {
            format!("No TXT record with our value is visible at {expected} yet; {add}.{}", negative_hint(&conclusion.words))
        }
    }
}
