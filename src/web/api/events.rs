//! The numbered stream of events.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::{Page, page_length};
use crate::app::show;
use crate::app::tokens::Principal;
use crate::web::auth::ApiCaller;
use crate::web::input::Asked;
use crate::web::problem::Problem;
use crate::web::state::WebState;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct EventsQuery {
    /// Events after this position; 0 begins at the first.
    #[serde(default)]
    after: i64,
    limit: Option<u32>,
}

/// `GET /api/v1/events`: oldest first; a tenant sees its own. `next` is where to ask again, also when nothing is new yet.
pub(in crate::web) async fn list_events(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<EventsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let tenant = match &caller.principal {
        Principal::Operator => None,
        Principal::Tenant(own) => Some(own),
    };
    let items = show::events(&state.app.store, tenant, query.after, limit).await?;
    let last = items.last().and_then(|event| event.position).unwrap_or(query.after);
    let next = state.next_page("/api/v1/events", &[("after", &last.to_string()), ("limit", &limit.to_string())]);
    Ok(axum::Json(Page { items, next: Some(next) }))
}
