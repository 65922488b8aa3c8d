//! From a visitor's request to the origin and back. Bodies stream; whose the request is comes from the feed's book.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::body::{Body, Upload};
use super::exchange::{About, Exchange, Uploading, Visit};
use super::headers::{REQUEST_ID, drop_hop_headers, for_the_origin, join_cookies};
use super::host::requested_host;
use super::{Shared, answer, plain, tunnel};
use crate::config::EdgeLimits;

/// How long an idle connection to the origin is kept: shorter than what origins usually do, so that theirs is not the race to
/// close.
const IDLE: Duration = Duration::from_secs(15);
/// Headers of an origin's answer.
const ORIGIN_HEADERS: usize = 256;
/// What is taken of a body that is refused, and for how long: a visitor who is still sending would not read the answer.
const SWALLOWED: usize = 1024 * 1024;
const SWALLOWING: Duration = Duration::from_millis(500);

/// A setting that names no origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{seen:?} is no origin: expected http://host:port without a path")]
pub struct NotAnUpstream {
    /// What was set.
    seen: String,
}

/// The origin, and the connections to it.
pub(super) struct Upstream {
    authority: Authority,
    client: Client<HttpConnector, Upload>,
}

impl Upstream {
    pub(super) fn parse(text: &str, limits: &EdgeLimits) -> Result<Upstream, NotAnUpstream> {
        let not = || NotAnUpstream { seen: text.to_owned() };
        let uri: Uri = text.parse().map_err(|_| not())?;
        let authority = uri.authority().cloned().filter(|a| !a.as_str().contains('@')).ok_or_else(not)?;
        let bare = uri.path_and_query().is_none_or(|p| p.as_str() == "/");
        if uri.scheme() != Some(&Scheme::HTTP) || !bare {
            return Err(not());
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(limits.connect_timeout));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_max_headers(ORIGIN_HEADERS)
            .build(connector);
        Ok(Upstream { authority, client })
    }
}

/// What is refused before anybody asks whose it is.
pub(super) fn refused<B>(shared: &Shared, visit: &Visit, request: &Request<B>) -> Option<Response<Body>> {
    if visit.place.over {
        return Some(answer::busy());
    }
    // HTTP/1.1 notices it on the wire; HTTP/2 lets a length be said twice as long as both are the same, an origin may not.
    let doubled = request.headers().get_all(header::CONTENT_LENGTH).iter().nth(1).is_some();
    if visit.notes.is_ambiguous() || doubled {
        return Some(answer::last_page(StatusCode::BAD_REQUEST, "The request does not say clearly where it ends."));
    }
    let target = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let bytes = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>();
    if exceeds(request.headers().len(), shared.limits.header_count) || exceeds(bytes + target, shared.limits.header_bytes) {
        let told = "The request's headers are larger than this server takes.";
        return Some(answer::last_page(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, told));
    }
    None
}

fn exceeds(count: usize, limit: u32) -> bool {
    u32::try_from(count).map_or(true, |count| count > limit)
}

/// Answers one request that came over TLS under `server_name`.
pub(super) async fn respond(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    server_name: &str,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let about = |tenant: Option<String>| exchange.about(About { host: Some(server_name.to_owned()), tenant });
    // A proxy in front that sends everything to https sends the CA here as well. What is not known may be the origin's own.
    if let Some(answer) = plain::asked_token(&request).and_then(|token| plain::known(shared, token)) {
        about(None);
        return answer;
    }
    if let Some(refused) = refused(shared, &exchange.visit, &request) {
        about(None);
        return refused;
    }
    let host = match requested_host(request.version(), request.headers(), request.uri()) {
        Ok(host) if host == server_name => host,
        other => {
            about(None);
            return match other {
                Ok(_) => answer::page(StatusCode::MISDIRECTED_REQUEST, "This connection is for another site."),
                Err(_) => answer::bad_host(),
            };
        }
    };
    let Some(entry) = shared.replica.host(&host) else {
        about(None);
        return answer::unknown_host();
    };
    about(Some(entry.tenant_id.to_string()));
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    let star = path.as_str() == "*" && *request.method() == Method::OPTIONS;
    if *request.method() == Method::CONNECT || !(path.as_str().starts_with('/') || star) {
        return answer::page(StatusCode::BAD_REQUEST, "The address is malformed.");
    }
    if let Some(refused) = refused_body(shared, &mut request).await {
        return refused;
    }
    if let Some(target) = shared.replica.redirect_of(&entry).filter(|_| !star) {
        return answer::redirect(shared, &target, path.as_str(), "This site is at another address.");
    }
    if !exchange.takes_room() {
        return answer::busy();
    }
    let upstream = Uri::builder().scheme(Scheme::HTTP).authority(shared.upstream.authority.clone()).path_and_query(path);
    let Ok(uri) = upstream.build() else { return answer::page(StatusCode::BAD_REQUEST, "The address is malformed.") };

    let upgrade = tunnel::wanted(request.version(), request.headers()).filter(|_| request.body().is_end_stream());
    let trailers = tunnel::says(request.headers(), header::TE, "trailers");
    let visitor = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    for_the_origin(headers, &host, &entry, exchange.visit.peer);
    join_cookies(headers);
    hop_headers(headers, upgrade.as_ref(), trailers);
    if let Ok(id) = HeaderValue::from_str(&exchange.id) {
        headers.insert(REQUEST_ID, id);
    }
    if let Some(proof) = &shared.proof {
        let (method, target) = (request.method().clone(), uri.path_and_query().map_or("/", PathAndQuery::as_str));
        proof.sign(request.headers_mut(), method.as_str(), target, shared.env.now());
    }
    *request.uri_mut() = uri;
    let limit = (shared.limits.body_bytes != 0).then_some(shared.limits.body_bytes);
    let request = request.map(|body| Upload::new(body, Arc::clone(exchange), limit));
    let began = shared.env.now();
    let answered = tokio::select! {
        answered = shared.upstream.client.request(request) => answered,
        stalled = exchange.stalled(shared.limits.idle_timeout, shared.limits.answer_timeout) => {
            return stood_still(shared, stalled);
        }
    };
    match answered {
        Ok(response) => {
            shared.meters.upstream(shared.env.now().since(began));
            from_the_origin(shared, exchange, visitor, response)
        }
        Err(error) => unanswered(shared, exchange, &error),
    }
}

/// Refuses what a body promises before any of it is taken.
async fn refused_body(shared: &Shared, request: &mut Request<Incoming>) -> Option<Response<Body>> {
    let expects = request.headers().get(header::EXPECT);
    if expects.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        return Some(answer::last_page(StatusCode::EXPECTATION_FAILED, "The request expects what this server does not do."));
    }
    let limit = shared.limits.body_bytes;
    if limit == 0 || request.body().size_hint().lower() <= limit {
        return None;
    }
    if expects.is_none() {
        let swallow = async {
            let mut taken = 0;
            while let Some(Ok(frame)) = request.body_mut().frame().await {
                taken += frame.data_ref().map_or(0, hyper::body::Bytes::len);
                if taken > SWALLOWED {
                    break;
                }
            }
        };
        tokio::select! {
            () = swallow => {}
            () = shared.env.sleep(SWALLOWING) => {}
        }
    }
    Some(too_large())
}

fn too_large() -> Response<Body> {
    answer::last_page(StatusCode::PAYLOAD_TOO_LARGE, "The body of the request is larger than this server takes.")
}

/// What this hop itself says to the origin.
fn hop_headers(headers: &mut HeaderMap, upgrade: Option<&HeaderValue>, trailers: bool) {
    if let Some(upgrade) = upgrade {
        headers.insert(header::UPGRADE, upgrade.clone());
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    } else if trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
}

fn from_the_origin(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    visitor: Option<hyper::upgrade::OnUpgrade>,
    mut response: Response<Incoming>,
) -> Response<Body> {
    let status = response.status();
    let switches = status == StatusCode::SWITCHING_PROTOCOLS;
    // An origin's 421 is said to the edge: to a browser it would mean this connection.
    if status == StatusCode::MISDIRECTED_REQUEST || switches && visitor.is_none() {
        return answer::page(StatusCode::BAD_GATEWAY, "The site did not take the request.");
    }
    let protocol = response.headers().get(header::UPGRADE).cloned();
    let origin = switches.then(|| hyper::upgrade::on(&mut response));
    let mut response = response.map(|body| body.map_err(Into::into).boxed_unsync());
    drop_hop_headers(response.headers_mut());
    *response.version_mut() = Version::HTTP_11;
    if let (Some(visitor), Some(origin)) = (visitor, origin) {
        if let Some(protocol) = protocol {
            response.headers_mut().insert(header::UPGRADE, protocol);
        }
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        exchange.visit.notes.leave_http();
        tunnel::open(shared, Arc::clone(exchange), visitor, origin);
    }
    response
}

fn stood_still(shared: &Shared, stalled: Uploading) -> Response<Body> {
    if stalled == Uploading::Visitor {
        return answer::last_page(StatusCode::REQUEST_TIMEOUT, "The request took too long.");
    }
    shared.meters.upstream_error("timeout");
    answer::page(StatusCode::GATEWAY_TIMEOUT, "The site did not answer in time.")
}

fn unanswered(shared: &Shared, exchange: &Exchange, error: &ClientError) -> Response<Body> {
    match exchange.uploading() {
        Uploading::TooLarge => return too_large(),
        Uploading::Broke => {
            tracing::debug!(error = error as &dyn Error, "a visitor's body broke off");
            let told = "The body of the request is malformed or incomplete.";
            return answer::last_page(StatusCode::BAD_REQUEST, told);
        }
        Uploading::Origin | Uploading::Visitor => {}
    }
    tracing::warn!(error = error as &dyn Error, "the origin did not answer");
    if timed_out(error) {
        shared.meters.upstream_error("timeout");
        return answer::page(StatusCode::GATEWAY_TIMEOUT, "The site cannot be reached in time.");
    }
    shared.meters.upstream_error(if error.is_connect() { "connect" } else { "broken" });
    answer::page(StatusCode::BAD_GATEWAY, "The site cannot be reached.")
}

fn timed_out(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};

    #[test]
    fn only_a_bare_http_origin_is_one() {
        let limits = Config::read(Sources::none()).unwrap().edge.limits;
        assert!(Upstream::parse("http://127.0.0.1:3000", &limits).is_ok());
        assert!(Upstream::parse("http://origin.internal/", &limits).is_ok());
        for bad in ["", "127.0.0.1:3000", "https://a", "http://a/path", "http://u@a", "ftp://a", "http://", "/"] {
            assert!(Upstream::parse(bad, &limits).is_err(), "{bad:?}");
        }
    }
}
