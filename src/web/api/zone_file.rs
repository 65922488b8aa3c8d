//! The records of a domain as a file.

use axum::extract::State;
use axum::response::Response;

use super::domains::own_domain;
use crate::app::show;
use crate::web::auth::ApiCaller;
use crate::web::input::{Id, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;
use crate::web::zone_file::answer;

/// Download a domain's records
///
/// What there is to publish, as lines that any zone file takes in (RFC 1035).
#[utoipa::path(get, path = "/api/v1/domains/{id}/records.zone", tag = "Domains", operation_id = "getZoneFile",
    params(("id" = String, Path, description = "Its id.", example = "dom_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The records.", body = String, content_type = "text/dns"),
        (status = 404, description = "`domain_not_found`"),
    ))]
pub(in crate::web) async fn get_zone_file(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    let (store, apex) = (&state.app.store, &state.settings.apex);
    let view = show::domain(store, apex, &id, state.app.env.now()).await?.ok_or_else(Problem::no_domain)?;
    Ok(answer(&view))
}
