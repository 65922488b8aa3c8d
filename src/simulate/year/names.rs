//! The truth about every name: who wants it, what its zone says, since when all is well with it.
//!
//! The application sees of this only what it finds in the zone. Whatever is judged is judged by this, and never by what the
//! application believes.

use std::collections::HashMap;
use std::time::Duration;

use super::super::SimulationError;
use super::super::world::{FRONT, SERVER};
use super::oracle::NOTICE;
use crate::dns::world::{Fault, How, Reply, Who, ZoneStore};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::look::{Data, Kind};
use crate::model::moment::Moment;

/// What our CA calls itself.
pub(super) const CA: &str = "ca.test";
/// Where a stranger's address is.
const ELSEWHERE: &str = "2001:db8::666";

/// A claim that somebody made.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    pub(super) id: DomainId,
    pub(super) tenant: TenantId,
    pub(super) value: String,
    pub(super) target: String,
    /// When its value was first published in the zone.
    pub(super) published_at: Option<Moment>,
    /// When its tenant let go of it, or left.
    pub(super) given_up_at: Option<Moment>,
    /// How long nothing tied the name to it, for all to see: closed stretches, and since when now.
    pub(super) gone_for: Duration,
    pub(super) gone_since: Option<Moment>,
    pub(super) last_gone: Option<Moment>,
    /// How long another claim had its own value published while this one's was gone, and since when it has.
    pub(super) followed_for: Duration,
    pub(super) followed_since: Option<Moment>,
}

/// What is wrong with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    /// The ownership record is gone.
    RecordGone,
    /// The way to us is gone.
    WayGone,
    /// Both are.
    BothGone,
    /// Another CA alone may issue.
    CaaHostile,
    /// An AAAA record leads elsewhere.
    AaaaElsewhere,
    /// DNSSEC is broken.
    Bogus,
    /// The servers of the zone are silent.
    Silent,
}

/// One name.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) host: Hostname,
    pub(super) zone: String,
    pub(super) claims: Vec<Claimed>,
    /// The claim that is to be served, if one is.
    pub(super) wanted: Option<usize>,
    pub(super) trouble: Option<(Trouble, Moment)>,
    /// Since when all is well with it; none while it is not.
    pub(super) well_since: Option<Moment>,
    /// Since when none of its records is there.
    pub(super) down_at: Option<Moment>,
}

impl Name {
    pub(super) fn wanted(&self) -> Option<&Claimed> {
        self.claims.get(self.wanted?)
    }

    fn label(&self) -> String {
        format!("_nameplate-challenge.{}", self.host)
    }

    fn txt(&self, value: &str) -> String {
        format!("{}. 60 IN TXT \"{value}\"", self.label())
    }

    fn way(&self, target: &str) -> String {
        match self.host.is_apex() {
            true => format!("{}. 60 IN A {FRONT}", self.host),
            false => format!("{}. 60 IN CNAME {target}.", self.host),
        }
    }
}

/// All names, and the zones they are in.
pub(super) struct Names {
    zones: ZoneStore,
    all: Vec<Name>,
    by_host: HashMap<String, usize>,
    faults: Vec<Fault>,
}

impl Names {
    pub(super) fn new(zones: &ZoneStore) -> Self {
        Names { zones: zones.clone(), all: Vec::new(), by_host: HashMap::new(), faults: Vec::new() }
    }

    pub(super) fn all(&self) -> &[Name] {
        &self.all
    }

    pub(super) fn get(&self, host: &str) -> Option<&Name> {
        self.by_host.get(host).map(|n| &self.all[*n])
    }

    pub(super) fn place(&self, host: &str) -> Option<usize> {
        self.by_host.get(host).copied()
    }

    pub(super) fn at(&self, n: usize) -> &Name {
        &self.all[n]
    }

    /// A name that nobody claimed yet, in a zone of its own.
    pub(super) fn add(&mut self) -> usize {
        let n = self.all.len();
        let zone = format!("customer{n}.test");
        self.zones.add_zone(&zone, &format!("ns.{zone}"), SERVER);
        // One in eight is the top of its zone, where an address stands in place of an alias.
        let host = Hostname::trusted(&if n % 8 == 7 { zone.clone() } else { format!("www.{zone}") });
        self.by_host.insert(host.to_string(), n);
        let name = Name { host, zone, claims: Vec::new(), wanted: None, trouble: None, well_since: None, down_at: None };
        self.all.push(name);
        n
    }

    /// Somebody claimed it; whether it is for them to have is another matter.
    pub(super) fn claimed(&mut self, n: usize, claimed: Claimed) -> usize {
        let claims = &mut self.all[n].claims;
        claims.push(claimed);
        claims.len() - 1
    }

    /// The owner of the zone publishes what the tenant of this claim was told, in place of what stood there.
    pub(super) fn hand_to(&mut self, n: usize, claim: usize, now: Moment) -> Result<(), SimulationError> {
        self.take_down(n, now);
        let name = &mut self.all[n];
        name.wanted = Some(claim);
        self.put_up(n, now)
    }

    /// The tenant of the wanted claim does not want it any more; its records stay where they are.
    pub(super) fn give_up(&mut self, n: usize, now: Moment) {
        let name = &mut self.all[n];
        if let Some(claim) = name.wanted.take().and_then(|claim| name.claims.get_mut(claim)) {
            claim.given_up_at = Some(now);
        }
        name.well_since = None;
    }

    /// A tenant left: none of its claims stands any more.
    pub(super) fn left(&mut self, tenant: &TenantId, now: Moment) {
        for claim in self.all.iter_mut().flat_map(|name| &mut name.claims).filter(|claim| claim.tenant == *tenant) {
            claim.given_up_at = claim.given_up_at.or(Some(now));
        }
    }

    /// The records of the wanted claim are published.
    fn put_up(&mut self, n: usize, now: Moment) -> Result<(), SimulationError> {
        let name = &mut self.all[n];
        let (way, txt) = match name.wanted() {
            Some(claim) => (name.way(&claim.target), name.txt(&claim.value)),
            None => return Ok(()),
        };
        self.zones.add(&way)?;
        self.zones.add(&txt)?;
        let wanted = name.wanted;
        if let Some(claim) = wanted.and_then(|claim| name.claims.get_mut(claim)) {
            claim.published_at = claim.published_at.or(Some(now));
        }
        name.well_since = Some(now);
        name.down_at = None;
        self.tied(n, now);
        Ok(())
    }

    /// Everything that any claim was told is removed from the zone.
    pub(super) fn take_down(&mut self, n: usize, now: Moment) {
        let name = &self.all[n];
        for claim in &name.claims {
            // Removing what is not there changes nothing.
            let _ = self.zones.remove(&name.txt(&claim.value));
            let _ = self.zones.remove(&name.way(&claim.target));
        }
        let name = &mut self.all[n];
        name.well_since = None;
        name.down_at = name.down_at.or(Some(now));
        self.tied(n, now);
    }

    /// Something goes wrong with a name that is well.
    pub(super) fn trouble(&mut self, n: usize, trouble: Trouble, now: Moment) -> Result<(), SimulationError> {
        let name = &self.all[n];
        let Some(claim) = name.wanted().cloned() else { return Ok(()) };
        let (way, txt, host, zone) = (name.way(&claim.target), name.txt(&claim.value), name.host.clone(), name.zone.clone());
        match trouble {
            Trouble::RecordGone => self.zones.remove(&txt)?,
            Trouble::WayGone => self.zones.remove(&way)?,
            Trouble::BothGone => {
                self.zones.remove(&txt)?;
                self.zones.remove(&way)?;
            }
            Trouble::CaaHostile => drop(self.zones.add(&caa(&zone))?),
            Trouble::AaaaElsewhere => {
                self.zones.remove(&way)?;
                self.zones.add(&format!("{host}. 60 IN A {FRONT}"))?;
                self.zones.add(&format!("{host}. 60 IN AAAA {ELSEWHERE}"))?;
            }
            Trouble::Bogus | Trouble::Silent => {
                let how = if trouble == Trouble::Bogus { How::Bogus } else { How::Timeout };
                self.faults.push(Fault { name: zone, kind: None, how, below: true });
                self.zones.set_faults(self.faults.clone());
            }
        }
        let name = &mut self.all[n];
        name.trouble = Some((trouble, now));
        name.well_since = None;
        self.tied(n, now);
        Ok(())
    }

    /// What went wrong is put right.
    pub(super) fn heal(&mut self, n: usize, now: Moment) -> Result<(), SimulationError> {
        let name = &mut self.all[n];
        let Some((trouble, _)) = name.trouble.take() else { return Ok(()) };
        let (host, zone) = (name.host.clone(), name.zone.clone());
        match trouble {
            Trouble::CaaHostile => self.zones.remove(&caa(&zone))?,
            Trouble::AaaaElsewhere => {
                self.zones.remove(&format!("{host}. 60 IN AAAA {ELSEWHERE}"))?;
                self.zones.remove(&format!("{host}. 60 IN A {FRONT}"))?;
            }
            Trouble::Bogus | Trouble::Silent => {
                self.faults.retain(|fault| fault.name != zone);
                self.zones.set_faults(self.faults.clone());
            }
            Trouble::RecordGone | Trouble::WayGone | Trouble::BothGone => {}
        }
        self.put_up(n, now)
    }

    /// Keeps the books of what ties the name to each of its claims, after its zone changed.
    fn tied(&mut self, n: usize, now: Moment) {
        let name = &self.all[n];
        let silent = matches!(name.trouble, Some((Trouble::Bogus | Trouble::Silent, _)));
        let published: Vec<bool> = name.claims.iter().map(|claim| self.shows(name, &claim.value)).collect();
        let led: Vec<bool> =
            name.claims.iter().map(|claim| !name.host.is_apex() && self.leads_through(name, &claim.target)).collect();
        let name = &mut self.all[n];
        for (at, claim) in name.claims.iter_mut().enumerate() {
            let gone = !silent && !published[at] && !led[at];
            match (gone, claim.gone_since) {
                (true, None) => claim.gone_since = Some(now),
                (false, Some(since)) => {
                    claim.gone_for += now.since(since);
                    claim.last_gone = Some(now);
                    claim.gone_since = None;
                }
                _ => {}
            }
            let followed = !published[at] && published.iter().enumerate().any(|(of, there)| of != at && *there);
            match (silent, followed) {
                (false, true) => claim.followed_since = claim.followed_since.or(Some(now)),
                // Silence stops the clock; a record that is back, or another that went, sets it to zero, unless the time was over.
                (_, followed) => {
                    claim.followed_for += claim.followed_since.take().map_or(Duration::ZERO, |since| now.since(since));
                    if !silent && !followed && claim.followed_for < NOTICE {
                        claim.followed_for = Duration::ZERO;
                    }
                }
            }
        }
    }

    fn record(&self, owner: &str, kind: Kind, fits: impl Fn(&Data) -> bool) -> bool {
        // The zone itself is asked, whatever its servers do just now.
        let owner = owner.to_owned();
        self.zones.records(&owner).iter().any(|line| {
            crate::dns::world::line::parse(line).is_ok_and(|rr| rr.name == owner && rr.data.kind() == kind && fits(&rr.data))
        })
    }

    fn shows(&self, name: &Name, value: &str) -> bool {
        self.record(&name.label(), Kind::Txt, |data| match data {
            Data::Txt(strings) => strings.concat() == value.as_bytes(),
            _ => false,
        })
    }

    fn leads_through(&self, name: &Name, target: &str) -> bool {
        self.record(name.host.as_str(), Kind::Cname, |data| matches!(data, Data::Cname(to) if to == target))
    }

    /// Whether the zone leads to us now, by whatever record.
    pub(super) fn leads_to_us(&self, host: &Hostname) -> bool {
        self.record(host.as_str(), Kind::Cname, |_| true)
            || self.record(host.as_str(), Kind::A, |data| matches!(data, Data::A(at) if *at == FRONT))
    }
}

fn caa(zone: &str) -> String {
    format!("{zone}. 60 IN CAA 0 issue \"other.test\"")
}

/// Whether a CA that looks at a name finds the way to us, everywhere, and no objection.
pub(super) fn ca_may_issue(zones: &ZoneStore, host: &str) -> bool {
    let ask = |name: &str, kind| match zones.answer(&Who::Resolver("ca".to_owned()), name, kind) {
        Reply::Answer(answer) if answer.definite() => Some(answer.records),
        _ => None,
    };
    let Some(four) = ask(host, Kind::A) else { return false };
    let Some(six) = ask(host, Kind::Aaaa) else { return false };
    let ours = four.iter().any(|rr| matches!(&rr.data, Data::A(at) if *at == FRONT));
    let elsewhere = six.iter().any(|rr| matches!(rr.data, Data::Aaaa(_)));
    let mut at = host;
    while let Some((_, parent)) = at.split_once('.') {
        let Some(records) = ask(at, Kind::Caa) else { return false };
        let values: Vec<_> = records
            .iter()
            .filter_map(|rr| if let Data::Caa(caa) = &rr.data { Some(caa.value.clone()) } else { None })
            .collect();
        if !values.is_empty() {
            return ours && !elsewhere && values.iter().any(|value| value == CA.as_bytes());
        }
        at = parent;
    }
    ours && !elsewhere
}
