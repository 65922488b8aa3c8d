//! Reads what was seen, and notes what is missing.

use std::cell::RefCell;
use std::net::IpAddr;

use crate::model::look::{Answer, Ask, Data, Depth, Kind, Observation, Observer, Outcome, Probe, Seen, name};

use super::lookup_failure::is_public;

/// How many servers of one zone are asked; the rest of a long list adds cost and no knowledge.
const SERVERS_PER_ZONE: usize = 6;

/// How often a server may send us on to a deeper zone.
const REFERRALS: usize = 3;

/// A server of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub host: String,
    /// Its address, if one is known.
    pub address: Option<IpAddr>,
}

impl Server {
    /// Whether it sits where the internet cannot reach it.
    pub fn private(&self) -> bool {
        self.address.is_some_and(|a| !is_public(a))
    }
}

/// A zone as its delegation shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Where it begins.
    pub apex: String,
    /// Its servers.
    pub servers: Vec<Server>,
}

/// What a zone's servers say about one question.
#[derive(Debug)]
pub struct Views<'a> {
    /// The zone.
    pub zone: Zone,
    /// One entry a server; none where it could not be asked.
    pub answers: Vec<(Server, Option<&'a Answer>)>,
}

/// Reads answers; a missing one is noted as an open probe and reads as `None`.
pub struct Reader<'a> {
    /// What is asked.
    pub ask: &'a Ask,
    /// What was seen.
    pub seen: &'a Seen,
    open: RefCell<Vec<Probe>>,
}

impl<'a> Reader<'a> {
    /// A reader with nothing noted.
    pub fn new(ask: &'a Ask, seen: &'a Seen) -> Self {
        Reader { ask, seen, open: RefCell::default() }
    }

    /// The probes that were missed.
    pub fn open(self) -> Vec<Probe> {
        self.open.into_inner()
    }

    /// The resolvers that decide in this look. A routine one goes by the first that is not seen to be down.
    pub fn resolvers(&self) -> &'a [String] {
        let all = self.seen.resolvers.as_slice();
        match self.ask.depth {
            Depth::Routine => {
                let first = all.iter().position(|resolver| !self.is_down(resolver)).unwrap_or(0);
                all.get(first..=first).unwrap_or_default()
            }
            Depth::Full => all,
        }
    }

    /// Whether a resolver has said anything definite in this look.
    pub fn heard(&self, resolver: &str) -> bool {
        let of_it = |o: &Observation| matches!(&o.probe.observer, Observer::Resolver(r) if r == resolver);
        self.seen.observations.iter().any(|o| o.answer.definite() && of_it(o))
    }

    /// Whether a resolver is seen to be down: nothing was heard of it, not even about a control name.
    fn is_down(&self, resolver: &str) -> bool {
        let asked = Observer::Resolver(resolver.to_owned());
        let mut controls = self.ask.platform.control_names.iter().map(|c| name::canonical(c)).peekable();
        !self.heard(resolver)
            && controls.peek().is_some()
            && controls.all(|control| self.seen.answer(&asked, &control, Kind::A).is_some())
    }

    /// Their names for people.
    pub fn resolver_labels(&self) -> Vec<String> {
        self.resolvers().iter().map(|r| self.resolver_label(r)).collect()
    }

    /// A resolver's name for people, with what it has shown to do.
    pub fn resolver_label(&self, resolver: &str) -> String {
        let label = Observer::Resolver(resolver.to_owned()).label();
        if self.seen.validates(resolver) { format!("{label} (checks signatures)") } else { label }
    }

    fn get(&self, observer: &Observer, name: &str, kind: Kind) -> Option<&'a Answer> {
        let found = self.seen.answer(observer, name, kind);
        if found.is_none() {
            let probe = Probe { observer: observer.clone(), name: name.to_owned(), kind };
            let mut open = self.open.borrow_mut();
            if !open.contains(&probe) {
                open.push(probe);
            }
        }
        found
    }

    /// What one resolver says.
    pub fn from(&self, resolver: &str, name: &str, kind: Kind) -> Option<&'a Answer> {
        self.get(&Observer::Resolver(resolver.to_owned()), name, kind)
    }

    /// What one resolver says when it is told not to check signatures.
    pub fn unchecked(&self, resolver: &str, name: &str, kind: Kind) -> Option<&'a Answer> {
        self.get(&Observer::Unchecked(resolver.to_owned()), name, kind)
    }

    /// What one resolver says; its silence, when it has been silent all along.
    pub fn awake(&self, resolver: &str, name: &str, kind: Kind) -> Option<&'a Answer> {
        match self.mute(resolver) {
            Some(silence) => Some(silence),
            None => self.from(resolver, name, kind),
        }
    }

    /// What every deciding resolver says, in order; one that has been silent all along is not waited for once more.
    pub fn each_awake(&self, name: &str, kind: Kind) -> Option<Vec<(&'a str, &'a Answer)>> {
        let all: Vec<_> = self.resolvers().iter().map(|r| (r.as_str(), self.awake(r, name, kind))).collect();
        all.into_iter().map(|(r, a)| Some((r, a?))).collect()
    }

    /// What every deciding resolver says, in order.
    pub fn each(&self, name: &str, kind: Kind) -> Option<Vec<(&'a str, &'a Answer)>> {
        let all: Vec<_> = self.resolvers().iter().map(|r| (r.as_str(), self.from(r, name, kind))).collect();
        all.into_iter().map(|(r, a)| Some((r, a?))).collect()
    }

    /// The silence of a resolver that has answered nothing at all in this look.
    fn mute(&self, resolver: &str) -> Option<&'a Answer> {
        let mut silence = None;
        for o in &self.seen.observations {
            match &o.probe.observer {
                Observer::Resolver(r) if r == resolver && o.answer.outcome == Outcome::Timeout => silence = Some(&o.answer),
                Observer::Resolver(r) if r == resolver => return None,
                _ => {}
            }
        }
        silence
    }

    /// The first definite answer a resolver gives; when none does, the first one's failure.
    pub fn any(&self, name: &str, kind: Kind) -> Option<&'a Answer> {
        let mut failure = None;
        for resolver in self.resolvers() {
            // A resolver that has been silent so far costs a whole time-out a question; the other ones answer for it.
            let answer = self.awake(resolver, name, kind)?;
            if answer.definite() {
                return Some(answer);
            }
            failure = failure.or(Some(answer));
        }
        failure
    }

    /// The zone that holds `name`: the deepest name above it, down from its registered domain, that has name servers.
    pub fn zone_of(&self, name: &str) -> Option<Zone> {
        let top = self.registered_domain(name);
        let inside: Vec<&str> = name::climb(name).take_while(|n| name::within(n, &top)).collect();
        // All at once: the answers do not depend on each other.
        let answers: Vec<Option<&Answer>> = inside.iter().map(|n| self.any(n, Kind::Ns)).collect();
        let answers: Vec<&Answer> = answers.into_iter().collect::<Option<_>>()?;
        for (apex, answer) in inside.iter().zip(&answers) {
            let hosts = hosts(answer, apex, false);
            if !hosts.is_empty() {
                return self.with_addresses(apex, &hosts, &[]);
            }
        }
        // Nothing below: the delegation itself, or its absence, stands at the parent's servers.
        for apex in name::climb(&top).skip(1) {
            let hosts = hosts(self.any(apex, Kind::Ns)?, apex, false);
            if !hosts.is_empty() {
                return self.with_addresses(apex, &hosts, &[]);
            }
        }
        Some(Zone { apex: top, servers: Vec::new() })
    }

    /// The zone that holds `name` and its servers' names, as far as the answers there are show them. Notes nothing.
    pub fn known_servers(&self, name: &str) -> Option<(String, Vec<String>)> {
        let top = self.registered_domain(name);
        name::climb(name).take_while(|n| name::within(n, &top)).find_map(|apex| {
            let answers = self
                .resolvers()
                .iter()
                .filter_map(|r| self.seen.answer(&Observer::Resolver(r.clone()), apex, Kind::Ns).filter(|a| a.definite()));
            answers.map(|a| hosts(a, apex, false)).find(|h| !h.is_empty()).map(|h| (apex.to_owned(), h))
        })
    }

    /// What a panel's host field takes for `name`: relative to the zone that holds it, as far as that is known.
    pub fn host_field(&self, name: &str) -> String {
        let zone = self.known_servers(name).map(|(zone, _)| zone).filter(|z| name::within(z, &self.ask.registered_domain));
        name::host_field(name, zone.as_deref().unwrap_or(&self.ask.registered_domain))
    }

    /// The registered domain of any name; for names of the asked hostname's domain, the one that was given.
    pub fn registered_domain(&self, name: &str) -> String {
        if name::within(name, &self.ask.registered_domain) {
            return self.ask.registered_domain.clone();
        }
        crate::model::hostname::Hostname::trusted(name).registered_domain().to_owned()
    }

    fn with_addresses(&self, apex: &str, hosts: &[String], glue: &[(String, IpAddr)]) -> Option<Zone> {
        let found: Vec<Option<Server>> = hosts.iter().take(SERVERS_PER_ZONE).map(|h| self.server(h, glue)).collect();
        Some(Zone { apex: apex.to_owned(), servers: found.into_iter().collect::<Option<_>>()? })
    }

    /// A server by name, with its address from the referral's glue or a resolver.
    pub fn server(&self, host: &str, glue: &[(String, IpAddr)]) -> Option<Server> {
        let mut address = glue.iter().find(|(h, _)| h == host).map(|(_, a)| *a);
        for kind in [Kind::A, Kind::Aaaa] {
            if address.is_none() {
                address = self.any(host, kind)?.addresses().next();
            }
        }
        Some(Server { host: host.to_owned(), address })
    }

    /// What one server says; `Some(None)` when it cannot be asked.
    pub fn at(&self, server: &Server, name: &str, kind: Kind) -> Option<Option<&'a Answer>> {
        match server.address {
            Some(address) if !server.private() => {
                self.get(&Observer::Server { host: server.host.clone(), address }, name, kind).map(Some)
            }
            _ => Some(None),
        }
    }

    /// What the servers that hold `name` say; referrals are followed down.
    pub fn authority(&self, name: &str, kind: Kind) -> Option<Views<'a>> {
        let mut zone = self.zone_of(name)?;
        for _ in 0..REFERRALS {
            let views = self.views(zone, name, kind)?;
            let referral = views.answers.iter().find_map(|(_, a)| referral(a.as_ref()?, &views.zone.apex, name));
            match referral {
                Some((apex, hosts, glue)) => zone = self.with_addresses(&apex, &hosts, &glue)?,
                None => return Some(views),
            }
        }
        self.views(zone, name, kind)
    }

    /// A server's answer, if it speaks for its zone. Some servers fail on an alias that goes round when they are asked for anything
    /// but the alias itself; then that is asked for.
    pub fn speaking(&self, server: &Server, answer: Option<&'a Answer>, name: &str) -> Option<Option<&'a Answer>> {
        let speaks = |a: &&Answer| a.definite() && a.authoritative;
        if answer
            .is_some_and(|a| matches!(a.outcome, Outcome::ServFail | Outcome::NoError | Outcome::Unusable(_)) && !speaks(&a))
        {
            let alias = self.at(server, name, Kind::Cname)?.filter(speaks);
            return Some(alias.filter(|a| !a.aliases(name).is_empty()));
        }
        Some(answer.filter(speaks))
    }

    /// What the servers of a known zone say.
    pub fn views(&self, zone: Zone, name: &str, kind: Kind) -> Option<Views<'a>> {
        let answers: Vec<_> = zone.servers.iter().map(|s| (s.clone(), self.at(s, name, kind))).collect();
        let answers = answers.into_iter().map(|(s, a)| Some((s, a?))).collect::<Option<Vec<_>>>()?;
        Some(Views { zone, answers })
    }
}

/// The servers an answer names for `apex`, from its answer or its authority section.
fn hosts(answer: &Answer, apex: &str, in_authority: bool) -> Vec<String> {
    let section = if in_authority { &answer.authority } else { &answer.records };
    let mut hosts = Vec::new();
    for rr in section.iter().filter(|rr| rr.name == apex) {
        if let Data::Ns(host) = &rr.data
            && !hosts.contains(host)
        {
            hosts.push(host.clone());
        }
    }
    hosts
}

type Referral = (String, Vec<String>, Vec<(String, IpAddr)>);

/// Where an answer sends us: to a zone that is deeper than `apex` and holds `name`.
fn referral(answer: &Answer, apex: &str, name: &str) -> Option<Referral> {
    if answer.authoritative || !answer.definite() || !answer.records.is_empty() {
        return None;
    }
    let owner = answer.authority.iter().find_map(|rr| match rr.data {
        Data::Ns(_) if rr.name != apex && name::within(&rr.name, apex) && name::within(name, &rr.name) => Some(&rr.name),
        _ => None,
    })?;
    let glue = answer
        .additional
        .iter()
        .filter_map(|rr| match rr.data {
            Data::A(a) => Some((rr.name.clone(), IpAddr::V4(a))),
            Data::Aaaa(a) => Some((rr.name.clone(), IpAddr::V6(a))),
            _ => None,
        })
        .collect();
    Some((owner.clone(), hosts(answer, owner, true), glue))
}
