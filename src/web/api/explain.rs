//! The whole story of one name.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;

use crate::app::explain::explain;
use crate::model::hostname::Hostname;
use crate::web::auth::ApiCaller;
use crate::web::input::Asked;
use crate::web::problem::Problem;
use crate::web::state::WebState;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct ExplainQuery {
    hostname: String,
}

/// `GET /api/v1/explain?hostname=`: every claim on a name that the caller may see, and what happens next.
#[utoipa::path(
    get,
    path = "/api/v1/explain",
    tag = "domains",
    params(("hostname" = String, Query, description = "The name, in any spelling that can be claimed")),
    responses(
        (status = 200, description = "Who holds the name, every claim on it, and what happens next; a tenant is told of its own claims only"),
        (status = 404, description = "No claim that the caller may see is on this name"),
        (status = 422, description = "The name is none that can be claimed"),
    )
)]
pub(in crate::web) async fn explain_hostname(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<ExplainQuery>,
) -> Result<impl IntoResponse, Problem> {
    let hostname = Hostname::parse(&query.hostname, &state.settings.rules).map_err(Problem::hostname)?;
    let story = explain(&state.app, &state.settings.apex, &hostname, &caller.principal).await?;
    let nobody = || {
        let detail = "There is no claim on this hostname that you may see.";
        Problem::new(StatusCode::NOT_FOUND, "claim_not_found", "No such claim", detail)
    };
    story.map(axum::Json).ok_or_else(nobody)
}
