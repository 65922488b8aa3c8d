//! The CAA finding in words.

use crate::model::evidence::{Check, Finding, Record, Verdict};
use crate::model::look::{Ask, Caa, CaaAsk, name, quoted};
use crate::model::reason::Reason;

use super::caa::Decision;
use super::caa_value::{IssueValue, parse};
use super::lookup_failure;

/// A CA whose directory has no `caaIdentities`.
const NAMELESS: &str = "our certificate authority";

/// The finding for a decision.
pub fn finding(ask: &Ask, decision: &Decision) -> Finding {
    let fallback = CaaAsk::default();
    let caa = ask.caa.as_ref().unwrap_or(&fallback);
    let issuers = if caa.issuers.is_empty() { NAMELESS.to_owned() } else { caa.issuers.join(" or ") };
    Finding {
        check: Check::Caa,
        reason: decision.reason,
        expected: format!("{issuers} may issue for {}", ordered(caa, decision)),
        observed: decision.observed.clone(),
        seen_by: decision.seen_by.clone(),
        views: decision.views.clone(),
        advice: advice(ask, caa, decision),
        found_at: decision.found.then(|| decision.at.clone()),
        found_via: decision.found.then(|| decision.via.clone()).flatten(),
        record_to_publish: record(ask, caa, decision).into_iter().collect(),
        dns_host: None,
    }
}

fn ordered(caa: &CaaAsk, decision: &Decision) -> String {
    if caa.wildcard { format!("*.{}", decision.name) } else { decision.name.clone() }
}

/// Whether the deciding record is about wildcards.
fn tag(decision: &Decision) -> &'static str {
    let wild = decision.culprit.as_ref().is_some_and(|c| c.tag.eq_ignore_ascii_case("issuewild"));
    if wild { "issuewild" } else { "issue" }
}

/// The record that mends it, where one does. None where an alias led to the set: beside a CNAME there can be no other record.
fn record(ask: &Ask, caa: &CaaAsk, decision: &Decision) -> Option<Record> {
    let issuer = caa.issuers.first()?;
    let value = match decision.reason {
        Reason::CaaExcludesCa
        | Reason::CaaWildcardExcludesCa
        | Reason::CaaForbidsAll
        | Reason::CaaForbidsWildcard
        | Reason::CaaMalformed
        | Reason::CaaIssuerSpelling => issuer.clone(),
        Reason::CaaAccountMismatch => format!("{issuer}; accounturi={}", caa.account_uri.as_ref()?),
        _ => return None,
    };
    if decision.via.is_some() {
        return None;
    }
    // A set above the registered domain is not the tenant's; one of their own comes before it.
    let theirs = name::within(&decision.at, &ask.registered_domain);
    let owner = if theirs { &decision.at } else { &ask.registered_domain };
    Some(Record {
        name: owner.clone(),
        host: name::host_field(owner, &ask.registered_domain),
        kind: "CAA".to_owned(),
        value: format!("0 {} \"{value}\"", tag(decision)),
        keep: true,
    })
}

fn shown(culprit: Option<&Caa>) -> String {
    culprit.map(|c| quoted(&c.value)).unwrap_or_default()
}

/// The CAs that a set names.
fn named(set: &[Caa], tag: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    for record in set.iter().filter(|c| c.tag.eq_ignore_ascii_case(tag)) {
        if let IssueValue::Issuer { domain, .. } = parse(&record.value)
            && !names.contains(&domain)
        {
            names.push(domain);
        }
    }
    names.join(" and ")
}

fn advice(ask: &Ask, caa: &CaaAsk, decision: &Decision) -> String {
    let at = &decision.at;
    let issuer = caa.issuers.first().map_or(NAMELESS, String::as_str);
    let owner = decision.via.as_ref().unwrap_or(at);
    let tag = tag(decision);
    // A set behind an alias is somebody else's to change; one of their own at the name comes before it.
    let place = if decision.via.is_some() { &decision.name } else { at };
    // Never an empty value: that forbids everybody.
    let (add, rewrite) = if caa.issuers.is_empty() {
        ("it states no name that could be added, so delete the CAA records there".to_owned(), "delete it".to_owned())
    } else {
        (format!("add the record: {place} CAA 0 {tag} \"{issuer}\""), format!("change the value to {issuer}"))
    };
    let value = shown(decision.culprit.as_ref());
    match decision.reason {
        Reason::CaaAbsent => {
            format!("No CAA record applies to {}, so {issuer} may issue; nothing needs to change for CAA.", decision.name)
        }
        Reason::CaaPermits => format!("The CAA record at {owner} allows {issuer}; nothing needs to change for CAA."),
        Reason::CaaNoRestriction => {
            format!("The CAA record at {owner} restricts nothing for this certificate; nothing needs to change for CAA.")
        }
        Reason::CaaExcludesCa | Reason::CaaWildcardExcludesCa => {
            format!("The CAA record at {owner} allows only {} but we use {issuer}; {add}.", named(&decision.set, tag))
        }
        Reason::CaaForbidsAll => format!("The CAA record at {owner} forbids every certificate authority; {add}."),
        Reason::CaaForbidsWildcard => format!(
            "The CAA records at {owner} forbid wildcard certificates; {add}, or order a certificate without a wildcard."
        ),
        Reason::CaaTargetExcludesCa => format!(
            "The CAA record on our own name {owner} does not allow {issuer}, and {} inherits it through the CNAME; this is our \
             mistake to correct and you need not change anything.",
            decision.name
        ),
        Reason::CaaUnknownCritical => {
            let tag = decision.culprit.as_ref().map_or("", |c| c.tag.as_str());
            format!(
                "The CAA record {tag} at {owner} is marked critical and unknown to our certificate authority, so it must refuse; \
                 delete that record or set its flags to 0."
            )
        }
        Reason::CaaMalformed => {
            let why = match decision.culprit.as_ref().map(|c| parse(&c.value)) {
                Some(IssueValue::Malformed(why)) => format!(" ({why})"),
                _ => String::new(),
            };
            format!(
                "The CAA record at {owner} has the unreadable value {value}{why}, which forbids all certificates; {rewrite}."
            )
        }
        Reason::CaaIssuerSpelling => format!(
            "The CAA value at {owner} is spelled {value}, which our certificate authority does not accept; write it in its own \
             spelling: {issuer}."
        ),
        Reason::CaaMethodNotAllowed => format!(
            "The CAA record at {owner} allows {issuer}, but not the way in which it checks your name, {} ({value}); add {} to the \
             validationmethods in that value.",
            caa.method, caa.method
        ),
        Reason::CaaAccountMismatch => {
            let account = caa.account_uri.as_deref().unwrap_or("our account, once it exists");
            format!(
                "The CAA record at {owner} allows only another account ({value}); add a second record: {place} CAA 0 {tag} \
                 \"{issuer}; accounturi={account}\"."
            )
        }
        Reason::CaaParamUnsatisfiable => format!(
            "One CAA record at {owner} states one condition twice ({value}), so nobody can meet it; split it into two records."
        ),
        Reason::CaaTypeUnsupported => format!(
            "The name servers of {} reject questions about CAA records instead of saying that there are none; ask your DNS \
             provider to mend this, or move to another DNS provider.",
            ask.registered_domain
        ),
        Reason::DnssecBogus => lookup_failure::bogus_advice(&ask.registered_domain, decision.broken),
        Reason::CaaAnswerTruncated => format!(
            "The CAA records of {at} are too long for one packet and arrive incomplete; delete those that are not needed, or ask \
             your DNS provider to give long answers over TCP."
        ),
        Reason::CaaTargetLookupFailed => format!(
            "{} leads to our own name {owner}, whose CAA records cannot be read, so no certificate can be ordered; this is our \
             problem and you need not change anything.",
            decision.name
        ),
        Reason::CaaVantageDisagree => format!(
            "The CAA record at {owner} is seen differently from different places; no change is needed, we will look again."
        ),
        Reason::CaaObservationStale => format!(
            "Our last CAA check of {} is too old to order a certificate on; we check again by ourselves and you need not change anything.",
            decision.name
        ),
        Reason::ResolverUnavailable => {
            "Our own DNS service is not answering at the moment; this is our problem and you need not change anything."
                .to_owned()
        }
        reason if reason.verdict() == Verdict::Unknown => format!(
            "The name servers gave an error or no answer when asked for the CAA records of {at}, so no certificate can be \
             ordered; we ask again, and if this lasts, have your DNS provider look at it."
        ),
        reason => reason.sentence().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::checks::caa::CaWould;
    use crate::model::hostname::Hostname;
    use crate::model::look::Platform;

    #[test]
    fn the_record_that_mends_a_set_is_ready_to_publish() {
        let mut ask = Ask::new(Hostname::trusted("shop.example.com"), Platform::default());
        ask.registered_domain = "example.com".to_owned();
        ask.caa = Some(CaaAsk { issuers: vec!["ca.test".to_owned()], ..CaaAsk::default() });
        let mut decision = Decision {
            name: "shop.example.com".to_owned(),
            reason: Reason::CaaForbidsAll,
            ca_would: CaWould::Deny,
            at: "example.com".to_owned(),
            found: true,
            via: None,
            set: Vec::new(),
            culprit: None,
            observed: Vec::new(),
            seen_by: Vec::new(),
            broken: None,
            ttl: None,
            views: Vec::new(),
        };
        let told = |decision: &Decision| -> Vec<String> {
            finding(&ask, decision).record_to_publish.iter().map(|r| format!("{} {}", r.host, r.zone_line())).collect()
        };
        assert_eq!(told(&decision), ["@ example.com. 300 IN CAA 0 issue \"ca.test\""]);
        let mut nameless = ask.clone();
        nameless.caa = Some(CaaAsk::default());
        let words = finding(&nameless, &decision);
        assert_eq!(words.expected, "our certificate authority may issue for shop.example.com");
        assert!(words.advice.contains("delete the CAA records") && !words.advice.contains("\"\""), "{}", words.advice);
        assert!(words.record_to_publish.is_empty());
        decision.at = "com".to_owned();
        assert_eq!(told(&decision), ["@ example.com. 300 IN CAA 0 issue \"ca.test\""]);
        decision.via = Some("cdn.example".to_owned());
        assert!(told(&decision).is_empty());
        (decision.via, decision.reason) = (None, Reason::CaaPermits);
        assert!(told(&decision).is_empty());
    }
}
