//! Which headers cross the edge. Pure.
//!
//! Nothing from outside may speak for the edge: whatever an origin could read as `X-Tenant-*`, `X-Forwarded-*` or `Forwarded`
//! is taken off, and other names that origins take a visitor's address, the host or the path from; also spelled with other
//! marks for dashes: what becomes a variable of CGI loses the difference. The request's id is the edge's, too: one that a
//! visitor chose could be another's.
//! Headers of one hop end here; what may not stand in a head may not follow a body either.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::model::feed::HostEntry;

/// Headers of one hop (RFC 9110 section 7.6.1), and those the edge answers itself.
const ONE_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
    "expect",
];

/// What origins believe about the visitor, the host or the path because proxies usually say it; and `Proxy`, which in CGI is
/// where an origin's own requests go (CVE-2016-5385).
const BELIEVED: [&str; 18] = [
    "forwarded",
    "x-forwarded",
    "x-real-ip",
    "client-ip",
    "x-client-ip",
    "true-client-ip",
    "x-cluster-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-url",
    "x-original-uri",
    "x-rewrite-url",
    "x-http-host-override",
    "x-host",
    "x-request-id",
    "proxy",
];

/// The id of a request, the same for the origin, the visitor and the access log.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What frames a message: with other marks for dashes it is no such header to us, but may be to an origin.
const FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

fn speaks_for_the_edge(name: &HeaderName) -> bool {
    let spelled = name.as_str();
    let name: String = spelled.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if spelled != name && (FRAMING.contains(&name.as_str()) || ONE_HOP.contains(&name.as_str())) {
        return true;
    }
    let prefixes = ["x-tenant-", "x-forwarded-", "x-nameplate-"];
    BELIEVED.contains(&name.as_str()) || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn drop_borrowed(headers: &mut HeaderMap) {
    let borrowed: Vec<HeaderName> = headers.keys().filter(|name| speaks_for_the_edge(name)).cloned().collect();
    for name in borrowed {
        headers.remove(name);
    }
}

/// What decides how a message is read or whose it is, and so may not come after it (RFC 9110 section 6.5.1).
const NEVER_AFTER: [HeaderName; 5] =
    [header::HOST, header::CONTENT_LENGTH, header::COOKIE, header::AUTHORIZATION, header::TRAILER];

/// Takes off the trailers that would not be the visitor's to send as headers.
pub(super) fn drop_foreign_trailers(trailers: &mut HeaderMap) {
    drop_hop_headers(trailers);
    drop_borrowed(trailers);
    for name in NEVER_AFTER {
        trailers.remove(name);
    }
}

/// Joins the pieces that HTTP/2 allows Cookie to come in (RFC 9113 section 8.2.3).
pub(super) fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(header::COOKIE).iter().nth(1).is_none() {
        return;
    }
    let pieces: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&pieces.join(b"; ".as_slice())) {
        headers.insert(header::COOKIE, joined);
    }
}

/// Takes off the headers of one hop, also those that Connection names.
pub fn drop_hop_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Their meaning is not one hop's to take away.
        .filter(|name| name != header::HOST && name != header::CONTENT_LENGTH)
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in ONE_HOP {
        headers.remove(name);
    }
}

/// Makes a visitor's headers fit for the origin: hop headers and borrowed names off, the edge's own word on.
pub fn for_the_origin(headers: &mut HeaderMap, host: &str, entry: &HostEntry, visitor: IpAddr) {
    drop_hop_headers(headers);
    drop_borrowed(headers);
    let node = match visitor.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("\"[{v6}]\""),
    };
    let own = [
        (header::HOST, host.to_owned()),
        (HeaderName::from_static("x-tenant-id"), entry.tenant_id.to_string()),
        (HeaderName::from_static("x-tenant-slug"), entry.slug.clone()),
        (HeaderName::from_static("x-forwarded-for"), visitor.to_canonical().to_string()),
        (HeaderName::from_static("x-forwarded-proto"), "https".to_owned()),
        (HeaderName::from_static("x-forwarded-host"), host.to_owned()),
        (header::FORWARDED, format!("for={node};host={host};proto=https")),
    ];
    for (name, value) in own {
        // Ids, slugs, checked hosts and addresses are always good header values.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::feed::HostAction;
    use crate::model::hostname::Hostname;
    use crate::model::id::TenantId;
    use crate::model::moment::Moment;

    fn entry() -> HostEntry {
        HostEntry {
            hostname: Hostname::trusted("a.example.com"),
            tenant_id: TenantId::mint(Moment::from_secs(1), [1; 10]),
            slug: "acme".to_owned(),
            term: 1,
            action: HostAction::Serve,
            redirect_to: None,
            certificate_id: None,
            version: 1,
        }
    }

    fn crossed(given: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        for_the_origin(&mut headers, "a.example.com", &entry(), "192.0.2.7".parse().unwrap());
        headers
    }

    #[test]
    fn what_speaks_for_the_edge_is_taken_off_in_every_spelling() {
        let forged = "forged";
        for name in [
            "X-Tenant-Id",
            "x-tenant-slug",
            "X-TENANT-ROLE",
            "x_tenant_id",
            "X-Tenant_Id",
            "X-Forwarded-For",
            "x-forwarded-user",
            "X_Forwarded_Host",
            "Forwarded",
            "FORWARDED",
            "x-forwarded-proto",
            "X-Forwarded-Client-Cert",
            "X-Real-IP",
            "x_real_ip",
            "True-Client-IP",
            "X-Original-URL",
            "X-Rewrite_URL",
            "X-Request-Id",
            "x_request_id",
            "X-Nameplate-Signature",
            "transfer_encoding",
            "content_length",
            "proxy_connection",
            "x.tenant.id",
            "X!Tenant~Id",
            "x.forwarded.for",
            "content.length",
            "Client-IP",
            "client_ip",
            "X-Client-IP",
            "CF-Connecting-IP",
            "X-Original-Host",
            "X-Original-URI",
            "X-Host",
            "Proxy",
        ] {
            let headers = crossed(&[(name, forged), (name, forged)]);
            assert!(headers.values().all(|v| v != forged), "{name}");
        }
    }

    #[test]
    fn what_is_the_visitors_own_stays() {
        for name in ["x-tenants", "x-forward", "forwarded-by-me", "cookie", "authorization", "x-correlation-id", "origin"] {
            assert_eq!(crossed(&[(name, "kept"), (name, "too")]).get_all(name).iter().count(), 2, "{name}");
        }
    }

    #[test]
    fn headers_of_one_hop_end_here_also_those_that_connection_names() {
        let headers = crossed(&[
            ("connection", "close, X-Once, host"),
            ("connection", "content-length"),
            ("x-once", "1"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "x"),
            ("keep-alive", "1"),
            ("content-length", "3"),
            ("expect", "100-continue"),
        ]);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(
            left,
            [
                "content-length",
                "forwarded",
                "host",
                "x-forwarded-for",
                "x-forwarded-host",
                "x-forwarded-proto",
                "x-tenant-id",
                "x-tenant-slug"
            ]
        );
    }

    #[test]
    fn the_edge_says_who_and_whence() {
        let headers = crossed(&[("host", "A.EXAMPLE.com:8443")]);
        assert_eq!(headers["x-tenant-id"], entry().tenant_id.as_str());
        assert_eq!(
            (&headers["x-tenant-slug"], &headers["host"]),
            (&"acme".parse().unwrap(), &"a.example.com".parse().unwrap())
        );
        assert_eq!(headers["forwarded"], "for=192.0.2.7;host=a.example.com;proto=https");
        let mut headers = HeaderMap::new();
        for_the_origin(&mut headers, "a.example.com", &entry(), "2001:db8::1".parse().unwrap());
        assert_eq!(headers["forwarded"], "for=\"[2001:db8::1]\";host=a.example.com;proto=https");
        for_the_origin(&mut headers, "a.example.com", &entry(), "::ffff:192.0.2.7".parse().unwrap());
        assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
    }

    #[test]
    fn trailers_cannot_say_what_headers_cannot() {
        let mut trailers = HeaderMap::new();
        for name in [
            "x-tenant-id",
            "x_forwarded_for",
            "x-request-id",
            "host",
            "content-length",
            "transfer-encoding",
            "cookie",
            "trailer",
        ] {
            trailers.insert(name.parse::<HeaderName>().unwrap(), HeaderValue::from_static("forged"));
        }
        trailers.insert("x-checksum", HeaderValue::from_static("kept"));
        drop_foreign_trailers(&mut trailers);
        assert_eq!(trailers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-checksum"]);
    }

    #[test]
    fn cookies_in_pieces_become_one() {
        let mut headers = HeaderMap::new();
        join_cookies(&mut headers);
        assert!(headers.is_empty());
        for piece in ["a=b", "c=d", "e=f"] {
            headers.append(header::COOKIE, HeaderValue::from_static(piece));
        }
        join_cookies(&mut headers);
        assert_eq!(headers.get_all(header::COOKIE).iter().collect::<Vec<_>>(), ["a=b; c=d; e=f"]);
    }

    proptest! {
        #[test]
        fn no_spelling_gets_through(name in "[xX][-_.~!](tenant|TENANT|Forwarded|forwarded|nameplate)[-_.^|][a-zA-Z_.-]{0,12}") {
            prop_assert!(crossed(&[(&name, "forged")]).values().all(|v| v != "forged"));
        }
    }
}
