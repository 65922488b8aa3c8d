//! Where the traffic of a hostname goes: decided by the resolvers, explained by the zone's own servers.

use std::net::IpAddr;

use crate::model::evidence::{Finding, Tie, Verdict, View};
use crate::model::look::{Answer, Data, Depth, Kind, RoutingAsk, name};
use crate::model::reason::Reason;

use super::lookup_failure::{self, Failure, is_public};
use super::reader::Reader;
use super::routing_walk::{self, End, Path};
use super::{hints, routing_hunt, routing_servers, routing_words, spelling};

/// What was concluded, for the words.
#[derive(Debug)]
pub struct Told {
    /// The reason.
    pub reason: Reason,
    /// The name, address or server that explains it.
    pub place: String,
    /// The path it was concluded from.
    pub path: Path,
    /// Whether the hostname is the top of its zone.
    pub apex: bool,
    /// Why nothing could be read.
    pub failure: Option<Failure>,
    /// What the zone's own servers said, one line each.
    pub servers: Vec<(String, String)>,
    /// What everybody said, where they differ.
    pub views: Vec<View>,
}

/// The question, in canonical form.
pub struct Route<'a> {
    /// The hostname.
    pub hostname: &'a str,
    /// What was asked for.
    pub ask: &'a RoutingAsk,
    /// The targets that count.
    pub accepted: Vec<String>,
}

/// Judges routing; `None` while answers are missing, or when it is not asked for.
pub fn judge(reader: &Reader<'_>) -> Option<Finding> {
    let ask = reader.ask.routing.as_ref()?;
    let route = Route {
        hostname: reader.ask.hostname.as_str(),
        ask,
        accepted: ask.accepted_targets.iter().map(|t| name::canonical(t)).collect(),
    };
    let told = conclude(reader, &route)?;
    Some(routing_words::finding(reader, &route, &told))
}

fn conclude(reader: &Reader<'_>, route: &Route<'_>) -> Option<Told> {
    let hostname = route.hostname;
    let (a, aaaa) = (reader.each(hostname, Kind::A), reader.each(hostname, Kind::Aaaa));
    let (a, aaaa) = (a?, aaaa?);
    let limit = route.ask.max_chain;
    let both = a.iter().zip(&aaaa);
    let paths: Vec<Option<Path>> =
        both.map(|((r, a), (_, aaaa))| routing_walk::path(reader, r, hostname, (a, aaaa), limit)).collect();
    let paths: Vec<Path> = paths.into_iter().collect::<Option<_>>()?;
    let apex = hostname == reader.ask.registered_domain || reader.zone_of(hostname)?.apex == hostname;
    let classes: Vec<Option<(Reason, String)>> = paths.iter().map(|p| classify(reader, route, p, apex)).collect();
    let classes: Vec<(Reason, String)> = classes.into_iter().collect::<Option<_>>()?;

    let failed: Vec<usize> = (0..classes.len()).filter(|i| classes[*i].0 == Reason::DnsLookupFailed).collect();
    let bogus: Vec<Option<bool>> = failed.iter().map(|i| bogus(reader, a[*i], hostname, &paths[*i])).collect();
    let bogus: Vec<bool> = bogus.into_iter().collect::<Option<_>>()?;
    if let Some((i, _)) = failed.iter().zip(bogus).find(|(_, bogus)| *bogus) {
        return unreadable(reader, &a, hostname, paths[*i].clone(), apex);
    }
    let mut standing = classes.clone();
    if choose(&standing).is_none_or(|(i, _)| standing[i].0 == Reason::DnsLookupFailed) {
        // What our own resolvers fail at for every name is no word on this one.
        let mute: Vec<&str> = failed.iter().map(|i| a[*i].0).collect();
        let down = lookup_failure::down(reader, &mute)?;
        if !down.is_empty() && !lookup_failure::too_few(classes.len() - down.len(), classes.len()) {
            standing = (0..classes.len()).filter(|i| !down.contains(&a[*i].0)).map(|i| classes[i].clone()).collect();
        }
    }
    let (chosen, split) = choose(&standing)?;
    let chosen = classes.iter().position(|c| *c == standing[chosen])?;
    let (mut reason, mut place) = classes[chosen].clone();
    if split {
        reason = Reason::CnamePropagating;
    }
    let mut told = Told {
        reason,
        place: String::new(),
        path: paths[chosen].clone(),
        apex,
        failure: None,
        servers: Vec::new(),
        views: routing_servers::compared(reader, route, &paths[chosen], &a, &aaaa, None),
    };
    if reason == Reason::DnsLookupFailed {
        return unreadable(reader, &a, hostname, told.path, apex);
    }
    let missing = matches!(reason, Reason::CnameMissing | Reason::AddressMissing);
    if missing && lookup_failure::unregistered(reader)? {
        told.reason = Reason::DomainNotRegistered;
        told.place.clone_from(&reader.ask.registered_domain);
        return Some(told);
    }
    // The servers are asked when something may have changed; a daily recheck believes its resolver.
    let elsewhere = reason.verdict() == Verdict::Fail && reason.tie() == Tie::Gone;
    if reader.ask.depth == Depth::Full && (reason.verdict() == Verdict::Pass || missing || elsewhere) {
        let views = reader.authority(hostname, Kind::A)?;
        told.servers = routing_servers::lines(&views, hostname);
        told.views = routing_servers::compared(reader, route, &told.path, &a, &aaaa, Some(&views));
        let other = if elsewhere {
            routing_servers::turned(reader, route, &views)
        } else {
            routing_servers::differ(reader, route, &views, &told.path)
        };
        if let Some((other, server)) = other {
            reason = other;
            place = server;
        }
    }
    if missing && reason != Reason::CnamePropagating {
        (reason, place) = routing_hunt::missing(reader, route, apex)?;
    }
    if matches!(reason, Reason::CnameOk | Reason::CnameOkChain) && reader.ask.depth == Depth::Full {
        let covered = hints::wildcard_alias_beneath(reader, hostname)?;
        if covered.is_some()
            && covered == told.path.aliases.first().cloned()
            && let Some((owner, _)) = hints::wildcard_above(reader, hostname)?.filter(|(_, alias)| *alias == covered)
        {
            (reason, place) = (Reason::CnameOkWildcard, owner);
        }
    }
    told.reason = reason;
    told.place = place;
    Some(told)
}

/// Whether a resolver's failure at the end of a path is a failed validation.
fn bogus(reader: &Reader<'_>, (resolver, a): (&str, &Answer), hostname: &str, path: &Path) -> Option<bool> {
    match path.aliases.last() {
        None => lookup_failure::bogus(reader, resolver, hostname, Kind::A, a),
        Some(at) => {
            let answer = reader.awake(resolver, at, Kind::A)?;
            lookup_failure::bogus(reader, resolver, at, Kind::A, answer)
        }
    }
}

fn unreadable(reader: &Reader<'_>, a: &[(&str, &Answer)], hostname: &str, path: Path, apex: bool) -> Option<Told> {
    let failure = match path.aliases.last() {
        None => lookup_failure::explain(reader, hostname, Kind::A, a)?,
        // Behind an alias, what failed is the next step. Asked for addresses, because an alias that a DNAME makes bears no
        // signature of its own, and asked for by type some resolvers reject it.
        Some(at) => lookup_failure::explain(reader, at, Kind::A, &reader.each_awake(at, Kind::A)?)?,
    };
    let (reason, place) = (failure.reason, failure.zone.clone());
    Some(Told { reason, place, path, apex, failure: Some(failure), servers: Vec::new(), views: Vec::new() })
}

/// Which vantage point's class stands for all, and whether they differ so much that only time will tell. All but one must pass
/// where there are at least three.
fn choose(classes: &[(Reason, String)]) -> Option<(usize, bool)> {
    let passes = |c: &(Reason, String)| c.0.verdict() == Verdict::Pass;
    let spare = usize::from(classes.len() >= 3);
    let passing = classes.iter().filter(|c| passes(c)).count();
    if passing > 0 && passing + spare >= classes.len() {
        return classes.iter().position(passes).map(|i| (i, false));
    }
    let others: Vec<usize> = (0..classes.len()).filter(|i| !passes(&classes[*i])).collect();
    let frequency = |i: usize| others.iter().filter(|o| classes[**o].0 == classes[i].0).count();
    let most = others.iter().map(|i| frequency(*i)).max()?;
    let chosen = others.iter().copied().find(|i| frequency(*i) == most)?;
    let definite = classes[chosen].0.verdict() != Verdict::Unknown;
    Some((chosen, passing > 0 && definite))
}

fn classify(reader: &Reader<'_>, route: &Route<'_>, path: &Path, apex: bool) -> Option<(Reason, String)> {
    let last = path.last(route.hostname).to_owned();
    if path.aliases.is_empty() {
        return match &path.end {
            End::Addresses(addresses) => by_address(reader, route, addresses, apex),
            End::Failed { .. } | End::Loop | End::TooLong => Some((Reason::DnsLookupFailed, last)),
            End::Empty if apex => Some((Reason::AddressMissing, last)),
            End::Empty => Some((Reason::CnameMissing, last)),
        };
    }
    if apex {
        return Some((Reason::CnameAtApex, last));
    }
    if path.conflict {
        return Some((Reason::CnameConflict, last));
    }
    Some(by_alias(reader, route, path, last))
}

fn by_alias(reader: &Reader<'_>, route: &Route<'_>, path: &Path, last: String) -> (Reason, String) {
    let accepted = path.aliases.iter().position(|n| route.accepted.contains(n));
    let before = &path.aliases[..accepted.unwrap_or(path.aliases.len())];
    let tenant_zone = route.ask.tenant_zone.as_ref().map(|z| name::canonical(z));
    let foreign = before.iter().find(|n| {
        route.ask.foreign_targets.iter().any(|f| name::canonical(f) == **n)
            || tenant_zone.as_ref().is_some_and(|z| name::within(n, z) && *n != z)
    });
    if let Some(theirs) = foreign {
        return (Reason::CnameWrongTenantTarget, theirs.clone());
    }
    if let Some(at) = accepted {
        let target = path.aliases[at].clone();
        return match &path.end {
            _ if at + 1 > route.ask.max_chain => (Reason::CnameChainTooLong, last),
            End::Addresses(_) if at == 0 => (Reason::CnameOk, target),
            End::Addresses(_) => (Reason::CnameOkChain, target),
            _ => (Reason::PlatformTargetBroken, target),
        };
    }
    let found = |test: &dyn Fn(&String) -> bool| path.aliases.iter().find(|n| test(n)).cloned();
    if let Some(url) = found(&|n| routing_walk::is_url(n)) {
        return (Reason::CnameTargetIsUrl, url);
    }
    let top = &reader.ask.registered_domain;
    if let Some(long) = found(&|n| routing_walk::has_zone_appended(n, &route.accepted, route.hostname, top)) {
        return (Reason::CnameTargetZoneAppended, long);
    }
    match &path.end {
        End::Loop => return (Reason::CnameLoop, last),
        End::TooLong => return (Reason::CnameChainTooLong, last),
        _ if path.aliases.len() > route.ask.max_chain => return (Reason::CnameChainTooLong, last),
        _ => {}
    }
    let ours = name::within_any(&last, &reader.ask.platform.suffixes);
    if !ours && let Some(typo) = found(&|n| route.accepted.iter().any(|a| spelling::distance(n, a) <= 2)) {
        return (Reason::CnameTargetTypo, typo);
    }
    match &path.end {
        // A name we handed out once and no longer serve: our move, and no sign that the customer left.
        End::Empty | End::Failed { .. } if ours => (Reason::PlatformTargetBroken, last),
        End::Failed { whole: false } => (Reason::DnsLookupFailed, last),
        End::Addresses(all) if !ours && all.iter().all(|a| reader.ask.platform.addresses.contains(a)) => {
            (Reason::AddressOk, last)
        }
        // A proxy may well pass the traffic on to us; DNS cannot show it.
        End::Addresses(all) if all.iter().all(|a| proxied(reader, a)) => (Reason::ProxiedByCdn, last),
        _ => (Reason::CnamePointsElsewhere, last),
    }
}

fn by_address(reader: &Reader<'_>, route: &Route<'_>, addresses: &[IpAddr], apex: bool) -> Option<(Reason, String)> {
    let platform = &reader.ask.platform;
    // A CNAME beside the addresses is seen only when asked for by name.
    let alias = reader.any(route.hostname, Kind::Cname)?.aliases(route.hostname).first().cloned();
    if let Some(alias) = alias {
        return Some((if apex { Reason::CnameAtApex } else { Reason::CnameConflict }, alias));
    }
    let ours = |a: &IpAddr| platform.addresses.contains(a);
    let first = |test: &dyn Fn(&IpAddr) -> bool| addresses.iter().find(|a| test(a)).map(IpAddr::to_string);
    if let Some(old) = first(&|a| platform.retired_addresses.contains(a) && !ours(a)) {
        return Some((Reason::AddressRetired, old));
    }
    if let Some(inside) = first(&|a| !is_public(*a) && !ours(a)) {
        return Some((Reason::AddressNotPublic, inside));
    }
    let Some(theirs) = first(&|a| !ours(a)) else {
        return Some(match https_elsewhere(reader, route)? {
            Some(target) => (Reason::HttpsRrPointsElsewhere, target),
            None => (Reason::AddressOk, route.hostname.to_owned()),
        });
    };
    if addresses.iter().all(|a| proxied(reader, a)) {
        return Some((Reason::ProxiedByCdn, theirs));
    }
    let family = |v6: bool| {
        let all: Vec<_> = addresses.iter().filter(|a| a.is_ipv6() == v6).collect();
        let own = all.iter().filter(|a| ours(a)).count();
        (all.len(), own)
    };
    let ((n4, own4), (n6, own6)) = (family(false), family(true));
    let mixed = (own4 > 0 && own4 < n4) || (own6 > 0 && own6 < n6);
    Some(match () {
        () if mixed => (Reason::AddressMixed, theirs),
        () if own4 > 0 => (Reason::AaaaPointsElsewhere, theirs),
        () if own6 > 0 => (Reason::APointsElsewhere, theirs),
        () => (Reason::AddressPointsElsewhere, theirs),
    })
}

fn proxied(reader: &Reader<'_>, address: &IpAddr) -> bool {
    reader.ask.platform.cdn_prefixes.iter().any(|p| routing_walk::in_prefix(*address, p))
}

/// Where an HTTPS record (RFC 9460) leads browsers past correct addresses, if it does.
fn https_elsewhere(reader: &Reader<'_>, route: &Route<'_>) -> Option<Option<String>> {
    if reader.ask.depth == Depth::Routine {
        return Some(None);
    }
    let answer = reader.any(route.hostname, Kind::Https)?;
    let elsewhere = answer.at(route.hostname, Kind::Https).find_map(|d| match d {
        // Priority 0 is an alias; "." in a service record means the owner itself.
        Data::Https(priority, to) if !(*priority > 0 && to.is_empty()) => {
            // An alias to the root says that there is no service (RFC 9460 §2.5.1).
            let place = if to.is_empty() { "nowhere" } else { to.as_str() };
            (!route.accepted.contains(to) && to != route.hostname).then(|| place.to_owned())
        }
        _ => None,
    });
    Some(elsewhere)
}
