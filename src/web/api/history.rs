//! What was tried and seen of one domain.

use axum::extract::State;
use axum::response::IntoResponse;

use super::Page;
use super::domains::own_domain;
use crate::app::show::{self, CheckView, PastAttempt};
use crate::web::auth::ApiCaller;
use crate::web::input::{Id, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// List the attempts of a domain
///
/// Each try at proving the claim, oldest first, with the value that was to be published. All are on one page.
#[utoipa::path(get, path = "/api/v1/domains/{id}/attempts", tag = "Domains", operation_id = "listAttempts",
    params(("id" = String, Path, description = "The domain's id.", example = "dom_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The attempts.", body = Page<PastAttempt>),
        (status = 404, description = "`domain_not_found`"),
    ))]
pub(in crate::web) async fn list_attempts(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    let items = show::attempts(&state.app.store, &id).await?;
    Ok(axum::Json(Page { items, next: None }))
}

/// List the evidence of a domain
///
/// What the last look saw, one object a check: the same objects as in the domain itself.
#[utoipa::path(get, path = "/api/v1/domains/{id}/evidence", tag = "Domains", operation_id = "listEvidence",
    params(("id" = String, Path, description = "The domain's id.", example = "dom_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The checks.", body = Page<CheckView>),
        (status = 404, description = "`domain_not_found`"),
    ))]
pub(in crate::web) async fn list_evidence(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    let view = show::domain(&state.app.store, &state.settings.apex, &id, state.app.env.now()).await?;
    let items = view.ok_or_else(Problem::no_domain)?.checks;
    Ok(axum::Json(Page { items, next: None }))
}
