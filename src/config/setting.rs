//! The types a value can have: how each is read from text, how its default is shown, what a wrong one is told.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// A type of values.
pub trait Setting: Sized {
    /// What a wrong value is told, such as `an address and port like 127.0.0.1:8080`.
    const EXPECTED: &'static str;

    /// Reads it.
    fn read(text: &str) -> Option<Self>;

    /// The text that reads as this value.
    fn show(&self) -> String;
}

macro_rules! by_from_str {
    ($($ty:ty: $expected:literal;)*) => {$(
        impl Setting for $ty {
            const EXPECTED: &'static str = $expected;
            fn read(text: &str) -> Option<Self> { text.parse().ok() }
            fn show(&self) -> String { self.to_string() }
        }
    )*};
}

by_from_str! {
    bool: "true or false";
    u16: "a whole number from 0 to 65535";
    u32: "a whole number from 0 up";
    u64: "a whole number from 0 up";
    SocketAddr: "an address and port like 127.0.0.1:8080 or [::1]:8080";
    IpAddr: "an IP address";
}

impl Setting for String {
    const EXPECTED: &'static str = "a text that is not empty";
    fn read(text: &str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| text.trim().to_owned())
    }
    fn show(&self) -> String {
        self.clone()
    }
}

impl Setting for PathBuf {
    const EXPECTED: &'static str = "a path";
    fn read(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| text.into())
    }
    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Setting for Duration {
    const EXPECTED: &'static str = "a time like 500ms, 30s, 5m, 3h or 7d";
    fn read(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().ok()?;
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        number.checked_mul(millis).map(Duration::from_millis)
    }
    fn show(&self) -> String {
        let millis = u64::try_from(self.as_millis()).unwrap_or(u64::MAX);
        let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
        let whole = units.iter().find(|(size, _)| millis % size == 0 && millis >= *size);
        whole.map_or_else(|| "0s".to_owned(), |(size, unit)| format!("{}{unit}", millis / size))
    }
}

impl<T: Setting> Setting for Vec<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    fn read(text: &str) -> Option<Self> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(T::read).collect()
    }
    fn show(&self) -> String {
        self.iter().map(T::show).collect::<Vec<_>>().join(", ")
    }
}

/// A URL of the web without path, query or fragment: what links are built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// The text, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nobody reads along on the way: https, or a name of this machine itself.
    pub fn is_private(&self) -> bool {
        let host = self.host();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        self.0.starts_with("https://") || host == "localhost" || address.is_ok_and(|ip| ip.is_loopback())
    }

    /// Its host, without port.
    pub fn host(&self) -> &str {
        let authority = self.0.split_once("://").map_or("", |(_, rest)| rest);
        match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => authority,
        }
    }
}

impl Setting for Origin {
    const EXPECTED: &'static str = "an origin like https://domains.example.com, without a path";
    fn read(text: &str) -> Option<Self> {
        let uri: http::Uri = text.trim().parse().ok()?;
        let known = matches!(uri.scheme_str(), Some("https" | "http"));
        let authority = uri.authority()?;
        let bare = uri.path() == "/" && uri.query().is_none() && !authority.as_str().contains('@');
        (known && bare)
            .then(|| Origin(format!("{}://{}", uri.scheme_str().unwrap_or_default(), authority).to_ascii_lowercase()))
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// A URL of the web with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebUrl(String);

impl WebUrl {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for WebUrl {
    const EXPECTED: &'static str = "a URL like https://acme-v02.api.letsencrypt.org/directory";
    fn read(text: &str) -> Option<Self> {
        let uri: http::Uri = text.trim().parse().ok()?;
        let known = matches!(uri.scheme_str(), Some("https" | "http")) && uri.authority().is_some();
        // It is shown and compared as it stands: a password has no place in it, and a fragment is never sent.
        let bare = !text.contains('#') && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        (known && bare).then(|| WebUrl(text.trim().to_owned()))
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// A host name of our own: a zone or a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsName(String);

impl DnsName {
    /// The name in lower case without trailing dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for DnsName {
    const EXPECTED: &'static str = "a DNS name like app.example.com (internationalised names in their xn-- form)";
    fn read(text: &str) -> Option<Self> {
        let name = text.trim().trim_end_matches('.').to_ascii_lowercase();
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        (name.len() <= 253 && name.split('.').all(label)).then_some(DnsName(name))
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}
