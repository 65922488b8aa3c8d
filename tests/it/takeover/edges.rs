//! An edge of the pure walk: it follows when it likes, starts again from the copy on its disk, and reminds a restored database.

use std::collections::BTreeMap;

use nameplate::model::feed::{HostAction, Position, Snapshot};
use nameplate::model::feed_apply::{Book, Remembered};
use nameplate::model::hostname::Hostname;
use nameplate::model::id::TenantId;

use super::feed::{Feed, ServedFor};

/// An edge.
pub struct Edge {
    book: Book,
    /// What it would start from; of an earlier epoch it is of no use.
    disk: Option<Book>,
}

impl Edge {
    pub fn new(epoch: i64) -> Edge {
        let position = Position { epoch, seq: 0 };
        Edge { book: Book::from_snapshot(Snapshot { position, entries: Vec::new() }), disk: None }
    }

    pub fn epoch(&self) -> i64 {
        self.book.position().epoch
    }

    pub fn writes_its_disk(&mut self) {
        self.disk = Some(self.book.clone());
    }

    /// Whether it had something to start again from.
    pub fn starts_again(&mut self) -> bool {
        let disk = self.disk.clone().filter(|b| b.position().epoch == self.epoch());
        disk.map(|book| self.book = book).is_some()
    }

    /// Takes what it missed; what it has to remind a restored database of.
    pub fn follow(&mut self, feed: &Feed) -> Result<Vec<Remembered>, String> {
        let recovering = feed.recovering_since.is_some();
        let mut remembered = Vec::new();
        if self.epoch() == feed.position.epoch {
            let applied = self.book.apply(feed.changes(self.book.position().seq)).map_err(|e| e.to_string())?;
            if !applied.refused.is_empty() && !recovering {
                return Err(format!("an edge refused {:?}, which it was told later", applied.refused));
            }
        } else if recovering {
            let snapshot = feed.snapshot();
            remembered = self.book.newer_than(&snapshot);
            self.book = self.book.with_recovered(snapshot);
        } else {
            self.book = Book::from_snapshot(feed.snapshot());
        }
        Ok(remembered)
    }

    /// What visitors of a name meet.
    pub fn serves(&self, name: &str) -> Option<ServedFor> {
        let host = self.book.host(name).filter(|host| host.action == HostAction::Serve)?;
        let certificate = self.book.served(name).map(|s| s.certificate.id.clone());
        Some(ServedFor { tenant: host.tenant_id.clone(), certificate })
    }

    pub fn all<'a>(&self, names: &[&'a str]) -> BTreeMap<&'a str, ServedFor> {
        names.iter().filter_map(|name| Some((*name, self.serves(name)?))).collect()
    }

    /// The version it was told of each name, and the tenant it was told to serve it for.
    pub fn told(&self) -> Vec<(Hostname, i64, Option<TenantId>)> {
        let nothing = Position { epoch: 0, seq: 0 };
        let all = self.book.newer_than(&Snapshot { position: nothing, entries: Vec::new() });
        all.into_iter()
            .map(|r| {
                let serves = (r.host.action == HostAction::Serve).then_some(r.host.tenant_id);
                (r.host.hostname, r.host.version, serves)
            })
            .collect()
    }
}
