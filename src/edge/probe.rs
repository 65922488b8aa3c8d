//! The edge looks at itself: a real handshake with its own listener, and the certificate that came back compared with the one
//! that should have. After a change it looks at the names that changed; beside that it walks through all its names, a few at a time, for
//! what goes wrong without a change, such as an end that is reached.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::certificates::{CertificateBook, leaf, provider};
use crate::env::Env;
use crate::feed::follow::Observer;
use crate::feed::replica::Replica;
use crate::feed::wire::Exception;
use crate::model::feed_apply::Served;
use crate::model::id::CertificateId;
use crate::model::moment::Moment;
use crate::model::serial;

/// Handshakes at a time.
const AT_ONCE: usize = 8;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Exceptions told of; more would say nothing new.
const TOLD: usize = 500;
/// Of all names so many are looked at...
const WALKED: usize = 8;
/// ...this often: some 2,900 handshakes an hour, whatever the number of names.
const WALK_EVERY: Duration = Duration::from_secs(10);

/// Probes the edge's own TLS listener.
pub struct Prober {
    own: SocketAddr,
    replica: Arc<Replica>,
    certificates: Arc<CertificateBook>,
    env: Env,
    connector: TlsConnector,
    /// What was wrong, by hostname, so that it can be looked at again.
    wrong: Mutex<BTreeMap<Box<str>, Exception>>,
    walk: Mutex<Walk>,
}

/// Where the walk through all names is.
#[derive(Default)]
struct Walk {
    /// The last name that was looked at.
    last: Box<str>,
    next_at: Moment,
}

impl Prober {
    /// Of the listener at `own`, which serves what the replica holds.
    pub fn new(
        own: SocketAddr,
        replica: Arc<Replica>,
        certificates: Arc<CertificateBook>,
        env: Env,
    ) -> Result<Prober, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anything(provider())))
            .with_no_client_auth();
        // A resumed session would show the certificate of an earlier one.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Prober {
            own,
            replica,
            certificates,
            env,
            connector: TlsConnector::from(Arc::new(config)),
            wrong: Mutex::default(),
            walk: Mutex::default(),
        })
    }

    /// What is wrong with what is served for a name; none when it is right.
    pub async fn look(&self, served: &Served) -> Option<Exception> {
        let wrong = |observed: String, serial| {
            let certificate_id = served.certificate.id.clone();
            Some(Exception { certificate_id, observed, serial })
        };
        let Some(expected) = leaf(&served.certificate) else { return wrong("the chain is no PEM".to_owned(), None) };
        // A star stands for one label; any will do.
        let name = served.hostname.replacen('*', "nameplate-probe", 1);
        let Ok(name) = ServerName::try_from(name) else { return wrong("the hostname is no server name".to_owned(), None) };
        let handshake = async {
            let stream = TcpStream::connect(self.own).await?;
            let stream = self.connector.connect(name, stream).await?;
            Ok::<_, std::io::Error>(stream.get_ref().1.peer_certificates().and_then(|c| c.first().cloned()))
        };
        tokio::select! {
            seen = handshake => match seen {
                Ok(Some(seen)) if seen == expected => None,
                Ok(Some(seen)) => match serial_of(&seen) {
                    Some(serial) => wrong(format!("serial {serial}"), Some(serial)),
                    None => wrong("a certificate that cannot be read".to_owned(), None),
                },
                Ok(None) => wrong("no certificate".to_owned(), None),
                Err(error) => wrong(format!("the handshake failed: {error}"), None),
            },
            () = self.env.sleep(PATIENCE) => wrong(format!("no handshake within {} s", PATIENCE.as_secs()), None),
        }
    }

    /// The next names of the walk, if it is time; after the last one it begins again.
    fn walked(&self) -> Vec<Served> {
        let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.env.now();
        if now < walk.next_at {
            return Vec::new();
        }
        let next = self.replica.served_after(&walk.last, WALKED);
        walk.last = next.last().filter(|_| next.len() == WALKED).map(|served| served.hostname.clone()).unwrap_or_default();
        walk.next_at = now + WALK_EVERY;
        next
    }

    fn wrong(&self) -> std::sync::MutexGuard<'_, BTreeMap<Box<str>, Exception>> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serial_of(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(serial::of(parsed.raw_serial()))
}

#[async_trait]
impl Observer for Prober {
    fn changed(&self, certificates: Option<&[CertificateId]>) {
        self.certificates.forget(certificates);
    }

    async fn observe(&self, served: Vec<Served>) {
        let looks = stream::iter(served).map(|served| async move {
            let seen = self.look(&served).await;
            (served, seen)
        });
        let mut looks = looks.buffer_unordered(AT_ONCE);
        while let Some((served, seen)) = looks.next().await {
            match seen {
                None => drop(self.wrong().remove(&served.hostname)),
                Some(wrong) => {
                    let (certificate, observed) = (&wrong.certificate_id, &*wrong.observed);
                    tracing::error!(hostname = &*served.hostname, %certificate, observed, "this edge does not serve what it holds");
                    self.wrong().insert(served.hostname, wrong);
                }
            }
        }
    }

    async fn exceptions(&self) -> Vec<Exception> {
        let names: Vec<Box<str>> = self.wrong().keys().take(TOLD).cloned().collect();
        let mut again = self.walked();
        for name in names {
            match self.replica.served(&name) {
                Some(served) => again.push(served),
                // The name is no longer served: nothing is wrong with that.
                None => drop(self.wrong().remove(&name)),
            }
        }
        self.observe(again).await;
        let wrong = self.wrong();
        let by_certificate: BTreeMap<_, _> = wrong.values().map(|wrong| (&wrong.certificate_id, wrong)).collect();
        by_certificate.into_values().take(TOLD).cloned().collect()
    }
}

/// Trusts any certificate: the probe asks which one is shown, not whether it is good. The handshake's signature is checked, so
/// the key behind it is the certificate's own.
#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
