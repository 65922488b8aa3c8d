//! The routing finding in words.

use std::net::IpAddr;

use crate::model::evidence::{Check, Finding, Record};
use crate::model::look::{Answer, Kind, Outcome};
use crate::model::reason::Reason;

use super::lasting::lasting;
use super::lookup_failure;
use super::reader::Reader;
use super::routing::{Route, Told};

/// The finding for what was concluded.
pub fn finding(reader: &Reader<'_>, route: &Route<'_>, told: &Told) -> Finding {
    let mut observed: Vec<String> = Vec::new();
    let mut seen_by = reader.resolver_labels();
    for resolver in reader.resolvers() {
        for kind in [Kind::A, Kind::Aaaa] {
            // Whatever is missing here was not needed for the conclusion.
            if let Some(answer) = reader.from(resolver, route.hostname, kind) {
                let line = format!("{kind}: {}", answer_line(answer, route.hostname));
                if !observed.contains(&line) {
                    observed.push(line);
                }
            }
        }
    }
    // Aliases that were walked one by one stand in none of these answers.
    if let Some(first) = told.path.aliases.first()
        && !observed.iter().any(|o| o.contains(first.as_str()))
    {
        observed.push(format!("CNAME: {} → {}", route.hostname, told.path.aliases.join(" → ")));
    }
    for (host, said) in &told.servers {
        observed.push(format!("{host}: {said}"));
        seen_by.push(host.clone());
    }
    if let Some(failure) = &told.failure {
        observed.clone_from(&failure.observed);
        seen_by.clone_from(&failure.seen_by);
    }
    Finding {
        check: Check::Routing,
        reason: told.reason,
        expected: expected(reader, route, told.apex),
        observed,
        seen_by,
        views: if told.failure.is_none() { told.views.clone() } else { Vec::new() },
        advice: advice(reader, route, told),
        found_at: None,
        found_via: None,
        record_to_publish: records(reader, route, told.apex),
        dns_host: None,
    }
}

/// An answer in one line.
pub fn answer_line(answer: &Answer, hostname: &str) -> String {
    let mut steps = vec![hostname.to_owned()];
    steps.extend(answer.aliases(hostname));
    let addresses: Vec<String> = answer.addresses().map(|a| a.to_string()).collect();
    let path = steps.join(" → ");
    match addresses.as_slice() {
        // A server that knows the alias only has said all it knows.
        [] if steps.len() > 1 && answer.outcome == Outcome::NoError => path,
        [] => format!("{path}: {}", answer.how()),
        all => format!("{path}: {}", all.join(", ")),
    }
}

fn target<'a>(route: &Route<'a>) -> &'a str {
    route.ask.target_for_record.trim_end_matches('.')
}

fn family(reader: &Reader<'_>, v6: bool) -> Vec<String> {
    reader.ask.platform.addresses.iter().filter(|a: &&IpAddr| a.is_ipv6() == v6).map(IpAddr::to_string).collect()
}

fn expected(reader: &Reader<'_>, route: &Route<'_>, apex: bool) -> String {
    if apex {
        let all: Vec<String> = reader.ask.platform.addresses.iter().map(IpAddr::to_string).collect();
        return format!("{}: only addresses of ours: {}", route.hostname, all.join(", "));
    }
    format!("CNAME {} → {}", route.hostname, target(route))
}

fn records(reader: &Reader<'_>, route: &Route<'_>, apex: bool) -> Vec<Record> {
    let record = |kind: &str, value: String| Record {
        name: route.hostname.to_owned(),
        host: reader.host_field(route.hostname),
        kind: kind.to_owned(),
        value,
        keep: true,
    };
    if !apex {
        return vec![record("CNAME", target(route).to_owned())];
    }
    let v4 = family(reader, false).into_iter().map(|a| record("A", a));
    v4.chain(family(reader, true).into_iter().map(|a| record("AAAA", a))).collect()
}

/// Who publishes what was seen, as a phrase.
fn published_at(told: &Told) -> String {
    let hosts: Vec<&str> = told.servers.iter().map(|(host, _)| host.as_str()).collect();
    if hosts.is_empty() { String::new() } else { format!(", published at {}", hosts.join(" and ")) }
}

/// The zone's own servers that still say something else, as a phrase.
fn behind(told: &Told) -> String {
    let own = told.views.iter().filter(|v| !v.as_expected && told.servers.iter().any(|(host, _)| *host == v.observer));
    let hosts: Vec<&str> = own.map(|v| v.observer.as_str()).collect();
    if hosts.is_empty() { String::new() } else { format!(" (not yet at {})", hosts.join(" and ")) }
}

/// How long the copies that our resolvers hold may live on, as a phrase.
fn old_copies(reader: &Reader<'_>, route: &Route<'_>) -> String {
    let answers = reader.resolvers().iter().filter_map(|r| reader.from(r, route.hostname, Kind::A));
    let ttl = answers.flat_map(|a| &a.records).filter(|rr| rr.name == route.hostname).map(|rr| rr.ttl).max();
    match ttl {
        Some(seconds) if seconds > 0 => format!(", where old answers may live for {} more", lasting(u64::from(seconds))),
        _ => String::new(),
    }
}

/// The address records we want, as a phrase.
fn address_records(reader: &Reader<'_>) -> String {
    let (v4, v6) = (family(reader, false), family(reader, true));
    let part = |kind: &str, all: &[String]| {
        (!all.is_empty()).then(|| format!("{kind} record{} {}", if all.len() == 1 { "" } else { "s" }, all.join(" and ")))
    };
    [part("A", &v4), part("AAAA", &v6)].into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn advice(reader: &Reader<'_>, route: &Route<'_>, told: &Told) -> String {
    let hostname = route.hostname;
    let target = target(route);
    let place = &told.place;
    let host = reader.host_field(hostname);
    if let Some(failure) = &told.failure {
        return lookup_failure::advice(failure, hostname);
    }
    let addresses = address_records(reader);
    let change = format!("change the target of the CNAME record to {target}");
    match told.reason {
        Reason::CnameOk => format!("{hostname} points to {place} as expected; nothing needs to change."),
        Reason::CnameOkChain => {
            format!("{hostname} reaches {place} through other aliases; this works and nothing needs to change.")
        }
        Reason::CnameOkWildcard => format!(
            "Through the wildcard {place}, {hostname} reaches us now, but stops once a record is added beneath it; add a \
             CNAME record for {hostname} itself that points to {target}."
        ),
        Reason::OkOneServerDown => format!(
            "{hostname} points to us as expected; one of your name servers, {place}, does not answer, so please have your DNS \
             provider look at it."
        ),
        Reason::CnameMissing => {
            format!("{hostname} does not lead anywhere yet; add a CNAME record (host field {host}) that points to {target}.")
        }
        Reason::LiveHostnameGone => format!(
            "All of your name servers say that {hostname} no longer exists; it stays online for the time being and is then let \
             go, so add its record to {target} again if you want to keep it."
        ),
        Reason::CnamePropagating => format!(
            "{hostname} already leads to us in some places and not yet in others{}{}; we look again by ourselves, and no change is \
             needed unless this lasts longer than a day.",
            behind(told),
            old_copies(reader, route)
        ),
        Reason::CnameTargetTypo => {
            format!("{hostname} points to {place}, which looks like a misspelling of {target}; {change}.")
        }
        Reason::CnameTargetZoneAppended => format!(
            "{hostname} points to {place} because your DNS panel added your domain to the target; enter {target}. with a dot at \
             the end."
        ),
        Reason::CnameZoneAppended => format!(
            "The CNAME record was saved as {place} because your DNS panel adds the domain itself; rename its host field to {host}."
        ),
        Reason::CnameTargetIsUrl => {
            format!("The CNAME target is the web address {place} but should be the bare name {target}; {change}.")
        }
        Reason::CnameLoop => {
            format!("The aliases of {hostname} lead back to themselves at {place}; point {hostname} at {target}.")
        }
        Reason::CnameChainTooLong => format!(
            "{hostname} passes through more than {} aliases, more than many programs follow; point it at {target} directly.",
            route.ask.max_chain
        ),
        Reason::CnameConflict => format!(
            "{hostname} has a CNAME record and address records at the same time, which DNS does not allow; delete the address \
             records and keep a CNAME to {target}."
        ),
        Reason::CnameWrongTenantTarget => {
            format!("{hostname} points to {place}, but the target for this account is {target}; {change}.")
        }
        Reason::WildcardShadowed => format!(
            "Your wildcard {place} does not cover {hostname} because another record exists beneath that name; that record must \
             stay, so add a CNAME record for {hostname} itself that points to {target}."
        ),
        Reason::WrongRecordType => format!(
            "{hostname} has {place} records, and DNS does not allow a CNAME beside them; if they are not needed, delete them and \
             add a CNAME to {target}, otherwise keep them and add {addresses}."
        ),
        Reason::ProxiedByCdn if !told.path.aliases.is_empty() => format!(
            "{hostname} leads through {} to a proxy, so DNS does not show whether it ends at us; {change}, or let that proxy pass \
             requests on to us.",
            told.path.aliases.join(" and ")
        ),
        Reason::ProxiedByCdn => format!(
            "{hostname} shows the addresses of a proxy ({place}) in front of your DNS record; switch the proxy off for this record \
             (some call that DNS only), so that it points to {target}."
        ),
        Reason::PlatformTargetBroken => format!(
            "{hostname} points to our name {place}, which does not answer right now; this is our problem and you need not change \
             anything."
        ),
        Reason::AddressOk => format!("{hostname} has our addresses; nothing needs to change."),
        Reason::AddressMissing => {
            format!("{hostname} has no address yet; add an ALIAS (or flattened CNAME) record to {target}, or {addresses}.")
        }
        Reason::AddressRetired => {
            format!("{hostname} points to {place}, an address we no longer use; replace it with {addresses}.")
        }
        Reason::AddressNotPublic => format!(
            "{hostname} points to the private address {place}, which the internet cannot reach; replace it with {addresses}."
        ),
        Reason::AddressMixed => format!(
            "{hostname} points to us and also to {place}, so visitors and the certificate authority reach the wrong server at random; delete the \
             record for {place}."
        ),
        Reason::AaaaPointsElsewhere => format!(
            "The IPv6 record of {hostname} points to {place}, which is not ours; delete that AAAA record or change it to ours: \
             {addresses}."
        ),
        Reason::APointsElsewhere => format!(
            "The IPv4 record of {hostname} points to {place}, which is not ours, so visitors without IPv6 reach the wrong server; \
             replace it: {addresses}."
        ),
        Reason::AddressPointsElsewhere => {
            let instead = if told.apex { format!("an ALIAS to {target}") } else { format!("a CNAME to {target}") };
            format!(
                "{hostname} points to {place}, which is not ours; replace that record with {instead}, or with {addresses}."
            )
        }
        Reason::CnameAtApex => format!(
            "{hostname} has a real CNAME record at the top of the domain, which breaks its mail and name server records; replace it \
             with an ALIAS (or flattened CNAME) record to {target}, or with {addresses}."
        ),
        Reason::HttpsRrPointsElsewhere => {
            format!("{hostname} has our addresses, but its HTTPS record sends browsers to {place}; delete the HTTPS record.")
        }
        Reason::DomainNotRegistered => format!(
            "The domain {place} is not registered, has expired or is suspended; register or renew it, or settle it with your \
             registrar, then try again."
        ),
        _ => format!(
            "We see that {hostname} points to {place}{}, but it should point to {target}; {change}.",
            published_at(told)
        ),
    }
}
