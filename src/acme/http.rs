//! The HTTP client under `instant-acme`: injected roots, deadlines, bounded answers, one pace, nonces that are not asked for
//! while there are some, a note of every exchange.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::error::{AcmeError, Call};
use super::exchange::{self, Exchange, Failure};
use super::nonces::{self, Nonces, REPLAY_NONCE};
use super::pace::{Pace, Paces};
use super::problem::ProblemDoc;
use super::retry_after;
use crate::env::Env;

/// The largest answer read. Chains and documents are a few kilobytes.
const MAX_ANSWER: usize = 256 * 1024;

/// Whom the CA's own TLS certificate must chain to.
#[derive(Clone, Debug)]
pub enum Roots {
    /// What the operating system trusts.
    System,
    /// These certificates only, as PEM: a private CA, a test CA.
    Pem(Vec<u8>),
}

/// How to reach a CA.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Whom to trust.
    pub roots: Roots,
    /// How long a TCP connection may take.
    pub connect_timeout: Duration,
    /// How long one request may take from connecting to the last byte of its answer.
    pub request_timeout: Duration,
    /// How fast this process asks.
    pub pace: Paces,
}

impl Default for HttpSettings {
    fn default() -> Self {
        HttpSettings {
            roots: Roots::System,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(20),
            pace: Paces::default(),
        }
    }
}

/// Cheap to clone; all clones share one connection pool.
#[derive(Clone)]
pub(super) struct AcmeHttp(Arc<Inner>);

struct Inner {
    client: Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>,
    request_timeout: Duration,
    nonces: Nonces,
    new_nonces: Pace,
    requests: Pace,
    env: Env,
}

impl AcmeHttp {
    pub(super) fn new(settings: &HttpSettings, env: &Env) -> Result<Self, AcmeError> {
        let unusable = |seen: String| AcmeError::ours(Call::Directory, seen);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = HttpsConnectorBuilder::new();
        let builder = match &settings.roots {
            Roots::System => builder
                .with_provider_and_native_roots(provider)
                .map_err(|e| unusable(format!("the operating system's trust roots could not be read: {e}")))?,
            Roots::Pem(pem) => {
                let mut roots = rustls::RootCertStore::empty();
                for root in CertificateDer::pem_slice_iter(pem) {
                    let root = root.map_err(|e| unusable(format!("the CA's trust roots are no PEM certificates: {e}")))?;
                    roots.add(root).map_err(|e| unusable(format!("one of the CA's trust roots is unusable: {e}")))?;
                }
                if roots.is_empty() {
                    return Err(unusable("the CA's trust roots hold no PEM certificate".to_owned()));
                }
                let config = rustls::ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()
                    .map_err(|e| unusable(format!("no TLS versions: {e}")))?;
                builder.with_tls_config(config.with_root_certificates(roots).with_no_client_auth())
            }
        };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(settings.connect_timeout));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build(builder.https_or_http().enable_http1().enable_http2().wrap_connector(tcp));
        Ok(AcmeHttp(Arc::new(Inner {
            client,
            request_timeout: settings.request_timeout,
            nonces: Nonces::default(),
            new_nonces: Pace::new(settings.pace.new_nonces),
            requests: Pace::new(settings.pace.requests),
            env: env.clone(),
        })))
    }
}

/// Whether a request may go there: HTTPS anywhere, plain HTTP to loopback only (a CA in the sandbox).
pub(super) fn may_go_to(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match uri.scheme_str() {
        Some("https") => !host.is_empty(),
        Some("http") => loopback,
        _ => false,
    }
}

impl HttpClient for AcmeHttp {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let mut exchange = Exchange { method: request.method().clone(), ..Exchange::default() };
            let outcome = inner.attempt(request, &mut exchange).await;
            exchange.failure = outcome.as_ref().err().map(|(failure, _)| *failure);
            if let Ok(response) = &outcome {
                exchange.body = response.body().clone();
            }
            exchange::leave(exchange);
            match outcome {
                Ok(response) => {
                    let (parts, body) = response.into_parts();
                    Ok(BytesResponse { parts, body: Box::new(body) })
                }
                Err((_, why)) => Err(Error::Other(why)),
            }
        })
    }
}

type Failed = (Failure, Box<dyn std::error::Error + Send + Sync>);

impl Inner {
    async fn attempt(&self, request: Request<BodyWrapper<Bytes>>, seen: &mut Exchange) -> Result<Response<Bytes>, Failed> {
        let limit = self.request_timeout;
        tokio::select! {
            biased;
            outcome = self.send(request, seen) => outcome,
            () = self.env.sleep(limit) => {
                let why = format!("no whole answer within {} s", limit.as_secs_f32());
                Err((Failure::NoAnswer, io::Error::new(io::ErrorKind::TimedOut, why).into()))
            }
        }
    }

    async fn send(&self, request: Request<BodyWrapper<Bytes>>, seen: &mut Exchange) -> Result<Response<Bytes>, Failed> {
        if !may_go_to(request.uri()) {
            let why = format!("refusing to send to {}: expected https, or http to loopback", request.uri());
            return Err((Failure::NotSent, io::Error::other(why).into()));
        }
        // Nothing but newNonce is asked with HEAD (RFC 8555 §7.2).
        let for_a_nonce = request.method() == Method::HEAD;
        if for_a_nonce && let Some(nonce) = self.kept_nonce().await {
            seen.status = Some(StatusCode::OK);
            return Ok(with_nonce(Response::default(), nonce));
        }
        self.env.sleep(self.requests.place(self.env.now())).await;
        let mut response = self.exchange(request, seen).await?;
        match nonces::taken(response.headers_mut()) {
            Some(nonce) if for_a_nonce => return Ok(with_nonce(response, nonce)),
            Some(nonce) => {
                if response.status() == StatusCode::BAD_REQUEST
                    && ProblemDoc::from_body(response.body()).is_some_and(|p| p.acme_type() == "badNonce")
                {
                    self.nonces.forget();
                }
                self.nonces.keep(nonce, self.env.now());
            }
            None => {}
        }
        Ok(response)
    }

    /// A nonce that is there, or comes with somebody's answer before one may be asked for.
    async fn kept_nonce(&self) -> Option<HeaderValue> {
        loop {
            let now = self.env.now();
            if let Some(nonce) = self.nonces.take(now) {
                return Some(nonce);
            }
            let wait = self.new_nonces.now(now).err()?;
            tokio::select! {
                () = self.nonces.came() => {}
                () = self.env.sleep(wait) => {}
            }
        }
    }

    async fn exchange(
        &self,
        mut request: Request<BodyWrapper<Bytes>>,
        seen: &mut Exchange,
    ) -> Result<Response<Bytes>, Failed> {
        // RFC 8555 §6.1 asks for the name of the software that speaks.
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(concat!("nameplate/", env!("CARGO_PKG_VERSION"))));
        let response = self.client.request(request).await.map_err(|e| {
            let failure = if e.is_connect() { Failure::NotSent } else { Failure::NoAnswer };
            (failure, e.into())
        })?;
        let headers = response.headers();
        seen.status = Some(response.status());
        seen.retry_after =
            retry_after::parse(headers.get_all(RETRY_AFTER).iter().map(HeaderValue::as_bytes), self.env.now());
        seen.location = headers.get(LOCATION).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|e| (Failure::NoAnswer, e))?.to_bytes();
        Ok(Response::from_parts(parts, body))
    }
}

fn with_nonce(mut response: Response<Bytes>, nonce: HeaderValue) -> Response<Bytes> {
    response.headers_mut().insert(REPLAY_NONCE, nonce);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_goes_to_loopback_only() {
        for (url, fine) in [
            ("https://acme.example/dir", true),
            ("http://127.0.0.1:14000/dir", true),
            ("http://[::1]:14000/dir", true),
            ("http://localhost/dir", true),
            ("http://acme.example/dir", false),
            ("http://127.0.0.1.acme.example/dir", false),
            ("ftp://127.0.0.1/dir", false),
            ("/dir", false),
        ] {
            assert_eq!(may_go_to(&url.parse().unwrap()), fine, "{url}");
        }
    }

    #[test]
    fn roots_that_are_none_are_refused() {
        for pem in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let settings = HttpSettings { roots: Roots::Pem(pem.into()), ..HttpSettings::default() };
            assert!(AcmeHttp::new(&settings, &Env::real()).is_err(), "{pem:?}");
        }
    }
}
