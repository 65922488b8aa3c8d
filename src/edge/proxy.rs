//! From a visitor's request to the origin and back. Bodies stream; whose the request is comes from the feed's book.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::Shared;
use super::answer::{self, Body};
use super::headers::{drop_hop_headers, for_the_origin};
use super::host::requested_host;
use crate::env::Env;

/// How long the origin may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a request may stand still: no more of it from the visitor, no beginning of an answer from the origin.
const STILL: Duration = Duration::from_secs(60);
/// How long an idle connection to it is kept: shorter than what origins usually do, so that theirs is not the race to close.
const IDLE: Duration = Duration::from_secs(15);

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
    pub(super) fn parse(text: &str) -> Result<Upstream, NotAnUpstream> {
        let not = || NotAnUpstream { seen: text.to_owned() };
        let uri: Uri = text.parse().map_err(|_| not())?;
        let authority = uri.authority().cloned().filter(|a| !a.as_str().contains('@')).ok_or_else(not)?;
        let bare = uri.path_and_query().is_none_or(|p| p.as_str() == "/");
        if uri.scheme() != Some(&Scheme::HTTP) || !bare {
            return Err(not());
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http1_max_headers(super::listen::HEADERS)
            .build(connector);
        Ok(Upstream { authority, client })
    }
}

/// A visitor's body on its way to the origin, counting what moved.
struct Upload {
    body: Incoming,
    moved: Arc<AtomicU64>,
    /// Whether it ended in an error of the visitor's.
    broke: Arc<AtomicBool>,
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.moved.fetch_add(1, Ordering::Relaxed);
        if matches!(frame, Some(Err(_))) {
            self.broke.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns once nothing has moved for a while.
async fn stands_still(env: &Env, moved: &AtomicU64) {
    let mut before = None;
    loop {
        let now = moved.load(Ordering::Relaxed);
        if before == Some(now) {
            return;
        }
        before = Some(now);
        env.sleep(STILL).await;
    }
}

/// Answers one request that came over TLS under `server_name`.
pub(super) async fn respond(
    shared: &Shared,
    server_name: &str,
    visitor: IpAddr,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let host = match requested_host(request.headers(), request.uri()) {
        Ok(host) => host,
        Err(_) => return answer::page(StatusCode::BAD_REQUEST, "The request names no host, several, or a malformed one."),
    };
    if host != server_name {
        return answer::page(StatusCode::MISDIRECTED_REQUEST, "This connection is for another site.");
    }
    let Some(entry) = shared.replica.host(&host) else { return answer::unknown_host() };
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    if *request.method() == Method::CONNECT || !(path.as_str().starts_with('/') || path.as_str() == "*") {
        return answer::page(StatusCode::BAD_REQUEST, "The address is malformed.");
    }
    let upstream = Uri::builder().scheme(Scheme::HTTP).authority(shared.upstream.authority.clone()).path_and_query(path);
    let Ok(uri) = upstream.build() else { return answer::page(StatusCode::BAD_REQUEST, "The address is malformed.") };
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_11;
    for_the_origin(request.headers_mut(), &host, &entry, visitor);
    let moved = Arc::new(AtomicU64::new(0));
    let upload_broke = Arc::new(AtomicBool::new(false));
    let request = request.map(|body| Upload { body, moved: Arc::clone(&moved), broke: Arc::clone(&upload_broke) });
    let answered = tokio::select! {
        answered = shared.upstream.client.request(request) => answered,
        () = stands_still(&shared.env, &moved) => {
            return answer::page(StatusCode::GATEWAY_TIMEOUT, "The site did not answer in time.");
        }
    };
    match answered {
        // An origin's 421 is said to the edge: to a browser it would mean this connection.
        Ok(response) if response.status() == StatusCode::MISDIRECTED_REQUEST => {
            answer::page(StatusCode::BAD_GATEWAY, "The site did not take the request.")
        }
        Ok(response) => {
            let mut response = response.map(|body| body.boxed_unsync());
            drop_hop_headers(response.headers_mut());
            *response.version_mut() = Version::HTTP_11;
            response
        }
        Err(error) if upload_broke.load(Ordering::Relaxed) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "a visitor's body broke off");
            answer::page(StatusCode::BAD_REQUEST, "The body of the request is malformed or incomplete.")
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the origin did not answer");
            answer::page(StatusCode::BAD_GATEWAY, "The site cannot be reached.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_http_origin_is_one() {
        assert!(Upstream::parse("http://127.0.0.1:3000").is_ok());
        assert!(Upstream::parse("http://origin.internal/").is_ok());
        for bad in ["", "127.0.0.1:3000", "https://a", "http://a/path", "http://u@a", "ftp://a", "http://", "/"] {
            assert!(Upstream::parse(bad).is_err(), "{bad:?}");
        }
    }
}
