//! Connecting, with TLS or without: any certificate is taken, and what it is worth is written down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use x509_parser::extensions::GeneralName;

use super::ReachError;
use crate::env::Env;
use crate::model::hostname::Hostname;
use crate::model::serial;

/// Connects to an address that was judged.
pub(super) async fn connect(to: SocketAddr) -> Result<TcpStream, ReachError> {
    TcpStream::connect(to).await.map_err(ReachError::Connect)
}

/// The certificate that was served.
pub(super) struct Leaf {
    pub(super) serial: String,
    pub(super) trusted: bool,
    /// The names it is for.
    names: Vec<String>,
}

/// So many names of a certificate are told.
const NAMES: usize = 3;

impl Leaf {
    /// The names it is for, where `host` is none of them.
    pub(super) fn others(&self, host: &Hostname) -> Option<Vec<String>> {
        let covers = |name: &String| match name.strip_prefix("*.") {
            Some(zone) => host.as_str().split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(zone)),
            None => host.as_str().eq_ignore_ascii_case(name),
        };
        (!self.names.iter().any(covers))
            .then(|| self.names.iter().take(NAMES).map(|name| super::place::shown(name)).collect())
    }
}

/// Opens TLS connections by a public name.
pub(super) struct Dialer {
    env: Env,
    connector: TlsConnector,
    judge: Option<Arc<WebPkiServerVerifier>>,
}

impl Dialer {
    pub(super) fn new(env: &Env, roots: Arc<RootCertStore>) -> Result<Self, ReachError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let judge = if roots.is_empty() {
            None
        } else {
            let built = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
            Some(built.map_err(|e| ReachError::Setup(Error::General(e.to_string())))?)
        };
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(ReachError::Setup)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TakesAny(provider)))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A resumed session shows the certificate of an earlier one.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Dialer { env: env.clone(), connector: TlsConnector::from(Arc::new(config)), judge })
    }

    pub(super) async fn dial(&self, host: &Hostname, to: SocketAddr) -> Result<(TlsStream<TcpStream>, Leaf), ReachError> {
        let name = ServerName::try_from(host.as_str().to_owned())
            .map_err(|e| ReachError::Setup(Error::General(format!("{host} is no name for TLS: {e}"))))?;
        let stream = self.connector.connect(name.clone(), connect(to).await?).await.map_err(ReachError::Tls)?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let (leaf, between) = chain.split_first().ok_or(ReachError::Certificate)?;
        let (serial, names) = read(leaf)?;
        let leaf = Leaf { serial, names, trusted: self.trusts(leaf, between, &name) };
        Ok((stream, leaf))
    }

    fn trusts(&self, leaf: &CertificateDer<'_>, between: &[CertificateDer<'_>], name: &ServerName<'_>) -> bool {
        let secs = u64::try_from(self.env.now().secs()).unwrap_or(0);
        let now = UnixTime::since_unix_epoch(Duration::from_secs(secs));
        self.judge.as_ref().is_some_and(|judge| judge.verify_server_cert(leaf, between, name, &[], now).is_ok())
    }
}

/// Serial number and names.
fn read(leaf: &CertificateDer<'_>) -> Result<(String, Vec<String>), ReachError> {
    let (_, parsed) = x509_parser::parse_x509_certificate(leaf).map_err(|_| ReachError::Certificate)?;
    let serial = serial::of(parsed.raw_serial());
    let list = parsed.subject_alternative_name().ok().flatten().map(|ext| &ext.value.general_names);
    let names = list.into_iter().flatten().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    });
    Ok((serial, names.collect()))
}

/// Takes any certificate whose key the server proves to have: the question is which one is served.
#[derive(Debug)]
struct TakesAny(Arc<CryptoProvider>);

impl ServerCertVerifier for TakesAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
