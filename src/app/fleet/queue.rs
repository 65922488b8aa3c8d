//! The queue as the dispatcher will serve it: positions and times come from its own pure function.

use std::collections::HashMap;

use crate::app::App;
use crate::model::dispatch::{Place, Waiting, dispatch};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, OrderId};
use crate::model::issuer::Circuit;
use crate::model::limits::LimitName;
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::store::fleet::queue::{self, QueuedRow};
use crate::store::issuers::{self, IssuerRow};
use crate::store::{StoreResult, dispatching, issuer_health};

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
    /// How many wait.
    pub waiting: i64,
    /// How many orders are held back until their checks pass again; they have no position.
    pub held_back: i64,
}

/// The queues of all issuers.
pub(super) async fn queues(app: &App, now: Moment) -> StoreResult<Vec<IssuerQueue>> {
    let mut all = Vec::new();
    for issuer in issuers::list(&app.store).await? {
        all.push(queue_of(app, issuer, now).await?);
    }
    Ok(all)
}

async fn queue_of(app: &App, issuer: IssuerRow, now: Moment) -> StoreResult<IssuerQueue> {
    let mut tx = app.store.read().await?;
    let circuit = issuer_health::of(&mut tx, &issuer.id).await?.circuit(now);
    let open = if let Circuit::Open(until) = circuit { until } else { now };
    let begin = issuer.not_before.max(open).max(now);
    let rows = queue::waiting(&mut tx, &issuer.id).await?;
    let (waiting, held_back) = queue::sizes(&mut tx, &issuer.id).await?;
    let spent = dispatching::spent(&mut tx, &issuer.id, now).await?;
    drop(tx);
    let has_account = issuer.account_url.is_some();
    let mut out = IssuerQueue {
        issuer: issuer.name,
        has_account,
        paused_until: (begin > now).then_some(begin),
        orders: Vec::with_capacity(rows.len()),
        waiting,
        held_back,
    };
    let list: Vec<Waiting> = rows.iter().map(|row| row.waiting.clone()).collect();
    let served = dispatch(&list, &issuer.limits, &spent, u64::try_from(issuer.granted).unwrap_or(0), begin);
    let mut by_order: HashMap<OrderId, QueuedRow> =
        rows.into_iter().map(|row| (row.waiting.order_id.clone(), row)).collect();
    let at_once = served.grants.into_iter().map(|order_id| Place { order_id, position: 0, eta: begin, held: None });
    for Place { order_id, position, eta, held } in at_once.chain(served.places) {
        let Some(row) = by_order.remove(&order_id) else { continue };
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
    Ok(out)
}

/// Where a domain's order stands in these queues, and in which.
pub fn place_of<'q>(queues: &'q [IssuerQueue], domain: &DomainId) -> Option<(&'q IssuerQueue, &'q Queued)> {
    queues.iter().find_map(|q| q.orders.iter().find(|o| o.domain_id == *domain).map(|o| (q, o)))
}
