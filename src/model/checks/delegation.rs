//! The delegation of the challenge name `_acme-challenge.<hostname>` to us, and whether the method in use can work at all.
//!
//! A CNAME to the tenant's own validation name is asked for; a delegation by NS to our servers is as good. Whatever else stands
//! at the name keeps every certificate authority from following it (RFC 8555 §8.4, RFC 1034 §3.6.2).

use std::net::IpAddr;

use crate::model::evidence::{Finding, View};
use crate::model::look::{Answer, DelegationAsk, Kind, name};
use crate::model::reason::Reason;

use super::lookup_failure::{self, Failure};
use super::reader::{Reader, Server, Views};
use super::side_by_side::side_by_side;
use super::txt_value::Text;
use super::{delegation_hunt, delegation_words, hints, routing_walk};

/// How many aliases are followed from the challenge name; more than any CA promises to.
const MAX_ALIASES: usize = 10;

/// What one server of the zone has at the challenge name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// TXT records of its own.
    Texts(Vec<Text>),
    /// An alias.
    Alias(String),
    /// Nothing that bears on it.
    Nothing(String),
    /// It does not speak for the zone.
    Silent(String),
}

/// How the challenge name leads astray.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Astray {
    /// To a name.
    Name,
    /// Back to itself, or on and on.
    Endless,
    /// To our name with the customer's zone behind it.
    ZoneAppended,
    /// To name servers of others.
    Servers,
}

/// What was concluded, for the words.
#[derive(Debug)]
pub struct Told {
    /// The reason.
    pub reason: Reason,
    /// The name, value or server that explains it.
    pub place: String,
    /// How it leads astray, where it does.
    pub astray: Astray,
    /// What every server said.
    pub words: Vec<(Server, Said)>,
    /// The same side by side, where they differ.
    pub views: Vec<View>,
    /// Further lines worth showing.
    pub lines: Vec<String>,
    /// Why nothing could be read, when that is so.
    pub failure: Option<Failure>,
}

impl Told {
    fn new(reason: Reason, place: impl Into<String>) -> Told {
        Told {
            reason,
            place: place.into(),
            astray: Astray::Name,
            words: Vec::new(),
            views: Vec::new(),
            lines: Vec::new(),
            failure: None,
        }
    }
}

/// Judges the delegation; `None` while answers are missing, or when it is not asked for.
pub fn judge(reader: &Reader<'_>) -> Option<Finding> {
    let ask = reader.ask.delegation.as_ref()?;
    let told = conclude(reader, ask)?;
    Some(delegation_words::finding(reader, ask, &told))
}

fn conclude(reader: &Reader<'_>, ask: &DelegationAsk) -> Option<Told> {
    let expected = name::canonical(&ask.name);
    if ask.wildcard && ask.method != "dns-01" {
        return Some(Told::new(Reason::ChallengeNoWildcard, ask.method.clone()));
    }
    if ask.method == "tls-alpn-01"
        && let Some(proxy) = proxy_in_front(reader)?
    {
        return Some(Told::new(Reason::ChallengeBlockedByProxy, proxy.to_string()));
    }
    let views = reader.authority(&expected, Kind::Txt)?;
    if views.zone.apex == expected {
        return by_servers(reader, ask, &expected, &views);
    }
    let words: Vec<Option<(Server, Said)>> =
        views.answers.iter().map(|(s, a)| Some((s.clone(), word(reader, s, *a, &expected)?))).collect();
    let words: Vec<(Server, Said)> = words.into_iter().collect::<Option<_>>()?;
    let mut told = by_words(reader, ask, &expected, &words)?;
    let ttls = views.answers.iter().map(|(_, a)| a.and_then(|a| a.kept_for(&expected)));
    told.views = side_by_side(words.iter().zip(ttls).map(|((server, said), ttl)| {
        let as_expected = *said == Said::Alias(name::canonical(&ask.target));
        let view = View { observer: server.host.clone(), said: delegation_words::said(said, &expected), ttl, as_expected };
        ((!matches!(said, Said::Silent(_))).then_some(said), view)
    }));
    told.words = words;
    Some(told)
}

/// The proxy that ends TLS before us: every address of the hostname belongs to one.
fn proxy_in_front(reader: &Reader<'_>) -> Option<Option<IpAddr>> {
    let hostname = reader.ask.hostname.as_str();
    let (a, aaaa) = (reader.any(hostname, Kind::A), reader.any(hostname, Kind::Aaaa));
    let addresses: Vec<IpAddr> = a?.addresses().chain(aaaa?.addresses()).collect();
    let proxied = |a: &IpAddr| reader.ask.platform.cdn_prefixes.iter().any(|p| routing_walk::in_prefix(*a, p));
    Some(addresses.first().copied().filter(|_| addresses.iter().all(proxied)))
}

fn word(reader: &Reader<'_>, server: &Server, answer: Option<&Answer>, expected: &str) -> Option<Said> {
    Some(match reader.speaking(server, answer, expected)? {
        Some(speaking) => said(speaking, expected),
        None => Said::Silent(answer.map_or_else(|| "could not be asked".to_owned(), Answer::how)),
    })
}

fn said(answer: &Answer, expected: &str) -> Said {
    // A text beside an alias is what a CA finds.
    let texts: Vec<Text> = answer.at(expected, Kind::Txt).filter_map(Text::of).collect();
    match answer.aliases(expected).first() {
        _ if !texts.is_empty() => Said::Texts(texts),
        Some(first) => Said::Alias(first.clone()),
        None => Said::Nothing(answer.how()),
    }
}

/// The challenge name begins a zone of its own: it is delegated by NS.
fn by_servers(reader: &Reader<'_>, ask: &DelegationAsk, expected: &str, views: &Views<'_>) -> Option<Told> {
    let hosts: Vec<&str> = views.zone.servers.iter().map(|s| s.host.as_str()).collect();
    let lines = vec![format!("{expected} is delegated to {}", hosts.join(" and "))];
    let foreign = hosts.iter().find(|h| !name::within_any(h, &reader.ask.platform.suffixes));
    if let Some(theirs) = foreign {
        return Some(Told {
            astray: Astray::Servers,
            lines,
            ..Told::new(Reason::DelegationPointsElsewhere, (*theirs).to_owned())
        });
    }
    let mut told = match served(ask, views, expected) {
        Some(told) => told,
        None => Told::new(Reason::DelegationOkNs, expected),
    };
    told.lines.splice(0..0, lines);
    Some(told)
}

fn by_words(reader: &Reader<'_>, ask: &DelegationAsk, expected: &str, words: &[(Server, Said)]) -> Option<Told> {
    let speaking: Vec<&Said> = words.iter().map(|(_, s)| s).filter(|s| !matches!(s, Said::Silent(_))).collect();
    // What a CA asks for. An alias that a DNAME makes bears no signature of its own: asked for by type, some resolvers reject it.
    let resolved = reader.each_awake(expected, Kind::Txt)?;
    if speaking.is_empty() || lookup_failure::any_bogus(reader, expected, Kind::Txt, &resolved)? {
        return unreadable(reader, expected);
    }
    if let Some(text) = speaking.iter().find_map(|s| if let Said::Texts(t) = s { t.first() } else { None }) {
        return Some(Told::new(Reason::DelegationBlockedByTxt, text.shown.clone()));
    }
    let aliases: Vec<&String> =
        speaking.iter().filter_map(|s| if let Said::Alias(to) = s { Some(to) } else { None }).collect();
    let Some(first) = aliases.first() else { return delegation_hunt::missing(reader, ask, expected, None).map(found) };
    // One server that leads astray is what a CA may meet.
    let target = name::canonical(&ask.target);
    let odd = aliases.iter().find(|a| **a != &target).unwrap_or(first);
    let told = by_alias(reader, ask, expected, odd)?;
    if told.reason == Reason::DelegationOk && aliases.len() < speaking.len() {
        // On its way: some servers do not have it yet.
        let behind = words.iter().find(|(_, s)| matches!(s, Said::Nothing(_))).map_or("", |(s, _)| s.host.as_str());
        return Some(Told::new(Reason::DelegationMissing, behind.to_owned()));
    }
    Some(told)
}

fn found((reason, place): (Reason, String)) -> Told {
    Told::new(reason, place)
}

fn unreadable(reader: &Reader<'_>, expected: &str) -> Option<Told> {
    let resolvers = reader.each(expected, Kind::Txt)?;
    let gone = lookup_failure::unregistered(reader)? && resolvers.iter().any(|(_, a)| a.definite());
    let mut failure = lookup_failure::explain(reader, expected, Kind::Txt, &resolvers)?;
    if gone && failure.reason != Reason::ResolverUnavailable {
        failure.reason = Reason::DomainNotRegistered;
    }
    let place = if gone { reader.ask.registered_domain.clone() } else { failure.zone.clone() };
    Some(Told { failure: Some(failure), ..Told::new(Reason::DnsLookupFailed, place) }).map(|mut told| {
        told.reason = told.failure.as_ref().map_or(told.reason, |f| f.reason);
        told
    })
}

/// Follows the alias at the challenge name to its end.
fn by_alias(reader: &Reader<'_>, ask: &DelegationAsk, expected: &str, first: &str) -> Option<Told> {
    let target = name::canonical(&ask.target);
    let mut path = vec![first.to_owned()];
    let mut endless = first == expected;
    while path.last() != Some(&target) && !endless {
        let at = path.last().map_or(first, String::as_str);
        // What an alias into our own zones leads to is ours to know.
        if name::within_any(at, &reader.ask.platform.suffixes) {
            break;
        }
        let Some(next) = reader.any(at, Kind::Cname)?.aliases(at).first().cloned() else { break };
        endless = next == expected || path.contains(&next) || path.len() >= MAX_ALIASES;
        path.push(next);
    }
    let last = path.last().cloned().unwrap_or_default();
    let lines =
        if path.len() > 1 { vec![format!("our resolvers: {expected} → {}", path.join(" → "))] } else { Vec::new() };
    if last == target {
        let told = if ask.values.is_empty() { None } else { served(ask, &reader.authority(&target, Kind::Txt)?, &target) };
        let told = told.unwrap_or_else(|| Told::new(Reason::DelegationOk, target));
        return Some(Told { lines: [lines, told.lines].concat(), ..told });
    }
    let wildcard = name::parent(expected).map(|parent| hints::wildcard_alias_beneath(reader, parent));
    if wildcard.unwrap_or(Some(None))?.as_deref() == Some(first) {
        return delegation_hunt::missing(reader, ask, expected, Some(first)).map(found);
    }
    let foreign = path.iter().find(|n| {
        ask.foreign_targets.iter().any(|f| name::canonical(f) == **n)
            // Every tenant has a name of its own beneath the validation zone.
            || name::parent(&target).is_some_and(|zone| !zone.is_empty() && name::within(n, zone) && *n != zone)
    });
    if let Some(theirs) = foreign {
        return Some(Told { lines, ..Told::new(Reason::DelegationWrongTenant, theirs.clone()) });
    }
    let appended =
        routing_walk::has_zone_appended(&last, &[target], reader.ask.hostname.as_str(), &reader.ask.registered_domain);
    let astray = match (endless, appended) {
        (true, _) => Astray::Endless,
        (_, true) => Astray::ZoneAppended,
        _ => Astray::Name,
    };
    Some(Told { astray, lines, ..Told::new(Reason::DelegationPointsElsewhere, last) })
}

/// What keeps the values of the running order from being seen at every server of ours; none when they are.
fn served(ask: &DelegationAsk, views: &Views<'_>, at: &str) -> Option<Told> {
    if ask.values.is_empty() {
        return None;
    }
    let mut lines = Vec::new();
    let mut served: Vec<Vec<&String>> = Vec::new();
    let mut behind = None;
    for (server, answer) in &views.answers {
        let texts: Option<Vec<Text>> =
            answer.filter(|a| a.definite() && a.authoritative).map(|a| a.at(at, Kind::Txt).filter_map(Text::of).collect());
        let Some(texts) = texts else {
            let how = answer.map_or_else(|| "could not be asked".to_owned(), Answer::how);
            lines.push(format!("{}: TXT {at}: {how}", server.host));
            behind = behind.or(Some(server.host.clone()));
            continue;
        };
        let here: Vec<&String> = ask.values.iter().filter(|v| texts.iter().any(|t| t.value == **v)).collect();
        lines.push(format!("{}: {} of {} values at {at}", server.host, here.len(), ask.values.len()));
        served.push(here);
    }
    let told = |reason, place: &str| Some(Told { lines: lines.clone(), ..Told::new(reason, place) });
    if served.is_empty() {
        return told(Reason::PlatformTargetBroken, at);
    }
    let anywhere = ask.values.iter().filter(|v| served.iter().any(|s| s.contains(v))).count();
    let everywhere = ask.values.iter().filter(|v| served.iter().all(|s| s.contains(v))).count();
    match () {
        () if everywhere == ask.values.len() && behind.is_none() => None,
        () if everywhere == anywhere && anywhere > 0 && behind.is_none() => {
            told(Reason::ChallengeTxtIncomplete, &(ask.values.len() - anywhere).to_string())
        }
        () => told(Reason::ChallengeTxtNotVisible, behind.as_deref().unwrap_or(at)),
    }
}
