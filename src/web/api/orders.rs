//! Open orders, for those who watch the queue.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Page, cursor, page, page_length};
use crate::app::show::OpenOrderView;
use crate::model::id::OrderId;
use crate::store;
use crate::web::auth::ApiCaller;
use crate::web::input::Asked;
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// Which orders are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct OrdersQuery {
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List open orders
///
/// Every order at a CA that is not over, oldest first. For operators.
#[utoipa::path(get, path = "/api/v1/orders", tag = "Orders", operation_id = "listOrders", params(OrdersQuery),
    responses(
        (status = 200, description = "A page of orders.", body = Page<OpenOrderView>),
        (status = 403, description = "`operator_needed`"),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_orders(
    State(state): State<WebState>,
    caller: ApiCaller,
    Asked(query): Asked<OrdersQuery>,
) -> Result<impl IntoResponse, Problem> {
    caller.operator()?;
    let limit = page_length(query.limit)?;
    let after: Option<OrderId> = cursor(query.cursor.as_deref())?;
    let rows = store::orders::open(&state.app.store, after.as_ref().map_or("", OrderId::as_str), limit).await?;
    Ok(axum::Json(page((&state, "/api/v1/orders"), (rows, limit), |row| row.id.to_string(), &[], OpenOrderView::from)))
}
