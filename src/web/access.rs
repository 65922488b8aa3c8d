//! What every answer carries, and the line that every request leaves in the log.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use super::request_id::{REQUEST_ID, RequestId};
use super::state::WebState;
use crate::config::{Network, Origin};

/// What a page may load: ours, the brand's picture, and nothing written into the page itself.
fn policy(state: &WebState, framers: &str) -> String {
    let logo = state.settings.brand.logo_origin.as_deref().map(|origin| format!(" {origin}")).unwrap_or_default();
    format!(
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'{logo}; \
         form-action 'self'; base-uri 'none'; frame-ancestors {framers}"
    )
}

/// Who may frame what is at this path: nobody the operator's pages, others whom the configuration names.
fn framers(state: &WebState, path: &str) -> Option<String> {
    let allowed = &state.settings.portal.frame_ancestors;
    let operators = path == "/operator" || path.starts_with("/operator/");
    (!allowed.is_empty() && !operators).then(|| {
        let origins: Vec<&str> = allowed.iter().map(Origin::as_str).collect();
        format!("'self' {}", origins.join(" "))
    })
}

/// Sets the headers that keep pages from being framed, sniffed, cached or fed with foreign content.
pub(super) async fn harden(State(state): State<WebState>, request: Request, next: Next) -> Response {
    let framers = framers(&state, request.uri().path());
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy(&state, framers.as_deref().unwrap_or("'none'"))) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if framers.is_none() {
        // There is no word in this older header for a list of origins.
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    }
    // A link's token stands in its path: no other site learns it. Not `no-referrer`: forms would be sent with `Origin: null`.
    // A page without forms may be stricter.
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if state.settings.public_url.starts_with("https://") {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    response
}

/// Where a request came from, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientAddress(pub Option<IpAddr>);

/// Names every request and writes one line for it: the route, not the path, and never a header.
pub(super) async fn log(State(state): State<WebState>, mut request: Request, next: Next) -> Response {
    let begun = state.app.env.now();
    let id = RequestId::of(request.headers(), &state.app.env);
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str).to_owned();
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(addr)| addr.ip());
    let client = peer.map(|peer| client_of(peer, request.headers(), &state.settings.trusted_proxies));
    request.extensions_mut().insert(id.clone());
    request.extensions_mut().insert(ClientAddress(client));
    let mut response = next.run(request).await;
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let duration_ms = state.app.env.now().since(begun).as_millis();
    let client = client.map_or_else(|| "-".to_owned(), |ip| ip.to_string());
    tracing::info!(%method, route, status = response.status().as_u16(), client, duration_ms, request_id = id.as_str(), "request");
    response
}

/// The address of the connection; behind trusted proxies the nearest one that they do not vouch away.
fn client_of(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let believed = |ip: IpAddr| trusted.iter().any(|network| network.contains(ip));
    let mut client = peer;
    let forwarded: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).collect();
    for hop in forwarded.into_iter().rev() {
        if !believed(client) {
            break;
        }
        match hop.trim().parse() {
            Ok(ip) => client = ip,
            Err(_) => break,
        }
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Setting as _;

    #[test]
    fn forwarded_addresses_are_believed_from_trusted_proxies_only() {
        let trusted = [Network::read("10.0.0.0/8").unwrap()];
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_static("203.0.113.9, 198.51.100.7, 10.0.0.2"));
        let of = |peer: &str| client_of(peer.parse().unwrap(), &headers, &trusted).to_string();
        assert_eq!(of("10.0.0.1"), "198.51.100.7");
        assert_eq!(of("192.0.2.1"), "192.0.2.1");
    }
}
