//! What is asked for, and where an answer sends whoever asked: as a CA follows it.

use std::fmt;

use reqwest::Url;

use super::ReachSettings;
use crate::model::hostname::Hostname;

/// A path at a public name, in plain HTTP or over TLS.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Whether over TLS.
    pub tls: bool,
    /// The name.
    pub host: Hostname,
    /// The path, with its query if it has one.
    pub path: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.tls { "https" } else { "http" }, self.host, self.path)
    }
}

/// Where an answer sends whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// To a place that a CA asks, too.
    To(Place),
    /// To one that it does not.
    Astray {
        /// What the answer said, cut to what can be shown.
        location: String,
        /// Why a CA does not go there.
        why: &'static str,
    },
}

/// Longer than any place that a CA is sent to.
const LONGEST: usize = 2_000;
/// Of what was said instead of a place, so much is shown.
const SHOWN: usize = 120;

/// Reads where an answer from `from` sends to: by http or https, at their usual ports, to a name.
pub(super) fn sent(from: &Place, location: &str, ports: &ReachSettings) -> Sent {
    let astray = |why| Sent::Astray { location: shown(location), why };
    if location.len() > LONGEST {
        return astray("the address is too long");
    }
    let to = Url::parse(&from.to_string()).and_then(|base| base.join(location));
    let Ok(to) = to else { return astray("that is no address") };
    let tls = match to.scheme() {
        "http" => false,
        "https" => true,
        _ => return astray("only http and https are followed"),
    };
    let usual = if tls { ports.https_port } else { ports.http_port };
    if to.port().is_some_and(|port| port != usual) {
        return astray("only the usual ports 80 and 443 are followed");
    }
    let Some(host) = to.domain().map(|host| host.trim_end_matches('.')).filter(|host| is_name(host)) else {
        return astray("only a redirect to a hostname is followed");
    };
    let path = to.query().map_or_else(|| to.path().to_owned(), |query| format!("{}?{query}", to.path()));
    Sent::To(Place { tls, host: Hostname::trusted(host), path })
}

fn is_name(host: &str) -> bool {
    let label =
        |l: &str| (1..=63).contains(&l.len()) && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    host.len() <= 253 && host.contains('.') && host.split('.').all(label)
}

/// Bytes of a stranger, as one line that can be shown.
pub(super) fn shown(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() || c.is_whitespace() { ' ' } else { c }).collect();
    let words: Vec<&str> = line.split(' ').filter(|w| !w.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from() -> Place {
        Place { tls: false, host: Hostname::trusted("shop.example.com"), path: "/.well-known/x/tok".to_owned() }
    }

    fn to(location: &str) -> String {
        match sent(&from(), location, &ReachSettings::default()) {
            Sent::To(place) => place.to_string(),
            Sent::Astray { why, .. } => why.to_owned(),
        }
    }

    #[test]
    fn redirects_are_read_as_a_ca_follows_them() {
        for (location, expected) in [
            ("https://shop.example.com/.well-known/x/tok", "https://shop.example.com/.well-known/x/tok"),
            ("https://shop.example.com:443/a", "https://shop.example.com/a"),
            ("HTTP://WWW.Example.Com:80/a?b=c#d", "http://www.example.com/a?b=c"),
            ("//www.example.com/a", "http://www.example.com/a"),
            ("/login", "http://shop.example.com/login"),
            ("other", "http://shop.example.com/.well-known/x/other"),
            ("https://user:word@shop.example.com/a", "https://shop.example.com/a"),
            ("https://münchen.example/a", "https://xn--mnchen-3ya.example/a"),
            ("https://shop.example.com:8443/", "only the usual ports 80 and 443 are followed"),
            ("http://shop.example.com:443/", "only the usual ports 80 and 443 are followed"),
            ("https://192.0.2.1/", "only a redirect to a hostname is followed"),
            ("https://[::1]/", "only a redirect to a hostname is followed"),
            ("https://localhost/", "only a redirect to a hostname is followed"),
            ("ftp://shop.example.com/", "only http and https are followed"),
            ("javascript:alert(1)", "only http and https are followed"),
            ("http://", "that is no address"),
        ] {
            assert_eq!(to(location), expected, "{location}");
        }
        assert_eq!(to(&format!("/{}", "a".repeat(3_000))), "the address is too long");
    }

    #[test]
    fn a_sandboxs_own_ports_stand_for_the_usual_ones() {
        let ports = ReachSettings { http_port: 8080, https_port: 8443, ..ReachSettings::default() };
        let sent = sent(&from(), "https://shop.example.com:8443/a", &ports);
        assert!(matches!(sent, Sent::To(place) if place.tls && place.path == "/a"));
    }

    proptest! {
        #[test]
        fn whatever_a_stranger_says_is_a_name_or_astray(location in ".{0,300}") {
            match sent(&from(), &location, &ReachSettings::default()) {
                Sent::To(place) => {
                    prop_assert!(is_name(place.host.as_str()) && place.path.starts_with('/'));
                    prop_assert!(!place.path.contains(['\r', '\n', ' ']));
                }
                Sent::Astray { location, .. } => {
                    prop_assert!(location.chars().count() <= SHOWN + 1 && !location.chars().any(char::is_control));
                }
            }
        }
    }
}
