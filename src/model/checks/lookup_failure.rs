//! Why a look-up failed, and whose fault that is.

use std::net::IpAddr;

use crate::model::look::{Answer, Kind, Observer, Outcome, extended_error, name};
use crate::model::reason::Reason;

use super::reader::{Reader, Server, Views};

/// A failed look-up, explained.
#[derive(Debug)]
pub struct Failure {
    /// The reason.
    pub reason: Reason,
    /// The zone it is about.
    pub zone: String,
    /// What is wrong with the signatures, where a resolver says it.
    pub broken: Option<&'static str>,
    /// A server that sits at a private address, if that is the reason.
    pub private: Option<Server>,
    /// The zone's own servers.
    pub servers: Vec<String>,
    /// One line an observer.
    pub observed: Vec<String>,
    /// Who was asked.
    pub seen_by: Vec<String>,
}

/// Whether the internet can reach an address (RFC 6890). The documentation ranges count as reachable: they occur in examples,
/// tests and the sandbox only, where they stand for real ones.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => {
            let [x, y, ..] = a.octets();
            !(a.is_private()
                || a.is_loopback()
                || a.is_link_local()
                || a.is_multicast()
                || a.is_broadcast()
                || x == 0
                || x >= 240
                || (x == 100 && (64..128).contains(&y))
                || (x == 198 && (y == 18 || y == 19))
                || a.octets()[..3] == [192, 0, 0])
        }
        IpAddr::V6(a) => {
            let first = a.segments()[0];
            if let Some(v4) = a.to_ipv4_mapped() {
                return is_public(IpAddr::V4(v4));
            }
            !(a.is_loopback()
                || a.is_unspecified()
                || a.is_multicast()
                || first & 0xfe00 == 0xfc00
                || first & 0xffc0 == 0xfe80)
        }
    }
}

/// Whether no resolver of ours answers anything: not this name, not a control name, nothing else.
pub fn resolvers_down(reader: &Reader<'_>) -> Option<bool> {
    let heard =
        reader.seen.observations.iter().any(|o| matches!(o.probe.observer, Observer::Resolver(_)) && o.answer.definite());
    if heard {
        return Some(false);
    }
    let controls: Vec<_> =
        reader.ask.platform.control_names.iter().map(|c| reader.each(&name::canonical(c), Kind::A)).collect();
    let controls: Vec<_> = controls.into_iter().collect::<Option<_>>()?;
    // Had one of them been answered, it would have been heard.
    Some(!controls.is_empty())
}

/// Those of `resolvers` that are down: silent on everything, even on a control name, while another one answers.
pub fn down<'a>(reader: &Reader<'_>, resolvers: &[&'a str]) -> Option<Vec<&'a str>> {
    if !reader.resolvers().iter().any(|r| reader.heard(r)) {
        return Some(Vec::new());
    }
    let controls: Vec<String> = reader.ask.platform.control_names.iter().map(|c| name::canonical(c)).collect();
    let suspects = resolvers.iter().filter(|r| !reader.heard(r) && !controls.is_empty());
    let asked: Vec<(&str, Vec<Option<&Answer>>)> =
        suspects.map(|r| (*r, controls.iter().map(|c| reader.from(r, c, Kind::A)).collect())).collect();
    let mut down = Vec::new();
    for (resolver, answers) in asked {
        let answers: Vec<&Answer> = answers.into_iter().collect::<Option<_>>()?;
        if answers.iter().all(|a| !a.definite()) {
            down.push(resolver);
        }
    }
    Some(down)
}

/// Whether so few of our resolvers are up that what they say is no ground for anything: less than half.
pub const fn too_few(up: usize, all: usize) -> bool {
    up * 2 < all
}

/// Whether a resolver's failure is a failed validation. It may say so itself (RFC 8914). Where it does not say why, it is asked
/// again without the check: if it answers then, and somebody vouches for signatures of a domain on the way, it is one.
pub fn bogus(reader: &Reader<'_>, resolver: &str, name: &str, kind: Kind, answer: &Answer) -> Option<bool> {
    if answer.bogus() {
        return Some(true);
    }
    if answer.outcome != Outcome::ServFail || answer.ede.iter().any(|code| extended_error::is_unreachable(*code)) {
        return Some(false);
    }
    let unchecked = reader.unchecked(resolver, name, kind)?;
    if !unchecked.definite() {
        return Some(false);
    }
    // A server that failed once and is well again looks the same; but what nobody signs cannot be bogus.
    let mut domains: Vec<String> = Vec::new();
    for at in std::iter::once(name.to_owned()).chain(unchecked.aliases(name)).take(MAX_VOUCHED) {
        let domain = reader.registered_domain(&at);
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    let vouched: Vec<_> =
        domains.iter().map(|d| Some(reader.unchecked(resolver, d, Kind::DS)?.at(d, Kind::DS).count() > 0)).collect();
    Some(vouched.into_iter().collect::<Option<Vec<bool>>>()?.contains(&true))
}

/// On how many names of an alias path signatures are looked for.
const MAX_VOUCHED: usize = 4;

/// Whether any of these words of resolvers is a failed validation. One is enough: every certificate authority validates, whatever
/// those of our resolvers say that do not.
pub fn any_bogus(reader: &Reader<'_>, name: &str, kind: Kind, resolvers: &[(&str, &Answer)]) -> Option<bool> {
    let all: Vec<Option<bool>> = resolvers.iter().map(|(r, a)| bogus(reader, r, name, kind, a)).collect();
    Some(all.into_iter().collect::<Option<Vec<bool>>>()?.contains(&true))
}

/// Whether the registered domain does not exist. `None` while that is not known.
pub fn unregistered(reader: &Reader<'_>) -> Option<bool> {
    Some(reader.any(&reader.ask.registered_domain, Kind::Ns)?.outcome == Outcome::NxDomain)
}

/// A server that answers but will not speak for the zone.
fn lame(answer: &Answer) -> bool {
    match answer.outcome {
        Outcome::Refused | Outcome::Other(9) => true,
        Outcome::NoError | Outcome::NxDomain => !answer.authoritative,
        _ => false,
    }
}

/// Explains why `name` could not be read, from what the resolvers and the zone's own servers said.
pub fn explain(reader: &Reader<'_>, name: &str, kind: Kind, resolvers: &[(&str, &Answer)]) -> Option<Failure> {
    let mut failure = Failure {
        reason: Reason::DnsLookupFailed,
        zone: reader.registered_domain(name),
        private: None,
        servers: Vec::new(),
        broken: resolvers.iter().flat_map(|(_, a)| &a.ede).find_map(|code| broken_signatures(*code)),
        observed: resolvers.iter().map(|(r, a)| format!("resolver {r}: {kind} {name}: {}", a.how())).collect(),
        seen_by: resolvers.iter().map(|(r, _)| reader.resolver_label(r)).collect(),
    };
    if resolvers_down(reader)? {
        failure.reason = Reason::ResolverUnavailable;
        return Some(failure);
    }
    if any_bogus(reader, name, kind, resolvers)? {
        failure.reason = Reason::DnssecBogus;
        for ((resolver, answer), line) in resolvers.iter().zip(&mut failure.observed) {
            if answer.outcome == Outcome::ServFail && !answer.bogus() && reader.unchecked(resolver, name, kind)?.definite() {
                line.push_str(", but an answer when it is told not to check signatures");
            }
        }
        return Some(failure);
    }
    let mute: Vec<&str> = resolvers.iter().filter(|(_, a)| !a.definite()).map(|(r, _)| *r).collect();
    if too_few(reader.resolvers().len() - down(reader, &mute)?.len(), reader.resolvers().len()) {
        failure.reason = Reason::ResolverUnavailable;
        return Some(failure);
    }
    let views = reader.authority(name, kind)?;
    Some(with_servers(failure, &views, name, kind))
}

/// What is wrong with a zone's signatures, as its owner can mend it.
pub fn broken_signatures(code: u16) -> Option<&'static str> {
    Some(match code {
        7 => "its signatures have expired",
        8 | 25 => "its signatures are not valid at this time",
        9 => "the DS record at your registrar names a key that is not in use",
        10 | 11 => "its answers come without valid signatures",
        12 => "the proof that a record does not exist is missing",
        _ => return None,
    })
}

/// Adds what the zone's own servers say to a failure.
pub fn with_servers(mut failure: Failure, views: &Views<'_>, name: &str, kind: Kind) -> Failure {
    failure.zone.clone_from(&views.zone.apex);
    for (server, answer) in &views.answers {
        failure.seen_by.push(server.host.clone());
        failure.servers.push(server.host.clone());
        failure.observed.push(match (answer, server.address) {
            (Some(a), _) => format!("{}: {kind} {name}: {}", server.host, a.how()),
            (None, Some(address)) => format!("{}: not asked, {address} is not a public address", server.host),
            (None, None) => format!("{}: has no address", server.host),
        });
    }
    let servers = &views.answers;
    if !servers.is_empty() && servers.iter().all(|(s, _)| s.private()) {
        failure.reason = Reason::NameserverNotPublic;
        failure.private = servers.first().map(|(s, _)| s.clone());
    } else if !servers.is_empty() && servers.iter().all(|(_, a)| a.is_some_and(lame)) {
        failure.reason = Reason::ZoneLame;
    }
    failure
}

/// What to do about broken signatures.
pub fn bogus_advice(zone: &str, broken: Option<&str>) -> String {
    let broken = broken.unwrap_or("its signatures do not fit");
    format!(
        "{zone} is signed with DNSSEC, but {broken}, so certificate authorities and many visitors reject every answer; have \
         your DNS provider sign {zone} anew, or remove its DS record at your registrar, which switches DNSSEC off."
    )
}

/// What to do about a failed look-up of `name`, in one sentence.
pub fn advice(failure: &Failure, name: &str) -> String {
    let zone = &failure.zone;
    match failure.reason {
        Reason::ResolverUnavailable => {
            "Our own DNS service is not answering at the moment; this is our problem and you need not change anything."
                .to_owned()
        }
        Reason::DnssecBogus => bogus_advice(zone, failure.broken),
        Reason::ZoneLame => format!(
            "The name servers of {zone} ({}) refuse to answer for it; at your registrar, set the name servers that your DNS \
             provider gave you, or create {zone} anew at that provider.",
            failure.servers.join(" and ")
        ),
        Reason::NameserverNotPublic => {
            let at = failure.private.as_ref().and_then(|s| s.address).map(|a| format!(" {a}")).unwrap_or_default();
            format!(
                "{zone} uses a name server at the private address{at}, which the internet cannot reach; remove the NS records of \
                 {zone} that name it, or use a public name server."
            )
        }
        _ => format!(
            "The name servers of {zone} gave an error or no answer for {name}, so we could not read your record; we will \
             retry, and if it persists ask your DNS provider."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn reserved_addresses_are_told_apart() {
        for inside in
            ["10.1.2.3", "192.168.0.1", "172.16.9.9", "127.0.0.1", "169.254.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1"]
        {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
        for inside in ["::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "ff02::1", "::"] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["9.9.9.9", "192.0.2.53", "203.0.113.1", "100.128.0.1", "2001:db8::1", "2620:fe::fe"] {
            assert!(is_public(outside.parse().unwrap()), "{outside}");
        }
    }
}
