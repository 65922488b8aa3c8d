//! What the edge answers by itself: short, plain, and saying nothing of what it knows.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;

/// A body of the edge's own, or one that streams through.
pub(super) type Body = UnsyncBoxBody<Bytes, hyper::Error>;

fn body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A page of one sentence.
pub(super) fn page(status: StatusCode, sentence: &'static str) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or("Error");
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><h1>{title}</h1><p>{sentence}</p></html>\n"
    );
    with_headers(status, "text/html; charset=utf-8", html)
}

fn with_headers(status: StatusCode, content_type: &'static str, content: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(body(content));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
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

/// Somewhere else, for good, with the same method.
pub(super) fn redirect(location: &str) -> Response<Body> {
    let Ok(location) = HeaderValue::from_str(location) else {
        return page(StatusCode::BAD_REQUEST, "The address is malformed.");
    };
    let mut response = page(StatusCode::PERMANENT_REDIRECT, "This site is served over https.");
    response.headers_mut().insert(LOCATION, location);
    response
}
