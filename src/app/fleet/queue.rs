//! The queue as the dispatcher will serve it: positions and times come from its own pure function.
//!
//! It is played once for everybody who looks within a few seconds, on a thread where nobody waits for it; what pages ask of it
//! (who is where, how many in which lane, who waits for which limit) is found without going through it.

use std::collections::{BTreeMap, HashMap};

use crate::model::bulk::Hold;
use crate::model::dispatch::{Place, Waiting, dispatch};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, OrderId};
use crate::model::issuer::Circuit;
use crate::model::ledger::Spent;
use crate::model::limits::LimitName;
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::store::fleet::queue::{self, QueuedRow};
use crate::store::issuers::{self, IssuerRow};
use crate::store::{Store, StoreError, StoreResult, issuer_health, ledger};

/// So many of those who wait for one limit are named.
const FIRST: usize = 3;

/// An order in the queue.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The order.
    pub order_id: OrderId,
    /// Whose.
    pub domain_id: DomainId,
    /// The name.
    pub hostname: Hostname,
    /// Its tenant.
    pub tenant_slug: String,
    /// Its lane.
    pub lane: Lane,
    /// 1 for the next to be granted after the coming round; 0 for what the coming round grants.
    pub position: u32,
    /// When its grant can be expected; nothing while the issuer has no account, or none that can be used.
    pub eta: Option<Moment>,
    /// It may not be placed before.
    pub not_before: Moment,
    /// The limit of its own that has no room for it, if one has none, and when it will have.
    pub held: Option<(LimitName, Moment)>,
}

/// The queue of one issuer.
#[derive(Clone, Debug)]
pub struct IssuerQueue {
    /// The issuer.
    pub issuer: String,
    /// Whether it has an account.
    pub has_account: bool,
    /// Nothing is granted before, where that is still to come.
    pub paused_until: Option<Moment>,
    /// The queue in the order in which it will be served.
    pub orders: Vec<Queued>,
    /// How many of it are in each lane.
    pub lanes: BTreeMap<Lane, usize>,
    /// How many wait.
    pub waiting: i64,
    /// How many orders are held back until their checks pass again; they have no position.
    pub held_back: i64,
    /// How many are held back by the imports that brought their names, by what holds those.
    pub held_by_imports: BTreeMap<Hold, i64>,
    /// Rows of queue and ledger that were gone through.
    rows: usize,
    /// The places, in order of their domains.
    by_domain: Vec<usize>,
    waiters: HashMap<(LimitName, String), Waiters>,
}

/// Who waits for room under one limit and key.
#[derive(Clone, Debug, Default)]
struct Waiters {
    waiting: usize,
    first: Vec<usize>,
}

impl IssuerQueue {
    /// Where a domain's order stands.
    pub fn place_of(&self, domain: &DomainId) -> Option<&Queued> {
        let at = self.by_domain.binary_search_by(|n| self.orders[*n].domain_id.cmp(domain)).ok()?;
        self.orders.get(self.by_domain[at])
    }

    /// How many wait for room under a limit and key, and the first of them, soonest first: those whose own limits have no room
    /// for those, all others for the account.
    pub fn waiting_for(&self, limit: LimitName, key: &str) -> (usize, Vec<Queued>) {
        let Some(waiters) = self.waiters.get(&(limit, key.to_owned())) else { return (0, Vec::new()) };
        (waiters.waiting, waiters.first.iter().map(|n| self.orders[*n].clone()).collect())
    }

    /// How many rows of queue and ledger were gone through.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// What pages ask for.
    fn index(&mut self) {
        for (n, order) in self.orders.iter().enumerate() {
            *self.lanes.entry(order.lane).or_default() += 1;
            if order.position == 0 {
                continue;
            }
            let limit = order.held.map_or(LimitName::OrdersPerAccount, |(limit, _)| limit);
            let waiters = self.waiters.entry((limit, limit.key(&order.hostname).to_owned())).or_default();
            waiters.waiting += 1;
            if waiters.first.len() < FIRST {
                waiters.first.push(n);
            }
        }
        self.by_domain = (0..self.orders.len()).collect();
        self.by_domain.sort_unstable_by(|a, b| self.orders[*a].domain_id.cmp(&self.orders[*b].domain_id));
    }
}

/// The queues of all issuers.
pub(super) async fn queues(store: &Store, now: Moment) -> StoreResult<Vec<IssuerQueue>> {
    queues_with(store, Vec::new(), now).await
}

/// The same with those who are to join the queue of the issuer that is asked first, in the order of their orders' ids: what a plan is
/// worth is told by the same function that will carry it out.
pub(in crate::app) async fn queues_with(
    store: &Store,
    joining: Vec<QueuedRow>,
    now: Moment,
) -> StoreResult<Vec<IssuerQueue>> {
    let first = issuers::first(&mut store.read().await?).await?.map(|issuer| issuer.id);
    let (mut all, mut joining) = (Vec::new(), Some(joining));
    for issuer in issuers::list(store).await? {
        let joins = joining.take_if(|_| first.as_ref() == Some(&issuer.id)).unwrap_or_default();
        let mut read = read(store, issuer, now).await?;
        read.rows.extend(joins);
        let played = tokio::task::spawn_blocking(move || play(read, now)).await;
        all.push(played.map_err(StoreError::unavailable)?);
    }
    Ok(all)
}

/// What the queue of one issuer is made of.
struct Read {
    issuer: IssuerRow,
    circuit: Circuit,
    rows: Vec<QueuedRow>,
    waiting: i64,
    held_back: i64,
    held_by_imports: BTreeMap<Hold, i64>,
    spent: Spent,
}

async fn read(store: &Store, issuer: IssuerRow, now: Moment) -> StoreResult<Read> {
    let mut tx = store.read().await?;
    let circuit = issuer_health::of(&mut tx, &issuer.id).await?.circuit(now);
    let rows = queue::waiting(&mut tx, &issuer.id).await?;
    let held_by_imports = queue::held_by_imports(&mut tx, &issuer.id).await?;
    let held_back = (queue::held_back(&mut tx, &issuer.id).await? - held_by_imports.values().sum::<i64>()).max(0);
    let spent = ledger::whole(&mut tx, &issuer.id, now).await?;
    let waiting = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    Ok(Read { issuer, circuit, rows, waiting, held_back, held_by_imports, spent })
}

fn play(read: Read, now: Moment) -> IssuerQueue {
    let Read { issuer, circuit, rows, waiting, held_back, held_by_imports, spent } = read;
    let open = if let Circuit::Open(until) = circuit { until } else { now };
    let begin = issuer.not_before.max(open).max(now);
    let has_account = issuer.account_url.is_some();
    let mut out = IssuerQueue {
        issuer: issuer.name,
        has_account,
        paused_until: (begin > now).then_some(begin),
        orders: Vec::with_capacity(rows.len()),
        lanes: BTreeMap::new(),
        waiting,
        held_back,
        held_by_imports,
        rows: rows.len() + spent.len(),
        by_domain: Vec::new(),
        waiters: HashMap::new(),
    };
    let (list, mut rest): (Vec<Waiting>, Vec<Option<QueuedRow>>) =
        rows.into_iter().map(|row| (row.waiting.clone(), Some(row))).unzip();
    let served = dispatch(&list, &issuer.limits, &spent, u64::try_from(issuer.granted).unwrap_or(0), begin);
    let by_order: HashMap<&OrderId, usize> = list.iter().enumerate().map(|(n, w)| (&w.order_id, n)).collect();
    let at_once = served.grants.into_iter().map(|order_id| Place { order_id, position: 0, eta: begin, held: None });
    for Place { order_id, position, eta, held } in at_once.chain(served.places) {
        let Some(row) = by_order.get(&order_id).and_then(|n| rest[*n].take()) else { continue };
        out.orders.push(Queued {
            order_id,
            domain_id: row.domain_id,
            held: held.or_else(|| row.held_by.map(|limit| (limit, row.waiting.not_before)).filter(|(_, at)| *at > now)),
            hostname: row.waiting.name,
            tenant_slug: row.tenant_slug,
            lane: row.waiting.lane,
            position,
            eta: (has_account && circuit != Circuit::Halted).then_some(eta),
            not_before: row.waiting.not_before,
        });
    }
    out.index();
    out
}

/// Where a domain's order stands in these queues, and in which.
pub fn place_of<'q>(queues: &'q [IssuerQueue], domain: &DomainId) -> Option<(&'q IssuerQueue, &'q Queued)> {
    queues.iter().find_map(|q| Some((q, q.place_of(domain)?)))
}
