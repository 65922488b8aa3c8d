//! The numbered stream of events.

use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;

use super::domains::{narrowed_to, whose};
use super::{Page, page_length};
use crate::app::show::{self, EventView};
use crate::store::StoreResult;
use crate::store::views::EventFilter;
use crate::web::auth::ApiCaller;
use crate::web::input::Asked;
use crate::web::live::News;
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// The longest wait for something new.
const LONGEST: u32 = 25;
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

/// What is new by the end of the wait. When all places are taken, or the process stops, the answer is that nothing is yet.
async fn something_new(
    state: &WebState,
    who: &str,
    filter: &EventFilter,
    limit: i64,
    wait: Duration,
) -> StoreResult<Vec<EventView>> {
    let Some((mut place, mut news)) = state.live.wait(who, filter.clone()).await? else { return Ok(vec![]) };
    let mut time_is_up = std::pin::pin!(state.app.env.sleep(wait));
    loop {
        if news {
            let items = show::events(&state.app.store, filter, limit).await?;
            if !items.is_empty() {
                return Ok(items);
            }
        }
        news = tokio::select! {
            told = place.next() => told == News::Moved,
            () = &mut time_is_up => false,
        };
        if !news {
            return Ok(vec![]);
        }
    }
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
    let mut items = show::events(&state.app.store, &filter, limit).await?;
    if items.is_empty() && wait > 0 {
        items = something_new(&state, caller.token.as_str(), &filter, limit, Duration::from_secs(u64::from(wait))).await?;
    }
    let last = items.last().and_then(|event| event.position).unwrap_or(after).to_string();
    let (limit, wait) = (limit.to_string(), wait.to_string());
    let mut question = vec![("after", last.as_str()), ("limit", &limit)];
    question.extend(query.tenant.as_deref().map(|tenant| ("tenant", tenant)));
    question.extend(query.domain.as_deref().map(|domain| ("domain", domain)));
    question.extend(query.wait.map(|_| ("wait", wait.as_str())));
    let next = state.next_page("/api/v1/events", &question);
    Ok(axum::Json(Page { items, next: Some(next) }))
}
