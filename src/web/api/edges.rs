//! Edges, for operators.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Page, cursor, page, page_length};
use crate::app::show::EdgeView;
use crate::model::id::EdgeId;
use crate::store::edges::{self, EdgeRow, EdgeStatus};
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// Which edges are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct EdgesQuery {
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List edges
///
/// Oldest first: whether each is counted, when it was heard of, and how many changes it lacks. For operators.
#[utoipa::path(get, path = "/api/v1/edges", tag = "Edges", operation_id = "listEdges", params(EdgesQuery),
    responses(
        (status = 200, description = "A page of edges.", body = Page<EdgeView>),
        (status = 403, description = "`operator_needed`"),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_edges(
    State(state): State<WebState>,
    caller: ApiCaller,
    Asked(query): Asked<EdgesQuery>,
) -> Result<impl IntoResponse, Problem> {
    caller.operator()?;
    let limit = page_length(query.limit)?;
    let after: Option<EdgeId> = cursor(query.cursor.as_deref())?;
    let store = &state.app.store;
    let rows = edges::page(store, after.as_ref().map_or("", EdgeId::as_str), limit).await?;
    let (head, now) = (edges::head(store).await?, state.app.env.now());
    let shown = |row| EdgeView::new(row, head, now);
    Ok(axum::Json(page((&state, "/api/v1/edges"), (rows, limit), |row| row.id.to_string(), &[], shown)))
}

/// The edge of that id or name. What no edge can be called is not asked for: a store may refuse the very text.
async fn edge(state: &WebState, named: &str) -> Result<EdgeRow, Problem> {
    let none = || Problem::no_such("edge_not_found", "There is no edge with this id or name.");
    if named.len() > 300 || named.chars().any(char::is_control) {
        return Err(none());
    }
    edges::find(&mut state.app.store.read().await?, named).await?.ok_or_else(none)
}

async fn view(state: &WebState, row: EdgeRow) -> Result<axum::Json<EdgeView>, Problem> {
    Ok(axum::Json(EdgeView::new(row, edges::head(&state.app.store).await?, state.app.env.now())))
}

/// Show an edge
#[utoipa::path(get, path = "/api/v1/edges/{id}", tag = "Edges", operation_id = "getEdge",
    params(("id" = String, Path, description = "Its id or name.", example = "rack-1")),
    responses(
        (status = 200, description = "The edge.", body = EdgeView),
        (status = 403, description = "`operator_needed`"),
        (status = 404, description = "`edge_not_found`"),
    ))]
pub(in crate::web) async fn get_edge(
    State(state): State<WebState>,
    caller: ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    caller.operator()?;
    let row = edge(&state, &id).await?;
    view(&state, row).await
}

async fn set(state: &WebState, caller: ApiCaller, named: &str, status: EdgeStatus) -> Result<axum::Json<EdgeView>, Problem> {
    let caller = caller.operator()?;
    let row = edge(state, named).await?;
    if state.app.store.execute(edges::set_status(&row.id, status)).await? == 0 {
        return Err(Problem::refused("edge_revoked", "This edge is shut out for ever. Let it join anew.".into()));
    }
    let row = edge(state, row.id.as_str()).await?;
    tracing::info!(edge.id = %row.id, edge.name = row.name, status = status.as_str(), by = caller.actor(), "an edge's part was changed");
    view(state, row).await
}

/// Drain an edge
///
/// It is counted no more: no certificate waits for it, and it can be taken down. It serves on meanwhile. Draining it again
/// changes nothing.
#[utoipa::path(post, path = "/api/v1/edges/{id}/drain", tag = "Edges", operation_id = "drainEdge",
    params(("id" = String, Path, description = "Its id or name.", example = "rack-1")),
    responses(
        (status = 200, description = "The edge as it is now.", body = EdgeView),
        (status = 403, description = "`operator_needed`"),
        (status = 404, description = "`edge_not_found`"),
        (status = 409, description = "`edge_revoked`"),
    ))]
pub(in crate::web) async fn drain_edge(
    State(state): State<WebState>,
    caller: ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    set(&state, caller, &id, EdgeStatus::Drained).await
}

/// Count an edge again
#[utoipa::path(post, path = "/api/v1/edges/{id}/undrain", tag = "Edges", operation_id = "undrainEdge",
    params(("id" = String, Path, description = "Its id or name.", example = "rack-1")),
    responses(
        (status = 200, description = "The edge as it is now.", body = EdgeView),
        (status = 403, description = "`operator_needed`"),
        (status = 404, description = "`edge_not_found`"),
        (status = 409, description = "`edge_revoked`"),
    ))]
pub(in crate::web) async fn undrain_edge(
    State(state): State<WebState>,
    caller: ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    set(&state, caller, &id, EdgeStatus::Active).await
}
