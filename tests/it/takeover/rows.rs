//! A store for the pure walk: applies what outcomes say to rows in memory, with the same conditions as the statements.

use std::collections::BTreeMap;
use std::time::Duration;

use nameplate::model::claim::Claim;
use nameplate::model::domain::{
    Attempt, Domain, Grant, GrantState, Holding, HoldingState, InUse, Issuer, Role, RoutingMode, Situation, TieState,
};
use nameplate::model::hostname::Hostname;
use nameplate::model::id::{AttemptId, CertificateId, DomainId, IssuerId, TenantId};
use nameplate::model::letting_go::LettingGo;
use nameplate::model::limits;
use nameplate::model::moment::Moment;
use nameplate::model::notice::Notice;
use nameplate::model::order::{Lane, Order, OrderState};
use nameplate::model::outcome::{Outcome, Write};
use nameplate::model::pace;
use nameplate::model::renewal::Renewal;
use nameplate::model::tenant::TenantStatus;

use super::feed::Feed;

/// What a row is broken by, to see that the judge would tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Nothing,
    /// Whoever proves a name gets it, whoever holds it.
    TakesFromAnyone,
    /// A zone that says nothing counts as one that says no.
    SilenceIsAbsence,
    /// A name that was let go of stays routed.
    RouteStays,
    /// A way to the tenant's host counts as proof.
    WayIsProof,
    /// A tie that is lost is lost for ever and costs nothing.
    TieIsForEver,
    /// The former holder's record is not looked for.
    FormerForgotten,
    /// A way to the host that all tenants share counts as a tie.
    SharedWayTies,
    /// What edges are to let go of gets no number in the feed.
    EdgesUntold,
    /// What edges remember of a restored database is not heard.
    MemoryIgnored,
    /// A restored database is believed at once.
    RestoredIsTrusted,
}

/// Where a name is told to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a host of its tenant's own.
    Own,
    /// To one that all tenants share.
    Shared,
}

impl Target {
    pub fn host(self, slug: &str) -> String {
        match self {
            Target::Own => format!("{slug}.app.example"),
            Target::Shared => SHARED.to_owned(),
        }
    }

    fn mode(self) -> RoutingMode {
        match self {
            Target::Own => RoutingMode::PerTenant,
            Target::Shared => RoutingMode::Shared,
        }
    }
}

/// The host that names of all tenants may lead to.
pub const SHARED: &str = "custom.app.example";

/// One claim with all that is next to it.
#[derive(Clone)]
pub struct Line {
    pub domain: Domain,
    pub slug: String,
    pub attempt: Attempt,
    pub order: Option<Order>,
    pub grant: Option<Grant>,
    pub certificate: Option<InUse>,
    renewal: Option<Renewal>,
    notices: Vec<Notice>,
}

/// All rows.
#[derive(Clone)]
pub struct Rows {
    pub lines: Vec<Line>,
    pub holdings: BTreeMap<String, Holding>,
    /// Who serves a name, as edges are told.
    pub feed: Feed,
    pub left: Vec<TenantId>,
    pub broken: Broken,
    issuer: Issuer,
    count: u64,
}

impl Rows {
    pub fn new(start: Moment, broken: Broken) -> Rows {
        let issuer = Issuer {
            id: IssuerId::mint(start, [1; 10]),
            name: "main".into(),
            directory: "https://ca.test/directory".into(),
            caa_identities: vec!["ca.test".into()],
            account_url: Some("https://ca.test/account/1".into()),
            sealed_account_key: None,
            limits: limits::usual(),
            roots: None,
            profile: None,
            clouded: false,
            honours_replaces: false,
        };
        let (lines, holdings, feed) = (Vec::new(), BTreeMap::new(), Feed::new(start));
        Rows { lines, holdings, feed, left: Vec::new(), broken, issuer, count: 0 }
    }

    /// These rows as they were when a copy was made; what is drawn by chance is never drawn again.
    pub fn put_back(&mut self, copy: &Rows) {
        let count = self.count;
        *self = Rows { count, ..copy.clone() };
    }

    /// Grants that were open may have been used since the copy was made, and what was counted against a name counts from now on only.
    pub fn restored(&mut self, now: Moment) {
        for clock in self.holdings.values_mut().filter_map(|h| h.successor.as_mut()) {
            (clock.counted, clock.seen_at) = (Duration::ZERO, None);
        }
        for line in &mut self.lines {
            (line.domain.lost_for_us, line.domain.counted_until) = (0, None);
            line.grant = None;
            if let Some(order) = line.order.as_mut().filter(|o| o.state == OrderState::Granted) {
                (order.state, order.state_since) = (OrderState::Waiting, now);
            }
        }
    }

    /// A tenant leaves for ever.
    pub fn leave(&mut self, id: &TenantId, now: Moment) {
        for line in self.lines.iter_mut().filter(|l| l.domain.tenant_id == *id && l.domain.claim.is_open()) {
            line.domain.due_at = now;
        }
        self.left.push(id.clone());
        self.feed.tenant_left(id);
    }

    /// Ten bytes that were never given before.
    pub fn draw(&mut self) -> [u8; 10] {
        self.count += 1;
        let mut bytes = [0; 10];
        bytes[2..].copy_from_slice(&self.count.to_be_bytes());
        bytes
    }

    pub fn claim(&mut self, tenant: &TenantId, slug: &str, name: &str, target: Target, now: Moment) -> usize {
        let standing =
            |l: &Line| l.domain.tenant_id == *tenant && l.domain.hostname.as_str() == name && l.domain.claim.is_open();
        if let Some(at) = self.lines.iter().position(standing) {
            return at;
        }
        let (id, attempt_id) = (DomainId::mint(now, self.draw()), AttemptId::mint(now, self.draw()));
        let value = format!("nameplate-verify={:032x}", self.count);
        self.lines.push(Line {
            domain: Domain {
                id,
                tenant_id: tenant.clone(),
                hostname: Hostname::trusted(name),
                lane: Lane::Single,
                claim: Claim::AwaitingDns,
                claim_since: now,
                routing_mode: target.mode(),
                target: target.host(slug),
                attempt_id,
                evidence: Vec::new(),
                looked_at: None,
                pace_from: now,
                check_asked_at: None,
                check_asked_by: None,
                public_probe: None,
                tie: TieState::Held,
                lost_for_us: 0,
                counted_until: None,
                due_at: now,
                generation: 0,
                settled: 0,
                failures: 0,
                event_seq: 0,
                edits: 0,
                certificate_id: None,
                active_since: None,
                released_at: None,
                created_at: now,
            },
            slug: slug.to_owned(),
            attempt: Attempt { value, opened_at: now, deadline: now + Duration::from_secs(30 * 86_400), proven_at: None },
            order: None,
            grant: None,
            certificate: None,
            renewal: None,
            notices: Vec::new(),
        });
        self.lines.len() - 1
    }

    pub fn value(&self, at: usize) -> &str {
        &self.lines[at].attempt.value
    }

    pub fn situation(&self, at: usize) -> Situation {
        let line = &self.lines[at];
        let value = |id: &DomainId| self.lines.iter().find(|l| l.domain.id == *id).map(|l| l.attempt.value.clone());
        let holding = self.holdings.get(line.domain.hostname.as_str()).cloned().map(|mut h| {
            h.value = h.domain_id.as_ref().and_then(value);
            h
        });
        let holding =
            holding.filter(|h| self.broken != Broken::TakesFromAnyone || h.domain_id.as_ref() == Some(&line.domain.id));
        let mut letting_go = LettingGo::default();
        if self.broken == Broken::TieIsForEver {
            letting_go.tie_grace = Duration::MAX;
        }
        let left = self.left.contains(&line.domain.tenant_id);
        let mut domain = line.domain.clone();
        if self.broken == Broken::SharedWayTies {
            domain.routing_mode = RoutingMode::PerTenant;
        }
        let memory = self.feed.memory_of(&domain.hostname, &domain.tenant_id);
        let trusted = self.broken == Broken::RestoredIsTrusted;
        Situation {
            domain,
            tenant_slug: line.slug.clone(),
            tenant_status: if left { TenantStatus::Deleted } else { TenantStatus::Active },
            attempt: line.attempt.clone(),
            holding,
            issuer: self.issuer.clone(),
            order: line.order.clone().filter(|o| o.state.is_open()),
            grant: line.grant.clone(),
            certificate: line.certificate.clone(),
            renewal: line.renewal.clone().filter(|_| line.certificate.is_some()),
            intent: None,
            notice: line.notices.first().cloned(),
            held: None,
            counted_edges: 1,
            min_edges: 1,
            lap: pace::SHORTEST_LAP,
            letting_go,
            recovering_since: self.feed.recovering_since.filter(|_| !trusted),
            remembered_until: memory.filter(|_| !trusted),
            stood: None,
            unreminded: self.feed.is_unreminded(line.domain.hostname.as_str()) && !trusted,
        }
    }

    /// Gives every waiting order that may be placed its grant.
    pub fn dispatch(&mut self, now: Moment) {
        for at in 0..self.lines.len() {
            let id = nameplate::model::id::GrantId::mint(now, self.draw());
            let line = &mut self.lines[at];
            if let Some(order) = line.order.as_mut().filter(|o| turn_of(o).is_some_and(|at| at <= now)) {
                (order.state, order.state_since) = (OrderState::Granted, now);
                let expires_at = now + Duration::from_secs(600);
                line.grant = Some(Grant { id, state: GrantState::Open, expires_at, free: false });
                line.domain.due_at = now;
            }
        }
    }

    /// Records an outcome; what is recorded instead where somebody else has the name.
    pub fn record(&mut self, at: usize, s: &Situation, outcome: &Outcome, now: Moment) {
        let mut next = Some(outcome);
        while let Some(out) = next {
            if self.may_write(s, out) {
                self.lines[at].domain = out.domain.clone();
                self.lines[at].domain.event_seq += i64::try_from(out.events.len()).unwrap();
                out.writes.iter().for_each(|write| self.write(at, s, write, now));
                return;
            }
            next = out.otherwise.as_deref();
        }
    }

    fn may_write(&self, s: &Situation, out: &Outcome) -> bool {
        let own = Some(&s.domain.id);
        let holding = self.holdings.get(s.domain.hostname.as_str());
        out.writes.iter().all(|write| match (write, holding) {
            (Write::TakeHolding { .. }, _) if self.broken == Broken::TakesFromAnyone => true,
            (Write::TakeHolding { ends_quarantine_of }, Some(h)) => {
                h.state == HoldingState::Free
                    || h.domain_id.as_ref() == own
                    || (h.state == HoldingState::Quarantined && h.domain_id == *ends_quarantine_of)
            }
            (Write::Succeed { holder, .. }, Some(h)) => {
                let first = h.successor.as_ref().is_none_or(|clock| Some(&clock.domain_id) == own);
                h.domain_id.as_ref() == Some(holder) && h.state != HoldingState::Free && first
            }
            (Write::TakeOver { from }, Some(h)) => {
                let next = h.successor.as_ref().is_some_and(|clock| Some(&clock.domain_id) == own);
                h.domain_id.as_ref() == Some(from) && next && h.state != HoldingState::Free
            }
            (Write::Succeed { .. } | Write::TakeOver { .. }, None) => false,
            _ => true,
        })
    }

    fn others(&mut self, name: &Hostname, but: &DomainId, now: Moment, states: &[Claim], look: bool) {
        for line in self.lines.iter_mut().filter(|l| l.domain.hostname == *name && l.domain.id != *but) {
            if states.contains(&line.domain.claim) {
                line.domain.due_at = line.domain.due_at.min(now);
                if look {
                    (line.domain.check_asked_at, line.domain.check_asked_by) = (Some(now), Some("nameplate".to_owned()));
                }
            }
        }
    }

    fn hold(&mut self, s: &Situation, now: Moment) {
        let d = &s.domain;
        let term = self.holdings.get(d.hostname.as_str()).map_or(0, |h| h.term) + 1;
        let (domain_id, tenant_id) = (Some(d.id.clone()), Some(d.tenant_id.clone()));
        let held =
            Holding { domain_id, tenant_id, state: HoldingState::Held, term, since: now, value: None, successor: None };
        self.holdings.insert(d.hostname.to_string(), held);
    }

    fn let_go(&mut self, s: &Situation, state: HoldingState, now: Moment) {
        let d = &s.domain;
        if let Some(h) = self.holdings.get_mut(d.hostname.as_str()).filter(|h| h.domain_id.as_ref() == Some(&d.id)) {
            (h.state, h.since) = (state, now);
            if state == HoldingState::Free {
                h.successor = None;
            }
        }
        self.others(&d.hostname, &d.id, now, &[Claim::AwaitingDns, Claim::Queued], true);
    }

    fn write(&mut self, at: usize, s: &Situation, write: &Write, now: Moment) {
        let (d, name) = (&s.domain, s.domain.hostname.clone());
        match write {
            Write::TakeHolding { ends_quarantine_of } => {
                self.hold(s, now);
                self.others(&name, &d.id, now, &[Claim::Queued], false);
                for line in self.lines.iter_mut().filter(|l| Some(&l.domain.id) == ends_quarantine_of.as_ref()) {
                    line.certificate = None;
                    line.domain.due_at = line.domain.due_at.min(now);
                }
            }
            Write::Succeed { clock, .. } => {
                if let Some(h) = self.holdings.get_mut(name.as_str()) {
                    h.successor = Some(clock.clone());
                }
            }
            Write::EndSuccession { of } => {
                if let Some(h) = self.holdings.get_mut(name.as_str()) {
                    h.successor = h.successor.take().filter(|clock| clock.domain_id != *of);
                }
                self.others(&name, &d.id, now, &[Claim::AwaitingDns, Claim::Queued], true);
            }
            Write::TakeOver { from } => {
                self.hold(s, now);
                for line in self.lines.iter_mut().filter(|l| l.domain.id == *from) {
                    if line.domain.claim == Claim::Live {
                        (line.domain.claim, line.domain.claim_since) = (Claim::Releasing, now);
                        line.domain.evidence = Vec::new();
                    }
                    if line.domain.claim == Claim::Releasing {
                        line.domain.due_at = now;
                    }
                }
            }
            Write::Leave(notices) => {
                for n in notices {
                    let holder = self.holdings.get(n.to_holder_of.as_str()).filter(|h| h.state == HoldingState::Held);
                    let holder =
                        holder.filter(|h| h.tenant_id.as_ref() != Some(&d.tenant_id)).and_then(|h| h.domain_id.clone());
                    for line in self.lines.iter_mut().filter(|l| Some(&l.domain.id) == holder.as_ref()) {
                        let id = n.about.clone();
                        line.notices.push(Notice {
                            id,
                            kind: n.kind,
                            actor: "nameplate".to_owned(),
                            hostname: n.hostname.clone(),
                        });
                        line.domain.due_at = line.domain.due_at.min(now);
                    }
                }
            }
            Write::Heard(_) => drop(self.lines[at].notices.remove(0)),
            Write::FreeHolding => self.let_go(s, HoldingState::Free, now),
            Write::Quarantine => self.let_go(s, HoldingState::Quarantined, now),
            Write::ProveAttempt => self.lines[at].attempt.proven_at = Some(now),
            Write::OpenOrder { id, purpose, lane, issuer_id, not_before } => {
                self.lines[at].order = Some(Order {
                    id: id.clone(),
                    purpose: *purpose,
                    lane: *lane,
                    issuer_id: issuer_id.clone(),
                    state: OrderState::Waiting,
                    state_since: now,
                    not_before: *not_before,
                    sealed_key: None,
                    url: None,
                    challenge_url: None,
                    challenge_id: None,
                    announced_at: None,
                    certificate_id: None,
                });
            }
            Write::Order { order, .. } => self.lines[at].order = Some((**order).clone()),
            Write::OrderKey { sealed, .. } => {
                if let Some(order) = &mut self.lines[at].order {
                    order.sealed_key = Some(sealed.clone());
                }
            }
            Write::GrantCounted(_) | Write::GrantReturned(..) | Write::GrantExempt(_) | Write::GrantCharged(_) => {
                self.lines[at].grant = None;
            }
            Write::StoreCertificate { certificate: c, .. } => {
                self.feed.store(&c.id, d, c.not_after);
                self.lines[at].certificate = Some(InUse {
                    id: c.id.clone(),
                    serial: c.serial.clone(),
                    not_before: c.not_before,
                    not_after: c.not_after,
                    stored_at: now,
                    issuer_id: None,
                    ari_id: None,
                });
            }
            Write::Renewal { schedule, former, switch_at, .. } => {
                let (schedule, former) = ((**schedule).clone(), former.clone());
                let renewal =
                    Renewal { schedule, refused: false, former, switch_at: *switch_at, reissue: None, hurries: false };
                self.lines[at].renewal = Some(renewal);
            }
            Write::Switched => {
                if let Some(renewal) = &mut self.lines[at].renewal {
                    renewal.switch_at = None;
                }
            }
            Write::Retire { .. } => {
                if let Some(renewal) = &mut self.lines[at].renewal {
                    renewal.former = None;
                }
            }
            Write::RouteServe(certificate) => {
                let term = s.holding.as_ref().map_or(1, |h| h.term + i64::from(s.role() != Role::Holder));
                self.feed.serve(d, &s.tenant_slug, term, certificate, now);
            }
            Write::RouteGone if self.broken == Broken::RouteStays => {}
            Write::RouteGone => {
                let term = s.holding.as_ref().map_or(1, |h| h.term);
                self.feed.gone(d, &s.tenant_slug, term, now, self.broken != Broken::EdgesUntold);
            }
            Write::DestroyKeys => self.lines[at].certificate = None,
            Write::CloseAttempt
            | Write::Unlink
            | Write::TakeGrant { .. }
            | Write::HonoursReplaces(..)
            | Write::ReplacesRefused
            | Write::GrantAgain(..)
            | Write::SpendsClosed(..)
            | Write::Refused(_)
            | Write::Issuer(..)
            | Write::PublishChallenge { .. }
            | Write::RemoveChallenge(_)
            | Write::EdgesLost(_)
            | Write::OrderLane(..)
            | Write::Revoke { .. } => {}
        }
    }

    /// The certificate that a name is served with.
    pub fn stored(&mut self, now: Moment) -> nameplate::model::outcome::NewCertificate {
        nameplate::model::outcome::NewCertificate {
            id: CertificateId::mint(now, self.draw()),
            serial: format!("{:x}", self.count),
            fingerprint: String::new(),
            chain: String::new(),
            not_before: now,
            not_after: now + Duration::from_secs(90 * 86_400),
            ari_id: None,
        }
    }
}

/// How long an order waits for its turn: long enough that something happens meanwhile.
const QUEUE: Duration = Duration::from_secs(2 * 3600);

/// When it is the turn of an order that waits and may be placed.
pub fn turn_of(order: &Order) -> Option<Moment> {
    let waits = order.state == OrderState::Waiting && order.not_before != Moment::NEVER;
    waits.then(|| order.not_before.max(order.state_since + QUEUE))
}
