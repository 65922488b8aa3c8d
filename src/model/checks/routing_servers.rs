//! What the zone's own servers make of a hostname beside what our resolvers do.

use std::net::IpAddr;

use crate::model::evidence::View;
use crate::model::look::{Answer, Kind, Observer};
use crate::model::reason::Reason;

use super::reader::{Reader, Views};
use super::routing::Route;
use super::routing_walk::{End, Path};
use super::routing_words;
use super::side_by_side::side_by_side;

/// What one observer makes of the hostname.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Lead {
    Alias(String),
    Ours,
    Others,
    Nothing,
}

impl Lead {
    /// Whether it leads to us: by itself, or by the alias with which `path` reached its end.
    fn to_us(&self, route: &Route<'_>, path: &Path) -> bool {
        match self {
            Lead::Ours => true,
            Lead::Alias(first) => {
                route.accepted.contains(first) || (path.aliases.first() == Some(first) && !matches!(path.end, End::Empty))
            }
            Lead::Others | Lead::Nothing => false,
        }
    }
}

fn lead(reader: &Reader<'_>, route: &Route<'_>, answer: &Answer) -> Lead {
    let addresses: Vec<IpAddr> = answer.addresses().collect();
    match answer.aliases(route.hostname).first() {
        Some(first) => Lead::Alias(first.clone()),
        None if addresses.is_empty() => Lead::Nothing,
        None if addresses.iter().all(|a| reader.ask.platform.addresses.contains(a)) => Lead::Ours,
        None => Lead::Others,
    }
}

/// Servers that differ while some of them lead to us, or one that is silent while the others are right.
pub fn differ(reader: &Reader<'_>, route: &Route<'_>, views: &Views<'_>, path: &Path) -> Option<(Reason, String)> {
    let speaking: Vec<(&str, Lead)> = views
        .answers
        .iter()
        .filter_map(|(s, a)| {
            a.filter(|a| a.definite() && a.authoritative).map(|a| (s.host.as_str(), lead(reader, route, a)))
        })
        .collect();
    let to_us = |l: &Lead| l.to_us(route, path);
    let (first_host, first) = speaking.first()?;
    if speaking.iter().any(|(_, l)| l != first) && speaking.iter().any(|(_, l)| to_us(l)) {
        let behind = speaking.iter().find(|(_, l)| !to_us(l)).map_or(*first_host, |(h, _)| h);
        return Some((Reason::CnamePropagating, behind.to_owned()));
    }
    let silent = views.answers.iter().find(|(s, _)| !speaking.iter().any(|(h, _)| *h == s.host))?;
    speaking.iter().all(|(_, l)| to_us(l)).then(|| (Reason::OkOneServerDown, silent.0.host.clone()))
}

/// A server of the zone that leads to us while our resolvers still see the way elsewhere: the record was changed, and their
/// copies are old.
pub fn turned(reader: &Reader<'_>, route: &Route<'_>, views: &Views<'_>) -> Option<(Reason, String)> {
    let to_us = |a: &&Answer| match lead(reader, route, a) {
        Lead::Ours => true,
        Lead::Alias(first) => route.accepted.contains(&first),
        Lead::Others | Lead::Nothing => false,
    };
    let speaking = views.answers.iter().filter_map(|(s, a)| Some((s, a.filter(|a| a.definite() && a.authoritative)?)));
    speaking.filter(|(_, a)| to_us(a)).map(|(s, _)| (Reason::CnamePropagating, s.host.clone())).next()
}

pub fn lines(views: &Views<'_>, hostname: &str) -> Vec<(String, String)> {
    views
        .answers
        .iter()
        .map(|(server, answer)| {
            let said = answer.map_or_else(|| "could not be asked".to_owned(), |a| routing_words::answer_line(a, hostname));
            (server.host.clone(), said)
        })
        .collect()
}

/// What every resolver and, where they were asked, every server of the zone says stands at the hostname itself, where they differ.
pub fn compared(
    reader: &Reader<'_>,
    route: &Route<'_>,
    path: &Path,
    a: &[(&str, &Answer)],
    aaaa: &[(&str, &Answer)],
    servers: Option<&Views<'_>>,
) -> Vec<View> {
    // The zone's servers are asked for one family only; what they are compared by is that one.
    let differs = |all: &[(&str, &Answer)]| {
        let mut leads = all.iter().filter(|(_, a)| a.definite()).map(|(_, a)| lead(reader, route, a));
        let first = leads.next();
        leads.any(|l| first.as_ref() != Some(&l))
    };
    let both = differs(aaaa);
    let resolvers = a.iter().zip(aaaa).map(|((resolver, a), (_, aaaa))| {
        let leads = a.definite().then(|| (lead(reader, route, a), both.then(|| lead(reader, route, aaaa))));
        let mut said = at_hostname(a, Kind::A, route.hostname);
        if both && a.aliases(route.hostname).is_empty() {
            said = format!("{said}; {}", at_hostname(aaaa, Kind::Aaaa, route.hostname));
        }
        let as_expected = leads.as_ref().is_some_and(|(l, v6)| {
            l.to_us(route, path) && v6.as_ref().is_none_or(|l| *l == Lead::Nothing || l.to_us(route, path))
        });
        let ttl = a.kept_for(route.hostname).max(if both { aaaa.kept_for(route.hostname) } else { None });
        (leads, View { observer: Observer::Resolver((*resolver).to_owned()).label(), said, ttl, as_expected })
    });
    let servers = servers.into_iter().flat_map(|views| &views.answers).map(|(server, answer)| {
        let speaking = answer.filter(|a| a.definite() && a.authoritative);
        let lead = speaking.map(|a| lead(reader, route, a));
        let said = match (speaking, answer) {
            (Some(a), _) => at_hostname(a, Kind::A, route.hostname),
            (None, Some(a)) if a.definite() => format!("{}, not as the zone's own server", a.how()),
            (None, Some(a)) => a.how(),
            (None, None) => "could not be asked".to_owned(),
        };
        let as_expected = lead.as_ref().is_some_and(|l| l.to_us(route, path));
        let ttl = speaking.and_then(|a| a.kept_for(route.hostname));
        let key = lead.filter(|_| !both).map(|l| (l, None));
        (key, View { observer: server.host.clone(), said, ttl, as_expected })
    });
    side_by_side(resolvers.chain(servers))
}

/// What an answer says stands at the hostname itself.
fn at_hostname(answer: &Answer, kind: Kind, hostname: &str) -> String {
    if let Some(first) = answer.aliases(hostname).first() {
        return format!("CNAME {first}");
    }
    let mut addresses: Vec<IpAddr> = answer.addresses().collect();
    if addresses.is_empty() {
        return format!("{kind}: {}", answer.how());
    }
    addresses.sort();
    let addresses: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    format!("{kind} {}", addresses.join(", "))
}
