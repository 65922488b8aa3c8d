//! What one observer may see: records and faults, with the look-up inside one zone.

use std::collections::HashMap;

use crate::model::look::{Data, Kind, Rr, name};

use super::fault::Fault;

/// Records by owner, and faults.
#[derive(Clone, Debug, Default)]
pub struct View {
    owners: HashMap<String, Vec<Rr>>,
    /// How many records stand at or below each name: a name with one below exists (RFC 4592 §2.2.2).
    nodes: HashMap<String, usize>,
    /// Look-ups that end badly.
    pub faults: Vec<Fault>,
}

/// What a zone says of one name and type.
pub(super) enum Step {
    /// The records.
    Records(Vec<Rr>),
    /// An alias: the records that say so, and where it leads.
    Alias(Vec<Rr>, String),
    /// The name exists, the type does not.
    NoData,
    /// The name does not exist.
    NxDomain,
}

impl View {
    /// A view of some records.
    pub fn of(records: impl IntoIterator<Item = Rr>, faults: Vec<Fault>) -> Self {
        let mut view = View { faults, ..View::default() };
        for rr in records {
            view.add(rr);
        }
        view
    }

    /// Adds a record; one that is there already (owner and data) is replaced. Whether it is new.
    pub fn add(&mut self, rr: Rr) -> bool {
        let at = self.owners.entry(rr.name.clone()).or_default();
        if let Some(same) = at.iter_mut().find(|x| x.data == rr.data) {
            same.ttl = rr.ttl;
            return false;
        }
        for node in name::climb(&rr.name) {
            *self.nodes.entry(node.to_owned()).or_default() += 1;
        }
        at.push(rr);
        true
    }

    /// Removes a record by owner and data. Whether it was there.
    pub fn remove(&mut self, owner: &str, data: &Data) -> bool {
        let Some(at) = self.owners.get_mut(owner) else { return false };
        let before = at.len();
        at.retain(|x| x.data != *data);
        let removed = before > at.len();
        if removed {
            if at.is_empty() {
                self.owners.remove(owner);
            }
            for node in name::climb(owner) {
                if let Some(count) = self.nodes.get_mut(node) {
                    *count -= 1;
                    if *count == 0 {
                        self.nodes.remove(node);
                    }
                }
            }
        }
        removed
    }

    /// The records at or beneath a name.
    pub fn within<'a>(&'a self, zone: &'a str) -> impl Iterator<Item = &'a Rr> {
        self.owners.values().flatten().filter(move |rr| name::within(&rr.name, zone))
    }

    /// The records of one owner.
    pub fn owned<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Rr> + use<'a> {
        self.owners.get(owner).into_iter().flatten()
    }

    /// The records of one owner and type.
    pub fn at<'a>(&'a self, owner: &str, kind: Kind) -> impl Iterator<Item = &'a Rr> + use<'a> {
        self.owned(owner).filter(move |rr| rr.data.kind() == kind)
    }

    pub(super) fn has(&self, owner: &str, kind: Kind) -> bool {
        self.at(owner, kind).next().is_some()
    }

    pub(super) fn exists(&self, node: &str) -> bool {
        self.nodes.contains_key(node)
    }

    pub(super) fn fault(&self, asked: &str, kind: Kind) -> Option<&Fault> {
        self.faults.iter().find(|f| f.hits(asked, kind))
    }

    /// The name servers written at a name.
    pub(super) fn servers<'a>(&'a self, at: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.at(at, Kind::Ns).filter_map(|rr| if let Data::Ns(host) = &rr.data { Some(host.as_str()) } else { None })
    }

    /// Whether a name is a server of some delegation or zone at or above it, whose address a delegation must not hide.
    pub(super) fn is_server_of(&self, host: &str, zone: &str) -> bool {
        self.servers(zone).any(|h| h == host)
    }

    /// The topmost delegation strictly beneath `apex` and at or above `asked`: name servers, and no zone of ours.
    pub(super) fn cut<'a>(&self, asked: &'a str, apex: &str, served: impl Fn(&str) -> bool) -> Option<&'a str> {
        name::climb(asked)
            .take_while(|n| *n != apex)
            .filter(|n| self.has(n, Kind::Ns) && !(self.has(n, Kind::Soa) && served(n)))
            .last()
    }

    /// Looks a name up inside the zone at `apex`, delegations aside.
    pub(super) fn step(&self, asked: &str, kind: Kind, apex: &str) -> Step {
        if let Some((owner, rr)) = self.dname_above(asked, apex) {
            let Data::Dname(to) = &rr.data else { return Step::NoData };
            let target = match asked.strip_suffix(owner) {
                Some(front) if to.is_empty() => front.trim_end_matches('.').to_owned(),
                Some(front) => format!("{front}{to}"),
                None => to.clone(),
            };
            let synthesised = Rr { name: asked.to_owned(), ttl: rr.ttl, data: Data::Cname(target.clone()) };
            if kind == Kind::Cname {
                return Step::Records(vec![rr.clone(), synthesised]);
            }
            return Step::Alias(vec![rr.clone(), synthesised], target);
        }
        if self.exists(asked) {
            return self.at_owner(asked, asked, kind);
        }
        let encloser = name::climb(asked).find(|n| self.exists(n));
        match encloser.filter(|e| name::within(e, apex)).map(|e| format!("*.{e}")) {
            Some(star) if self.owners.contains_key(&star) => self.at_owner(&star, asked, kind),
            _ => Step::NxDomain,
        }
    }

    fn dname_above<'a>(&self, asked: &'a str, apex: &str) -> Option<(&'a str, &Rr)> {
        name::climb(asked)
            .skip(1)
            .take_while(|n| name::within(n, apex))
            .find_map(|n| self.at(n, Kind::Dname).next().map(|rr| (n, rr)))
    }

    /// The records at `owner`, given out under the name that was asked.
    fn at_owner(&self, owner: &str, asked: &str, kind: Kind) -> Step {
        let named = |rr: &Rr| Rr { name: asked.to_owned(), ..rr.clone() };
        let records: Vec<Rr> = self.at(owner, kind).map(named).collect();
        if !records.is_empty() {
            return Step::Records(records);
        }
        match self.at(owner, Kind::Cname).next() {
            Some(alias) => match &alias.data {
                Data::Cname(to) => Step::Alias(vec![named(alias)], to.clone()),
                _ => Step::NoData,
            },
            None => Step::NoData,
        }
    }
}
