//! What edges are told of the pure walk: routes under versions, each change with a number, and after a restore what edges remember. The
//! same conditions as the statements of the store.

use std::collections::{BTreeMap, BTreeSet};

use nameplate::model::domain::Domain;
use nameplate::model::feed::{
    CertificateEntry, Deltas, Entry, HostAction, HostEntry, Material, Position, Snapshot, TenantEntry,
};
use nameplate::model::feed_apply::Remembered;
use nameplate::model::hostname::Hostname;
use nameplate::model::id::{CertificateId, DomainId, TenantId};
use nameplate::model::moment::Moment;

/// Who serves a name, or served it last.
#[derive(Clone)]
struct Route {
    domain: DomainId,
    seq: i64,
    entry: HostEntry,
}

/// A certificate as it is stored.
#[derive(Clone)]
struct Stored {
    name: String,
    not_after: Moment,
    seq: i64,
}

/// What an edge remembers of a name, and what came of it.
#[derive(Clone)]
pub struct Memory {
    pub told: Remembered,
    pub outcome: Option<&'static str>,
}

/// For whom a name is served, and with which certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedFor {
    pub tenant: TenantId,
    pub certificate: Option<CertificateId>,
}

/// The feed.
#[derive(Clone)]
pub struct Feed {
    pub position: Position,
    pub recovering_since: Option<Moment>,
    /// Whether edges have not all taken this epoch.
    pub edges_behind: bool,
    routes: BTreeMap<String, Route>,
    certificates: BTreeMap<CertificateId, Stored>,
    left: BTreeMap<TenantId, i64>,
    pub memories: BTreeMap<String, Memory>,
}

impl Feed {
    pub fn new(start: Moment) -> Feed {
        let (position, edges_behind) = (Position { epoch: start.micros(), seq: 0 }, false);
        let (routes, certificates, left) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let memories = BTreeMap::new();
        Feed { position, recovering_since: None, edges_behind, routes, certificates, left, memories }
    }

    fn next(&mut self) -> i64 {
        self.position.seq += 1;
        self.position.seq
    }

    pub fn store(&mut self, id: &CertificateId, d: &Domain, not_after: Moment) {
        let seq = self.next();
        self.certificates.insert(id.clone(), Stored { name: d.hostname.to_string(), not_after, seq });
    }

    pub fn tenant_left(&mut self, id: &TenantId) {
        let seq = self.next();
        self.left.insert(id.clone(), seq);
    }

    fn version(&self, name: &str, now: Moment) -> i64 {
        self.routes.get(name).map_or(now.micros(), |r| (r.entry.version + 1).max(now.micros()))
    }

    pub fn serve(&mut self, d: &Domain, slug: &str, term: i64, certificate: &CertificateId, now: Moment) {
        let (version, seq) = (self.version(d.hostname.as_str(), now), self.next());
        let entry = HostEntry {
            hostname: d.hostname.clone(),
            tenant_id: d.tenant_id.clone(),
            slug: slug.to_owned(),
            term,
            action: HostAction::Serve,
            certificate_id: Some(certificate.clone()),
            redirect_to: None,
            version,
        };
        self.routes.insert(d.hostname.to_string(), Route { domain: d.id.clone(), seq, entry });
    }

    pub fn gone(&mut self, d: &Domain, slug: &str, term: i64, now: Moment, told: bool) {
        let name = d.hostname.as_str();
        let (version, before) = (self.version(name, now), self.routes.get(name).cloned());
        let seq = match (told, &before) {
            (false, Some(before)) => before.seq,
            _ => self.next(),
        };
        let mut route = match before {
            Some(r) if r.entry.action == HostAction::Serve && r.domain != d.id => return,
            Some(route) => route,
            None => Route {
                domain: d.id.clone(),
                seq,
                entry: HostEntry {
                    hostname: d.hostname.clone(),
                    tenant_id: d.tenant_id.clone(),
                    slug: slug.to_owned(),
                    term,
                    action: HostAction::Gone,
                    certificate_id: None,
                    redirect_to: None,
                    version,
                },
            },
        };
        (route.domain, route.seq) = (d.id.clone(), seq);
        let remembered = self.memories.get(name).map_or(0, |m| m.told.host.term);
        (route.entry.tenant_id, route.entry.term) = (d.tenant_id.clone(), route.entry.term.max(term).max(remembered));
        (route.entry.action, route.entry.certificate_id, route.entry.version) = (HostAction::Gone, None, version);
        self.routes.insert(name.to_owned(), route);
    }

    /// Without a word to edges, which serve the name for somebody else.
    pub fn unroute(&mut self, name: &str, of: &DomainId) {
        let serves = |r: &&mut Route| r.domain == *of && r.entry.action == HostAction::Serve;
        if let Some(route) = self.routes.get_mut(name).filter(serves) {
            (route.entry.action, route.entry.certificate_id) = (HostAction::Gone, None);
            route.entry.version += 1;
        }
    }

    /// Whose claim is routed.
    pub fn routed(&self, name: &str) -> Option<&DomainId> {
        let serves = |r: &&Route| r.entry.action == HostAction::Serve && !self.left.contains_key(&r.entry.tenant_id);
        self.routes.get(name).filter(serves).map(|r| &r.domain)
    }

    /// What an edge that missed nothing serves a name as.
    pub fn meant(&self, name: &str) -> Option<ServedFor> {
        self.routed(name)?;
        let entry = &self.routes[name].entry;
        Some(ServedFor { tenant: entry.tenant_id.clone(), certificate: entry.certificate_id.clone() })
    }

    fn entries(&self, after: i64) -> Vec<Entry> {
        let tenants = self.left.iter().filter(|(_, seq)| **seq > after).map(|(id, _)| {
            let text = |t: &str| t.to_owned();
            let (slug, region, stamp, tier) = (text("left"), text("eu"), text("a"), text("usual"));
            Entry::Tenant(TenantEntry {
                id: id.clone(),
                slug,
                region,
                stamp,
                shard: 0,
                tier,
                status: text("deleted"),
                version: 2,
            })
        });
        let changed = |r: &&Route| r.seq > after;
        let named: BTreeSet<&CertificateId> =
            self.routes.values().filter(changed).filter_map(|r| r.entry.certificate_id.as_ref()).collect();
        let certificates = self.certificates.iter().filter(|(id, c)| c.seq > after || named.contains(id)).map(|(id, c)| {
            let (names, chain, sealed_key, serial) = (vec![c.name.clone()], String::new(), Vec::new(), id.to_string());
            let material = Some(Material { names, chain, sealed_key, serial, not_after: c.not_after, platform: false });
            Entry::Certificate(CertificateEntry { id: id.clone(), version: 1, material })
        });
        let hosts = self.routes.values().filter(changed).map(|r| Entry::Host(r.entry.clone()));
        tenants.chain(certificates).chain(hosts).collect()
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot { position: self.position, entries: self.entries(-1) }
    }

    /// What changed since a number of this epoch.
    pub fn changes(&self, after: i64) -> Deltas {
        let Position { epoch, seq } = self.position;
        Deltas { epoch, after, upto: seq, entries: self.entries(after) }
    }

    /// The database was restored: a new epoch, in which edges add what they are told to what they have.
    pub fn begin_recovery(&mut self, now: Moment) {
        self.memories.clear();
        (self.position.epoch, self.recovering_since, self.edges_behind) = (now.micros(), Some(now), true);
    }

    pub fn end_recovery(&mut self, now: Moment) {
        self.memories.clear();
        (self.position.epoch, self.recovering_since) = (now.micros(), None);
    }

    /// Takes what an edge remembers, where it is newer than what is stored and than what others remembered.
    pub fn recollect(&mut self, told: Remembered) {
        let name = told.host.hostname.to_string();
        let stored = self.routes.get(&name).is_some_and(|r| r.entry.version >= told.host.version);
        let known = self.memories.get(&name).is_some_and(|m| m.told.host.version >= told.host.version);
        if !stored && !known {
            self.memories.insert(name, Memory { told, outcome: None });
        }
    }

    /// Whether what edges remember of a name is yet to come or to be settled.
    pub fn is_unreminded(&self, name: &str) -> bool {
        let unsettled = self.memories.get(name).is_some_and(|m| m.outcome.is_none());
        self.recovering_since.is_some() && (self.edges_behind || unsettled)
    }

    /// The end of a certificate that edges serve a name with for this tenant, and that is not stored.
    pub fn memory_of(&self, name: &Hostname, tenant: &TenantId) -> Option<Moment> {
        let memory = self.memories.get(name.as_str()).filter(|m| m.told.host.tenant_id == *tenant)?;
        memory.told.not_after.filter(|_| matches!(memory.outcome, None | Some("newer")))
    }

    /// Whether what is stored of a name is newer than a version.
    pub fn is_newer(&self, name: &Hostname, than: i64) -> bool {
        self.routes.get(name.as_str()).is_some_and(|r| r.entry.version >= than)
    }

    pub fn has_certificate(&self, id: &CertificateId) -> bool {
        self.certificates.contains_key(id)
    }
}
