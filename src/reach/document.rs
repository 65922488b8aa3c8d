//! Small documents of strangers, over HTTPS: from addresses that were judged, with a certificate that is trusted for the name,
//! in bounded time and size, and from nowhere else than asked: a redirect is an answer like any other.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper_rustls::ConfigBuilderExt as _;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, Error, RootCertStore};
use tokio_rustls::TlsConnector;

use super::{ReachError, address, request, tls};
use crate::env::Env;
use crate::model::hostname::Hostname;

/// More addresses of one host are not tried.
const TRIED: usize = 3;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The HTTP status.
    pub status: u16,
    /// The body; more than was asked for shows that it was longer.
    pub body: Vec<u8>,
}

/// Fetches documents.
#[async_trait]
pub trait Documents: Send + Sync + 'static {
    /// What `host`, which has these addresses, answers for `path`; of its body not much more than `limit` bytes.
    async fn fetch(&self, host: &Hostname, path: &str, addresses: &[IpAddr], limit: usize) -> Result<Document, ReachError>;
}

/// How the network is reached.
#[derive(Clone, Debug)]
pub struct DocumentSettings {
    /// The port: 443, elsewhere only in a sandbox.
    pub port: u16,
    /// Whether loopback addresses may be asked: in a sandbox only.
    pub loopback: bool,
    /// How long one address may take for all of its answer.
    pub timeout: Duration,
}

/// Fetches over the network.
pub struct HttpsDocuments {
    env: Env,
    settings: DocumentSettings,
    connector: TlsConnector,
}

impl HttpsDocuments {
    /// `roots` are those that are trusted; with none, the system's are.
    pub fn new(env: &Env, settings: DocumentSettings, roots: Option<RootCertStore>) -> Result<Self, ReachError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(ReachError::Setup)?;
        let builder = match roots {
            Some(roots) => builder.with_root_certificates(roots),
            None => builder.with_native_roots().map_err(|e| ReachError::Setup(Error::General(e.to_string())))?,
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(HttpsDocuments { env: env.clone(), settings, connector: TlsConnector::from(Arc::new(config)) })
    }

    async fn from(&self, host: &Hostname, path: &str, to: IpAddr, limit: usize) -> Result<Document, ReachError> {
        let to = address::judge(to, self.settings.loopback).map_err(ReachError::Refused)?;
        let name = ServerName::try_from(host.as_str().to_owned())
            .map_err(|e| ReachError::Setup(Error::General(format!("{host} is no name for TLS: {e}"))))?;
        let stream = tls::connect(SocketAddr::new(to, self.settings.port)).await?;
        let stream = self.connector.connect(name, stream).await.map_err(ReachError::Tls)?;
        let got = request::get(stream, host, path, limit).await?;
        Ok(Document { status: got.status, body: got.body })
    }
}

#[async_trait]
impl Documents for HttpsDocuments {
    async fn fetch(&self, host: &Hostname, path: &str, addresses: &[IpAddr], limit: usize) -> Result<Document, ReachError> {
        let mut last = ReachError::TimedOut(self.settings.timeout);
        for to in addresses.iter().take(TRIED) {
            let outcome = tokio::select! {
                biased;
                outcome = self.from(host, path, *to, limit) => outcome,
                () = self.env.sleep(self.settings.timeout) => Err(ReachError::TimedOut(self.settings.timeout)),
            };
            match outcome {
                Ok(document) => return Ok(document),
                Err(e) => last = e,
            }
        }
        Err(last)
    }
}
