//! Why a look-up failed, and whose fault that is.

use std::net::IpAddr;

use crate::model::look::{Answer, Kind, Observer, Outcome, name};
use crate::model::reason::Reason;

use super::reader::{Reader, Server, Views};

/// A failed look-up, explained.
#[derive(Debug)]
pub struct Failure {
    /// The reason.
    pub reason: Reason,
    /// The zone it is about.
    pub zone: String,
    /// A server that sits at a private address, if that is the reason.
    pub private: Option<Server>,
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
        observed: resolvers.iter().map(|(r, a)| format!("resolver {r}: {kind} {name}: {}", a.how())).collect(),
        seen_by: resolvers.iter().map(|(r, _)| format!("resolver {r}")).collect(),
    };
    if resolvers_down(reader)? {
        failure.reason = Reason::ResolverUnavailable;
        return Some(failure);
    }
    if resolvers.iter().any(|(_, a)| a.bogus()) {
        failure.reason = Reason::DnssecBogus;
        return Some(failure);
    }
    let views = reader.authority(name, kind)?;
    Some(with_servers(failure, &views, name, kind))
}

/// Adds what the zone's own servers say to a failure.
pub fn with_servers(mut failure: Failure, views: &Views<'_>, name: &str, kind: Kind) -> Failure {
    failure.zone.clone_from(&views.zone.apex);
    for (server, answer) in &views.answers {
        failure.seen_by.push(server.host.clone());
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

/// What to do about a failed look-up of `name`, in one sentence.
pub fn advice(failure: &Failure, name: &str) -> String {
    let zone = &failure.zone;
    match failure.reason {
        Reason::ResolverUnavailable => {
            "Our own DNS service is not answering at the moment; this is our problem and you need not change anything."
                .to_owned()
        }
        Reason::DnssecBogus => format!(
            "The DNSSEC signatures of {zone} do not check out, so secure resolvers and certificate authorities reject every \
             answer; repair the signatures or remove the DS record at your registrar."
        ),
        Reason::ZoneLame => format!(
            "The domain {zone} is delegated to name servers that refuse to answer for it; set the name servers your DNS \
             provider gave you at your registrar, or recreate the zone there."
        ),
        Reason::NameserverNotPublic => {
            let at = failure.private.as_ref().and_then(|s| s.address).map(|a| format!(" {a}")).unwrap_or_default();
            format!(
                "{zone} is delegated to a name server at the private address{at}, which the internet cannot reach; remove \
                 that delegation or use a public name server."
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
