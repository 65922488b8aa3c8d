//! The pure walk: `plan` and the conclusions over rows in memory, as `advance` puts them together, under tenants, zones and time
//! that do what they like, edges that come late and a database that is put back now and then ([`super::recovery`]). So fast that a
//! hundred thousand steps are a matter of seconds.
//!
//! What each act and each wait draws depends on the seed and its number alone, so that a walk without some of its acts is the same
//! otherwise: one that fails is told by the fewest acts that still make it fail.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nameplate::model::claim::Claim;
use nameplate::model::conclude::{
    self, AuthorizationSeen, CaStatus, Challenge, Conclusion, Former, Looked, Presence, Rollout,
};
use nameplate::model::domain::{Domain, Effect, HoldingState, PublicProbe, Situation};
use nameplate::model::evidence::{Check, Finding};
use nameplate::model::id::{CertificateId, DomainId, TenantId};
use nameplate::model::letting_go::{FIRST_LOOK, Leads, Resting, Step};
use nameplate::model::moment::Moment;
use nameplate::model::order::OrderState;
use nameplate::model::outcome::Outcome;
use nameplate::model::plan::{self, Change, Next, Observe};
use nameplate::model::reason::Reason;
use nameplate::model::routine;

use super::edges::Edge;
use super::oracle::{Oracle, Stands, Zone};
use super::recovery::Copy;
use super::rows::{Broken, Rows, SHARED, Target};

const START: Moment = Moment::from_secs(1_800_000_000);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// An apex, whose record alone ties it, and names beneath each other.
pub(super) const NAMES: [&str; 4] = ["acme.test", "shop.acme.test", "eu.shop.acme.test", "beta.test"];
pub(super) const SLUGS: [&str; 3] = ["acme", "beta", "gamma"];
/// Steps that follow each other at one moment before somebody would call it a loop.
const AT_ONCE: usize = 400;

/// A walk.
pub struct Walk {
    pub(super) rows: Rows,
    pub oracle: Oracle,
    pub(super) tenants: Vec<(TenantId, String)>,
    /// Every tenant there was, by its number with the judge.
    pub(super) numbers: Vec<TenantId>,
    /// When each live name had its daily look.
    pub(super) daily: BTreeMap<usize, Moment>,
    pub(super) resting: BTreeMap<String, (Resting, Moment)>,
    /// One that is soon to follow, and one that is late.
    pub(super) edges: [Edge; 2],
    pub(super) copy: Option<Copy>,
    /// Claims that a copy brought back to be served which were served no longer.
    pub(super) let_go_since: BTreeSet<DomainId>,
    /// For which claim each certificate was got, lost or not.
    pub(super) issued: BTreeMap<CertificateId, DomainId>,
    pub(super) now: Moment,
    /// What was done that must not be, seen while it was done.
    fault: Option<String>,
    seed: u64,
    random: u64,
    acts: usize,
    /// Acts that are left out.
    without: BTreeSet<usize>,
    pub steps: usize,
    story: Vec<String>,
}

fn finding(check: Check, reason: Reason) -> Finding {
    let (observed, seen_by, views, record_to_publish) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (expected, advice) = (String::new(), String::new());
    Finding {
        check,
        reason,
        expected,
        observed,
        seen_by,
        views,
        advice,
        found_at: None,
        found_via: None,
        record_to_publish,
        dns_host: None,
    }
}

impl Walk {
    pub fn new(seed: u64, broken: Broken) -> Walk {
        Walk::leaving_out(seed, broken, BTreeSet::new())
    }

    /// The same walk without some of its acts.
    pub fn leaving_out(seed: u64, broken: Broken, without: BTreeSet<usize>) -> Walk {
        let mut rows = Rows::new(START, broken);
        let tenants: Vec<_> = SLUGS.iter().map(|slug| (TenantId::mint(START, rows.draw()), (*slug).to_owned())).collect();
        let numbers = tenants.iter().map(|(id, _)| id.clone()).collect();
        let (oracle, resting, story) = (Oracle::default(), BTreeMap::new(), vec![format!("seed {seed}")]);
        let mut walk = Walk {
            rows,
            oracle,
            tenants,
            numbers,
            daily: BTreeMap::new(),
            resting,
            edges: [Edge::new(START.micros()), Edge::new(START.micros())],
            copy: None,
            let_go_since: BTreeSet::new(),
            issued: BTreeMap::new(),
            now: START,
            fault: None,
            seed,
            random: 1,
            acts: 0,
            without,
            steps: 0,
            story,
        };
        walk.oracle.until(START);
        walk
    }

    /// What is drawn from here on depends on this number alone.
    fn draw_anew(&mut self, number: usize) {
        let number = u64::try_from(number).unwrap();
        let mixed = (self.seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.random = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1;
    }

    /// A number below `bound` (xorshift: this walk needs no other chance).
    pub(super) fn draw(&mut self, bound: usize) -> usize {
        for (left, by) in [(true, 13), (false, 7), (true, 17)] {
            self.random ^= if left { self.random << by } else { self.random >> by };
        }
        usize::try_from(self.random >> 11).unwrap() % bound
    }

    pub(super) fn said(&mut self, what: String) {
        self.story.push(format!("{} {what}", self.now));
        let long = self.story.len();
        if long > 80 {
            self.story.drain(1..long - 60);
        }
    }

    /// Walks until so many steps were taken; what the judge found, with the story before it.
    pub fn run(&mut self, steps: usize) -> Result<(), String> {
        let mut round = 0;
        while self.steps < steps {
            self.draw_anew(2 * round);
            for _ in 0..=self.draw(2) {
                let random = self.random;
                self.draw_anew(2 * self.acts + 1);
                if !self.without.contains(&self.acts) {
                    self.act();
                }
                (self.random, self.acts, self.steps) = (random, self.acts + 1, self.steps + 1);
            }
            round += 1;
            let hours = [0, 1, 5, 20, 90][self.draw(5)];
            let end = self.now + HOUR * hours + Duration::from_secs(40);
            while self.now < end {
                self.settle().map_err(|why| format!("{why}\n{:#?}", self.story))?;
                self.now = self.next().max(self.now + Duration::from_millis(50)).min(end);
                self.oracle.until(self.now);
            }
        }
        Ok(())
    }

    /// How many acts there were, those that were left out too.
    pub fn acts(&self) -> usize {
        self.acts
    }

    /// What somebody does.
    fn act(&mut self) {
        let (tenant, name) = (self.draw(3), NAMES[self.draw(4)]);
        match self.draw(32) {
            0..3 => self.claim(tenant, name),
            3..9 => self.hand_to(tenant, name),
            9..12 => self.toggle_value(name),
            12..15 => self.lead(tenant, name),
            15..18 => self.toggle_silence(name),
            18..20 => self.remove(name),
            20..23 => self.undo(),
            23 => self.lapse(name),
            24 => self.leave(tenant),
            25..27 => self.force(),
            27 => self.ask(name),
            28 => self.back_up(),
            29 => self.restore(),
            _ => self.end_recovery(),
        }
    }

    fn any(&mut self, fits: impl Fn(&Domain) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.rows.lines.len()).filter(|at| fits(&self.rows.lines[*at].domain)).collect();
        if all.is_empty() { None } else { Some(all[self.draw(all.len())]) }
    }

    fn of_name(&mut self, name: &str, fits: impl Fn(Claim) -> bool) -> Option<usize> {
        self.any(|d| d.hostname.as_str() == name && fits(d.claim))
    }

    fn claim(&mut self, tenant: usize, name: &str) {
        let (id, slug) = self.tenants[tenant].clone();
        let before = self.rows.lines.len();
        let target = if self.draw(3) == 0 { Target::Shared } else { Target::Own };
        let at = self.rows.claim(&id, &slug, name, target, self.now);
        if at == before {
            let (value, own) = (self.rows.value(at).to_owned(), target == Target::Own);
            let target = target.host(&slug);
            let way_ties = own && !self.rows.lines[at].domain.hostname.is_apex();
            let tenant = self.numbers.iter().position(|t| *t == id).unwrap();
            self.oracle.claimed(&self.rows.lines[at].domain.id, tenant, name, &value, &target, way_ties);
            self.said(format!("{slug} claims {name}"));
        }
    }

    /// The zone's owner wants this tenant to have the name.
    fn hand_to(&mut self, tenant: usize, name: &str) {
        self.claim(tenant, name);
        let id = self.tenants[tenant].0.clone();
        let open = |l: &super::rows::Line| {
            l.domain.tenant_id == id && l.domain.hostname.as_str() == name && l.domain.claim.is_open()
        };
        let Some(at) = self.rows.lines.iter().position(open) else { return };
        let value = self.rows.value(at).to_owned();
        let keeps = self.draw(4) == 0;
        let zone = self.oracle.zone(name);
        zone.mute = false;
        if !keeps {
            zone.values.clear();
        }
        zone.values.insert(value);
        zone.way = Some(self.rows.lines[at].domain.target.clone());
        self.oracle.look();
        self.said(format!("{name} is handed to {}", self.tenants[tenant].1));
    }

    fn toggle_value(&mut self, name: &str) {
        let Some(at) = self.of_name(name, |_| true) else { return };
        let value = self.rows.value(at).to_owned();
        let zone = self.oracle.zone(name);
        if !zone.values.remove(&value) {
            zone.values.insert(value.clone());
        }
        self.oracle.look();
        self.said(format!("{name}: value {value} toggled"));
    }

    fn lead(&mut self, tenant: usize, name: &str) {
        let way = match self.draw(4) {
            0 => None,
            1 => Some("elsewhere.test".to_owned()),
            2 => Some(SHARED.to_owned()),
            _ => Some(format!("{}.app.example", self.tenants[tenant].1)),
        };
        self.said(format!("{name} leads to {way:?}"));
        self.oracle.zone(name).way = way;
    }

    fn toggle_silence(&mut self, name: &str) {
        let zone = self.oracle.zone(name);
        zone.mute = !zone.mute;
        let mute = zone.mute;
        self.oracle.look();
        self.said(format!("{name} mute: {mute}"));
    }

    /// The domain lapsed, and somebody else has it: an empty zone.
    fn lapse(&mut self, name: &str) {
        *self.oracle.zone(name) = Zone::default();
        self.said(format!("{name} lapses"));
    }

    fn ask(&mut self, name: &str) {
        if let Some(at) = self.of_name(name, |c| matches!(c, Claim::AwaitingDns | Claim::Queued | Claim::Live)) {
            let d = &mut self.rows.lines[at].domain;
            (d.check_asked_at, d.check_asked_by, d.due_at) = (Some(self.now), Some("tenant".to_owned()), self.now);
        }
    }

    fn remove(&mut self, name: &str) {
        let Some(at) = self.of_name(name, Claim::is_open) else { return };
        let s = self.rows.situation(at);
        if let Ok(out) = conclude::remove(&s, "tenant", self.now) {
            self.rows.record(at, &s, &out, self.now);
            self.oracle.removed(&s.domain.id);
            self.said(format!("{name} removed by {}", s.tenant_slug));
        }
    }

    fn undo(&mut self) {
        let Some(at) = self.any(|d| d.claim == Claim::Releasing) else { return };
        let mut s = self.rows.situation(at);
        let again = |l: &super::rows::Line| {
            l.domain.tenant_id == s.domain.tenant_id && l.domain.hostname == s.domain.hostname && l.domain.claim.is_open()
        };
        if self.rows.lines.iter().any(again) {
            return;
        }
        let looked = self.look(&s);
        if let Ok(out) = conclude::undo(&mut s, &looked, "tenant", self.now) {
            self.rows.record(at, &s, &out, self.now);
            self.oracle.returned(&s.domain.id);
            self.said(format!("{} brought back by {}", s.domain.hostname, s.tenant_slug));
        }
    }

    fn force(&mut self) {
        // The last claims on the names: of older ones nothing is left to be ended.
        let rests: Vec<DomainId> = self.rows.holdings.values().filter_map(|h| h.domain_id.clone()).collect();
        let ends = |d: &Domain| matches!(d.claim, Claim::Releasing | Claim::Released) && rests.contains(&d.id);
        let Some(at) = self.any(ends) else { return };
        let s = self.rows.situation(at);
        if let Ok(out) = conclude::force_release(&s, "stuck", "operator", self.now) {
            self.rows.record(at, &s, &out, self.now);
            self.oracle.forced(&s.domain.id);
            self.said(format!("{} forced", s.domain.hostname));
        }
    }

    /// A tenant leaves for ever; a new one signs up, with a slug of its own.
    fn leave(&mut self, tenant: usize) {
        if self.draw(3) != 0 {
            return;
        }
        let (id, slug) = self.tenants[tenant].clone();
        for line in self.rows.lines.iter().filter(|l| l.domain.tenant_id == id && l.domain.claim.is_open()) {
            self.oracle.removed(&line.domain.id);
        }
        self.rows.leave(&id, self.now);
        self.said(format!("{slug} leaves"));
        self.signs_up(tenant);
    }

    /// Somebody new, under a slug that nobody ever had.
    pub(super) fn signs_up(&mut self, tenant: usize) {
        let next = TenantId::mint(self.now, self.rows.draw());
        let slug = format!("{}{}", SLUGS[tenant], self.numbers.len());
        self.numbers.push(next.clone());
        self.said(format!("{slug} signs up"));
        self.tenants[tenant] = (next, slug);
    }

    fn next(&self) -> Moment {
        let due = self.rows.lines.iter().map(|l| l.domain.due_at);
        let watched = self.resting.values().map(|(_, at)| *at);
        let grants = self.rows.lines.iter().filter_map(|l| l.order.as_ref()).filter_map(super::rows::turn_of);
        // Live names are looked at daily, whatever else is due.
        due.chain(watched).chain(grants).min().unwrap_or(Moment::NEVER).min(self.now + DAY)
    }

    /// Everything that is due now.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..AT_ONCE {
            self.edges_follow()?;
            self.settle_memories()?;
            self.rows.dispatch(self.now);
            self.watch();
            self.routine();
            let due = (0..self.rows.lines.len()).find(|at| self.rows.lines[*at].domain.due_at <= self.now);
            let Some(at) = due else { return self.judge() };
            self.advance(at);
            self.steps += 1;
            self.judge()?;
        }
        Err(format!("{} steps at one moment", AT_ONCE))
    }

    /// One step of one claim, as the one door takes it.
    fn advance(&mut self, at: usize) {
        let mut s = self.rows.situation(at);
        let now = self.now;
        let mut next = plan::plan(&s, now);
        for _ in 0..8 {
            let conclusion: Conclusion = match next {
                Next::Rest(until) => Outcome::of(&s, until).into(),
                Next::Change(change) => {
                    let sealed = (change == Change::PrepareKey).then(|| vec![1]);
                    conclude::change(&s, change, sealed, now, &mut || self.rows.draw()).into()
                }
                Next::Observe(what) => self.observe(&mut s, what),
                Next::Act(effect) => self.effect(&s, effect),
            };
            next = match conclusion {
                Conclusion::Record(out) => return self.rows.record(at, &s, &out, now),
                Conclusion::Observe(what) => Next::Observe(what),
                Conclusion::Act(effect) => Next::Act(effect),
            };
        }
    }

    fn observe(&mut self, s: &mut Situation, what: Observe) -> Conclusion {
        let now = self.now;
        if what == Observe::Dns {
            let looked = self.look(s);
            return conclude::look(s, &looked, now, &mut || self.rows.draw()).into();
        }
        let all = Rollout { counted: 1, numbered: true, ..Rollout::default() };
        if what == Observe::CertificateRollout {
            return conclude::certificate_rollout(s, &all, 1, now);
        }
        if what == Observe::PublicName {
            return conclude::public_name(s, PublicProbe { at: now, ok: true, seen: Vec::new() }, now).into();
        }
        let Some(order) = s.order.clone() else { return Outcome::of(s, now).into() };
        match what {
            Observe::Preflight => {
                let leads = self.leads_here(s.domain.hostname.as_str());
                let reason = if leads { Reason::PreflightOk } else { Reason::PreflightUnreachable };
                conclude::preflight(s, &order, &finding(Check::Preflight, reason), now).into()
            }
            Observe::ChallengeRollout => conclude::challenge_rollout(s, &order, &all, 1, now),
            Observe::Token => conclude::token_fetched(s, &order, true, now),
            Observe::Authorization => {
                let text = |t: &str| t.to_owned();
                let http01 = Challenge { url: text("https://ca.test/c"), token: text("t"), key_authorization: text("t.k") };
                let seen = AuthorizationSeen { status: CaStatus::Pending, http01: Some(http01), problem: None };
                conclude::authorization(s, &order, &seen, now, &mut || self.rows.draw()).into()
            }
            Observe::Order => {
                // What the CA sees is what there is: a name that leads elsewhere fails.
                let status = match order.state {
                    OrderState::Authorizing if !self.leads_here(s.domain.hostname.as_str()) => CaStatus::Invalid,
                    OrderState::Authorizing => CaStatus::Ready,
                    _ => CaStatus::Valid,
                };
                conclude::order_status(s, &order, status, None, None, now)
            }
            _ => {
                let certificate = self.rows.stored(now);
                self.issued.insert(certificate.id.clone(), s.domain.id.clone());
                conclude::chain(s, &order, certificate, 7, now).into()
            }
        }
    }

    fn effect(&mut self, s: &Situation, effect: Effect) -> Conclusion {
        let Some(order) = &s.order else { return Outcome::of(s, self.now).into() };
        if effect == Effect::NewOrder && self.rows.feed.memory_of(&s.domain.hostname, &s.domain.tenant_id).is_some() {
            self.fault = Some(format!("{} is served by edges and is ordered again", s.domain.hostname));
        }
        let out = match effect {
            Effect::NewOrder => conclude::placed(s, order, "https://ca.test/order/1", false, self.now),
            Effect::Announce => conclude::announced(s, order, self.now),
            Effect::Finalize => conclude::finalized(s, order, self.now),
        };
        out.into()
    }

    fn leads_here(&self, name: &str) -> bool {
        let way = self.oracle.zones.get(name).and_then(|z| z.way.as_deref());
        way.is_some_and(|way| way.ends_with(".app.example"))
    }

    /// What a look would find, from what the zone holds.
    fn look(&self, s: &Situation) -> Looked {
        let empty = Zone::default();
        let zone = self.oracle.zones.get(s.domain.hostname.as_str()).unwrap_or(&empty);
        let apex = s.domain.hostname.is_apex();
        let way = match zone.way.as_deref() {
            None if apex => Reason::AddressMissing,
            None => Reason::CnameMissing,
            Some(way) if apex && way.ends_with(".app.example") => Reason::AddressOk,
            Some(way) if way == s.domain.target => Reason::CnameOk,
            Some(way) if way.ends_with(".app.example") => Reason::CnameWrongTenantTarget,
            Some(_) if apex => Reason::AddressPointsElsewhere,
            Some(_) => Reason::CnamePointsElsewhere,
        };
        let own = match () {
            () if zone.values.contains(&s.attempt.value) => Reason::TxtOk,
            () if self.rows.broken == Broken::WayIsProof && way == Reason::CnameOk => Reason::TxtOk,
            () if zone.values.is_empty() => Reason::TxtMissing,
            () => Reason::TxtValueMismatch,
        };
        let there = s.holding.as_ref().and_then(|h| h.value.as_ref()).is_some_and(|v| zone.values.contains(v));
        let mut value = if there { Presence::Present } else { Presence::Absent };
        let mut reasons = [own, way, Reason::CaaAbsent];
        if zone.mute && self.rows.broken == Broken::SilenceIsAbsence {
            (reasons, value) = ([Reason::TxtMissing, Reason::CnameMissing, Reason::CaaAbsent], Presence::Absent);
        } else if zone.mute {
            (reasons, value) =
                ([Reason::DnsLookupFailed, Reason::DnsLookupFailed, Reason::CaaLookupFailed], Presence::Unknown);
        }
        if self.rows.broken == Broken::FormerForgotten {
            value = Presence::Absent;
        }
        let findings =
            [Check::Ownership, Check::Routing, Check::Caa].into_iter().zip(reasons).map(|(c, r)| finding(c, r)).collect();
        // As the look has it: whether that host is the tenant's own, the conclusion knows.
        let cname_at_own_host = !zone.mute && reasons[1] == Reason::CnameOk;
        Looked { findings, former: Former { value, cname_at_own_host } }
    }

    /// The daily looks: only a difference asks for a look.
    fn routine(&mut self) {
        for at in 0..self.rows.lines.len() {
            let d = &self.rows.lines[at].domain;
            let last = self.daily.get(&at).copied().max(d.looked_at).unwrap_or(START);
            if d.claim != Claim::Live || self.now.since(last) < DAY {
                continue;
            }
            self.daily.insert(at, self.now);
            let s = self.rows.situation(at);
            let looked = self.look(&s);
            let d = &mut self.rows.lines[at].domain;
            if routine::differs(&d.evidence, &looked.findings) {
                (d.check_asked_at, d.check_asked_by, d.due_at) = (Some(self.now), Some("routine".to_owned()), self.now);
            }
        }
    }

    /// Names at rest are looked at until they lead elsewhere.
    fn watch(&mut self) {
        for (name, holding) in &self.rows.holdings {
            if holding.state == HoldingState::Quarantined {
                let begun = (Resting::begin(holding.since), holding.since + FIRST_LOOK);
                let known = self.resting.entry(name.clone()).or_insert(begun);
                if known.0.since != holding.since {
                    *known = begun;
                }
            } else {
                self.resting.remove(name);
            }
        }
        let due: Vec<String> =
            self.resting.iter().filter(|(_, (_, at))| *at <= self.now).map(|(name, _)| name.clone()).collect();
        for name in due {
            let former = self.rows.holdings[&name].domain_id.clone();
            let Some(at) = self.rows.lines.iter().position(|l| Some(&l.domain.id) == former.as_ref()) else { continue };
            let way = self.look(&self.rows.situation(at)).findings[1].reason;
            let (after, step, next) = self.resting[&name].0.seen(Leads::of(way), self.now);
            self.resting.insert(name.clone(), (after, next));
            if step == Step::Free {
                if let Some(holding) = self.rows.holdings.get_mut(&name) {
                    holding.state = HoldingState::Free;
                    holding.successor = None;
                }
                *self.oracle.seen.entry("free").or_default() += 1;
            }
        }
    }

    fn judge(&mut self) -> Result<(), String> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let stands: Vec<Stands> = self
            .rows
            .lines
            .iter()
            // Of a name of which edges know more than a restored database, what that says is not what visitors meet.
            .filter(|l| !self.rows.feed.is_unreminded(l.domain.hostname.as_str()))
            .map(|l| {
                let d = &l.domain;
                let held = self.rows.holdings.get(d.hostname.as_str()).filter(|h| h.state == HoldingState::Held);
                Stands {
                    id: d.id.clone(),
                    claim: d.claim,
                    holds: held.is_some_and(|h| h.domain_id.as_ref() == Some(&d.id)),
                    routed: self.rows.feed.routed(d.hostname.as_str()) == Some(&d.id),
                }
            })
            .collect();
        self.oracle.judge(&stands)
    }
}
