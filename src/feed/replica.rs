//! The book in memory, shared between the one task that changes it and the many that look things up.
//!
//! A look-up takes a read lock for well under a microsecond and clones one `Arc`; a delta changes entries in place, so there is
//! never a second whole copy but while a snapshot is swapped in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use crate::env::Env;
use crate::model::feed::{CertificateEntry, Deltas, HostEntry, Position};
use crate::model::feed_apply::{Applied, Book, CertificateCount, NeedSnapshot, Served};
use crate::model::moment::Moment;
use crate::model::secret::Secret;
use crate::vault::distribution::{DistributionError, DistributionKey, DistributionKeyId, Packet, Preflight, is_preflight};

use super::wire::key_label;

/// Names looked at again after a snapshot at most: a start with many hosts must not wait for a handshake with each.
const LOOKED_AT_AFTER_SNAPSHOT: usize = 256;

/// What a reader of the feed knows.
pub struct Replica {
    env: Env,
    book: RwLock<Option<Book>>,
    keys: RwLock<HashMap<DistributionKeyId, DistributionKey>>,
    heard_at: AtomicI64,
    left_behind: AtomicBool,
    trouble: Mutex<Option<String>>,
}

/// How a reader is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// Where its book stands; none when it has none and refuses to serve.
    pub position: Option<Position>,
    /// When the control plane last confirmed that the book was current: the copy's age counts from here.
    pub heard_at: Option<Moment>,
    /// Whether the control plane has left it behind and does not count it.
    pub left_behind: bool,
    /// What keeps it from following, if anything.
    pub trouble: Option<String>,
    /// Hostnames served.
    pub serving: usize,
}

/// Why a certificate's key is not at hand.
#[derive(Debug, thiserror::Error)]
pub enum NoKey {
    /// The entry says nothing to serve with.
    #[error("the certificate was destroyed")]
    Destroyed,
    /// Its distribution key was not given to this reader.
    #[error("it is sealed under distribution key {0}, which this edge was not given")]
    NotGiven(DistributionKeyId),
    /// It does not open.
    #[error("its key does not open")]
    DoesNotOpen(#[from] DistributionError),
}

impl Replica {
    /// A reader that knows nothing yet.
    pub fn new(env: Env) -> Replica {
        Replica {
            env,
            book: RwLock::default(),
            keys: RwLock::default(),
            heard_at: AtomicI64::new(i64::MIN),
            left_behind: AtomicBool::new(false),
            trouble: Mutex::default(),
        }
    }

    fn book(&self) -> RwLockReadGuard<'_, Option<Book>> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a book at all. Without one a reader must refuse, not say that a host is unknown.
    pub fn has_book(&self) -> bool {
        self.book().is_some()
    }

    /// Where the book stands.
    pub fn position(&self) -> Option<Position> {
        self.book().as_ref().map(Book::position)
    }

    /// The host that a name is served as.
    pub fn host(&self, name: &str) -> Option<Arc<HostEntry>> {
        self.book().as_ref()?.host(name).cloned()
    }

    /// Where the visitors of a host are sent on to, if anywhere.
    pub fn redirect_of(&self, host: &HostEntry) -> Option<String> {
        self.book().as_ref()?.redirect_of(host, self.env.now()).map(str::to_owned)
    }

    /// The certificate to show for a server name.
    pub fn certificate_for(&self, name: &str) -> Option<Arc<CertificateEntry>> {
        self.book().as_ref()?.certificate_for(name, self.env.now()).cloned()
    }

    /// What must be shown for a hostname of the book now.
    pub fn served(&self, hostname: &str) -> Option<Served> {
        self.book().as_ref()?.served(hostname)
    }

    /// What must be shown for the next hostnames after one, in their order.
    pub fn served_after(&self, hostname: &str, many: usize) -> Vec<Served> {
        self.book().as_ref().map(|book| book.served_from(hostname, many)).unwrap_or_default()
    }

    /// The answer to a challenge.
    pub fn key_authorization(&self, token: &str) -> Option<String> {
        self.book().as_ref()?.key_authorization(token).map(str::to_owned)
    }

    /// The answer to a preflight of the control plane: by the distribution keys, whatever the book says of the host.
    pub fn preflight_answer(&self, token: &str) -> Option<String> {
        if !is_preflight(token) {
            return None;
        }
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.values().find_map(|key| Preflight::of(key).answer(token))
    }

    /// What the certificates of the book come to.
    pub fn certificates(&self) -> CertificateCount {
        let now = self.env.now();
        self.book().as_ref().map_or_else(CertificateCount::default, |book| book.count_certificates(now))
    }

    /// Opens a certificate's PKCS#8 key.
    pub fn open_key(&self, certificate: &CertificateEntry) -> Result<Secret, NoKey> {
        let material = certificate.material.as_ref().ok_or(NoKey::Destroyed)?;
        let packet = Packet::try_from(material.sealed_key.clone())?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.get(&packet.key_id()).ok_or(NoKey::NotGiven(packet.key_id()))?;
        Ok(key.open(key_label(certificate.id.as_str()), &packet)?)
    }

    /// How this reader is doing.
    pub fn status(&self) -> ReplicaStatus {
        let heard_at = self.heard_at.load(Ordering::Relaxed);
        let book = self.book();
        ReplicaStatus {
            position: book.as_ref().map(Book::position),
            heard_at: (heard_at != i64::MIN).then(|| Moment::from_micros(heard_at)),
            left_behind: self.left_behind.load(Ordering::Relaxed),
            trouble: self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            serving: book.as_ref().map_or(0, Book::serving),
        }
    }

    pub(super) fn knows_key(&self, id: &DistributionKeyId) -> bool {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    pub(super) fn learn_keys(&self, keys: impl IntoIterator<Item = DistributionKey>) {
        let mut known = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        known.extend(keys.into_iter().map(|k| (k.id(), k)));
    }

    /// Takes a whole book; the names whose certificate is another than before.
    pub(super) fn replace(&self, book: Book) -> Vec<Served> {
        let differ = book.served_unlike(self.book().as_ref()).take(LOOKED_AT_AFTER_SNAPSHOT).collect();
        let before = self.book.write().unwrap_or_else(PoisonError::into_inner).replace(book);
        // Freeing a large book takes a while: not under the lock.
        drop(before);
        differ
    }

    /// Applies deltas; what they did, and the names whose certificate to look at.
    pub(super) fn apply(&self, deltas: Deltas) -> Option<Result<(Applied, Vec<Served>), NeedSnapshot>> {
        let mut guard = self.book.write().unwrap_or_else(PoisonError::into_inner);
        let book = guard.as_mut()?;
        Some(book.apply(deltas).map(|applied| {
            let served = book.served_after(&applied);
            (applied, served)
        }))
    }

    /// Names to look at after a start.
    pub(super) fn some_served(&self) -> Vec<Served> {
        let book = self.book();
        book.iter().flat_map(|b| b.served_unlike(None)).take(LOOKED_AT_AFTER_SNAPSHOT).collect()
    }

    /// Reads the whole book, for writing the copy.
    pub(super) fn with_book<T>(&self, read: impl FnOnce(&Book) -> T) -> Option<T> {
        self.book().as_ref().map(read)
    }

    pub(super) fn heard(&self, left_behind: bool) {
        self.left_behind.store(left_behind, Ordering::Relaxed);
    }

    pub(super) fn current(&self) {
        self.heard_at.store(self.env.now().micros(), Ordering::Relaxed);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn troubled(&self, trouble: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }
}
