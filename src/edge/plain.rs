//! The plain port. A CA is answered before anything is decided about the host: the name it asks for may have no certificate,
//! no route, not even a book yet. Everything else is sent to https where there is a certificate to be met with: a redirect is
//! kept by browsers, and one that ends in a TLS alert would outlive its cause.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};

use super::body::Body;
use super::exchange::{About, Exchange};
use super::host::requested_host;
use super::{Shared, answer, ask, proxy};

const CHALLENGE: &str = "/.well-known/acme-challenge/";

/// The token that a CA, or a preflight, asks for.
pub(super) fn asked_token<B>(request: &Request<B>) -> Option<&str> {
    let token = request.uri().path().strip_prefix(CHALLENGE)?;
    (matches!(*request.method(), Method::GET | Method::HEAD) && ask::is_token(token)).then_some(token)
}

/// The answer to a token, by what this edge has at hand.
pub(super) fn known(shared: &Shared, token: &str) -> Option<Response<Body>> {
    let text = shared.replica.preflight_answer(token).or_else(|| shared.replica.key_authorization(token))?;
    Some(answer::key_authorization(text))
}

pub(super) async fn respond<B>(shared: &Shared, exchange: &Arc<Exchange>, request: &Request<B>) -> Response<Body> {
    if let Some(token) = asked_token(request) {
        return challenge(shared, token).await;
    }
    if let Some(refused) = proxy::refused(shared, &exchange.visit, request) {
        return refused;
    }
    let Ok(host) = requested_host(request.version(), request.headers(), request.uri()) else { return answer::bad_host() };
    if !shared.replica.has_book() {
        return answer::page(StatusCode::SERVICE_UNAVAILABLE, "This server is not ready yet.");
    }
    let Some(entry) = shared.replica.host(&host).filter(|_| shared.replica.certificate_for(&host).is_some()) else {
        return answer::unknown_host();
    };
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    exchange.about(About { host: Some(host.clone()), tenant: Some(entry.tenant_id.to_string()) });
    if !path.starts_with('/') {
        return answer::page(StatusCode::BAD_REQUEST, "The address is malformed.");
    }
    answer::redirect(shared, &host, path, "This site is served over https.")
}

async fn challenge(shared: &Shared, token: &str) -> Response<Body> {
    if let Some(known) = known(shared, token) {
        return known;
    }
    match shared.ask.key_authorization(token).await {
        Some(text) => answer::key_authorization(text),
        None => answer::page(StatusCode::NOT_FOUND, "There is no such challenge."),
    }
}
