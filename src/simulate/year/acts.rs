//! What befalls the world, carried out: as tenants, owners of zones, strangers and machines do it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::SimulationError;
use super::edges::Lag;
use super::names::{Claimed, Trouble};
use super::run::Run;
use super::script::{Act, EventKind, drawn};
use crate::app::{claim, offboard, remove};
use crate::model::moment::Moment;
use crate::store::{sql, views};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// Only what has been well for so long meets something: what came before is over by then.
const SETTLED: Duration = Duration::from_secs(4 * 86_400);
/// One of the next so many boundaries is where a process dies.
const BOUNDARIES: u64 = 60;

/// What follows from something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// What is wrong with a name is put right.
    Heal(usize),
    /// A stranger claims a name that was let go of and still leads to us.
    Stranger(usize),
    /// Forgotten records are removed at last.
    TakeDown(usize),
    /// A name in place of one that went.
    SignUp,
    CaBack,
    ReceiverBack,
    /// Claims of tenants that leave are looked after.
    LetLeave,
}

impl Run {
    fn count(&mut self, kind: EventKind) {
        *self.events.entry(kind).or_default() += 1;
    }

    pub(super) async fn act(&mut self, act: Act) -> Result<(), SimulationError> {
        let now = self.world.now();
        match act {
            Act::SignUp => self.sign_up().await?,
            Act::Trouble(trouble, lasts) => {
                let Some(n) = self.victim(now) else { return Ok(()) };
                self.names.trouble(n, trouble, now)?;
                if matches!(trouble, Trouble::RecordGone | Trouble::WayGone | Trouble::BothGone) {
                    self.expected.tie_changed(n, now);
                }
                self.expected.risk_changed(n, now);
                self.then(now + lasts, Then::Heal(n));
            }
            Act::Remove { dangling } => {
                let Some(n) = self.victim(now) else { return Ok(()) };
                self.remove(n, dangling).await?;
            }
            Act::Leave { dangling } => {
                let Some(tenant) = self.least_tenant() else { return Ok(()) };
                self.leave(tenant, dangling).await?;
            }
            Act::StrangerClaimsLive => {
                let Some(n) = self.victim(now) else { return Ok(()) };
                self.stranger(n).await?;
                return Ok(());
            }
            Act::Move => {
                let Some(n) = self.victim(now) else { return Ok(()) };
                let to = self.other_tenant(n).await?;
                let claim = self.claim(n, to).await?;
                self.names.hand_to(n, claim, self.world.now())?;
            }
            Act::CaAway(lasts) => {
                self.ca.away(true);
                self.ca_back_at = None;
                self.then(now + lasts, Then::CaBack);
            }
            Act::EdgeLags(lasts) => {
                let how = if self.world.hand.below(2) == 0 { Lag::Silent } else { Lag::Stuck };
                self.fleet.lag(self.world.hand.below(1 << 20), how, now + lasts);
            }
            Act::ReceiverDown(lasts) => {
                self.receiver.down(true);
                self.expected.receiver(true, now);
                self.then(now + lasts, Then::ReceiverBack);
            }
            Act::Crash => {
                let n = 1 + self.world.hand.below(BOUNDARIES);
                self.world.blade.set(usize::try_from(n).unwrap_or(1));
            }
        }
        self.count(act.kind());
        Ok(())
    }

    pub(super) async fn follow_up(&mut self, then: Then) -> Result<(), SimulationError> {
        let now = self.world.now();
        match then {
            Then::Heal(n) => {
                self.names.heal(n, now)?;
                if self.names.at(n).wanted.is_some() {
                    self.expected.tie_changed(n, now);
                    self.expected.risk_changed(n, now);
                } else {
                    self.names.take_down(n, now);
                }
            }
            Then::Stranger(n) => self.stranger(n).await?,
            Then::TakeDown(n) => self.names.take_down(n, now),
            Then::SignUp => self.sign_up().await?,
            Then::CaBack => {
                self.ca.away(false);
                self.ca_back_at = Some(now);
            }
            Then::ReceiverBack => {
                self.receiver.down(false);
                self.expected.receiver(false, now);
            }
            Then::LetLeave => self.let_leave().await?,
        }
        Ok(())
    }

    /// Somebody signs a new name up, and publishes what they are told.
    async fn sign_up(&mut self) -> Result<(), SimulationError> {
        let here: Vec<usize> = (0..self.tenants.len()).filter(|at| !self.tenants[*at].left).collect();
        let at = usize::try_from(self.world.hand.below(here.len() as u64)).unwrap_or(0);
        let tenant = match here.get(at) {
            Some(tenant) => *tenant,
            None => self.new_tenant().await?,
        };
        let n = self.names.add();
        let claim = self.claim(n, tenant).await?;
        self.names.hand_to(n, claim, self.world.now())
    }

    /// A tenant claims a name; the place of the claim among all of that name.
    async fn claim(&mut self, n: usize, tenant: usize) -> Result<usize, SimulationError> {
        let (app, tenant) = (&self.world.app, self.tenants[tenant].id.clone());
        let host = self.names.at(n).host.clone();
        let id = claim::claim(app, &tenant, &host, "tenant").await?.id;
        let mut tx = app.store.read().await?;
        let told = views::domain(&mut tx, &id).await?;
        drop(tx);
        let (value, target) = told.map(|told| (told.attempt.value, told.target)).unwrap_or_default();
        let claimed = Claimed {
            id,
            tenant,
            value,
            target,
            published_at: None,
            given_up_at: None,
            gone_for: Duration::ZERO,
            gone_since: Some(self.world.now()),
            last_gone: None,
            followed_for: Duration::ZERO,
            followed_since: None,
        };
        Ok(self.names.claimed(n, claimed))
    }

    /// A name that has been well for a while and is served for whom it should be.
    fn victim(&self, now: Moment) -> Option<usize> {
        let many = self.names.all().len();
        let from = usize::try_from(self.world.hand.below(many.max(1) as u64)).unwrap_or(0);
        (0..many).map(|n| (from + n) % many).find(|n| self.is_settled(*n, now))
    }

    fn is_settled(&self, n: usize, now: Moment) -> bool {
        self.names.at(n).well_since.is_some_and(|well| now.since(well) >= SETTLED) && self.is_served(n)
    }

    /// Whether an edge serves a name for whom it should.
    fn is_served(&self, n: usize) -> bool {
        let (name, edges) = (self.names.at(n), self.fleet.edges());
        let entry = edges.first().and_then(|edge| edge.serves(name.host.as_str()));
        name.wanted().is_some_and(|claim| entry.is_some_and(|entry| entry.tenant == claim.tenant))
    }

    /// The tenant with the fewest names, of those that have any.
    fn least_tenant(&self) -> Option<usize> {
        let mut many: BTreeMap<usize, usize> = BTreeMap::new();
        for claim in self.names.all().iter().filter_map(|name| name.wanted()) {
            if let Some(at) = self.tenants.iter().position(|tenant| tenant.id == claim.tenant) {
                *many.entry(at).or_default() += 1;
            }
        }
        many.into_iter().min_by_key(|(_, many)| *many).map(|(at, _)| at)
    }

    /// A tenant that never had to do with a name.
    async fn other_tenant(&mut self, n: usize) -> Result<usize, SimulationError> {
        let claims = &self.names.at(n).claims;
        let other = |tenant: &super::run::Tenant| !tenant.left && claims.iter().all(|claim| claim.tenant != tenant.id);
        match self.tenants.iter().position(other) {
            Some(at) => Ok(at),
            None => self.new_tenant().await,
        }
    }

    /// A tenant removes a domain; a stranger may hear of what it forgot in its zone.
    async fn remove(&mut self, n: usize, dangling: bool) -> Result<(), SimulationError> {
        let now = self.world.now();
        let Some(id) = self.names.at(n).wanted().map(|claim| claim.id.clone()) else { return Ok(()) };
        if !dangling {
            self.names.take_down(n, now);
        }
        remove::remove(&self.world.app, &id, "tenant").await?;
        self.gone(n, dangling, now);
        self.oracle.touched(&self.world.app, &self.names, &id).await?;
        Ok(())
    }

    /// Nobody wants a name any more.
    fn gone(&mut self, n: usize, dangling: bool, now: Moment) {
        // What was not served is withdrawn, and rests nowhere.
        if let Some(claim) = self.names.at(n).wanted.filter(|_| dangling && self.is_served(n)) {
            self.expected.left_behind(n, claim, now);
        }
        self.names.give_up(n, now);
        if dangling {
            self.then(now + HOUR + drawn(&self.world.hand, 10 * DAY), Then::Stranger(n));
            self.then(now + 20 * DAY + drawn(&self.world.hand, 20 * DAY), Then::TakeDown(n));
        }
        self.then(now + drawn(&self.world.hand, DAY), Then::SignUp);
    }

    async fn leave(&mut self, tenant: usize, dangling: bool) -> Result<(), SimulationError> {
        let now = self.world.now();
        let id = self.tenants[tenant].id.clone();
        offboard::begin(&self.world.app.store, &self.world.app.env, &id, "operator").await?;
        self.world.app.bells.offboarding.notify_one();
        self.world.app.bells.relay.notify_one();
        self.tenants[tenant].left = true;
        let theirs: Vec<usize> = (0..self.names.all().len())
            .filter(|n| self.names.at(*n).wanted().is_some_and(|claim| claim.tenant == id))
            .collect();
        for n in theirs {
            if !dangling {
                self.names.take_down(n, now);
            }
            self.gone(n, dangling, now);
        }
        // Claims that were followed by another one end with their tenant, too.
        self.names.left(&id, now);
        self.new_tenant().await?;
        Ok(())
    }

    /// A stranger claims a name whose zone is not theirs.
    async fn stranger(&mut self, n: usize) -> Result<(), SimulationError> {
        let tenant = self.new_tenant().await?;
        self.claim(n, tenant).await?;
        self.count(EventKind::StrangerClaimed);
        Ok(())
    }

    /// Names that were let go of since nothing tied them to anybody for the whole grace are wanted no more.
    pub(super) async fn learn_of_releases(&mut self) -> Result<(), SimulationError> {
        let now = self.world.now();
        let stmt = sql("SELECT id, hostname FROM domains WHERE claim IN ('releasing', 'released')");
        for row in self.world.app.store.query(stmt).await? {
            let (id, host) = (row.text("id")?, row.text("hostname")?);
            let Some(n) = self.names.place(&host) else { continue };
            let lost = |claim: &&Claimed| claim.id.as_str() == id && super::oracle::has_cause(claim, now);
            if self.names.at(n).wanted().filter(lost).is_some() {
                self.gone(n, false, now);
            }
        }
        Ok(())
    }
}
