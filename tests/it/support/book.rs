//! An edge's book beside the rig's own edge: it follows when it is told to, takes a snapshot where changes do not connect, and reminds a
//! restored database of what it was told later, as an edge does.

use std::collections::BTreeMap;

use nameplate::model::feed::{CertificateEntry, Deltas, Entry, HostAction, Material, Position, Snapshot};
use nameplate::model::feed_apply::Book;
use nameplate::model::id::TenantId;
use nameplate::store::feed::{self, Scope};
use nameplate::store::{self, sql};

use super::rig::Rig;

/// The book, empty before it followed for the first time.
#[derive(Default)]
pub struct KeptBook(Option<Book>);

/// For whom a name is served, and with which certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedFor {
    pub tenant: TenantId,
    pub slug: String,
    pub serial: String,
}

impl KeptBook {
    /// Takes what it missed; whether the control plane recovers.
    pub async fn follow(&mut self, rig: &Rig) -> Result<bool, String> {
        let mut tx = rig.app.store.read().await.unwrap();
        let at = feed::position(&mut tx).await.unwrap();
        let nothing = Position { epoch: at.epoch, seq: 0 };
        let empty = || Book::from_snapshot(Snapshot { position: nothing, entries: Vec::new() });
        let mut book = self.0.take().unwrap_or_else(empty);
        let connects = book.position().epoch == at.epoch;
        let scope = if connects { Scope::Changes(book.position().seq, at.seq) } else { Scope::All };
        let tenants = feed::tenants(&mut tx, scope).await.unwrap();
        let (hosts, certificates) = feed::hosts(&mut tx, scope).await.unwrap();
        let recovering = store::restore::recovering_since(&mut tx).await.unwrap().is_some();
        drop(tx);
        let certificates = certificates.into_iter().map(|c| {
            let material = Material {
                names: c.names,
                chain: c.chain,
                sealed_key: Vec::new(),
                serial: c.serial,
                not_after: c.not_after,
                platform: false,
            };
            Entry::Certificate(CertificateEntry { id: c.id, version: 1, material: Some(material) })
        });
        let entries =
            tenants.into_iter().map(Entry::Tenant).chain(certificates).chain(hosts.into_iter().map(Entry::Host)).collect();
        if connects {
            let deltas = Deltas { epoch: at.epoch, after: book.position().seq, upto: at.seq, entries };
            let applied = book.apply(deltas).map_err(|e| format!("the late edge cannot follow: {e}"))?;
            if !applied.refused.is_empty() && !recovering {
                return Err(format!("the late edge refused {:?}", applied.refused));
            }
        } else {
            let snapshot = Snapshot { position: at, entries };
            if recovering {
                for remembered in book.newer_than(&snapshot) {
                    let stmt = store::restore::recollect(&rig.edge, &remembered, rig.env.now());
                    rig.app.store.execute(stmt).await.unwrap();
                }
                book = book.with_recovered(snapshot);
            } else {
                book = Book::from_snapshot(snapshot);
            }
            let epoch = sql("UPDATE edges SET cursor_epoch = $1").bind(at.epoch);
            rig.app.store.execute(epoch).await.unwrap();
        }
        self.0 = Some(book);
        Ok(recovering)
    }

    /// What it serves a name as.
    pub fn served(&self, name: &str) -> Option<ServedFor> {
        let book = self.0.as_ref()?;
        let host = book.host(name).filter(|host| host.action == HostAction::Serve)?;
        let serial = book.served(name).and_then(|s| s.certificate.material.as_ref().map(|m| m.serial.clone()));
        Some(ServedFor { tenant: host.tenant_id.clone(), slug: host.slug.clone(), serial: serial.unwrap_or_default() })
    }

    /// The same of many names.
    pub fn all<'a>(&self, names: &[&'a str]) -> BTreeMap<&'a str, ServedFor> {
        names.iter().filter_map(|name| Some((*name, self.served(name)?))).collect()
    }
}
