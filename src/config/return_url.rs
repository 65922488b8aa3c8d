//! Where a portal link may lead back to: the same origin, and a path that begins alike. What is not plain is refused.

use super::setting::{Origin, Setting};

/// More than any page of an application needs.
const LONGEST: usize = 2000;

/// One entry of the allow-list: an origin and the beginning of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnUrl {
    origin: Origin,
    /// Begins with a slash.
    path: String,
}

/// Why a URL is not one to return to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    /// It is not plain.
    #[error("the return URL is not a plain absolute URL: {0}")]
    NotPlain(&'static str),
    /// It is none of those that are allowed.
    #[error("the return URL is not under one of portal.return_urls; an operator adds its origin and path there")]
    NotListed,
}

impl ReturnUrl {
    /// Whether `url` may be returned to by this list. Browsers read URLs more kindly than anybody checks them, so only those
    /// that have one reading are compared at all: visible ASCII, no backslash, no dots or doubled slashes to resolve.
    pub fn check(list: &[ReturnUrl], url: &str) -> Result<(), NotAllowed> {
        plain(url)?;
        if list.iter().any(|allowed| allowed.covers(url)) { Ok(()) } else { Err(NotAllowed::NotListed) }
    }

    fn covers(&self, url: &str) -> bool {
        let Some(rest) = url.strip_prefix(self.origin.as_str()) else { return false };
        let path = match path_of(rest) {
            "" if rest.is_empty() || rest.starts_with(['?', '#']) => "/",
            path if path.starts_with('/') => path,
            // Userinfo, a port, or a longer host: another origin.
            _ => return false,
        };
        let whole_segments = self.path.ends_with('/') || matches!(path.as_bytes().get(self.path.len()), None | Some(b'/'));
        path.starts_with(&self.path) && whole_segments
    }
}

fn path_of(rest: &str) -> &str {
    &rest[..rest.find(['?', '#']).unwrap_or(rest.len())]
}

fn plain(url: &str) -> Result<(), NotAllowed> {
    let refuse = |why| Err(NotAllowed::NotPlain(why));
    if url.len() > LONGEST {
        return refuse("it is longer than 2000 bytes");
    }
    if !url.bytes().all(|b| b.is_ascii_graphic()) {
        return refuse("it holds a blank, a control character or one that is not ASCII; write those percent-encoded");
    }
    if url.contains(['\\', '"', '<', '>', '^', '`', '{', '|', '}']) {
        return refuse("it holds a character that a URL may not hold");
    }
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return refuse("it must begin with https://");
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.is_empty() || authority.contains('@') {
        return refuse("it must name a host, and no user");
    }
    let path = path_of(path);
    let lower = path.to_ascii_lowercase();
    if path.contains("//") || ["%2e", "%2f", "%5c", "%00"].iter().any(|hidden| lower.contains(hidden)) {
        return refuse("its path holds a doubled slash, or hides a dot, a slash or a NUL");
    }
    if path.split('/').any(|segment| segment == "." || segment == "..") {
        return refuse("its path holds dots to be resolved");
    }
    Ok(())
}

impl Setting for ReturnUrl {
    const EXPECTED: &'static str =
        "a URL like https://app.example.com/settings without query (http:// is for loopback only), or a list of them";
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        plain(text).ok()?;
        let start = text.find("://")? + 3;
        let cut = text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at);
        let (origin, path) = text.split_at(cut);
        let origin = Origin::read(origin).filter(Origin::is_private)?;
        let path = if path.is_empty() { "/" } else { path };
        (path.starts_with('/') && !path.contains(['?', '#'])).then(|| ReturnUrl { origin, path: path.to_owned() })
    }
    fn show(&self) -> String {
        format!("{}{}", self.origin.as_str(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list() -> Vec<ReturnUrl> {
        Vec::read("https://app.example.com/settings, https://other.example:8443, http://127.0.0.1:3000/x/").unwrap()
    }

    #[test]
    fn what_lies_under_an_entry_is_allowed() {
        for url in [
            "https://app.example.com/settings",
            "https://app.example.com/settings/domains?tab=1&next=https://evil.example#top",
            "https://app.example.com/settings?x=..//",
            "https://other.example:8443",
            "https://other.example:8443/any/where",
            "https://other.example:8443?x",
            "http://127.0.0.1:3000/x/y",
        ] {
            assert_eq!(ReturnUrl::check(&list(), url), Ok(()), "{url}");
        }
    }

    #[test]
    fn every_known_trick_is_refused() {
        for url in [
            "",
            "/settings",
            "//app.example.com/settings",
            "///app.example.com/settings",
            "https:app.example.com/settings",
            "https:/app.example.com/settings",
            "https:///app.example.com/settings",
            "https://evil.example/settings",
            "https://app.example.com@evil.example/settings",
            "https://app.example.com:x@evil.example/settings",
            "https://user@app.example.com/settings",
            "https://app.example.com.evil.example/settings",
            "https://app.example.com:8443/settings",
            "https://app.example.com\\@evil.example/settings",
            "https://app.example.com\\.evil.example/settings",
            "https:\\\\app.example.com\\settings",
            "http://app.example.com/settings",
            "HTTPS://app.example.com/settings",
            "https://APP.example.com/settings",
            "https://app.example.com/settingsandmore",
            "https://app.example.com/",
            "https://app.example.com/settings/../admin",
            "https://app.example.com/settings/./x",
            "https://app.example.com/settings/%2e%2e/admin",
            "https://app.example.com/settings/%2E./admin",
            "https://app.example.com/settings%2f..%2fadmin",
            "https://app.example.com/settings/%5c..",
            "https://app.example.com//settings",
            "https://app.example.com/settings//x",
            "https://app.example.com/settings\u{202e}",
            "https://app.example.com/settings\r\nSet-Cookie:x=1",
            "https://app.example.com/settings\0",
            " https://app.example.com/settings",
            "https://app\u{ff0e}example.com/settings",
            "https://\u{0430}pp.example.com/settings",
            "javascript:alert(1)",
            "javascript://app.example.com/settings%0aalert(1)",
            "data:text/html,x",
            "https://app.example.com%2f@evil.example/settings",
            "https://127.0.0.1:3000/x/",
            "http://127.0.0.1:3000/xy",
        ] {
            assert!(ReturnUrl::check(&list(), url).is_err(), "{url:?} is let through");
        }
        let long = format!("https://app.example.com/settings/{}", "a".repeat(2000));
        assert!(ReturnUrl::check(&list(), &long).is_err());
        assert_eq!(ReturnUrl::check(&[], "https://app.example.com/"), Err(NotAllowed::NotListed));
    }

    #[test]
    fn entries_are_read_strictly() {
        for bad in [
            "app.example.com",
            "http://app.example.com/",
            "https://a@b.example/",
            "https://b.example/?x",
            "https://b.example/../x",
            "*",
        ] {
            assert_eq!(ReturnUrl::read(bad), None, "{bad}");
        }
        assert_eq!(ReturnUrl::read("https://App.Example").unwrap().show(), "https://app.example/");
    }

    proptest! {
        /// Whatever is let through is a URL whose origin another reader takes for an allowed one.
        #[test]
        fn what_passes_has_an_allowed_origin_for_everybody(front in "(https?:)?[/\\\\]{0,3}", host in "(app\\.example\\.com|evil\\.example|[a-z@:.\\\\]{1,12})", path in "[/a-z.%@?#\\\\]{0,20}") {
            let url = format!("{front}{host}{path}");
            if ReturnUrl::check(&list(), &url).is_ok() {
                let read: http::Uri = url.split('#').next().unwrap().parse().unwrap();
                prop_assert_eq!(read.authority().unwrap().as_str(), "app.example.com");
                prop_assert!(read.path().starts_with("/settings"));
            }
        }
    }
}
