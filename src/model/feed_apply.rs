//! The book an edge keeps, and how the feed changes it. Applying the deltas up to a position gives what the snapshot of that
//! position gives; what does not connect asks for a snapshot; newer wins and older is refused.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::feed::{CertificateEntry, ChallengeEntry, Deltas, Entry, HostAction, HostEntry, Position, Snapshot, TenantEntry};
use super::id::{CertificateId, TenantId};
use super::moment::Moment;
use super::tenant::TenantStatus;

/// All an edge knows, as of a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Book {
    position: Position,
    tenants: HashMap<TenantId, Arc<TenantEntry>>,
    hosts: HashMap<Box<str>, Arc<HostEntry>>,
    certificates: HashMap<CertificateId, Arc<CertificateEntry>>,
    /// Those of them that are the platform's own, by age: a handful.
    platform: BTreeMap<CertificateId, Arc<CertificateEntry>>,
    challenges: HashMap<Box<str>, Arc<ChallengeEntry>>,
}

/// Deltas that do not connect to the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeedSnapshot {
    /// Changes between the two numbers are missing.
    #[error("the changes after {have} up to {after} are missing")]
    Gap {
        /// The last number applied.
        have: i64,
        /// Where the deltas begin.
        after: i64,
    },
    /// The control plane began anew.
    #[error("the book is of epoch {have}, the changes are of epoch {seen}")]
    NewEpoch {
        /// The epoch of the book.
        have: i64,
        /// The epoch of the deltas.
        seen: i64,
    },
}

/// What applying deltas did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Hostnames whose entry changed.
    pub hosts: Vec<Box<str>>,
    /// Certificates whose entry changed.
    pub certificates: Vec<CertificateId>,
    /// Subjects whose entry was older than the book's and was refused: worth an alarm.
    pub refused: Vec<String>,
}

/// A hostname and the certificate an edge must show for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The name.
    pub hostname: Box<str>,
    /// Its certificate.
    pub certificate: Arc<CertificateEntry>,
}

/// A host as an edge remembers it, and the certificate that it shows there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// The host.
    pub host: HostEntry,
    /// The serial number of its certificate.
    pub serial: Option<String>,
    /// When that ends.
    pub not_after: Option<Moment>,
}

/// What the certificates of a book come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateCount {
    /// All of them.
    pub held: usize,
    /// Hostnames served with one that has expired.
    pub expired: usize,
    /// When the first one that is served expires.
    pub soonest_expiry: Option<Moment>,
}

impl Book {
    /// The book that a snapshot describes.
    pub fn from_snapshot(snapshot: Snapshot) -> Book {
        let mut book = Book {
            position: snapshot.position,
            tenants: HashMap::new(),
            hosts: HashMap::new(),
            certificates: HashMap::new(),
            platform: BTreeMap::new(),
            challenges: HashMap::new(),
        };
        let mut applied = Applied::default();
        for entry in snapshot.entries {
            book.put(entry, &mut applied);
        }
        book
    }

    /// The hosts of which this book was told later than a restored control plane knows: what it has to be reminded of.
    pub fn newer_than(&self, snapshot: &Snapshot) -> Vec<Remembered> {
        let known: HashMap<&str, i64> = snapshot
            .entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Host(host) => Some((host.hostname.as_str(), host.version)),
                _ => None,
            })
            .collect();
        let newer = self.hosts.values().filter(|host| known.get(host.hostname.as_str()).is_none_or(|v| *v < host.version));
        let mut all: Vec<Remembered> = newer
            .map(|host| {
                let certificate = host.certificate_id.as_ref().and_then(|id| self.certificates.get(id));
                let material = certificate.and_then(|c| c.material.as_ref());
                Remembered {
                    host: (**host).clone(),
                    serial: material.map(|m| m.serial.clone()),
                    not_after: material.map(|m| m.not_after),
                }
            })
            .collect();
        all.sort_by(|a, b| a.host.hostname.cmp(&b.host.hostname));
        all
    }

    /// This book with what a restored control plane has on top: newer wins, and what only this book knows stays.
    #[must_use]
    pub fn with_recovered(&self, snapshot: Snapshot) -> Book {
        let mut book = self.clone();
        book.position = snapshot.position;
        let mut applied = Applied::default();
        for entry in snapshot.entries {
            book.put(entry, &mut applied);
        }
        book
    }

    /// The snapshot that describes this book.
    pub fn to_snapshot(&self) -> Snapshot {
        let tenants = self.tenants.values().map(|e| Entry::Tenant((**e).clone()));
        let certificates = self.certificates.values().map(|e| Entry::Certificate((**e).clone()));
        let hosts = self.hosts.values().map(|e| Entry::Host((**e).clone()));
        let challenges = self.challenges.values().map(|e| Entry::Challenge((**e).clone()));
        Snapshot { position: self.position, entries: tenants.chain(certificates).chain(hosts).chain(challenges).collect() }
    }

    /// Where the book stands.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Applies deltas that begin at or before the book's position. What they repeat changes nothing.
    pub fn apply(&mut self, deltas: Deltas) -> Result<Applied, NeedSnapshot> {
        if deltas.epoch != self.position.epoch {
            return Err(NeedSnapshot::NewEpoch { have: self.position.epoch, seen: deltas.epoch });
        }
        if deltas.after > self.position.seq {
            return Err(NeedSnapshot::Gap { have: self.position.seq, after: deltas.after });
        }
        let mut applied = Applied::default();
        if deltas.upto <= self.position.seq {
            return Ok(applied);
        }
        for entry in deltas.entries {
            self.put(entry, &mut applied);
        }
        self.position.seq = deltas.upto;
        Ok(applied)
    }

    fn put(&mut self, entry: Entry, applied: &mut Applied) {
        match entry {
            Entry::Tenant(e) => match newer(self.tenants.get(&e.id).map(|old| old.version), e.version) {
                Newer::Yes => drop(self.tenants.insert(e.id.clone(), Arc::new(e))),
                Newer::Same => {}
                Newer::No => applied.refused.push(e.id.to_string()),
            },
            Entry::Host(e) => {
                let name: Box<str> = e.hostname.as_str().into();
                match newer(self.hosts.get(&name).map(|old| old.version), e.version) {
                    Newer::Yes => {
                        self.hosts.insert(name.clone(), Arc::new(e));
                        applied.hosts.push(name);
                    }
                    Newer::Same => {}
                    Newer::No => applied.refused.push(name.into()),
                }
            }
            Entry::Certificate(e) => match newer(self.certificates.get(&e.id).map(|old| old.version), e.version) {
                Newer::Yes => {
                    applied.certificates.push(e.id.clone());
                    // Ids are minted once, so a destroyed certificate leaves nothing that could come back.
                    match &e.material {
                        Some(material) => {
                            let (id, platform) = (e.id.clone(), material.platform);
                            let entry = Arc::new(e);
                            if platform {
                                self.platform.insert(id.clone(), Arc::clone(&entry));
                            }
                            self.certificates.insert(id, entry);
                        }
                        None => {
                            self.platform.remove(&e.id);
                            self.certificates.remove(&e.id);
                        }
                    }
                }
                Newer::Same => {}
                Newer::No => applied.refused.push(e.id.to_string()),
            },
            Entry::Challenge(e) => match newer(self.challenges.get(e.token.as_str()).map(|old| old.version), e.version) {
                Newer::Yes => match e.key_authorization {
                    Some(_) => drop(self.challenges.insert(e.token.as_str().into(), Arc::new(e))),
                    None => drop(self.challenges.remove(e.token.as_str())),
                },
                Newer::Same => {}
                Newer::No => applied.refused.push(format!("challenge for {}", e.hostname)),
            },
        }
    }

    /// The entry that serves a hostname (lower case, no trailing dot): its own, else the wildcard one label up.
    pub fn host(&self, name: &str) -> Option<&Arc<HostEntry>> {
        self.exact(name).or_else(|| self.wildcard(name))
    }

    fn exact(&self, name: &str) -> Option<&Arc<HostEntry>> {
        self.hosts.get(name).filter(|e| self.is_served(e))
    }

    /// A deleted tenant's hosts are unknown from the moment its own entry says so, whatever theirs still say.
    fn is_served(&self, host: &HostEntry) -> bool {
        host.action == HostAction::Serve && self.tenants.get(&host.tenant_id).is_none_or(|tenant| tenant.status != DELETED)
    }

    fn wildcard(&self, name: &str) -> Option<&Arc<HostEntry>> {
        let (label, parent) = name.split_once('.')?;
        if label.is_empty() || label == "*" { None } else { self.exact(&format!("*.{parent}")) }
    }

    /// The certificates that may be shown under `name` for a host, the best first: the host's own, or where it has none the
    /// platform's that cover the name, exact ones before wildcards and newer ones before older ones.
    fn shown_for<'a, 'n>(
        &'a self,
        host: Option<&'a Arc<HostEntry>>,
        name: &'n str,
    ) -> impl Iterator<Item = &'a Arc<CertificateEntry>> + use<'a, 'n> {
        let own = host.and_then(|h| h.certificate_id.as_ref()).and_then(|id| self.certificates.get(id));
        let own = own.filter(move |e| names_of(e).any(|n| covers(n, name)));
        let platform = host.filter(|h| h.certificate_id.is_none()).map(|_| &self.platform);
        let newest_first = move || platform.into_iter().flat_map(|all| all.values().rev());
        let exact = newest_first().filter(move |e| names_of(e).any(|n| n == name));
        let wild = newest_first().filter(move |e| names_of(e).any(|n| n != name && covers(n, name)));
        own.into_iter().chain(exact).chain(wild)
    }

    /// The certificate to show for a server name: the exact host's while it is valid, else the wildcard's of the same tenant,
    /// else the exact host's though it expired, which tells a visitor more than an alert does. Never one that does not name the
    /// host, nor another tenant's: an exact name and a wildcard over it are held separately.
    pub fn certificate_for(&self, name: &str, now: Moment) -> Option<&Arc<CertificateEntry>> {
        let exact = self.exact(name);
        let wildcard = self.wildcard(name).filter(|wild| exact.is_none_or(|own| own.tenant_id == wild.tenant_id));
        let all = || self.shown_for(exact, name).chain(self.shown_for(wildcard, name));
        all().find(|e| e.material.as_ref().is_some_and(|m| m.not_after > now)).or_else(|| all().next())
    }

    /// Where the visitors of a host are sent on to: only to a name that is served here and now, with a valid certificate, for
    /// the same tenant, and that sends nobody on itself.
    pub fn redirect_of(&self, host: &HostEntry, now: Moment) -> Option<&str> {
        let target = self.exact(host.redirect_to.as_ref()?.as_str())?;
        let name = target.hostname.as_str();
        let lasts = |e: &Arc<CertificateEntry>| e.material.as_ref().is_some_and(|m| m.not_after > now);
        let ends_there =
            target.tenant_id == host.tenant_id && target.redirect_to.is_none() && *name != *host.hostname.as_str();
        (ends_there && self.certificate_for(name, now).is_some_and(lasts)).then_some(name)
    }

    /// The answer to a challenge.
    pub fn key_authorization(&self, token: &str) -> Option<&str> {
        self.challenges.get(token)?.key_authorization.as_deref()
    }

    /// How many hostnames are served.
    pub fn serving(&self) -> usize {
        self.hosts.values().filter(|e| self.is_served(e)).count()
    }

    /// What the certificates come to.
    pub fn count_certificates(&self, now: Moment) -> CertificateCount {
        let serving = self.hosts.iter().filter(|(_, host)| self.is_served(host));
        let shown = serving.filter_map(|(name, host)| self.shown_for(Some(host), name).next());
        let material = shown.filter_map(|shown| shown.material.as_ref());
        let mut count = CertificateCount { held: self.certificates.len(), ..CertificateCount::default() };
        for until in material.map(|m| m.not_after) {
            count.expired += usize::from(until <= now);
            count.soonest_expiry = Some(count.soonest_expiry.map_or(until, |soonest| soonest.min(until)));
        }
        count
    }

    /// The names whose certificate to look at after a change: those that changed, those whose certificate did, and of the
    /// many that show a changed certificate of the platform a few.
    pub fn served_after(&self, applied: &Applied) -> Vec<Served> {
        let changed = applied.certificates.iter().filter_map(|id| self.certificates.get(id));
        let by_certificate = changed.flat_map(names_of);
        let shared = applied.certificates.iter().filter_map(|id| self.platform.get(id)).flat_map(|changed| {
            let hosts = self.hosts.iter().filter(|(_, host)| host.certificate_id.is_none() && self.is_served(host));
            let showing = hosts.filter(|(name, host)| {
                self.shown_for(Some(host), name).next().is_some_and(|shown| Arc::ptr_eq(shown, changed))
            });
            showing.map(|(name, _)| name.as_ref()).take(LOOKED_AT_OF_MANY)
        });
        let mut names: Vec<&str> = applied.hosts.iter().map(AsRef::as_ref).chain(by_certificate).chain(shared).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().filter_map(|name| self.served(name)).collect()
    }

    /// The names whose certificate differs from another book's.
    pub fn served_unlike<'a>(&'a self, other: Option<&'a Book>) -> impl Iterator<Item = Served> + 'a {
        let before = move |name: &str| other.and_then(|b| b.shown_for(b.hosts.get(name), name).next().cloned());
        self.hosts.keys().filter_map(|name| self.served(name)).filter(move |s| {
            before(&s.hostname).is_none_or(|b| (&b.id, b.version) != (&s.certificate.id, s.certificate.version))
        })
    }

    /// What must be shown for the next hostnames after one, in their order.
    pub fn served_from(&self, after: &str, many: usize) -> Vec<Served> {
        let mut next = BTreeSet::new();
        for (name, host) in self.hosts.iter().filter(|(name, _)| ***name > *after) {
            let is_next = next.len() < many || next.last().is_some_and(|last: &&str| **name < **last);
            // A name without a certificate is passed over, and does not count.
            if is_next && self.is_served(host) && self.served(name).is_some() {
                next.insert(name.as_ref());
                if next.len() > many {
                    next.pop_last();
                }
            }
        }
        next.into_iter().filter_map(|name| self.served(name)).collect()
    }

    /// What must be shown for a hostname of the book.
    pub fn served(&self, name: &str) -> Option<Served> {
        let certificate = self.shown_for(self.exact(name), name).next()?;
        Some(Served { hostname: name.into(), certificate: Arc::clone(certificate) })
    }
}

/// The status of a tenant that is no more.
const DELETED: &str = TenantStatus::Deleted.as_str();
/// Hosts looked at when a certificate changed that very many show.
const LOOKED_AT_OF_MANY: usize = 8;

fn names_of(certificate: &Arc<CertificateEntry>) -> impl Iterator<Item = &str> {
    certificate.material.iter().flat_map(|m| m.names.iter().map(String::as_str))
}

/// Whether a name of a certificate covers a hostname: itself, or one label in place of the star (RFC 9525 section 6.3).
pub fn covers(pattern: &str, name: &str) -> bool {
    pattern == name
        || pattern
            .strip_prefix("*.")
            .is_some_and(|parent| name.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == parent))
}

enum Newer {
    Yes,
    Same,
    No,
}

fn newer(have: Option<i64>, seen: i64) -> Newer {
    match have {
        Some(have) if have == seen => Newer::Same,
        Some(have) if have > seen => Newer::No,
        _ => Newer::Yes,
    }
}

#[cfg(test)]
mod tests;
