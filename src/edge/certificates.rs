//! Which certificate to show: by server name, from the feed's book, parsed when first asked for.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::feed::replica::{NoKey, Replica};
use crate::model::feed::CertificateEntry;
use crate::model::id::CertificateId;

/// Parsed certificates kept in each of two generations. Parsing one takes 20 µs against 150 µs of a handshake.
const GENERATION: usize = 10_000;

/// The one provider of cryptography.
pub(super) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider())))
}

/// Why a certificate cannot be shown.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("its key is not at hand")]
    NoKey(#[from] NoKey),
    #[error("its chain is no PEM")]
    Chain(#[from] rustls::pki_types::pem::Error),
    #[error("its key and chain do not make a certificate")]
    Tls(#[from] rustls::Error),
    #[error("its chain is empty")]
    Empty,
}

/// Chooses certificates for handshakes.
pub struct CertificateBook {
    replica: Arc<Replica>,
    parsed: Mutex<Generations>,
}

impl CertificateBook {
    /// Over a replica of the feed.
    pub fn new(replica: Arc<Replica>) -> Self {
        CertificateBook { replica, parsed: Mutex::default() }
    }

    /// The certificate for a server name. None means an alert: nothing of anybody's is shown to a stranger.
    fn choose(&self, server_name: &str) -> Option<Arc<CertifiedKey>> {
        let name = server_name.trim_end_matches('.').to_ascii_lowercase();
        let entry = self.replica.certificate_for(&name)?;
        if let Some(parsed) = self.lock().get(&entry.id) {
            return Some(parsed);
        }
        match self.parse(&entry) {
            Ok(parsed) => {
                let parsed = Arc::new(parsed);
                self.lock().put(entry.id.clone(), Arc::clone(&parsed));
                Some(parsed)
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, certificate = %entry.id, "a certificate of the book cannot be shown");
                None
            }
        }
    }

    /// Lets go of what was parsed from these certificates, or of all: a destroyed key must not linger.
    pub(super) fn forget(&self, certificates: Option<&[CertificateId]>) {
        let mut parsed = self.lock();
        match certificates {
            None => *parsed = Generations::default(),
            Some(ids) => ids.iter().for_each(|id| parsed.remove(id)),
        }
    }

    fn parse(&self, entry: &CertificateEntry) -> Result<CertifiedKey, Unusable> {
        let key = self.replica.open_key(entry)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.expose().to_vec()));
        Ok(CertifiedKey::from_der(chain(entry)?, key, &provider())?)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        self.parsed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn chain(entry: &CertificateEntry) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let pem = entry.material.as_ref().ok_or(NoKey::Destroyed)?.chain.as_bytes();
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
    if chain.is_empty() { Err(Unusable::Empty) } else { Ok(chain) }
}

/// The leaf of an entry's chain, to compare with what was served.
pub(super) fn leaf(entry: &CertificateEntry) -> Option<CertificateDer<'static>> {
    chain(entry).ok()?.into_iter().next()
}

impl ResolvesServerCert for CertificateBook {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name()?)
    }
}

impl fmt::Debug for CertificateBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateBook")
    }
}

/// A bounded cache without a clock: what is used moves to the young generation; when that is full it becomes the old one.
#[derive(Default)]
struct Generations {
    young: HashMap<CertificateId, Arc<CertifiedKey>>,
    old: HashMap<CertificateId, Arc<CertifiedKey>>,
}

impl Generations {
    fn get(&mut self, id: &CertificateId) -> Option<Arc<CertifiedKey>> {
        if let Some(found) = self.young.get(id) {
            return Some(Arc::clone(found));
        }
        let (id, found) = self.old.remove_entry(id)?;
        self.put(id, Arc::clone(&found));
        Some(found)
    }

    fn remove(&mut self, id: &CertificateId) {
        self.young.remove(id);
        self.old.remove(id);
    }

    fn put(&mut self, id: CertificateId, parsed: Arc<CertifiedKey>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, parsed);
    }
}
