//! The URL of a webhook, read strictly: what it says is where the request goes, whoever reads it.
//!
//! Everything that two readers could take for two places is refused: user names, backslashes, blanks, percent signs in the
//! host, addresses in any spelling, ports that no web server has. What the host leads to is judged at every delivery anew.

use std::fmt;
use std::net::IpAddr;

use super::hostname::Hostname;

/// What may be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRules {
    /// Ports of the public web.
    pub ports: Vec<u16>,
    /// A sandbox: plain HTTP, any port, addresses of this machine.
    pub loopback: bool,
}

impl Default for HookRules {
    fn default() -> Self {
        HookRules { ports: vec![443, 8443], loopback: false }
    }
}

/// The host of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookHost {
    /// A name, looked up at every delivery.
    Name(Hostname),
    /// An address of this machine, in a sandbox.
    Address(IpAddr),
}

/// A URL that may be asked. Its path may hold what only its owner should know, and is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct HookUrl {
    /// Whether over TLS.
    pub tls: bool,
    /// The host.
    pub host: HookHost,
    /// The port.
    pub port: u16,
    /// Path and query, as written.
    pub path: String,
}

impl fmt::Debug for HookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HookUrl({})", self.authority())
    }
}

/// Why a URL is not asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookUrlError {
    /// Too long, or with characters that have no place in a URL.
    #[error("a URL has at most 2000 visible ASCII characters, without blanks, quotes and backslashes")]
    Characters,
    /// Another scheme.
    #[error("the URL must begin with https://")]
    Scheme,
    /// A user name or password.
    #[error("the URL has a user name before its host; requests are signed instead")]
    User,
    /// A fragment.
    #[error("the URL has a fragment (#…), which is never sent; leave it out")]
    Fragment,
    /// No host name.
    #[error("the URL must name its host, such as hooks.acme.com; addresses are not asked, in no spelling")]
    Host,
    /// A port.
    #[error("port {0} is none that webhooks are sent to; use one of {1}")]
    Port(String, String),
}

impl HookUrl {
    /// Reads a URL.
    pub fn read(text: &str, rules: &HookRules) -> Result<HookUrl, HookUrlError> {
        let plain = |b: u8| b.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&b);
        if text.len() > 2000 || !text.bytes().all(plain) {
            return Err(HookUrlError::Characters);
        }
        let lower = text.to_ascii_lowercase();
        let (tls, rest) = match lower.split_once("://") {
            Some(("https", _)) => (true, &text["https://".len()..]),
            Some(("http", _)) if rules.loopback => (false, &text["http://".len()..]),
            _ => return Err(HookUrlError::Scheme),
        };
        if rest.contains('#') {
            return Err(HookUrlError::Fragment);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(HookUrlError::User);
        }
        let (host, port) = split_port(authority, if tls { 443 } else { 80 }, rules)?;
        let host = read_host(host, rules)?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(HookUrl { tls, host, port, path })
    }

    /// What the request says in `Host`.
    pub fn authority(&self) -> String {
        let host = match &self.host {
            HookHost::Name(name) => name.to_string(),
            HookHost::Address(IpAddr::V6(v6)) => format!("[{v6}]"),
            HookHost::Address(address) => address.to_string(),
        };
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

fn split_port<'a>(authority: &'a str, usual: u16, rules: &HookRules) -> Result<(&'a str, u16), HookUrlError> {
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = authority[after_brackets..].find(':').map(|at| at + after_brackets) else {
        return Ok((authority, usual));
    };
    let (host, text) = (&authority[..colon], &authority[colon + 1..]);
    let ports = || rules.ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let refused = || HookUrlError::Port(text.chars().take(20).collect(), ports());
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    let port: u16 = if digits { text.parse().map_err(|_| refused())? } else { return Err(refused()) };
    if rules.loopback || rules.ports.contains(&port) { Ok((host, port)) } else { Err(refused()) }
}

fn read_host(text: &str, rules: &HookRules) -> Result<HookHost, HookUrlError> {
    if rules.loopback {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let address = if text == "localhost" { Ok(IpAddr::from([127, 0, 0, 1])) } else { bare.parse::<IpAddr>() };
        if let Ok(address) = address
            && address.is_loopback()
        {
            return Ok(HookHost::Address(address));
        }
    }
    let name = text.to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let labels: Vec<&str> = name.split('.').collect();
    // A host that ends in a number is an address to some readers, in decimal, octal or hexadecimal.
    let last = labels.last().copied().unwrap_or_default();
    let number = last.starts_with(|c: char| c.is_ascii_digit());
    if name.len() > 253 || labels.len() < 2 || number || !labels.iter().all(|one| label(one)) {
        return Err(HookUrlError::Host);
    }
    Ok(HookHost::Name(Hostname::trusted(&name)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<HookUrl, HookUrlError> {
        HookUrl::read(text, &HookRules::default())
    }

    #[test]
    fn the_public_web_is_asked_where_it_says() {
        let url = read("https://Hooks.Acme.com/in?x=1").unwrap();
        assert_eq!((url.tls, url.port, url.path.as_str()), (true, 443, "/in?x=1"));
        assert_eq!(url.authority(), "hooks.acme.com");
        assert_eq!(read("HTTPS://hooks.acme.com:8443").unwrap().authority(), "hooks.acme.com:8443");
        assert_eq!(read("https://hooks.acme.com?x").unwrap().path, "/?x");
    }

    #[test]
    fn hostile_spellings_are_refused() {
        for (text, why) in [
            ("http://hooks.acme.com/", HookUrlError::Scheme),
            ("ftp://hooks.acme.com/", HookUrlError::Scheme),
            ("file:///etc/passwd", HookUrlError::Scheme),
            ("//hooks.acme.com/", HookUrlError::Scheme),
            ("https:hooks.acme.com", HookUrlError::Scheme),
            ("", HookUrlError::Scheme),
            ("https://user:pw@hooks.acme.com/", HookUrlError::User),
            ("https://hooks.acme.com@127.0.0.1/", HookUrlError::User),
            ("https://hooks.acme.com/#x", HookUrlError::Fragment),
            ("https://hooks.acme.com\\@127.0.0.1/", HookUrlError::Characters),
            ("https://hooks.acme.com/ x", HookUrlError::Characters),
            ("https://hooks.acme.com/\r\nX: y", HookUrlError::Characters),
            ("https://b\u{fc}cher.de/", HookUrlError::Characters),
            ("https://127.0.0.1/", HookUrlError::Host),
            ("https://2130706433/", HookUrlError::Host),
            ("https://0x7f000001/", HookUrlError::Host),
            ("https://0x7f.1/", HookUrlError::Host),
            ("https://0177.0.0.1/", HookUrlError::Host),
            ("https://127.1/", HookUrlError::Host),
            ("https://127.0.0.1./", HookUrlError::Host),
            ("https://[::1]/", HookUrlError::Host),
            ("https://[::ffff:10.0.0.1]/", HookUrlError::Host),
            ("https://[::ffff:7f00:1]:443/", HookUrlError::Host),
            ("https://localhost/", HookUrlError::Host),
            ("https://intranet/", HookUrlError::Host),
            ("https://%31%32%37.0.0.1/", HookUrlError::Host),
            ("https:///path", HookUrlError::Host),
            ("https://a..acme.com/", HookUrlError::Host),
            ("https://hooks.acme.com:5432/", HookUrlError::Port("5432".into(), "443, 8443".into())),
            ("https://hooks.acme.com:80/", HookUrlError::Port("80".into(), "443, 8443".into())),
            ("https://hooks.acme.com:0443/", HookUrlError::Port("0443".into(), "443, 8443".into())),
            ("https://hooks.acme.com:/", HookUrlError::Port(String::new(), "443, 8443".into())),
            ("https://hooks.acme.com:65979/", HookUrlError::Port("65979".into(), "443, 8443".into())),
            ("https://hooks.acme.com:443:443/", HookUrlError::Port("443:443".into(), "443, 8443".into())),
        ] {
            assert_eq!(read(text), Err(why), "{text}");
        }
        assert_eq!(read(&format!("https://acme.com/{}", "a".repeat(2000))), Err(HookUrlError::Characters));
    }

    #[test]
    fn a_sandbox_may_ask_itself_and_nobody_else_inside() {
        let rules = HookRules { loopback: true, ..HookRules::default() };
        assert_eq!(HookUrl::read("http://127.0.0.1:9000/in", &rules).unwrap().authority(), "127.0.0.1:9000");
        assert_eq!(HookUrl::read("http://localhost:9000/in", &rules).unwrap().port, 9000);
        assert_eq!(HookUrl::read("http://[::1]/", &rules).unwrap().authority(), "[::1]");
        for text in ["http://10.0.0.1/", "http://169.254.169.254/", "http://[fd00::1]/", "http://0.0.0.0/"] {
            assert_eq!(HookUrl::read(text, &rules), Err(HookUrlError::Host), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_is_one_host_with_nothing_around_it(text in "https://[ -~]{0,60}|\\PC{0,60}") {
            if let Ok(url) = read(&text) {
                let HookHost::Name(name) = &url.host else { panic!("an address of {text:?}") };
                prop_assert!(name.as_str().contains('.') && name.as_str().parse::<std::net::IpAddr>().is_err());
                prop_assert!(url.path.starts_with('/') && url.path.bytes().all(|b| b.is_ascii_graphic()));
                let again = read(&format!("https://{}{}", url.authority(), url.path)).unwrap();
                prop_assert_eq!(again, url);
            }
        }
    }
}
