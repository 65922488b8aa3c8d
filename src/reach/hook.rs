//! Sending something to a stranger's web server: to an address that was judged, over TLS that is trusted for the name, in
//! bounded time, reading a bounded answer, and to nowhere else than asked: a redirect is an answer like any other.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::ConfigBuilderExt as _;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, Error, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::{ReachError, address, request, tls};
use crate::env::Env;
use crate::model::hook_url::{HookHost, HookUrl};

/// More addresses of one host are not tried.
const TRIED: usize = 3;
/// How long one address may take to be connected to, with TLS, before the next one is tried.
const CONNECT: Duration = Duration::from_secs(5);
/// So much of an answer is read; what it says is nobody's business.
const READ: usize = 1024;

/// What a receiver answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookReply {
    /// The HTTP status.
    pub status: u16,
    /// How long it asked to be left alone.
    pub retry_after: Option<Duration>,
}

/// What is sent.
#[derive(Clone, Debug)]
pub struct HookRequest {
    /// Headers of its own.
    pub headers: Vec<(&'static str, String)>,
    /// A document of JSON.
    pub body: Vec<u8>,
}

/// Sends to receivers.
#[async_trait]
pub trait Hooks: Send + Sync + 'static {
    /// Posts to `hook`, whose host has these addresses.
    async fn post(&self, hook: &HookUrl, addresses: &[IpAddr], request: &HookRequest) -> Result<HookReply, ReachError>;
}

/// How the network is reached.
#[derive(Clone, Debug)]
pub struct HookSettings {
    /// Whether loopback addresses may be asked: in a sandbox only.
    pub loopback: bool,
    /// How long a receiver that was connected to may take for all of its answer.
    pub timeout: Duration,
}

/// Sends over the network.
pub struct HttpHooks {
    env: Env,
    settings: HookSettings,
    connector: TlsConnector,
}

impl HttpHooks {
    /// `roots` are those that are trusted; with none, the system's are.
    pub fn new(env: &Env, settings: HookSettings, roots: Option<RootCertStore>) -> Result<Self, ReachError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(ReachError::Setup)?;
        let builder = match roots {
            Some(roots) => builder.with_root_certificates(roots),
            None => builder.with_native_roots().map_err(|e| ReachError::Setup(Error::General(e.to_string())))?,
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(HttpHooks { env: env.clone(), settings, connector: TlsConnector::from(Arc::new(config)) })
    }

    /// Connects to an address, over TLS where the URL says so.
    async fn connect(&self, hook: &HookUrl, to: IpAddr) -> Result<Box<dyn Stream>, ReachError> {
        let stream = tls::connect(SocketAddr::new(to, hook.port)).await?;
        if !hook.tls {
            return Ok(Box::new(stream));
        }
        let name = match &hook.host {
            HookHost::Name(name) => ServerName::try_from(name.as_str().to_owned())
                .map_err(|e| ReachError::Setup(Error::General(format!("{name} is no name for TLS: {e}"))))?,
            HookHost::Address(address) => ServerName::IpAddress((*address).into()),
        };
        Ok(Box::new(self.connector.connect(name, stream).await.map_err(ReachError::Tls)?))
    }

    /// Connects to the first address that lets itself be connected to. Whoever could not be reached, or is none to be asked, got
    /// nothing: the next address is as good as the first.
    async fn connected(&self, hook: &HookUrl, addresses: &[IpAddr]) -> Result<Box<dyn Stream>, ReachError> {
        let mut last = ReachError::Connect(std::io::ErrorKind::TimedOut.into());
        for address in addresses.iter().take(TRIED) {
            let to = match address::judge(*address, self.settings.loopback) {
                Ok(to) => to,
                Err(refusal) => {
                    last = ReachError::Refused(refusal);
                    continue;
                }
            };
            let outcome = tokio::select! {
                biased;
                outcome = self.connect(hook, to) => outcome,
                () = self.env.sleep(CONNECT) => Err(ReachError::Connect(std::io::ErrorKind::TimedOut.into())),
            };
            match outcome {
                Ok(stream) => return Ok(stream),
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    async fn exchange(
        &self,
        stream: Box<dyn Stream>,
        hook: &HookUrl,
        request: &HookRequest,
    ) -> Result<HookReply, ReachError> {
        let mut built = http::Request::post(hook.path.as_str())
            .header(HOST, hook.authority())
            .header(USER_AGENT, concat!("nameplate/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json")
            .header(CONNECTION, "close");
        for (name, value) in &request.headers {
            built = built.header(*name, value.as_str());
        }
        let built = built.body(Full::new(Bytes::from(request.body.clone()))).map_err(ReachError::Request)?;
        let got = request::send(stream, built, READ).await?;
        let asked = got.retry_after.as_deref().and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        Ok(HookReply { status: got.status, retry_after: asked })
    }
}

/// What a request goes over.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

#[async_trait]
impl Hooks for HttpHooks {
    async fn post(&self, hook: &HookUrl, addresses: &[IpAddr], request: &HookRequest) -> Result<HookReply, ReachError> {
        let stream = self.connected(hook, addresses).await?;
        tokio::select! {
            biased;
            outcome = self.exchange(stream, hook, request) => outcome,
            () = self.env.sleep(self.settings.timeout) => Err(ReachError::TimedOut(self.settings.timeout)),
        }
    }
}
