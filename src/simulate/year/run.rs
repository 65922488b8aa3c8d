//! The loop: whoever is due has a turn, and then the clock moves to what comes next.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;

use super::super::SimulationError;
use super::super::ca::MoodyCa;
use super::super::engine::{Ran, Task, run};
use super::super::world::World;
use super::YearOptions;
use super::acts::Then;
use super::crew::{Came, Crew, InHand};
use super::edges::Fleet;
use super::expected::Expected;
use super::names::Names;
use super::oracle::{self, Oracle};
use super::receiver::Receiver;
use super::report::{DayPoint, YearReport};
use super::script::{EventKind, Plot, Script};
use super::setup;
use crate::app::alerts::AlertSettings;
use crate::app::notify::Notifier;
use crate::app::{account, dispatch};
use crate::env::Env;
use crate::jobs::sweep::{Sweep, SweepSettings};
use crate::model::id::TenantId;
use crate::model::moment::Moment;

pub(super) const DAY: Duration = Duration::from_secs(86_400);
/// The batches of the day come so often; in a process they come every minute, and do as much in all.
pub(super) const TICK: Duration = Duration::from_secs(3 * 3600);
/// Alerts are looked for so long after a threshold is crossed, at most; in a process every twenty seconds.
const WATCH: Duration = Duration::from_secs(10);
/// Another process takes the place of one that died within this.
pub(super) const RESTART: Duration = Duration::from_secs(1);
/// What is new in the stream is handed out after this.
pub(super) const NOTIFY: Duration = Duration::from_secs(15);
/// A tenant of the simulation.
pub(super) struct Tenant {
    pub(super) id: TenantId,
    pub(super) left: bool,
}

pub(super) struct Run {
    pub(super) world: World,
    pub(super) options: YearOptions,
    pub(super) names: Names,
    pub(super) fleet: Fleet,
    pub(super) ca: Arc<MoodyCa>,
    pub(super) receiver: Receiver,
    pub(super) expected: Expected,
    pub(super) oracle: Oracle,
    pub(super) tenants: Vec<Tenant>,
    /// What follows from what happened.
    pub(super) agenda: BTreeMap<(Moment, u64), Then>,
    pub(super) arrivals: u64,
    /// Since when the CA answers; none while it is away.
    pub(super) ca_back_at: Option<Moment>,
    pub(super) events: BTreeMap<EventKind, u64>,
    pub(super) script: Script,
    pub(super) crew: Crew,
    pub(super) sweep: Sweep,
    pub(super) notifier: Notifier,
    pub(super) alerts: AlertSettings,
    pub(super) next_dispatch: Moment,
    pub(super) next_sweep: Moment,
    pub(super) next_tick: Moment,
    pub(super) next_notify: Moment,
    pub(super) next_day: Moment,
    pub(super) swept_at: Moment,
    pub(super) crashes: u64,
    /// Certificates issued, by name.
    pub(super) issued: HashMap<String, u64>,
    pub(super) renewals: u64,
    pub(super) looks: u64,
    pub(super) differences: u64,
    pub(super) course: Vec<DayPoint>,
    pub(super) today: u64,
}

/// Runs a year. `real` is asked for the time that passed; `daily` hears of every virtual day.
pub async fn simulate_year(
    options: YearOptions,
    real: &Env,
    daily: &mut (dyn FnMut(&DayPoint) + Send),
) -> Result<YearReport, SimulationError> {
    let began = real.now();
    let end = options.start + DAY * options.days;
    let mut run = Run::begin(options).await?;
    while run.world.now() < end {
        run.turn(daily).await?;
    }
    run.day(daily).await?;
    Ok(run.report(real.now().since(began)))
}

impl Run {
    async fn begin(options: YearOptions) -> Result<Run, SimulationError> {
        let start = options.start;
        let odd_percent = u64::from(options.hostile_percent.min(1));
        let mut world = World::new(options.seed, start, options.limits, options.latest, odd_percent).await?;
        let env = world.app.env.clone();
        let fleet = setup::fleet(&world).await?;
        setup::ca(&options, &world, &fleet);
        world.app.reach = Arc::new(fleet.clone());
        let receiver = Receiver::new(&env);
        let notifier = setup::notifier(&world, &receiver).await?;
        let plot =
            Plot { start, lasts: DAY * options.days, names: options.domains, hostile_percent: options.hostile_percent };
        let script = Script::draw(plot, &world.hand);
        let crew = Crew::new((0..options.workers.max(1)).map(|n| world.worker(&format!("worker-{n}"))).collect());
        let sweep = Sweep::new(&world.app.store, Arc::new(world.queue.clone()), &env, SweepSettings::default());
        let mut run = Run {
            names: Names::new(&world.zones),
            fleet,
            ca: Arc::clone(&world.ca),
            receiver,
            expected: Expected::new(start),
            oracle: Oracle::default(),
            tenants: Vec::new(),
            agenda: BTreeMap::new(),
            arrivals: 0,
            ca_back_at: Some(start),
            events: BTreeMap::new(),
            script,
            crew,
            sweep,
            notifier,
            alerts: AlertSettings::default(),
            next_dispatch: start,
            next_sweep: start,
            next_tick: start,
            next_notify: Moment::NEVER,
            next_day: start + DAY,
            swept_at: start,
            crashes: 0,
            issued: HashMap::new(),
            renewals: 0,
            looks: 0,
            differences: 0,
            course: Vec::new(),
            today: 0,
            world,
            options,
        };
        for _ in 0..(run.options.domains / 20).max(3) {
            run.new_tenant().await?;
        }
        let app = run.world.worker("accounts");
        run.whole(async move { account::ensure_all(&app).await }).await.transpose()?;
        run.world.app.store.optimize(true).await?;
        Ok(run)
    }

    /// A tenant more; its place among them.
    pub(super) async fn new_tenant(&mut self) -> Result<usize, SimulationError> {
        let id = self.world.tenant(&format!("tenant-{}", self.tenants.len())).await?;
        setup::place_of(&self.world, &id).await?;
        self.tenants.push(Tenant { id, left: false });
        Ok(self.tenants.len() - 1)
    }

    /// Lets who is due have a turn, or moves the clock to what comes next.
    async fn turn(&mut self, daily: &mut (dyn FnMut(&DayPoint) + Send)) -> Result<(), SimulationError> {
        let now = self.world.now();
        let rung = self.world.app.bells.relay.notified().now_or_never().is_some();
        if rung || self.fleet.is_due(now) {
            self.follow(rung).await?;
        }
        self.hear_of_the_ca();
        let dispatch = self.world.app.bells.dispatch.notified().now_or_never().is_some();
        if dispatch || self.next_dispatch <= now {
            self.dispatch().await?;
        } else if let Some(one) = self.crew.pop(now) {
            self.go_on(one).await?;
        } else if let Some(worker) = self.crew.free()
            && let Some(id) = self.world.queue.pop(now)
        {
            let one = self.crew.take(worker, id);
            self.go_on(one).await?;
        } else if let Some(act) = self.script.pop(now) {
            self.act(act).await?;
        } else if let Some(then) = self.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
            let then = then.remove();
            self.follow_up(then).await?;
        } else if self.world.app.bells.offboarding.notified().now_or_never().is_some() {
            self.let_leave().await?;
        } else if self.next_sweep <= now {
            self.sweep().await?;
        } else if self.expected.next_pass().is_some_and(|at| at + WATCH <= now) {
            self.expected.take_passes(now);
            self.watch().await?;
        } else if self.next_notify <= now {
            self.notify().await?;
        } else if self.expected.next_at().is_some_and(|at| at <= now) {
            let ca_away = self.ca_back_at.is_none_or(|back| now.since(back) < TICK);
            if self.expected.lacks(&self.names, ca_away, now) {
                // Of a name that was let go of with cause since the day began nothing more is told.
                self.learn_of_releases().await?;
            }
            self.expected.judge(&self.names, ca_away, now);
        } else if self.next_tick <= now {
            self.tick().await?;
        } else if self.next_day <= now {
            self.day(daily).await?;
        } else {
            self.wait_for_more();
        }
        Ok(())
    }

    fn wait_for_more(&self) {
        let fixed = [self.next_dispatch, self.next_sweep, self.next_tick, self.next_notify, self.next_day];
        let others = [
            self.crew.next_at(),
            self.crew.free().and_then(|_| self.world.queue.next_at()),
            self.script.next_at(),
            self.agenda.keys().next().map(|(at, _)| *at),
            self.expected.next_pass().map(|at| at + WATCH),
            self.expected.next_at(),
        ];
        let next = fixed.into_iter().chain(others.into_iter().flatten()).min().unwrap_or(Moment::NEVER);
        self.world.hand.advance_to(next);
    }

    /// A process died, and with it whatever bell it was about to ring. Another takes its place, whose loops begin with a round.
    fn died(&mut self) {
        self.crashes += 1;
        let now = self.world.now();
        self.expected.died(now);
        self.next_notify = self.next_notify.min(now + NOTIFY);
        self.next_dispatch = self.next_dispatch.min(now + RESTART);
        self.next_sweep = self.next_sweep.min(now + RESTART);
    }

    /// Runs something to its end, whatever it waits for; nothing when its process dies on the way.
    pub(super) async fn whole<T>(&mut self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let mut task = Task::new(work);
        loop {
            match run(task, &self.world.gate, &self.world.blade).await {
                Ran::Ended(done) => return Some(done),
                Ran::Cut => {
                    self.died();
                    return None;
                }
                Ran::Stands(until, rest) => {
                    self.world.hand.advance_to(until);
                    task = rest;
                }
            }
        }
    }

    /// Edges take what is new, and whoever waits for the stream is told of it a moment later.
    pub(super) async fn follow(&mut self, rung: bool) -> Result<(), SimulationError> {
        let now = self.world.now();
        if rung {
            self.next_notify = self.next_notify.min(now + NOTIFY);
        }
        self.take_news(false).await
    }

    /// What edges took is judged at once. `events_too`: whatever happened gets its number in the stream as well.
    pub(super) async fn take_news(&mut self, events_too: bool) -> Result<(), SimulationError> {
        let now = self.world.now();
        for host in self.fleet.follow(&self.world.app, events_too).await? {
            if let Some(name) = self.names.get(&host) {
                let found = oracle::at_edges(name, &self.fleet);
                self.oracle.take(found, now);
            }
        }
        Ok(())
    }

    fn hear_of_the_ca(&mut self) {
        let now = self.world.now();
        for one in self.ca.news() {
            if let Some(name) = self.names.get(&one.host) {
                self.oracle.take(oracle::issued_without_a_tie(name, now).into_iter().collect(), now);
            }
            let before = self.issued.entry(one.host.clone()).or_default();
            *before += 1;
            if *before > 1 {
                self.renewals += 1;
                self.today += 1;
            }
            self.expected.issued(one);
        }
    }

    async fn dispatch(&mut self) -> Result<(), SimulationError> {
        let app = self.world.worker("dispatcher");
        let next = self.whole(async move { dispatch::round(&app).await }).await.transpose()?;
        let now = self.world.now();
        self.next_dispatch = match next {
            None => now + RESTART,
            Some(next) => next.unwrap_or(Moment::NEVER).max(now + Duration::from_millis(1)),
        };
        Ok(())
    }

    async fn go_on(&mut self, one: InHand) -> Result<(), SimulationError> {
        match self.crew.go_on(one, &self.world.gate, &self.world.blade).await? {
            Came::Stepped(id) => self.oracle.touched(&self.world.app, &self.names, &id).await?,
            Came::Stands => {}
            Came::Died => self.died(),
        }
        Ok(())
    }

    pub(super) fn then(&mut self, at: Moment, then: Then) {
        self.arrivals += 1;
        self.agenda.insert((at, self.arrivals), then);
    }

    fn report(self, wall: Duration) -> YearReport {
        let (ca, told) = (self.ca.happened(), self.expected.counts());
        let rounded = |value: f64| (value * 1_000.0).round() / 1_000.0;
        let rate_limited = self.world.direct.state().counters().limits_passed;
        YearReport {
            seed: self.options.seed,
            domains: self.options.domains,
            days: self.options.days,
            certificate_days: self.options.certificate_days,
            hostile_percent: self.options.hostile_percent,
            renewals: self.renewals,
            expired_healthy: self.oracle.expired_healthy,
            expired_others: self.oracle.expired.saturating_sub(self.oracle.expired_healthy),
            invariant_violations: self.oracle.violations,
            alerts_missed: told.missed,
            alerts_doubled: told.doubled,
            alerts_untrue: told.untrue,
            released_dangling: self.oracle.released_dangling,
            takeovers: self.oracle.takeovers,
            rate_limited,
            webhooks: self.receiver.taken(),
            reminders: told.reminders,
            slowest_alert_s: rounded(told.slowest.as_secs_f64()),
            slowest_alert_after_crash_s: rounded(told.slowest_after_crash.as_secs_f64()),
            looks: self.looks,
            differences: self.differences,
            polls: ca.polls,
            orders: ca.orders,
            refused_replaces: ca.refused_replaces,
            odd_windows: ca.odd_windows,
            steps: self.crew.steps,
            crashes: self.crashes,
            checks: self.oracle.checks,
            events: self.events,
            course: self.course,
            findings: self.oracle.said().to_vec(),
            wall_s: rounded(wall.as_secs_f64()),
        }
    }
}
