//! Who should have been told what by now, worked out from the world and held against the inbox.
//!
//! It knows nothing of alerts in the store: a certificate that the CA issued and that nothing followed crosses its thresholds at
//! moments that can be computed, a record that is gone is gone for all to see.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use super::super::ca::Issued;
use super::left::{self, Due, Left};
use super::names::{Name, Names, Trouble};
use super::receiver::Told;
use super::risks::{Heard, Risks};
use crate::model::moment::Moment;

/// The shares of its life, in hundredths, with which a certificate is told of.
const SHARES: [u64; 4] = [25, 10, 3, 0];
/// A threshold that is crossed is told within this, even where a process dies on the way and another takes over.
const AT_ONCE: Duration = Duration::from_secs(300);
/// A receiver that is back gets what waits for it within this.
const BACK: Duration = Duration::from_secs(20 * 60);
/// What a CA issued is in use, and what it replaces over, within this, unless something stands in the way.
const REPLACED: Duration = Duration::from_secs(3600);
/// A certificate that was issued may lie at a CA that is away for so long before anybody has it.
const FETCHED: Duration = Duration::from_secs(12 * 3600);
/// Every name is looked at once a day; a look, an order and a message are made within this.
pub(super) const A_LOOK: Duration = Duration::from_secs(29 * 3600);

/// What is to be held against the receiver's inbox.
#[derive(Clone, Debug)]
enum Watch {
    /// The certificate crossed a threshold: the index among [`SHARES`].
    Crossed(Issued, usize),
    /// It was replaced after it was told of.
    Replaced(Issued),
    /// What ties a name changed then.
    Tie(usize, Moment),
    /// What its renewal would meet changed then.
    Risk(usize, Moment),
    /// The tenant of this claim of a name let go of it then, or was told then, and its records are there still.
    Left(usize, usize, Moment),
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) told: u64,
    pub(super) missed: u64,
    pub(super) doubled: u64,
    /// Told although nothing of it was so.
    pub(super) untrue: u64,
    /// The longest between a threshold and its message, while the receiver was up and no process died.
    pub(super) slowest: Duration,
    /// The same where one did.
    pub(super) slowest_after_crash: Duration,
    /// Reminders of names left behind.
    pub(super) reminders: u64,
}

/// The expectation.
#[derive(Default)]
pub(super) struct Expected {
    watches: BTreeMap<(Moment, u64), Watch>,
    passes: BTreeSet<Moment>,
    arrivals: u64,
    /// The last certificate of each name.
    last: HashMap<String, Issued>,
    /// The one before, and when it was followed.
    followed: HashMap<String, (Issued, Moment)>,
    /// Thresholds told, by name and end of the certificate.
    told: HashMap<(String, i64), Vec<u64>>,
    /// Those of them whose end was not told.
    open: HashSet<(String, i64)>,
    /// The last word on what ties each name, and when it came.
    tie: HashMap<String, (String, Moment)>,
    risks: Risks,
    left: Left,
    receiver_up_since: Option<Moment>,
    /// When a process died last.
    died_at: Option<Moment>,
    counts: Counts,
    said: Vec<String>,
}

/// The share of the life that is left at the crossing.
fn crossing(of: &Issued, share: u64) -> Moment {
    let life = of.until.since(of.from);
    of.until - Duration::from_micros(u64::try_from(life.as_micros() * u128::from(share) / 100).unwrap_or(u64::MAX))
}

fn key(of: &Issued) -> (String, i64) {
    (of.host.clone(), of.until.secs())
}

impl Expected {
    pub(super) fn new(now: Moment) -> Self {
        Expected { receiver_up_since: Some(now), ..Expected::default() }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// What was found, in words, since it was last asked.
    pub(super) fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    pub(super) fn receiver(&mut self, down: bool, now: Moment) {
        self.receiver_up_since = (!down).then_some(now);
    }

    fn watch(&mut self, at: Moment, watch: Watch) {
        self.arrivals += 1;
        self.watches.insert((at, self.arrivals), watch);
    }

    fn cross(&mut self, of: Issued, at: usize) {
        if let Some(share) = SHARES.get(at) {
            let crossed = crossing(&of, *share);
            self.passes.insert(crossed);
            self.watch(crossed + AT_ONCE, Watch::Crossed(of, at));
        }
    }

    /// The CA issued a certificate.
    pub(super) fn issued(&mut self, one: Issued) {
        if let Some(before) = self.last.insert(one.host.clone(), one.clone()) {
            self.followed.insert(one.host.clone(), (before.clone(), one.at));
            if self.open.contains(&key(&before)) {
                // Whoever looks for alerts does so every few seconds in a process.
                self.passes.insert(one.at + REPLACED / 3);
            }
            self.watch(one.at + REPLACED, Watch::Replaced(before));
        }
        self.cross(one, 0);
    }

    /// What ties a name changed for all to see.
    pub(super) fn tie_changed(&mut self, n: usize, now: Moment) {
        self.watch(now + A_LOOK, Watch::Tie(n, now));
    }

    /// What a renewal of the name would meet changed for all to see.
    pub(super) fn risk_changed(&mut self, n: usize, now: Moment) {
        self.watch(now + A_LOOK, Watch::Risk(n, now));
    }

    /// The tenant of a claim let go of a name whose records are there still.
    pub(super) fn left_behind(&mut self, n: usize, claim: usize, now: Moment) {
        self.watch(now + left::FIRST, Watch::Left(n, claim, now));
    }

    /// A process died.
    pub(super) fn died(&mut self, now: Moment) {
        self.died_at = Some(now);
    }

    /// Whoever looks for alerts has something to find then.
    pub(super) fn pass_at(&mut self, at: Moment) {
        self.passes.insert(at);
    }

    /// When certificates are to be looked at next, or something here is due.
    pub(super) fn next_pass(&self) -> Option<Moment> {
        self.passes.first().copied()
    }

    /// Whether certificates cross a threshold by now.
    pub(super) fn take_passes(&mut self, now: Moment) -> bool {
        let later = self.passes.split_off(&(now + Duration::from_micros(1)));
        !std::mem::replace(&mut self.passes, later).is_empty()
    }

    pub(super) fn next_at(&self) -> Option<Moment> {
        self.watches.keys().next().map(|(at, _)| *at)
    }

    /// Whether something that is due was not told, as far as is known now.
    pub(super) fn lacks(&self, names: &Names, ca_away: bool, now: Moment) -> bool {
        let mut due = self.watches.range(..=(now, u64::MAX));
        due.any(|(_, watch)| matches!(self.look(watch, names, ca_away), Found::Lacking(_)))
    }

    /// Looks at what is due. `ca_away`: nothing can be replaced meanwhile.
    pub(super) fn judge(&mut self, names: &Names, ca_away: bool, now: Moment) {
        while let Some(entry) = self.watches.first_entry().filter(|entry| entry.key().0 <= now) {
            let watch = entry.remove();
            let up = self.receiver_up_since.is_some_and(|since| now.since(since) >= BACK);
            match self.look(&watch, names, ca_away) {
                Found::Well => match watch {
                    Watch::Crossed(of, at) => self.cross(of, at + 1),
                    Watch::Left(n, claim, since) => {
                        if let Due::Told(at) = self.left.due(names, n, claim, since) {
                            self.watch((at + left::AGAIN).max(now), Watch::Left(n, claim, at + Duration::from_secs(1)));
                        }
                    }
                    _ => {}
                },
                Found::Over => {}
                Found::Lacking(_) if !up => self.watch(now + BACK, watch),
                Found::Later => self.watch(now + REPLACED, watch),
                Found::Lacking(what) => {
                    self.counts.missed += 1;
                    self.said.push(format!("{}: {what} was not told", now.rfc3339()));
                    if let Watch::Crossed(of, at) = watch {
                        self.cross(of, at + 1);
                    }
                }
            }
        }
    }

    fn look(&self, watch: &Watch, names: &Names, ca_away: bool) -> Found {
        match watch {
            Watch::Crossed(of, at) => {
                let wanted = names.get(&of.host).is_some_and(|name| name.wanted.is_some());
                if !wanted || self.last.get(&of.host) != Some(of) {
                    return Found::Over;
                }
                let share = SHARES[*at];
                let told = self.told.get(&key(of)).is_some_and(|told| told.iter().any(|t| *t <= share));
                if told { Found::Well } else { Found::Lacking(format!("{share} % left of the certificate of {}", of.host)) }
            }
            Watch::Replaced(of) => {
                let wanted = names.get(&of.host).is_some_and(|name| name.wanted.is_some());
                if !wanted || !self.open.contains(&key(of)) {
                    Found::Over
                } else if ca_away {
                    Found::Later
                } else {
                    Found::Lacking(format!("that the certificate of {} was replaced", of.host))
                }
            }
            Watch::Left(n, claim, since) => match self.left.due(names, *n, *claim, *since) {
                Due::Over => Found::Over,
                Due::Told(_) => Found::Well,
                Due::Lacking(what) => Found::Lacking(what),
            },
            Watch::Risk(n, since) => self.risks.lacking(names.at(*n), *since).map_or(Found::Over, Found::Lacking),
            Watch::Tie(n, since) => {
                let name = names.at(*n);
                let last = self.tie.get(name.host.as_str());
                match words_of(name, *since) {
                    None => Found::Over,
                    // It was well before anybody looked.
                    Some("tie_held") if last.is_none_or(|(kind, _)| kind == "tie_held") => Found::Over,
                    Some(kind) if last.is_some_and(|(told, at)| told == kind && *at >= *since) => Found::Over,
                    Some(kind) => {
                        let (trouble, last) = (name.trouble.map(|(trouble, _)| trouble), last.map(|(kind, _)| kind));
                        Found::Lacking(format!("{kind} of {} ({trouble:?}, last told: {last:?})", name.host))
                    }
                }
            }
        }
    }

    /// Something was told.
    pub(super) fn told(&mut self, told: &Told, names: &Names) {
        self.counts.told += 1;
        let host = told.data["hostname"].as_str().unwrap_or_default().to_owned();
        match told.kind.as_str() {
            "certificate_ending" => self.told_ending(told, host),
            "certificate_safe" => {
                if self.open.iter().all(|(name, _)| *name != host) {
                    self.untrue(told.at, format!("the end of an alert of {host} that was not told"));
                }
                self.open.retain(|(name, _)| *name != host);
            }
            "renewal_at_risk" | "renewal_safe" => match self.risks.told(told, names.get(&host), &host) {
                Heard::Fine => {}
                Heard::Twice(what) => {
                    self.counts.doubled += 1;
                    self.said.push(format!("{}: {what} was told twice", told.at.rfc3339()));
                }
                Heard::Untrue(what) => self.untrue(told.at, what),
            },
            "name_dangles" => {
                self.counts.reminders += 1;
                match self.left.told(told, names.get(&host), &host) {
                    left::Heard::Fine => {}
                    left::Heard::Twice(what) => {
                        self.counts.doubled += 1;
                        self.said.push(format!("{}: {what} was told twice within a week", told.at.rfc3339()));
                    }
                    left::Heard::Untrue(what) => self.untrue(told.at, what),
                }
            }
            "tie_held" | "tie_weakened" | "tie_lost" => {
                let claim = told.data["domain_id"].as_str().unwrap_or_default();
                let of = names.get(&host).and_then(|name| name.wanted());
                if of.is_none_or(|of| of.id.as_str() != claim) {
                    return;
                }
                let before = self.tie.insert(host.clone(), (told.kind.clone(), told.at));
                if before.is_some_and(|(kind, _)| kind == told.kind) {
                    self.counts.doubled += 1;
                    self.said.push(format!("{}: {} of {host} was told twice", told.at.rfc3339(), told.kind));
                }
            }
            _ => {}
        }
    }

    fn told_ending(&mut self, told: &Told, host: String) {
        let detail = &told.data["detail"];
        let until = detail["not_after"].as_str().and_then(Moment::from_rfc3339).unwrap_or_default().secs();
        let share = detail["threshold_percent"].as_u64().unwrap_or(u64::MAX);
        let of = (host.clone(), until);
        let before = self.told.entry(of.clone()).or_default();
        if before.iter().any(|t| *t <= share) {
            self.counts.doubled += 1;
            self.said.push(format!("{}: {share} % left of the certificate of {host} was told twice", told.at.rfc3339()));
        }
        before.push(share);
        self.open.insert(of);
        let lately = |(before, at): &(Issued, Moment)| (told.at.since(*at) < FETCHED).then(|| before.clone());
        let known = [self.last.get(&host).cloned(), self.followed.get(&host).and_then(lately)];
        let of = known.into_iter().flatten().find(|one| one.until.secs() == until);
        match of.map(|one| crossing(&one, share)) {
            Some(crossed) if crossed <= told.at => {
                // What waited for its receiver was on time.
                if self.receiver_up_since.is_some_and(|since| since + BACK <= crossed) {
                    let crashed = self.died_at.is_some_and(|at| crossed <= at);
                    let counts = &mut self.counts;
                    let slowest = if crashed { &mut counts.slowest_after_crash } else { &mut counts.slowest };
                    *slowest = told.at.since(crossed).max(*slowest);
                }
            }
            _ => self.untrue(told.at, format!("{share} % left of a certificate of {host} that is not in use or has more")),
        }
    }

    fn untrue(&mut self, at: Moment, what: String) {
        self.counts.untrue += 1;
        self.said.push(format!("{}: {what} was told", at.rfc3339()));
    }
}

enum Found {
    Well,
    /// Nothing is expected any more.
    Over,
    Later,
    Lacking(String),
}

/// The word that is expected for what ties a name, if it has been as it is since then.
fn words_of(name: &Name, since: Moment) -> Option<&'static str> {
    name.wanted()?;
    match name.trouble {
        None => (name.well_since == Some(since)).then_some("tie_held"),
        Some((_, at)) if at != since => None,
        Some((Trouble::RecordGone | Trouble::BothGone, _)) if name.host.is_apex() => Some("tie_lost"),
        Some((Trouble::BothGone, _)) => Some("tie_lost"),
        Some((Trouble::RecordGone, _)) => Some("tie_weakened"),
        Some((Trouble::WayGone, _)) if !name.host.is_apex() => Some("tie_weakened"),
        Some(_) => None,
    }
}
