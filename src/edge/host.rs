//! The Host of a request: one, well formed, compared without port, letter case and final dot (RFC 9112 section 3.2). Pure.

use http::{HeaderMap, Uri, Version, header};

/// Why a request's Host was refused. The value itself goes nowhere: not into a log, a redirect or the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHost {
    /// None.
    #[error("the request has no Host")]
    Missing,
    /// Several.
    #[error("the request has more than one Host")]
    Several,
    /// Not a name.
    #[error("the request's Host is malformed")]
    Malformed,
    /// The target names another host than Host does.
    #[error("the request's target and its Host differ")]
    Differs,
}

/// The host a request is for: lower case, without port and final dot. In HTTP/2 the target's authority stands for Host, which
/// may be there as well and must then say the same (RFC 9113 section 8.3.1).
pub fn requested_host(version: Version, headers: &HeaderMap, target: &Uri) -> Result<String, BadHost> {
    let mut given = headers.get_all(header::HOST).iter();
    let first = match (given.next(), target.authority()) {
        (Some(first), _) => first,
        (None, Some(authority)) if version == Version::HTTP_2 => {
            return parse(authority.as_str().as_bytes()).ok_or(BadHost::Malformed);
        }
        (None, _) => return Err(BadHost::Missing),
    };
    if given.next().is_some() {
        return Err(BadHost::Several);
    }
    let host = parse(first.as_bytes()).ok_or(BadHost::Malformed)?;
    match target.authority() {
        Some(authority) if parse(authority.as_str().as_bytes()) != Some(host.clone()) => Err(BadHost::Differs),
        _ => Ok(host),
    }
}

/// A name or IPv4 address with an optional port. An IPv6 literal is nobody's hostname and is refused with the rest.
fn parse(value: &[u8]) -> Option<String> {
    let value = std::str::from_utf8(value).ok()?;
    let (name, port) = match value.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (value, None),
    };
    // RFC 3986 section 3.2.3 allows an empty port.
    if port.is_some_and(|p| !p.bytes().all(|b| b.is_ascii_digit()) || (!p.is_empty() && p.parse::<u16>().is_err())) {
        return None;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let label =
        |l: &str| (1..=63).contains(&l.len()) && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    (name.len() <= 253 && name.split('.').all(label)).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn host_of(values: &[&str], target: &str) -> Result<String, BadHost> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::HOST, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        requested_host(Version::HTTP_11, &headers, &target.parse().unwrap())
    }

    #[test]
    fn in_http2_the_authority_is_the_host_and_a_host_beside_it_must_be_the_same() {
        let h2 = |host: Option<&'static str>, target: &str| {
            let headers = host.into_iter().map(|h| (header::HOST, HeaderValue::from_static(h))).collect();
            requested_host(Version::HTTP_2, &headers, &target.parse().unwrap())
        };
        let name = Ok("a.example.com".to_owned());
        assert_eq!(h2(None, "https://A.example.com.:8443/x"), name);
        assert_eq!(h2(Some("a.example.com"), "https://A.example.com/x"), name);
        assert_eq!(h2(Some("a.example.com"), "/x"), name);
        assert_eq!(h2(None, "/x"), Err(BadHost::Missing));
        assert_eq!(h2(Some("b.example.com"), "https://a.example.com/x"), Err(BadHost::Differs));
        assert_eq!(h2(None, "https://user@a.example.com/x"), Err(BadHost::Malformed));
        assert_eq!(h2(None, "https://[::1]/x"), Err(BadHost::Malformed));
    }

    #[test]
    fn port_case_and_final_dot_do_not_matter() {
        for same in
            ["a.example.com", "A.Example.COM", "a.example.com.", "a.example.com:8443", "a.example.com.:1", "a.example.com:"]
        {
            assert_eq!(host_of(&[same], "/"), Ok("a.example.com".to_owned()), "{same}");
        }
    }

    #[test]
    fn missing_doubled_and_malformed_are_told_apart() {
        assert_eq!(host_of(&[], "/"), Err(BadHost::Missing));
        assert_eq!(host_of(&["a.example.com", "a.example.com"], "/"), Err(BadHost::Several));
        let long = "a.".repeat(140);
        let label = "a".repeat(64);
        let bad =
            ["", ".", "a..b", "a b", "a/b", "user@a", "a:x", "a:70000", "a:1:2", "[::1]", "*.a", "a,b", "ä", &long, &label];
        for value in bad {
            assert_eq!(host_of(&[value], "/"), Err(BadHost::Malformed), "{value:?}");
        }
    }

    #[test]
    fn a_target_in_absolute_form_must_name_the_same_host() {
        assert_eq!(host_of(&["a.example.com"], "http://A.example.com:80/x"), Ok("a.example.com".to_owned()));
        assert_eq!(host_of(&["a.example.com"], "http://b.example.com/x"), Err(BadHost::Differs));
    }

    proptest! {
        #[test]
        fn what_passes_is_a_clean_name(value in "[ -~]{0,80}") {
            if let Some(name) = parse(value.as_bytes()) {
                prop_assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b)));
                prop_assert!(!name.is_empty() && !name.contains("..") && !name.ends_with('.'));
                prop_assert_eq!(parse(name.as_bytes()), Some(name));
            }
        }

        #[test]
        fn junk_is_refused_without_a_panic(value in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(name) = parse(&value) {
                prop_assert!(name.is_ascii());
            }
        }
    }
}
