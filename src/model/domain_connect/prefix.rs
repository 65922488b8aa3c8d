//! Where a provider is reached: what a zone's TXT record says, and the addresses of its settings.

use serde::{Deserialize, Serialize};

use crate::model::hostname::Hostname;

/// The longest path that is taken.
const LONGEST_PATH: usize = 400;

/// An https address of a host's name and a path: no port, no user, no query, no fragment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The host, in lower case.
    pub host: String,
    /// The path, without a slash at its end; empty, or with one at its beginning.
    pub path: String,
}

impl Endpoint {
    /// Reads `host` or `host/path`.
    fn bare(text: &str) -> Option<Endpoint> {
        let (host, path) = match text.find('/') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let path = path.trim_end_matches('/');
        (is_host(host) && is_path(path)).then(|| Endpoint { host: host.to_ascii_lowercase(), path: path.to_owned() })
    }

    /// Reads an address that begins with `https://`.
    pub fn https(text: &str) -> Option<Endpoint> {
        let (scheme, rest) = text.split_at_checked("https://".len())?;
        scheme.eq_ignore_ascii_case("https://").then(|| Endpoint::bare(rest))?
    }

    /// The path of something beneath it.
    pub fn beneath(&self, rest: &str) -> String {
        format!("{}/{rest}", self.path)
    }

    /// The registered domain of its host.
    pub fn registered_domain(&self) -> String {
        Hostname::trusted(&self.host).registered_domain().to_owned()
    }
}

/// What a zone's record says: the beginning of the settings' address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(pub Endpoint);

impl Prefix {
    /// Reads the text of the record; `None` for everything that is more, or less, than a host and a path.
    pub fn read(text: &str) -> Option<Prefix> {
        Endpoint::bare(text.trim_matches([' ', '\t'])).map(Prefix)
    }

    /// The path of the settings for a zone.
    pub fn settings_path(&self, zone: &str) -> String {
        self.0.beneath(&format!("v2/{zone}/settings"))
    }
}

/// Whether a text is the name of a host on the public Internet as far as its letters tell: at least two labels, the last one
/// no number, so that no address passes for a name.
fn is_host(text: &str) -> bool {
    let label = |l: &str| {
        let plain = l.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        (1..=63).contains(&l.len()) && plain && !l.starts_with('-') && !l.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let number = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X");
    text.len() <= 253 && text.contains('.') && !number && text.split('.').all(label)
}

/// Whether a path has nothing in it that a server or a browser may read in two ways.
pub fn is_path(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.' | b'~');
    let steps = text.split('/').skip(1).all(|step| !step.is_empty() && step != "." && step != "..");
    text.is_empty() || (text.starts_with('/') && text.len() <= LONGEST_PATH && text.bytes().all(plain) && steps)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_as_providers_have_them_are_read() {
        for (text, host, path) in [
            ("domainconnect.virtucondomains.example", "domainconnect.virtucondomains.example", ""),
            ("api.cloudflare.com/client/v4/dns/domainconnect", "api.cloudflare.com", "/client/v4/dns/domainconnect"),
            ("API.Example.com/dc/", "api.example.com", "/dc"),
        ] {
            assert_eq!(Prefix::read(text), Some(Prefix(Endpoint { host: host.into(), path: path.into() })), "{text}");
        }
        let read = Prefix::read("connect.example/dc").unwrap();
        assert_eq!(read.settings_path("acme.com"), "/dc/v2/acme.com/settings");
    }

    #[test]
    fn whatever_is_more_than_a_host_and_a_path_is_refused() {
        for text in [
            "",
            "localhost",
            "https://connect.example",
            "connect.example:8443",
            "user@connect.example",
            "connect.example?x",
            "connect.example#x",
            "connect.example/../admin",
            "connect.example//x",
            "connect.example/%2e%2e",
            "connect.example/a b",
            "127.0.0.1",
            "0x7f.0.0.1",
            "2130706433",
            "1.2.3.0x4",
            "[::1]",
            "connect.example\\@evil.example",
            "-a.example",
            "a..example",
            "connect.example/\u{e9}",
            "connect.example/\n",
        ] {
            assert_eq!(Prefix::read(text), None, "{text:?}");
        }
        for text in
            ["http://a.example", "javascript:alert(1)", "//a.example", "https:/a.example", "https://", "data:text/html,x"]
        {
            assert_eq!(Endpoint::https(text), None, "{text:?}");
        }
        assert!(Endpoint::https("HTTPS://a.example/sync").is_some());
    }

    proptest! {
        #[test]
        fn what_is_read_is_the_address_it_was_read_from(text in "\\PC{0,80}") {
            if let Some(e) = Endpoint::https(&format!("https://{text}")) {
                let again = format!("{}{}", e.host, e.path);
                prop_assert!(text.trim_end_matches('/').eq_ignore_ascii_case(&again));
                prop_assert!(again.bytes().all(|b| b.is_ascii_graphic() && !b"\"'<>&?#@:\\%".contains(&b)));
            }
        }
    }
}
