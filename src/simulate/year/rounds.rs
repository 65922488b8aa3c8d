//! What comes round by itself: the sweep, the batches of the day, alerts, deliveries, the judges.

use std::time::Duration;

use super::super::SimulationError;
use super::acts::Then;
use super::oracle::Since;
use super::report::DayPoint;
use super::run::{DAY, NOTIFY, RESTART, Run, TICK};
use super::sabotage;
use crate::app::{account, alerts, offboard, renewal, resting, routine};
use crate::jobs::sweep::SweepSettings;
use crate::model::moment::Moment;
use crate::store::retention::{self, Keep};
use crate::store::{Store, StoreResult, sql};

/// While something waits for its receiver, that is tried so often.
const NOTIFY_AGAIN: Duration = Duration::from_secs(60);
/// The alert about workers that stopped must not see a sweep that merely had nothing to do.
const SWEPT: Duration = Duration::from_secs(120);
/// What a batch of looks found is looked at from everywhere, and known to whoever looks for alerts, within this.
const CONFIRMED: Duration = Duration::from_secs(600);
/// Delivered messages are kept for so long.
const KEPT: Duration = Duration::from_secs(30 * 86_400);

impl Run {
    pub(super) async fn sweep(&mut self) -> Result<(), SimulationError> {
        self.sweep.once().await?;
        let now = self.world.now();
        self.swept_at = now;
        let settings = SweepSettings::default();
        self.next_sweep = next_due(&self.world.app.store, settings.late).await?.max(now + settings.every);
        Ok(())
    }

    /// Claims of tenants that leave are let go of.
    pub(super) async fn let_leave(&mut self) -> Result<(), SimulationError> {
        let app = self.world.worker("off-boarding");
        match self.whole(async move { offboard::round(&app).await }).await.transpose()? {
            Some(Some(at)) => self.then(at, Then::LetLeave),
            Some(None) => {}
            // Another process begins with a round.
            None => self.then(self.world.now() + RESTART, Then::LetLeave),
        }
        Ok(())
    }

    /// What comes round by itself: looks, windows, names at rest, accounts, and whoever might have been forgotten.
    pub(super) async fn tick(&mut self) -> Result<(), SimulationError> {
        let app = self.world.worker("batches");
        let mut news = 0;
        loop {
            let of = app.clone();
            let Some(batch) = self.whole(async move { routine::batch(&of).await }).await.transpose()? else { continue };
            self.looks += batch.looked as u64;
            self.differences += batch.differ as u64;
            news += batch.differ;
            if !batch.more {
                break;
            }
        }
        loop {
            let of = app.clone();
            let Some(batch) = self.whole(async move { renewal::batch(&of).await }).await.transpose()? else { continue };
            news += batch.moved;
            if !batch.more {
                break;
            }
        }
        loop {
            let of = app.clone();
            let Some(round) = self.whole(async move { resting::round(&of).await }).await.transpose()? else { continue };
            if round.next.is_none_or(|next| next > self.world.now()) {
                break;
            }
        }
        let now = self.world.now();
        if news > 0 {
            self.next_sweep = self.next_sweep.min(now + SweepSettings::default().late);
            self.expected.pass_at(now + CONFIRMED);
        }
        self.watch().await?;
        self.next_dispatch = self.next_dispatch.min(now);
        self.next_tick = now + TICK;
        Ok(())
    }

    /// Looks for what somebody should be alerted of.
    pub(super) async fn watch(&mut self) -> Result<(), SimulationError> {
        let now = self.world.now();
        if now.since(self.swept_at) >= SWEPT {
            self.sweep().await?;
        }
        if self.fleet.is_due(now) {
            self.follow(false).await?;
        }
        let (app, settings) = (self.world.worker("alerts"), self.alerts.clone());
        if self.whole(async move { alerts::pass(&app, &settings).await }).await.transpose()?.is_none() {
            let (app, settings) = (self.world.worker("alerts"), self.alerts.clone());
            self.whole(async move { alerts::pass(&app, &settings).await }).await.transpose()?;
        }
        Ok(())
    }

    pub(super) async fn notify(&mut self) -> Result<(), SimulationError> {
        self.take_news(true).await?;
        let notifier = self.notifier.clone();
        let whole = self.whole(async move { notifier.round().await }).await.transpose()?.is_some();
        for told in self.receiver.news() {
            self.expected.told(&told, &self.names);
        }
        for said in self.expected.said() {
            self.oracle.say(said);
        }
        let waits = sql("SELECT 1 AS found FROM deliveries WHERE state = 'pending' LIMIT 1");
        let waits = !self.world.app.store.query(waits).await?.is_empty();
        let now = self.world.now();
        self.next_notify = match (whole, waits) {
            (false, _) => now + NOTIFY,
            (true, true) => now + NOTIFY_AGAIN,
            (true, false) => Moment::NEVER,
        };
        Ok(())
    }

    /// Once a day everything is judged, and the store looked after.
    pub(super) async fn day(&mut self, daily: &mut (dyn FnMut(&DayPoint) + Send)) -> Result<(), SimulationError> {
        let now = self.world.now();
        self.next_day = now + DAY;
        let day = u32::try_from(now.since(self.options.start).as_secs() / DAY.as_secs()).unwrap_or(u32::MAX);
        sabotage::at(self, day).await?;
        let app = self.world.worker("accounts");
        self.whole(async move { account::ensure_all(&app).await }).await.transpose()?;
        self.let_leave().await?;
        self.follow(false).await?;
        self.learn_of_releases().await?;
        let since = Since { ca_back_at: self.ca_back_at, now };
        self.oracle.everything(&self.world.app, &self.names, &self.fleet, since).await?;
        self.oracle.at_the_ca(&self.world.app, &self.world.direct).await?;
        for said in self.expected.said() {
            self.oracle.say(said);
        }
        let keep = Keep { deliveries: now - KEPT, alerts: now - KEPT };
        retention::prune(&self.world.app.store, keep, now).await?;
        self.world.app.store.optimize(false).await?;
        let point = DayPoint { day, renewals: std::mem::take(&mut self.today), by_life: self.by_life(now) };
        daily(&point);
        self.course.push(point);
        Ok(())
    }

    fn by_life(&self, now: Moment) -> [usize; 4] {
        let life = DAY * self.options.certificate_days;
        let edges = self.fleet.edges();
        let mut by_life = [0; 4];
        let entries = self.names.all().iter().filter_map(|name| edges.first()?.serves(name.host.as_str()));
        for entry in entries {
            let left = entry.not_after.since(now);
            by_life[match left {
                left if left > life / 2 => 0,
                left if left > life / 4 => 1,
                left if !left.is_zero() => 2,
                _ => 3,
            }] += 1;
        }
        by_life
    }
}

/// When the sweep has something to find: a domain that is due for a while, and that nobody has the lease of.
async fn next_due(store: &Store, late: Duration) -> StoreResult<Moment> {
    let stmt = sql("SELECT due_at, lease_until FROM domains WHERE claim NOT IN ('released', 'withdrawn') \
                    ORDER BY due_at LIMIT 40");
    let mut next = Moment::NEVER;
    for row in store.query(stmt).await? {
        let due = row.moment("due_at")? + late;
        next = next.min(due.max(row.moment("lease_until")?));
    }
    Ok(next)
}
