//! The numbered stream of events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;

use super::domains::{narrowed_to, whose};
use super::{Page, page_length};
use crate::app::show::{self, EventView};
use crate::store::views::EventFilter;
use crate::web::auth::ApiCaller;
use crate::web::input::Asked;
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// The longest wait for something new.
const LONGEST: u32 = 25;
/// How often a waiting reader looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// So many readers may wait at once in a process; more are answered at once.
const READERS: usize = 200;
/// How many wait.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// A reader that waits, until it is dropped.
struct Waiting;

impl Waiting {
    fn begin() -> Option<Self> {
        let taken = WAITING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < READERS).then_some(n + 1));
        taken.is_ok().then_some(Waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Which events are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct EventsQuery {
    /// Events after this position; 0 begins at the first.
    #[param(minimum = 0, default = 0)]
    after: Option<i64>,
    /// Of one domain only.
    #[param(example = "dom_019b0000000070008000000000000001")]
    domain: Option<String>,
    /// Of one tenant only, by id or slug.
    #[param(example = "acme")]
    tenant: Option<String>,
    /// How many seconds to wait for something new where there is nothing yet.
    #[param(minimum = 0, maximum = 25, default = 0)]
    wait: Option<u32>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// Read the stream of events
///
/// Oldest first. `next` is always there: it is where to ask again, also when nothing is new yet. With `wait` the answer comes
/// when something is new, or when the time is up. An event has one position for ever, so a reader that keeps the last `next`
/// misses nothing and sees nothing twice.
#[utoipa::path(get, path = "/api/v1/events", tag = "Events", operation_id = "listEvents", params(EventsQuery),
    responses(
        (status = 200, description = "A page of events; `next` is never null.", body = Page<EventView>),
        (status = 422, description = "`position_invalid`, `wait_out_of_range`, `limit_out_of_range`, `tenant_unknown`, `domain_unknown`"),
    ))]
pub(in crate::web) async fn list_events(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<EventsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let after = query.after.unwrap_or(0);
    if after < 0 {
        return Err(Problem::wrong("after", "position_invalid", format!("after is {after}; positions begin with 0.")));
    }
    let wait = query.wait.unwrap_or(0);
    if wait > LONGEST {
        let detail = format!("wait is {wait}; it may be up to {LONGEST} seconds.");
        return Err(Problem::wrong("wait", "wait_out_of_range", detail));
    }
    let tenant = whose(&state, &caller, query.tenant.as_deref()).await?;
    let domain = narrowed_to(&state, &caller, query.domain.as_deref()).await?;
    let filter = EventFilter { tenant, domain, after };
    let env = &state.app.env;
    let until = env.now() + Duration::from_secs(u64::from(wait));
    let mut waiting = None;
    let items = loop {
        let items = show::events(&state.app.store, &filter, limit).await?;
        let left = until.since(env.now());
        if !items.is_empty() || left.is_zero() {
            break items;
        }
        waiting = waiting.or_else(Waiting::begin);
        if waiting.is_none() {
            break items;
        }
        env.sleep(left.min(LOOK_EVERY)).await;
    };
    let last = items.last().and_then(|event| event.position).unwrap_or(after).to_string();
    let (limit, wait) = (limit.to_string(), wait.to_string());
    let mut question = vec![("after", last.as_str()), ("limit", &limit)];
    question.extend(query.tenant.as_deref().map(|tenant| ("tenant", tenant)));
    question.extend(query.domain.as_deref().map(|domain| ("domain", domain)));
    question.extend(query.wait.map(|_| ("wait", wait.as_str())));
    let next = state.next_page("/api/v1/events", &question);
    Ok(axum::Json(Page { items, next: Some(next) }))
}
