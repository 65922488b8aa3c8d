//! Alerts: what somebody should know of now.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;

use super::domains::whose;
use super::{Page, cursor, page, page_length};
use crate::app::show::AlertView;
use crate::model::id::AlertId;
use crate::store::alerts::{self, AlertFilter};
use crate::web::auth::ApiCaller;
use crate::web::input::Asked;
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// Which alerts are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct AlertsQuery {
    /// Of one tenant only, by id or slug.
    #[param(example = "acme")]
    tenant: Option<String>,
    /// Those that are over, too.
    #[param(default = false)]
    resolved: Option<bool>,
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List alerts
///
/// The latest first. A tenant sees those of its domains; an operator those of the platform, too, which count what has one cause.
#[utoipa::path(get, path = "/api/v1/alerts", tag = "Alerts", operation_id = "listAlerts", params(AlertsQuery),
    responses(
        (status = 200, description = "A page of alerts.", body = Page<AlertView>),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`, `tenant_unknown`"),
    ))]
pub(in crate::web) async fn list_alerts(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<AlertsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let tenant = whose(&state, &caller, query.tenant.as_deref()).await?;
    let after: Option<AlertId> = cursor(query.cursor.as_deref())?;
    let filter = AlertFilter { tenant, resolved: query.resolved.unwrap_or(false), platform: false, after };
    let rows = alerts::list(&state.app.store, &filter, limit).await?;
    let asked = [("tenant", query.tenant), ("resolved", query.resolved.map(|r| r.to_string()))];
    Ok(axum::Json(page((&state, "/api/v1/alerts"), (rows, limit), |row| row.id.to_string(), &asked, AlertView::from)))
}
