//! The whole history of a domain, a page at a time.

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use super::domain::face;
use super::face::Face;
use crate::app::show::{self, EventView};
use crate::web::api::domains::own_domain;
use crate::web::auth::PageCaller;
use crate::web::input::{Asked, Id};
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;
use crate::web::visible;

/// Events on a page.
const LENGTH: i64 = 25;

#[derive(Template)]
#[template(path = "history.html")]
pub(super) struct HistoryPage {
    pub(super) face: Face,
    pub(super) events: Vec<EventView>,
    /// Where the older ones are.
    pub(super) older: Option<i64>,
    pub(super) first: bool,
}

#[derive(Deserialize)]
pub(in crate::web) struct HistoryQuery {
    before: Option<i64>,
}

/// `GET /domains/{id}/history`
pub(in crate::web) async fn show_history(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    Asked(query): Asked<HistoryQuery>,
) -> Result<Html<String>, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    let before = query.before.unwrap_or(i64::MAX);
    let mut events = show::history(&state.app.store, &id, before, LENGTH + 1).await?;
    let more = i64::try_from(events.len()).is_ok_and(|n| n > LENGTH);
    if more {
        events.pop();
    }
    let older = events.last().filter(|_| more).and_then(|last| last.seq);
    let events = visible::document(&events).map_err(|e| Problem::page_failed(&e))?;
    html(&HistoryPage { face: face(&state, &id).await?, events, older, first: query.before.is_none() })
}
