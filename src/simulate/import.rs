//! An import of thousands of names, single claims in the middle of it, and workers that die.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;

use super::SimulationError;
use super::ca::CaLimits;
use super::engine::{Ran, Task, run};
use super::report::{HourPoint, ImportReport, Told};
use super::world::World;
use crate::app::advance::{Advanced, Grip};
use crate::app::{self, AppError};
use crate::env::Env;
use crate::jobs::sweep::{Sweep, SweepSettings};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::ledger::Limit;
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::store::{self, Store, StoreResult, sql};

/// A worker keeps a domain whose next step is due within this, as the workers of a process do.
const IN_HAND: Duration = Duration::from_secs(2);
/// One of the next so many boundaries is where a worker dies.
const BOUNDARIES: u64 = 60;
/// Nothing moved for so long, and for three turns of the slowest limit: it never will.
const STUCK: Duration = Duration::from_secs(86_400);
/// Loops come by at least so often, whatever they know of; in a process they do more often.
const IDLE: Duration = Duration::from_secs(60);
/// How often the lap of imported names is looked at.
const LAP: Duration = Duration::from_secs(2);
const HOUR: Duration = Duration::from_secs(3600);

/// What is simulated.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Names in the import.
    pub domains: usize,
    /// Under how many registered domains they are; as many as there are names where nothing is said.
    pub registered_domains: Option<usize>,
    /// Tenants that they belong to.
    pub tenants: usize,
    /// Claims made by hand while the import is under way.
    pub singles: usize,
    /// Workers.
    pub workers: usize,
    /// Domains that one worker moves at the same time.
    pub concurrency: usize,
    /// What the CA allows, and the product is told.
    pub limits: CaLimits,
    /// An answer of the CA takes up to so long.
    pub latest: Duration,
    /// Whether a worker dies at a random boundary every hour.
    pub crashes: bool,
    /// When it begins.
    pub start: Moment,
    /// What chance is drawn from.
    pub seed: u64,
}

impl ImportOptions {
    /// So many names at Let's Encrypt, each under a registered domain of its own.
    pub fn of(domains: usize, seed: u64, start: Moment) -> Self {
        const WEEK: u64 = 7 * 86_400;
        ImportOptions {
            domains,
            registered_domains: None,
            tenants: (domains / 100).max(1),
            singles: domains / 100,
            workers: 4,
            concurrency: 16,
            limits: CaLimits {
                orders: Limit { burst: 300, per_secs: 10_800 },
                registered_domain: Limit { burst: 50, per_secs: WEEK },
                exact_set: Limit { burst: 5, per_secs: WEEK },
            },
            latest: Duration::from_secs(20),
            crashes: true,
            start,
            seed,
        }
    }
}

/// What a worker has in hand.
enum Held {
    /// A step that stands at the gate.
    Stands(Task<(Result<Advanced, AppError>, Grip)>),
    /// A domain whose next step is due in a moment.
    Again(Grip),
}

struct InHand {
    worker: usize,
    id: DomainId,
    held: Held,
}

struct Run {
    world: World,
    sweep: Sweep,
    options: ImportOptions,
    busy: Vec<usize>,
    in_hand: BTreeMap<(Moment, u64), InHand>,
    arrivals: u64,
    /// The CA has made the account; it is not asked about again.
    has_account: bool,
    next_dispatch: Moment,
    next_sweep: Moment,
    next_lap: Moment,
    /// Imported names whose turn in the lap it is.
    lap: VecDeque<DomainId>,
    next_hour: Moment,
    singles: Vec<Moment>,
    tenants: Vec<TenantId>,
    crashes: u64,
    served_at: Vec<Moment>,
    points: Vec<HourPoint>,
    told: Vec<Told>,
}

/// Runs it to the last certificate. `real` is asked for the time that passed; `hourly` hears of every virtual hour.
pub async fn simulate_import(
    options: ImportOptions,
    real: &Env,
    hourly: &mut (dyn FnMut(&HourPoint) + Send),
) -> Result<ImportReport, SimulationError> {
    let began = real.now();
    let mut run = Run::begin(options).await?;
    run.import().await?;
    while run.served_at.len() < run.total() {
        run.turn(hourly).await?;
    }
    run.last_point();
    let wall = real.now().since(began);
    ImportReport::of(&run.world, &run.options, &run.served_at, run.points, &run.told, run.crashes, wall).await
}

impl Run {
    async fn begin(options: ImportOptions) -> Result<Run, SimulationError> {
        let world = World::new(options.seed, options.start, options.limits, options.latest, 0).await?;
        let sweep = Sweep::new(&world.app.store, Arc::new(world.queue.clone()), &world.app.env, SweepSettings::default());
        let start = options.start;
        // Spread over the time that the whole takes at least.
        let names = u32::try_from(options.domains).unwrap_or(u32::MAX);
        let lasts = options.limits.orders.interval() * names.saturating_sub(options.limits.orders.burst).max(1);
        let micros = u64::try_from(lasts.as_micros()).unwrap_or(u64::MAX);
        let mut singles: Vec<Moment> =
            (0..options.singles).map(|_| start + Duration::from_micros(world.hand.below(micros))).collect();
        // Taken from the end.
        singles.sort_by(|a, b| b.cmp(a));
        let mut tenants = Vec::new();
        for n in 0..options.tenants.max(1) {
            tenants.push(world.tenant(&format!("tenant-{n}")).await?);
        }
        Ok(Run {
            busy: vec![0; options.workers.max(1)],
            in_hand: BTreeMap::new(),
            arrivals: 0,
            has_account: false,
            next_dispatch: start,
            next_sweep: start,
            next_lap: start,
            lap: VecDeque::new(),
            next_hour: start + HOUR,
            singles,
            tenants,
            crashes: 0,
            served_at: Vec::new(),
            points: Vec::new(),
            told: Vec::new(),
            world,
            sweep,
            options,
        })
    }

    /// The picture begins where nobody is served and goes on to the last certificate, which comes within an hour.
    fn last_point(&mut self) {
        self.points.insert(0, HourPoint { hour: 0, certificates: 0, waiting: 0 });
        let served = self.served_at.len();
        if self.points.last().is_some_and(|point| point.certificates < served) {
            let lasted = self.world.now().since(self.options.start).as_secs();
            self.points.push(HourPoint { hour: lasted.div_ceil(HOUR.as_secs()), certificates: served, waiting: 0 });
        }
    }

    fn total(&self) -> usize {
        self.options.domains + self.options.singles
    }

    /// Claims all names of the import, and publishes what they were told.
    async fn import(&mut self) -> Result<(), SimulationError> {
        let registered =
            self.options.registered_domains.unwrap_or(self.options.domains).clamp(1, self.options.domains.max(1));
        for n in 0..registered {
            self.world.zone(&format!("customer{n}.test"));
        }
        for n in 0..self.options.domains {
            let name = Hostname::trusted(&format!("support{}.customer{}.test", n / registered, n % registered));
            let tenant = self.tenants[n % self.tenants.len()].clone();
            let mut tx = self.world.app.store.begin().await?;
            let claimed = app::claim::claim_in_lane(&self.world.app, &mut tx, &tenant, &name, "import", Lane::Bulk).await?;
            tx.commit().await?;
            self.world.publish(&claimed.id, &name).await?;
        }
        // As the sweep's loop does at its start, and then every hour.
        Ok(self.world.app.store.optimize(true).await?)
    }

    /// Does what is due now, or moves the clock to what comes next.
    async fn turn(&mut self, hourly: &mut (dyn FnMut(&HourPoint) + Send)) -> Result<(), SimulationError> {
        let now = self.world.now();
        if self.world.app.bells.relay.notified().now_or_never().is_some() || self.world.heartbeat_at() <= now {
            self.follow().await?;
        }
        let rung = self.world.app.bells.dispatch.notified().now_or_never().is_some();
        if rung || self.next_dispatch <= now {
            self.dispatch().await?;
        } else if self.in_hand.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
            if let Some((_, one)) = self.in_hand.pop_first() {
                self.go_on(one).await?;
            }
        } else if let Some(worker) = self.free_worker()
            && let Some(id) = self.world.queue.pop(now).or_else(|| self.lap.pop_front())
        {
            self.busy[worker] += 1;
            self.go_on(InHand { worker, id, held: Held::Again(Grip::default()) }).await?;
        } else if self.singles.last().is_some_and(|at| *at <= now) {
            self.singles.pop();
            self.claim_one().await?;
        } else if self.next_hour <= now {
            self.hour(hourly).await?;
        } else if self.next_lap <= now && self.lap.is_empty() {
            self.lap.extend(app::lap::due(&self.world.app).await?);
            let next = store::lap::next_due(&self.world.app.store, now).await?.unwrap_or(Moment::NEVER);
            self.next_lap = next.clamp(now + LAP, now + IDLE);
        } else if self.next_sweep <= now {
            self.sweep.once().await?;
            let due = next_due(&self.world.app.store).await?.unwrap_or(Moment::NEVER);
            let settings = SweepSettings::default();
            // What is claimed meanwhile, and left by a worker that dies, is due sooner than all that is known of.
            self.next_sweep = (due + settings.late).clamp(now + settings.every, now + IDLE);
        } else {
            self.wait_for_more()?;
        }
        Ok(())
    }

    fn wait_for_more(&self) -> Result<(), SimulationError> {
        let alarm = self.free_worker().and_then(|_| self.world.queue.next_at());
        let held = self.in_hand.first_key_value().map(|((at, _), _)| *at);
        // Those of the lap who are due wait for a worker.
        let lap = self.lap.is_empty().then_some(self.next_lap);
        let fixed = [self.next_dispatch, self.next_sweep, self.next_hour];
        let next = fixed.into_iter().chain(lap).chain(alarm).chain(held).chain(self.singles.last().copied()).min();
        let next = next.unwrap_or(Moment::NEVER);
        let last = self.served_at.last().copied().unwrap_or(self.options.start);
        let limits = self.options.limits;
        let slowest = [limits.orders, limits.registered_domain, limits.exact_set].map(|limit| limit.interval());
        if next.since(last) > STUCK + slowest.into_iter().max().unwrap_or_default() * 3 {
            let days = next.since(self.options.start).as_secs() / 86_400;
            return Err(SimulationError::Stuck { days, left: self.total() - self.served_at.len() });
        }
        self.world.hand.advance_to(next);
        Ok(())
    }

    fn free_worker(&self) -> Option<usize> {
        let least = (0..self.busy.len()).min_by_key(|worker| self.busy[*worker])?;
        (self.busy[least] < self.options.concurrency).then_some(least)
    }

    async fn follow(&mut self) -> Result<(), SimulationError> {
        let new = self.world.edge_follows().await?;
        self.served_at.extend(std::iter::repeat_n(self.world.now(), new));
        Ok(())
    }

    async fn dispatch(&mut self) -> Result<(), SimulationError> {
        let app = self.world.worker("dispatcher");
        let accounts = !self.has_account;
        let mut task = Task::new(async move {
            if accounts {
                app::account::ensure_all(&app).await?;
            }
            app::dispatch::round(&app).await
        });
        loop {
            match run(task, &self.world.gate, &self.world.blade).await {
                Ran::Ended(next) => {
                    self.has_account = true;
                    let now = self.world.now();
                    self.next_dispatch = next?.unwrap_or(Moment::NEVER).clamp(now + Duration::from_millis(1), now + IDLE);
                    return Ok(());
                }
                Ran::Cut => {
                    self.crashes += 1;
                    self.next_dispatch = self.world.now() + Duration::from_secs(1);
                    return Ok(());
                }
                // Only the account's making waits for the CA here, before anything else can go on.
                Ran::Stands(until, rest) => {
                    self.world.hand.advance_to(until);
                    task = rest;
                }
            }
        }
    }

    /// Runs what a worker has in hand as far as it comes.
    async fn go_on(&mut self, one: InHand) -> Result<(), SimulationError> {
        let InHand { worker, id, held } = one;
        let task = match held {
            Held::Stands(task) => task,
            Held::Again(mut grip) => {
                let (app, id) = (self.world.worker(&format!("worker-{worker}")), id.clone());
                Task::new(async move { (grip.step(&app, &id, true).await, grip) })
            }
        };
        match run(task, &self.world.gate, &self.world.blade).await {
            Ran::Stands(until, task) => self.hold(until, InHand { worker, id, held: Held::Stands(task) }),
            Ran::Cut => self.die(worker),
            Ran::Ended((done, grip)) => {
                let now = self.world.now();
                let again = match done? {
                    Advanced::NotDue => None,
                    Advanced::Superseded => Some(now),
                    Advanced::Done(due) => (due.since(now) <= IN_HAND).then_some(due.max(now)),
                };
                match again {
                    Some(at) => self.hold(at, InHand { worker, id, held: Held::Again(grip) }),
                    None => self.busy[worker] -= 1,
                }
            }
        }
        Ok(())
    }

    fn hold(&mut self, until: Moment, one: InHand) {
        self.arrivals += 1;
        self.in_hand.insert((until, self.arrivals), one);
    }

    /// A process ends: nothing of what it had in hand goes on. Another takes its place.
    fn die(&mut self, worker: usize) {
        self.crashes += 1;
        self.in_hand.retain(|_, one| one.worker != worker);
        self.busy[worker] = 0;
    }

    async fn claim_one(&mut self) -> Result<(), SimulationError> {
        let n = self.singles.len();
        let zone = format!("single{n}.test");
        self.world.zone(&zone);
        let name = Hostname::trusted(&format!("www.{zone}"));
        let tenant = self.tenants[n % self.tenants.len()].clone();
        let id = app::claim::claim(&self.world.app, &tenant, &name, "tenant").await?.id;
        self.world.publish(&id, &name).await
    }

    async fn hour(&mut self, hourly: &mut (dyn FnMut(&HourPoint) + Send)) -> Result<(), SimulationError> {
        let now = self.world.now();
        self.next_hour = now + HOUR;
        if self.options.crashes {
            let n = 1 + self.world.hand.below(BOUNDARIES);
            self.world.blade.set(usize::try_from(n).unwrap_or(1));
        }
        self.world.app.store.optimize(false).await?;
        let played = app::fleet::played(&self.world.app).await?;
        let places = played.queues.iter().flat_map(|queue| &queue.orders);
        self.told.extend(places.filter_map(|o| Some(Told { order: o.order_id.clone(), at: now, eta: o.eta? })));
        let point = HourPoint {
            hour: now.since(self.options.start).as_secs() / HOUR.as_secs(),
            certificates: self.served_at.len(),
            waiting: played.queues.iter().map(|queue| queue.waiting).sum(),
        };
        hourly(&point);
        self.points.push(point);
        Ok(())
    }
}

/// When the first domain is due, alarm or not.
async fn next_due(store: &Store) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT due_at FROM domains WHERE claim NOT IN ('released', 'withdrawn') ORDER BY due_at LIMIT 1");
    store.query(stmt).await?.first().map(|row| row.moment("due_at")).transpose()
}

/// When each order got its last grant, and what is known of it.
pub(super) struct Granted {
    pub(super) lane: String,
    pub(super) claimed_at: Moment,
    pub(super) granted_at: Moment,
}

/// All grants by order, the last of each.
pub(super) async fn grants(store: &Store) -> StoreResult<HashMap<String, Granted>> {
    let stmt =
        sql("SELECT g.order_id, o.lane, d.created_at, g.granted_at FROM grants g JOIN orders o ON o.id = g.order_id \
         JOIN domains d ON d.id = o.domain_id ORDER BY g.id");
    let rows = store.query(stmt).await?;
    rows.iter()
        .map(|row| {
            let granted = Granted {
                lane: row.text("lane")?,
                claimed_at: row.moment("created_at")?,
                granted_at: row.moment("granted_at")?,
            };
            Ok((row.text("order_id")?, granted))
        })
        .collect()
}
