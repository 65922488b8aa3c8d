//! The world as its users hold it: shared, edited while it is served.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use crate::model::look::{Answer, Data, Kind, Rr, Soa, name};

use super::fault::Fault;
use super::line::{self, LineError};
use super::resolve;
use super::view::View;

/// Who is answering.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// A recursive resolver, by its label.
    Resolver(String),
    /// An authoritative server, by its name.
    Server(String),
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// An answer.
    Answer(Answer),
    /// Nothing at all.
    Silence,
    /// An answer that is cut and does not come over TCP either.
    Truncated,
}

/// An edit that was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is no record.
    #[error("this line is not a DNS record")]
    Line(#[from] LineError),
    /// No zone holds the name.
    #[error("{name} lies in none of the zones served here ({zones})")]
    NoZone {
        /// The owner.
        name: String,
        /// The zones there are.
        zones: String,
    },
    /// A CNAME would stand beside other records, or the other way round.
    #[error("{name} would have a CNAME beside other records ({there}), which DNS does not allow; delete those first")]
    Conflict {
        /// The owner.
        name: String,
        /// The types that are there.
        there: String,
    },
    /// There is no such record.
    #[error("there is no such record at {0}")]
    NotThere(String),
}

/// All views.
#[derive(Debug, Default)]
pub(super) struct World {
    everyone: View,
    views: HashMap<Who, View>,
}

impl World {
    pub(super) fn view_of(&self, who: &Who) -> Option<&View> {
        self.views.get(who)
    }
}

/// A world of zones, shared by everybody who holds a clone.
#[derive(Clone, Debug, Default)]
pub struct ZoneStore(Arc<RwLock<World>>);

impl ZoneStore {
    /// An empty world.
    pub fn new() -> Self {
        ZoneStore::default()
    }

    fn write<T>(&self, edit: impl FnOnce(&mut World) -> T) -> T {
        edit(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn read<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens a zone: its SOA, one name server, and that server's address.
    pub fn add_zone(&self, apex: &str, server: &str, address: IpAddr) {
        let (apex, server) = (name::canonical(apex), name::canonical(server));
        let soa = Soa { primary: server.clone(), mailbox: format!("hostmaster.{server}"), serial: 1, minimum: 60 };
        let address = match address {
            IpAddr::V4(a) => Data::A(a),
            IpAddr::V6(a) => Data::Aaaa(a),
        };
        self.write(|w| {
            w.everyone.add(Rr { name: apex.clone(), ttl: 300, data: Data::Soa(soa) });
            w.everyone.add(Rr { name: apex, ttl: 3600, data: Data::Ns(server.clone()) });
            w.everyone.add(Rr { name: server, ttl: 3600, data: address });
        });
    }

    /// The lines at or beneath `zone`, sorted; SOA and NS of the zone itself first.
    pub fn records(&self, zone: &str) -> Vec<String> {
        let zone = name::canonical(zone);
        let mut records: Vec<Rr> = self.read(|w| w.everyone.within(&zone).cloned().collect());
        records.sort_by_cached_key(|rr| {
            (rr.name != zone, !matches!(rr.data.kind(), Kind::Soa), !matches!(rr.data.kind(), Kind::Ns), rr.to_string())
        });
        records.iter().map(Rr::to_string).collect()
    }

    /// Adds one line, as a DNS provider would: inside a zone that is served, and with no CNAME beside other data.
    pub fn add(&self, text: &str) -> Result<Rr, EditError> {
        let rr = line::parse(text)?;
        self.write(|w| {
            let view = &mut w.everyone;
            if !name::climb(&rr.name).any(|n| view.has(n, Kind::Soa)) {
                let mut zones: Vec<&str> =
                    view.within("").filter(|r| r.data.kind() == Kind::Soa).map(|r| r.name.as_str()).collect();
                zones.sort_unstable();
                return Err(EditError::NoZone { name: rr.name.clone(), zones: zones.join(", ") });
            }
            let is_alias = rr.data.kind() == Kind::Cname;
            let mut there: Vec<String> = view
                .owned(&rr.name)
                .filter(|r| r.data != rr.data && (is_alias || r.data.kind() == Kind::Cname))
                .map(|r| r.data.kind().to_string())
                .collect();
            there.dedup();
            if !there.is_empty() {
                return Err(EditError::Conflict { name: rr.name.clone(), there: there.join(", ") });
            }
            view.add(rr.clone());
            Ok(rr)
        })
    }

    /// Removes the record of one line; its TTL does not matter.
    pub fn remove(&self, text: &str) -> Result<(), EditError> {
        let rr = line::parse(text)?;
        let removed = self.write(|w| w.everyone.remove(&rr.name, &rr.data));
        removed.then_some(()).ok_or(EditError::NotThere(rr.name))
    }

    /// Replaces what everybody sees who has no view of their own.
    pub fn set_everyone(&self, view: View) {
        self.write(|w| w.everyone = view);
    }

    /// Gives one observer a view of its own, or takes it away.
    pub fn set_view(&self, who: Who, view: Option<View>) {
        self.write(|w| match view {
            Some(view) => drop(w.views.insert(who, view)),
            None => drop(w.views.remove(&who)),
        });
    }

    /// Sets the faults that everybody meets who has no view of their own.
    pub fn set_faults(&self, faults: Vec<Fault>) {
        self.write(|w| w.everyone.faults = faults);
    }

    /// What `who` answers to a question.
    pub fn answer(&self, who: &Who, asked: &str, kind: Kind) -> Reply {
        self.reply(who, asked, kind, false)
    }

    /// The same to a client that wants it whatever its signatures.
    pub fn answer_unchecked(&self, who: &Who, asked: &str, kind: Kind) -> Reply {
        self.reply(who, asked, kind, true)
    }

    fn reply(&self, who: &Who, asked: &str, kind: Kind, unchecked: bool) -> Reply {
        let asked = name::canonical(asked);
        self.read(|w| {
            let view = w.view_of(who).unwrap_or(&w.everyone);
            match who {
                Who::Server(host) => resolve::as_server(view, host, &asked, kind),
                Who::Resolver(_) => resolve::as_resolver(w, view, &asked, kind, unchecked),
            }
        })
    }
}
