//! Who may be served under a name, by what zones really held and tenants really did. It knows nothing of how the product decides:
//! it sees the truth of the zones, minute by minute, and then what the product came to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nameplate::model::claim::Claim;
use nameplate::model::id::DomainId;
use nameplate::model::moment::Moment;

const HOUR: Duration = Duration::from_secs(3600);
/// How long another's record must have been gone before a name moves.
const NOTICE: Duration = Duration::from_secs(72 * 3600);
/// How long nothing must have tied a name before it is let go of.
const GRACE: Duration = Duration::from_secs(7 * 24 * 3600);
/// What is back for a shorter time than this need not have been seen: a live name is looked at daily.
const UNSEEN: Duration = Duration::from_secs(30 * 3600);
/// A tie that is gone is acted upon this much later than [`GRACE`] at the latest, where nothing keeps it from being seen.
const SLACK: Duration = Duration::from_secs(3 * 24 * 3600);

/// What a zone holds for one name.
#[derive(Clone, Debug, Default)]
pub struct Zone {
    /// The values at the ownership label.
    pub values: BTreeSet<String>,
    /// Where the name's CNAME leads.
    pub way: Option<String>,
    /// Nothing can be learnt of it.
    pub mute: bool,
}

/// One claim, as whoever made it knows it.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub tenant: usize,
    pub name: String,
    pub value: String,
    pub target: String,
    /// Whether a way to the target says whose the name is.
    pub way_ties: bool,
    /// Its tenant took it away, or left.
    pub removed: bool,
    /// That was so when it was judged last: at the very moment nobody need have acted on it.
    known_removed: bool,
    /// Its own value was there to be seen.
    pub proven: bool,
    /// An operator ended its release.
    pub forced: bool,
    gone: Span,
    untied: Span,
    off: Span,
    /// The longest that it led elsewhere since it held the name: once that was long enough, the name was free.
    longest_off: Duration,
}

/// For how long something was so in a zone that answers.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    /// At the most, as what ended it for a moment need not have been seen.
    most: Duration,
    /// At the least, without a break.
    whole: Duration,
    back: Duration,
    /// Silence since then: where it was short, nobody need have looked while it lasted.
    silent: Duration,
}

impl Span {
    fn pass(&mut self, so: bool, mute: bool, time: Duration) {
        if mute {
            self.whole = Duration::ZERO;
            self.silent += time;
            return;
        }
        let unseen = if self.silent > UNSEEN { Duration::ZERO } else { self.silent };
        self.silent = Duration::ZERO;
        if so {
            self.most += time + unseen;
            self.whole += time;
            self.back = Duration::ZERO;
        } else {
            self.whole = Duration::ZERO;
            self.back += time;
            self.most = if self.back > UNSEEN { Duration::ZERO } else { self.most + time };
        }
    }
}

/// What the product says of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stands {
    pub id: DomainId,
    pub claim: Claim,
    pub holds: bool,
    pub routed: bool,
}

/// The judge.
#[derive(Default)]
pub struct Oracle {
    pub zones: BTreeMap<String, Zone>,
    pub claims: BTreeMap<DomainId, Claimed>,
    now: Option<Moment>,
    before: BTreeMap<DomainId, Stands>,
    /// Who held a name last, and let go of it.
    last: BTreeMap<String, DomainId>,
    /// How often what happened, so that a walk in which nothing happens is no proof.
    pub seen: BTreeMap<&'static str, usize>,
}

impl Oracle {
    pub fn claimed(&mut self, id: &DomainId, tenant: usize, name: &str, value: &str, target: &str, way_ties: bool) {
        let (name, value, target) = (name.to_owned(), value.to_owned(), target.to_owned());
        let (gone, untied, off) = (Span::default(), Span::default(), Span::default());
        let claimed = Claimed {
            tenant,
            name,
            value,
            target,
            way_ties,
            removed: false,
            known_removed: false,
            proven: false,
            forced: false,
            gone,
            untied,
            off,
            longest_off: Duration::ZERO,
        };
        self.claims.insert(id.clone(), claimed);
        self.look();
    }

    /// A removal was undone: the claim stands again, and what it is tied by counts anew.
    pub fn returned(&mut self, id: &DomainId) {
        if let Some(claim) = self.claims.get_mut(id) {
            (claim.removed, claim.known_removed) = (false, false);
            (claim.gone, claim.untied) = (Span::default(), Span::default());
            // Where nobody judged since it was removed: its tenant let go of the name then.
            if let Some(before) = self.before.get_mut(id).filter(|before| before.holds) {
                before.holds = false;
                self.last.insert(claim.name.clone(), id.clone());
            }
        }
        *self.seen.entry("returned").or_default() += 1;
    }

    /// An expired claim was opened again: nothing of it is proven.
    pub fn reopened(&mut self, id: &DomainId, value: &str) {
        if let Some(claim) = self.claims.get_mut(id) {
            claim.value = value.to_owned();
            claim.proven = false;
        }
        self.look();
    }

    /// A database of a while ago says so of a claim: what was done with it since is lost, unless edges saw it.
    pub fn restored(&mut self, id: &DomainId, open: bool, value: &str) {
        if let Some(claim) = self.claims.get_mut(id) {
            (claim.removed, claim.known_removed) = (!open, false);
            claim.forced = false;
            // For how long it is seen to be untied is counted from the copy on.
            claim.untied.whole = Duration::ZERO;
            value.clone_into(&mut claim.value);
        }
    }

    /// What is judged next is compared with nothing.
    pub fn starts_anew(&mut self) {
        self.before.clear();
        self.last.clear();
        *self.seen.entry("restored").or_default() += 1;
    }

    pub fn removed(&mut self, id: &DomainId) {
        if let Some(claim) = self.claims.get_mut(id) {
            claim.removed = true;
        }
    }

    pub fn forced(&mut self, id: &DomainId) {
        if let Some(claim) = self.claims.get_mut(id) {
            claim.forced = true;
        }
        *self.seen.entry("forced").or_default() += 1;
    }

    pub fn zone(&mut self, name: &str) -> &mut Zone {
        self.zones.entry(name.to_owned()).or_default()
    }

    /// Whether a name leads to its tenant's own host.
    fn leads(zone: &Zone, claim: &Claimed) -> bool {
        zone.way.as_deref() == Some(claim.target.as_str())
    }

    /// Time passes over what the zones hold.
    pub fn until(&mut self, now: Moment) {
        let time = self.now.map_or(Duration::ZERO, |before| now.since(before));
        self.now = Some(now);
        for claim in self.claims.values_mut() {
            let zone = self.zones.entry(claim.name.clone()).or_default();
            let there = zone.values.contains(&claim.value);
            let leads = Self::leads(zone, claim);
            claim.gone.pass(!there, zone.mute, time);
            claim.untied.pass(!(there || claim.way_ties && leads), zone.mute, time);
            claim.off.pass(!leads, zone.mute, time);
            claim.longest_off = claim.longest_off.max(claim.off.most);
        }
        self.look();
    }

    /// What can be seen at this moment.
    pub fn look(&mut self) {
        for claim in self.claims.values_mut() {
            let zone = self.zones.entry(claim.name.clone()).or_default();
            claim.proven |= !zone.mute && zone.values.contains(&claim.value);
        }
    }

    /// What is wrong with what the product came to, if anything.
    pub fn judge(&mut self, all: &[Stands]) -> Result<(), String> {
        let mut routed: BTreeMap<&str, &DomainId> = BTreeMap::new();
        let mut held: BTreeMap<&str, &DomainId> = BTreeMap::new();
        for stands in all {
            let claim = self.claims.get(&stands.id).ok_or_else(|| format!("{} is nobody's claim", stands.id))?;
            if stands.holds && held.insert(&claim.name, &stands.id).is_some() {
                return Err(format!("{} has two holders", claim.name));
            }
            if stands.routed {
                if routed.insert(&claim.name, &stands.id).is_some() {
                    return Err(format!("{} is routed to two", claim.name));
                }
                self.may_be_routed(stands, claim)?;
            }
        }
        let mut happened = Vec::new();
        for stands in all {
            let before = self.before.get(&stands.id);
            if before == Some(stands) {
                continue;
            }
            self.moved(before, stands, all, &mut happened)?;
        }
        for stands in all {
            if self.before.get(&stands.id).is_some_and(|b| b.holds) && !stands.holds {
                self.last.insert(self.claims[&stands.id].name.clone(), stands.id.clone());
            }
        }
        for what in happened {
            *self.seen.entry(what).or_default() += 1;
        }
        for stands in all {
            if let Some(claim) = self.claims.get_mut(&stands.id) {
                claim.known_removed = claim.removed;
                if stands.holds {
                    claim.longest_off = Duration::ZERO;
                }
            }
        }
        self.before = all.iter().map(|stands| (stands.id.clone(), stands.clone())).collect();
        Ok(())
    }

    fn may_be_routed(&self, stands: &Stands, claim: &Claimed) -> Result<(), String> {
        let why = match () {
            () if claim.removed => "was let go of by its tenant",
            () if stands.claim != Claim::Live => "is not live",
            () if !stands.holds => "is not its holder",
            () if !claim.proven => "never published its value",
            () if claim.untied.whole > GRACE + SLACK => "has not been tied to it for far longer than the grace",
            () => return Ok(()),
        };
        Err(format!("{} is routed to tenant {}, which {why}: {claim:?}", claim.name, claim.tenant))
    }

    fn moved(
        &self,
        before: Option<&Stands>,
        stands: &Stands,
        all: &[Stands],
        happened: &mut Vec<&'static str>,
    ) -> Result<(), String> {
        let claim = &self.claims[&stands.id];
        let held = before.is_some_and(|b| b.holds);
        if stands.holds && !held {
            happened.push("held");
            self.may_hold(stands, claim, all, happened)?;
        }
        if stands.claim == Claim::Live && before.is_none_or(|b| b.claim != Claim::Live) {
            happened.push("live");
        }
        if held && !stands.holds && !claim.removed {
            if self.zones.get(&claim.name).is_some_and(|zone| zone.mute) {
                return Err(format!("{} was taken from tenant {} on silence: {claim:?}", claim.name, claim.tenant));
            }
            let by = all.iter().find(|s| s.holds && self.claims[&s.id].name == claim.name);
            match (before.map(|b| b.claim), by) {
                (Some(Claim::Queued), _) if !claim.gone.most.is_zero() || self.is_gone(claim) => {
                    happened.push("lost its proof")
                }
                (Some(Claim::Live), Some(_)) if claim.gone.most + HOUR >= NOTICE => happened.push("handed over"),
                (Some(Claim::Live), None) if claim.untied.most + HOUR >= GRACE => happened.push("untied"),
                _ => return Err(format!("{} was taken from tenant {} without reason: {claim:?}", claim.name, claim.tenant)),
            }
        }
        Ok(())
    }

    fn is_gone(&self, claim: &Claimed) -> bool {
        self.zones.get(&claim.name).is_some_and(|z| !z.mute && !z.values.contains(&claim.value))
    }

    /// Whoever becomes holder has published its value, and whoever held the name before has let go of it in DNS or come back itself.
    fn may_hold(
        &self,
        stands: &Stands,
        claim: &Claimed,
        all: &[Stands],
        happened: &mut Vec<&'static str>,
    ) -> Result<(), String> {
        if !claim.proven || claim.removed && claim.known_removed {
            return Err(format!("tenant {} holds {} without proof: {claim:?}", claim.tenant, claim.name));
        }
        let before =
            all.iter().find(|s| self.before.get(&s.id).is_some_and(|b| b.holds) && self.claims[&s.id].name == claim.name);
        let former = before.map(|s| &s.id).or_else(|| self.last.get(&claim.name)).filter(|id| **id != stands.id);
        let Some((id, former)) = former.map(|id| (id, &self.claims[id])) else { return Ok(()) };
        if former.tenant == claim.tenant {
            return Ok(());
        }
        happened.push("another holds");
        let absent = !former.gone.most.is_zero() || self.is_gone(former);
        let off = former.longest_off >= 23 * HOUR;
        // One that only lost its proof before it was served left nothing to rest.
        let never_served = self.before.get(id).is_none_or(|b| b.claim == Claim::AwaitingDns);
        if absent || off || never_served || former.forced {
            return Ok(());
        }
        Err(format!(
            "tenant {} holds {} while what tenant {} left is there: {former:?}",
            claim.tenant, claim.name, former.tenant
        ))
    }
}
