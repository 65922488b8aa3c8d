//! The whole story of one name.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::explain::{Explanation, explain};
use crate::model::hostname::Hostname;
use crate::web::auth::ApiCaller;
use crate::web::input::Asked;
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// Which name.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct ExplainQuery {
    /// In any spelling that can be claimed.
    #[param(example = "support.acme.com")]
    hostname: String,
}

/// Explain a hostname
///
/// The whole story of one name: who holds it, every claim on it that the caller may see, and what happens next.
#[utoipa::path(get, path = "/api/v1/explain", tag = "Domains", operation_id = "explainHostname", params(ExplainQuery),
    responses(
        (status = 200, description = "The story; a tenant is told of its own claims only.", body = Explanation),
        (status = 404, description = "`claim_not_found`"),
        (status = 422, description = "`hostname_…`"),
    ))]
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
