//! Where a hostname leads: the alias path and its end, as one vantage point sees it.

use std::net::IpAddr;

use crate::model::look::{Answer, Kind, name};

use super::reader::Reader;

/// The end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Addresses.
    Addresses(Vec<IpAddr>),
    /// Positively nothing.
    Empty,
    /// The path returns to itself.
    Loop,
    /// More aliases than are followed.
    TooLong,
    /// The look-up at the last name failed; `whole` when its aliases are known and only its addresses are not.
    Failed {
        /// Whether no further alias can hide behind the failure.
        whole: bool,
    },
}

/// A path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The aliases in order; the last one is where it ended.
    pub aliases: Vec<String>,
    /// How it ended.
    pub end: End,
    /// A CNAME and addresses were seen at the hostname itself.
    pub conflict: bool,
}

impl Path {
    /// The name at which it ended.
    pub fn last<'a>(&'a self, hostname: &'a str) -> &'a str {
        self.aliases.last().map_or(hostname, String::as_str)
    }
}

/// The path a resolver's two address answers show; walked alias by alias when neither shows it.
pub fn path(
    reader: &Reader<'_>,
    resolver: &str,
    hostname: &str,
    (a, aaaa): (&Answer, &Answer),
    limit: usize,
) -> Option<Path> {
    let told: Vec<&Answer> = [a, aaaa].into_iter().filter(|x| x.definite()).collect();
    let aliases = told.iter().map(|x| x.aliases(hostname)).max_by_key(Vec::len).unwrap_or_default();
    let addresses: Vec<IpAddr> = told.iter().flat_map(|x| x.addresses()).collect();
    let conflict = !aliases.is_empty()
        && told.iter().any(|x| [Kind::A, Kind::Aaaa].iter().any(|k| x.at(hostname, *k).next().is_some()));
    let path = |end| Some(Path { aliases: aliases.clone(), end, conflict });
    if circles(hostname, &aliases) {
        return path(End::Loop);
    }
    // One family that fails does not hide the other's addresses.
    if !addresses.is_empty() {
        return path(End::Addresses(addresses));
    }
    if told.len() == 2 {
        return path(End::Empty);
    }
    walk(reader, resolver, hostname, limit)
}

fn circles(hostname: &str, aliases: &[String]) -> bool {
    aliases.iter().enumerate().any(|(i, n)| n == hostname || aliases[..i].contains(n))
}

/// How many steps each resolver is asked for itself; what lies further on is the same for all, and asked of one.
const OWN_STEPS: usize = 3;

/// Follows the aliases one by one, for resolvers that hide them behind the failure of what they lead to.
fn walk(reader: &Reader<'_>, resolver: &str, hostname: &str, limit: usize) -> Option<Path> {
    let mut aliases: Vec<String> = Vec::new();
    loop {
        let at = aliases.last().map_or(hostname, String::as_str);
        let answer = match aliases.len() {
            0..OWN_STEPS => reader.awake(resolver, at, Kind::Cname)?,
            _ => reader.any(at, Kind::Cname)?,
        };
        let end = match answer.aliases(at).first() {
            _ if !answer.definite() => Some(End::Failed { whole: false }),
            None => Some(End::Failed { whole: true }),
            Some(next) => {
                aliases.push(next.clone());
                if circles(hostname, &aliases) {
                    Some(End::Loop)
                } else if aliases.len() > limit {
                    Some(End::TooLong)
                } else {
                    None
                }
            }
        };
        if let Some(end) = end {
            return Some(Path { aliases, end, conflict: false });
        }
    }
}

/// Whether `address` lies in `prefix`, written as `198.51.100.80/29`.
pub fn in_prefix(address: IpAddr, prefix: &str) -> bool {
    let Some((base, bits)) = prefix.split_once('/') else { return false };
    let (Ok(base), Ok(bits)) = (base.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    match (address, base) {
        (IpAddr::V4(a), IpAddr::V4(b)) if bits <= 32 => {
            let differ = a.to_bits() ^ b.to_bits();
            differ.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) if bits <= 128 => {
            let differ = a.to_bits() ^ b.to_bits();
            differ.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// Whether a target was pasted as a web address.
pub fn is_url(target: &str) -> bool {
    target.contains('/') || target.starts_with("http:") || target.starts_with("https:")
}

/// Whether `target` is one of `accepted` with the customer's own zone behind it.
pub fn has_zone_appended(target: &str, accepted: &[String], hostname: &str, top: &str) -> bool {
    name::climb(hostname)
        .take_while(|zone| name::within(zone, top))
        .any(|zone| accepted.iter().any(|a| target.strip_suffix(zone).is_some_and(|t| t.strip_suffix('.') == Some(a))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_hold_what_they_should() {
        let inside = |a: &str, p: &str| in_prefix(a.parse().unwrap(), p);
        assert!(inside("198.51.100.81", "198.51.100.80/29"));
        assert!(!inside("198.51.100.88", "198.51.100.80/29"));
        assert!(inside("2001:db8:cd::80", "2001:db8:cd::/48"));
        assert!(inside("9.9.9.9", "0.0.0.0/0"));
        assert!(!inside("9.9.9.9", "::/0"));
        assert!(!inside("9.9.9.9", "nonsense"));
        assert!(inside("9.9.9.9", "9.9.9.9/32"));
    }

    #[test]
    fn appended_zones_are_seen() {
        let accepted = ["edge.platform.example".to_owned()];
        let seen = |t: &str| has_zone_appended(t, &accepted, "shop.example.com", "example.com");
        assert!(seen("edge.platform.example.example.com"));
        assert!(seen("edge.platform.example.shop.example.com"));
        assert!(!seen("edge.platform.example"));
        assert!(!seen("xedge.platform.example.example.com"));
    }
}
