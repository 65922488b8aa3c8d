//! What the edge answers by itself: short, plain, and saying nothing of what it knows.

use std::sync::Arc;

use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;

use super::Shared;
use super::body::{Body, Download};
use super::exchange::Exchange;
use super::headers::REQUEST_ID;
use crate::telemetry::metrics::Protocol;

/// Marks what the edge said by itself.
#[derive(Clone, Copy)]
struct Own;

fn body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// The text of a page of one sentence.
pub(super) fn html(status: StatusCode, sentence: &'static str) -> String {
    let title = status.canonical_reason().unwrap_or("Error");
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><h1>{title}</h1><p>{sentence}</p></html>\n"
    )
}

/// A page of one sentence.
pub(super) fn page(status: StatusCode, sentence: &'static str) -> Response<Body> {
    with_headers(status, "text/html; charset=utf-8", html(status, sentence))
}

/// A page after which the connection ends: what follows on it cannot be told from the rest of the request.
pub(super) fn last_page(status: StatusCode, sentence: &'static str) -> Response<Body> {
    let mut response = page(status, sentence);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn with_headers(status: StatusCode, content_type: &'static str, content: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(body(content));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.extensions_mut().insert(Own);
    response
}

/// The answer to a CA.
pub(super) fn key_authorization(text: String) -> Response<Body> {
    with_headers(StatusCode::OK, "application/octet-stream", text)
}

/// No such host here, or not any more.
pub(super) fn unknown_host() -> Response<Body> {
    page(StatusCode::NOT_FOUND, "There is no site at this address.")
}

/// A Host that is missing, doubled or none.
pub(super) fn bad_host() -> Response<Body> {
    page(StatusCode::BAD_REQUEST, "The request names no host, several, or a malformed one.")
}

/// Too many connections.
pub(super) fn busy() -> Response<Body> {
    let mut response = last_page(StatusCode::SERVICE_UNAVAILABLE, "This server is busy. Please try again in a moment.");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Somewhere else over https, for good, with the same method.
pub(super) fn redirect(shared: &Shared, host: &str, path: &str, told: &'static str) -> Response<Body> {
    let location = match shared.https_port {
        443 => format!("https://{host}{path}"),
        port => format!("https://{host}:{port}{path}"),
    };
    let Ok(location) = HeaderValue::from_str(&location) else {
        return page(StatusCode::BAD_REQUEST, "The address is malformed.");
    };
    let mut response = page(StatusCode::PERMANENT_REDIRECT, told);
    response.headers_mut().insert(LOCATION, location);
    response
}

/// Puts on what every answer carries, and ties the exchange to its body.
pub(super) fn finish(shared: &Shared, exchange: Arc<Exchange>, mut response: Response<Body>) -> Response<Body> {
    let status = response.status();
    if response.extensions_mut().remove::<Own>().is_some() {
        shared.meters.own_answer(status.as_u16());
    }
    if exchange.visit.protocol == Protocol::H2 {
        // There it would be an error (RFC 9113 section 8.2.2).
        response.headers_mut().remove(CONNECTION);
    }
    if let Ok(id) = HeaderValue::from_str(&exchange.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    exchange.answered(status.as_u16());
    let idle = shared.limits.idle_timeout;
    response.map(|body| Download::new(body, exchange, shared.env.clone(), idle).boxed_unsync())
}
