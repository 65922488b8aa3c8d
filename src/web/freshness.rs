//! What version of a thing an answer shows, and which one a request counts on (RFC 9110 §8.8.3, §13).
//!
//! Every JSON answer to a GET of the API carries an ETag over its bytes. That of a thing with a version begins with it:
//! `"v12.…"`. `If-None-Match` compares the whole and answers 304; `If-Match` compares the version alone, where the row is
//! locked, so that nothing else can come between.

use std::convert::Infallible;

use aws_lc_rs::digest::{SHA256, digest};
use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, IntoResponseParts, Response, ResponseParts};

use super::problem::Problem;
use crate::app::expect::Expect;

/// The version of what an answer shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version(pub i64);

impl IntoResponseParts for Version {
    type Error = Infallible;
    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Infallible> {
        parts.extensions_mut().insert(self);
        Ok(parts)
    }
}

/// Marks an answer that is written while it is sent: it has no tag, for nobody has seen it whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streamed;

/// The version that a changing request counts on.
pub(super) struct IfMatch(pub Expect);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(IfMatch(expected(&parts.headers)))
    }
}

fn list(headers: &HeaderMap, name: header::HeaderName) -> Option<Vec<String>> {
    let mut values = headers.get_all(name).iter().peekable();
    values.peek()?;
    let texts = values.map(|value| value.to_str().unwrap_or_default());
    // Our own tags hold no comma, so whatever is split wrongly is none of them.
    Some(texts.flat_map(|text| text.split(',')).map(|tag| tag.trim().to_owned()).collect())
}

/// What `If-Match` allows. A weak tag, or one that is not ours, fits nothing.
fn expected(headers: &HeaderMap) -> Expect {
    let Some(tags) = list(headers, header::IF_MATCH) else { return Expect::ANY };
    if tags.iter().any(|tag| tag == "*") {
        return Expect::ANY;
    }
    let version = |tag: &String| tag.strip_prefix("\"v")?.strip_suffix('"')?.split('.').next()?.parse().ok();
    Expect::one_of(tags.iter().filter_map(version).collect())
}

fn tag(version: Option<Version>, body: &[u8]) -> String {
    let hash: String = digest(&SHA256, body).as_ref().iter().take(8).map(|b| format!("{b:02x}")).collect();
    version.map_or_else(|| format!("\"{hash}\""), |Version(n)| format!("\"v{n}.{hash}\""))
}

/// Gives answers of the API their ETag, and answers 304 to those who have it.
pub(super) async fn tag_answers(mut request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with("/api/") {
        return next.run(request).await;
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads {
        // The body of a HEAD's answer is made, so that its length and tag are those of a GET; it is dropped further out.
        *request.method_mut() = Method::GET;
    }
    let known = list(request.headers(), header::IF_NONE_MATCH).filter(|_| reads);
    let mut response = next.run(request).await;
    if response.extensions().get::<Streamed>().is_some() {
        return response;
    }
    let version = response.extensions_mut().remove::<Version>();
    let whole = reads && response.status() == StatusCode::OK;
    if !whole && version.is_none() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        let detail = "The answer could not be made. Nothing was changed by this.";
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "This failed on our side", detail).into_response();
    };
    let tag = tag(version, &bytes);
    let fits = |known: &String| known == "*" || known.trim_start_matches("W/") == tag;
    let unchanged = whole && known.is_some_and(|known| known.iter().any(fits));
    if let Ok(value) = HeaderValue::from_str(&tag) {
        parts.headers.insert(header::ETAG, value);
    }
    if whole {
        parts.headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
        parts.headers.insert(header::VARY, HeaderValue::from_static("Authorization"));
    }
    if unchanged {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_TYPE);
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn our_own_tags_are_read_back_and_nothing_else_is(version in any::<i64>(), text in "[ -~]{0,40}") {
            let of = |text: &str| {
                let value = HeaderValue::from_str(text).unwrap();
                expected(&HeaderMap::from_iter([(header::IF_MATCH, value)]))
            };
            prop_assert_eq!(of(&tag(Some(Version(version)), b"x")), Expect::one_of(vec![version]));
            if !text.contains('*') && !text.contains("\"v") {
                prop_assert_eq!(of(&text), Expect::one_of(vec![]));
            }
        }
    }

    #[test]
    fn only_strong_tags_of_ours_fit() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::IF_MATCH, HeaderValue::from_static(value));
            }
            expected(&headers)
        };
        assert_eq!(of(&[]), Expect::ANY);
        assert_eq!(of(&["*"]), Expect::ANY);
        assert_eq!(of(&["\"v12.0011223344556677\""]), Expect::one_of(vec![12]));
        assert_eq!(of(&["\"v1.ab\", \"v2.cd\"", "\"v3.ef\""]), Expect::one_of(vec![1, 2, 3]));
        for strange in ["W/\"v12.00\"", "\"abc\"", "v12", "", "\"v\"", "\"v99999999999999999999.00\""] {
            assert_eq!(of(&[strange]), Expect::one_of(vec![]), "{strange}");
        }
        assert_eq!(tag(Some(Version(3)), b"{}"), "\"v3.44136fa355b3678a\"");
    }
}
