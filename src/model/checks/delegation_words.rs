//! The delegation finding in words.

use crate::model::evidence::{Check, Finding, Record};
use crate::model::look::{DelegationAsk, name};
use crate::model::reason::Reason;

use super::delegation::{Astray, Said, Told};
use super::lookup_failure;
use super::reader::{Reader, Server};

/// The finding for what was concluded.
pub fn finding(reader: &Reader<'_>, ask: &DelegationAsk, told: &Told) -> Finding {
    let expected = name::canonical(&ask.name);
    let target = name::canonical(&ask.target);
    let mut observed: Vec<String> = told.words.iter().map(|(s, said)| line(s, said, &expected)).collect();
    let mut seen_by: Vec<String> = told.words.iter().map(|(s, _)| s.host.clone()).collect();
    observed.extend(told.lines.iter().cloned());
    match told.reason {
        Reason::DelegationZoneAppended | Reason::DelegationWrongName | Reason::DelegationLabelTypo => {
            observed.push(format!("our resolvers: {} leads to {target}", told.place));
        }
        Reason::ChallengeBlockedByProxy => observed.push(format!("{}: {}", reader.ask.hostname, told.place)),
        _ => {}
    }
    if let Some(failure) = &told.failure {
        observed.clone_from(&failure.observed);
        seen_by.clone_from(&failure.seen_by);
    }
    if seen_by.is_empty() {
        seen_by = reader.resolver_labels();
    }
    Finding {
        check: Check::Delegation,
        reason: told.reason,
        expected: format!("CNAME {expected} → {target}"),
        observed,
        seen_by,
        views: if told.failure.is_none() { told.views.clone() } else { Vec::new() },
        advice: advice(reader, ask, told, &expected, &target),
        found_at: None,
        found_via: None,
        record_to_publish: vec![Record {
            host: reader.host_field(&expected),
            name: expected,
            kind: "CNAME".to_owned(),
            value: target,
            // Every renewal needs it.
            keep: true,
        }],
        dns_host: None,
    }
}

fn line(server: &Server, said: &Said, expected: &str) -> String {
    format!("{}: {}", server.host, self::said(said, expected))
}

/// What one server has at the challenge name, in words.
pub fn said(said: &Said, expected: &str) -> String {
    match said {
        Said::Texts(texts) => {
            let shown: Vec<String> = texts.iter().map(|t| format!("\"{}\"", t.shown)).collect();
            format!("TXT {expected} = {}", shown.join(", "))
        }
        Said::Alias(to) => format!("{expected} → {to}"),
        Said::Nothing(how) => format!("{expected}: {how}"),
        Said::Silent(how) => how.clone(),
    }
}

fn advice(reader: &Reader<'_>, ask: &DelegationAsk, told: &Told, expected: &str, target: &str) -> String {
    let hostname = &reader.ask.hostname;
    let place = &told.place;
    let host = reader.host_field(expected);
    if let Some(failure) = told.failure.as_ref().filter(|f| f.reason != Reason::DomainNotRegistered) {
        return lookup_failure::advice(failure, expected);
    }
    match told.reason {
        Reason::DelegationOk => format!("{expected} points to us as expected; nothing needs to change."),
        Reason::DelegationOkNs => {
            format!("{expected} is served by our name servers as expected; nothing needs to change.")
        }
        Reason::DelegationMissing if place != expected => format!(
            "Some of your name servers show the record at {expected} and {place} does not yet; we will look again, and no \
             change is needed unless this lasts longer than a day."
        ),
        Reason::DelegationPointsElsewhere => match told.astray {
            Astray::Name => format!(
                "{expected} points to {place} but should point to {target}; change the target of the CNAME record to {target}."
            ),
            Astray::Endless => format!(
                "The aliases of {expected} lead back to themselves or have no end (seen at {place}); change the target of its \
                 CNAME record to {target}."
            ),
            Astray::ZoneAppended => format!(
                "{expected} points to {place} because your DNS panel added your domain to the target; enter {target}. with a \
                 dot at the end."
            ),
            Astray::Servers => format!(
                "{expected} is handed to the name server {place}, which is not ours; delete its NS records and add a CNAME there \
                 that points to {target}."
            ),
        },
        Reason::DelegationWrongTenant => format!(
            "{expected} points to {place}, which belongs to a different account; change the target of the CNAME record to \
             {target}."
        ),
        Reason::DelegationBlockedByTxt => format!(
            "{expected} holds a TXT record from another tool (\"{place}\"); delete it and add a CNAME there that points to \
             {target}."
        ),
        Reason::DelegationZoneAppended => format!(
            "The CNAME record was saved as {place} because your DNS panel adds the domain itself; rename its host field to {host}."
        ),
        Reason::DelegationWrongName => {
            format!("The record was found at {place} but is needed at {expected}; change the host field to {host}.")
        }
        Reason::DelegationLabelTypo => format!(
            "The record was found at {place} without the leading underscore; rename it to {expected} (host field {host})."
        ),
        Reason::DelegationCoveredByWildcard => {
            let routing = reader.ask.routing.as_ref().map(|r| r.target_for_record.trim_end_matches('.'));
            format!(
                "A wildcard, {place}, answers for {expected}; add the record: a CNAME at that name that points to {target}, and \
                 also a CNAME to {} for {hostname} itself, which the wildcard then no longer covers.",
                routing.unwrap_or("our target")
            )
        }
        Reason::ChallengeTxtNotVisible => {
            "Your record is right, and the certificate authority's value is still on its way to all of our own name servers; you \
             need not change anything."
                .to_owned()
        }
        Reason::ChallengeTxtIncomplete => format!(
            "Your record is right, and {place} of the certificate authority's {} values is still missing on our side; you need \
             not change anything.",
            ask.values.len()
        ),
        Reason::ChallengeNoWildcard => format!(
            "A certificate for *.{hostname} cannot be checked over the web; add a CNAME at {expected} that points to {target}."
        ),
        Reason::ChallengeBlockedByProxy => format!(
            "A proxy at {place} answers for {hostname}, so the certificate authority's check cannot reach us; switch the proxy off \
             for this record (some call that DNS only), or add a CNAME at {expected} that points to {target}."
        ),
        Reason::PlatformTargetBroken => format!(
            "Your record is right, but our name {place} does not answer right now; this is our problem and you need not \
             change anything."
        ),
        Reason::DomainNotRegistered => format!(
            "The domain {} is not registered, has expired or is suspended; register or renew it, or settle it with your \
             registrar, then try again.",
            reader.ask.registered_domain
        ),
        _ => format!("{expected} does not exist yet; add a CNAME record there (host field {host}) that points to {target}."),
    }
}
