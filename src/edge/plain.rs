//! The plain port. A CA is answered before anything is decided about the host: the name it asks for may have no certificate,
//! no route, not even a book yet. Everything else is sent to https where there is a certificate to be met with: a redirect is
//! kept by browsers, and one that ends in a TLS alert would outlive its cause.

use http::{Method, Request, Response, StatusCode};

use super::answer::{self, Body};
use super::host::requested_host;
use super::{Shared, ask};

const CHALLENGE: &str = "/.well-known/acme-challenge/";

pub(super) async fn respond<B>(shared: &Shared, request: Request<B>) -> Response<Body> {
    if let Some(token) = request.uri().path().strip_prefix(CHALLENGE)
        && matches!(*request.method(), Method::GET | Method::HEAD)
        && ask::is_token(token)
    {
        return challenge(shared, token).await;
    }
    let host = match requested_host(request.headers(), request.uri()) {
        Ok(host) => host,
        Err(_) => return answer::page(StatusCode::BAD_REQUEST, "The request names no host, several, or a malformed one."),
    };
    if !shared.replica.has_book() {
        return answer::page(StatusCode::SERVICE_UNAVAILABLE, "This server is not ready yet.");
    }
    if shared.replica.host(&host).is_none() || shared.replica.certificate_for(&host).is_none() {
        return answer::unknown_host();
    }
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    if !path.starts_with('/') {
        return answer::page(StatusCode::BAD_REQUEST, "The address is malformed.");
    }
    match shared.https_port {
        443 => answer::redirect(&format!("https://{host}{path}")),
        port => answer::redirect(&format!("https://{host}:{port}{path}")),
    }
}

async fn challenge(shared: &Shared, token: &str) -> Response<Body> {
    if let Some(text) = shared.replica.key_authorization(token) {
        return answer::key_authorization(text);
    }
    match shared.ask.key_authorization(token).await {
        Some(text) => answer::key_authorization(text),
        None => answer::page(StatusCode::NOT_FOUND, "There is no such challenge."),
    }
}
