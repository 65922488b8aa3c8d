//! What the CAs still let us spend, for operators.

use axum::extract::State;
use axum::response::IntoResponse;

use super::Page;
use crate::app::fleet;
use crate::app::show::BudgetView;
use crate::web::auth::ApiCaller;
use crate::web::input::NoQuery;
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// Show what the CAs let us spend
///
/// Every issuer, the preferred first: how it is, what is left of each of its limits, when that comes back, who waits for it, and
/// what the CA refused although we had not used it up. For operators.
#[utoipa::path(get, path = "/api/v1/budget", tag = "Orders", operation_id = "showBudget",
    responses(
        (status = 200, description = "All issuers on one page.", body = Page<BudgetView>),
        (status = 403, description = "`operator_needed`"),
    ))]
pub(in crate::web) async fn show_budget(
    State(state): State<WebState>,
    caller: ApiCaller,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    caller.operator()?;
    let budgets = fleet::budgets(&state.app).await?;
    Ok(axum::Json(Page { items: budgets.into_iter().map(BudgetView::from).collect(), next: None }))
}
