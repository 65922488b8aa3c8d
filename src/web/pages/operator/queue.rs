//! `GET /operator/queue`: who waits for the CA, in the order in which they will be served.

use askama::Template;
use axum::extract::State;
use axum::response::Html;

use super::{Operator, When, grouped, when};
use crate::app::fleet::{self, IssuerQueue};
use crate::model::bulk::Hold;
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::model::standing::Standing;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts::operator as o;

/// So many places of each queue are shown.
const PLACES: usize = 100;

/// A queue, as a page shows it.
pub(super) struct QueueView {
    pub(super) issuer: String,
    pub(super) waiting: String,
    pub(super) held_back: String,
    /// How many imports hold back, with the word and the sentence of each way.
    pub(super) held_by_imports: Vec<(String, &'static str, &'static str)>,
    pub(super) paused: Option<When>,
    pub(super) has_account: bool,
    pub(super) lanes: Vec<(&'static str, usize)>,
    pub(super) places: Vec<PlaceLine>,
    pub(super) last: Option<When>,
}

pub(super) struct PlaceLine {
    pub(super) position: u32,
    pub(super) domain_id: String,
    pub(super) hostname: String,
    pub(super) tenant: String,
    pub(super) lane: &'static str,
    pub(super) eta: Option<When>,
    /// The limit of its own that has no room for it.
    pub(super) held: Option<&'static str>,
}

/// The queues with their first places.
pub(super) fn queue_views(queues: &[IssuerQueue], now: Moment, places: usize) -> Vec<QueueView> {
    queues.iter().map(|q| view(q, now, places)).collect()
}

fn view(q: &IssuerQueue, now: Moment, places: usize) -> QueueView {
    QueueView {
        issuer: q.issuer.clone(),
        waiting: grouped(q.waiting),
        held_back: grouped(q.held_back),
        held_by_imports: q
            .held_by_imports
            .iter()
            .map(|(hold, n)| (grouped(*n), Standing::of_hold(*hold).code(), held_words(*hold)))
            .collect(),
        paused: when(q.paused_until, now),
        has_account: q.has_account,
        lanes: Lane::ALL.iter().map(|lane| (lane.as_str(), q.lanes.get(lane).copied().unwrap_or(0))).collect(),
        last: q.orders.last().and_then(|o| when(o.eta.map(|at| at.max(now)), now)),
        places: q
            .orders
            .iter()
            .take(places)
            .map(|o| PlaceLine {
                position: o.position,
                domain_id: o.domain_id.to_string(),
                hostname: o.hostname.display(),
                tenant: o.tenant_slug.clone(),
                lane: o.lane.as_str(),
                eta: when(o.eta.map(|at| at.max(now)), now),
                held: o.held.map(|(limit, _)| limit.words()),
            })
            .collect(),
    }
}

fn held_words(hold: Hold) -> &'static str {
    match hold {
        Hold::ByTenant => o::by_imports_paused_by_tenants(),
        Hold::ByOperator => o::by_imports_paused_by_operators(),
        Hold::Cancelled => o::by_imports_cancelled(),
    }
}

#[derive(Template)]
#[template(path = "operator/queue.html")]
struct Page {
    here: &'static str,
    counted: When,
    queues: Vec<QueueView>,
}

/// `GET /operator/queue`
pub(in crate::web) async fn show(State(state): State<WebState>, _: Operator) -> Result<Html<String>, Problem> {
    let now = state.app.env.now();
    let played = fleet::played(&state.app).await?;
    let page =
        Page { here: "queue", counted: When::at(played.taken_at, now), queues: queue_views(&played.queues, now, PLACES) };
    html(&page)
}
