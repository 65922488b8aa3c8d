//! The link with which a DNS provider sets a domain's records itself.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::domains::own_domain;
use crate::app::show;
use crate::web::auth::ApiCaller;
use crate::web::connect::{Made, offered};
use crate::web::input::{Id, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;
use crate::web::visible::visible;

/// A DNS provider that sets the records itself, once its customer agreed on a page of its own.
#[derive(Serialize, ToSchema)]
#[schema(as = ApplyLink)]
pub(in crate::web) struct ApplyLinkBody {
    /// What the provider calls itself.
    #[schema(example = "Example DNS")]
    provider: String,
    /// The host that the link leads to.
    #[schema(example = "connect.provider.example")]
    host: String,
    /// The zone that the records are set in.
    #[schema(example = "acme.com")]
    zone: String,
    /// Where to send whoever owns the DNS. Signed, and made anew with every request.
    #[schema(
        example = "https://connect.provider.example/v2/domainTemplates/providers/app.example/services/custom-domain/apply?domain=acme.com&host=support"
    )]
    url: String,
}

/// Get the link that sets a domain's records
///
/// For names whose DNS provider speaks Domain Connect and has taken in the platform's template: its customer opens the link, sees
/// what is set, and agrees. Nothing that the provider says afterwards proves anything; the next look does. The provider sends the
/// browser back to a page of the portal that says no more than that it can be closed.
#[utoipa::path(get, path = "/api/v1/domains/{id}/apply-link", tag = "Domains", operation_id = "getApplyLink",
    params(("id" = String, Path, description = "Its id.", example = "dom_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The link.", body = ApplyLinkBody),
        (status = 404, description = "`domain_not_found`, `nothing_to_apply`"),
    ))]
pub(in crate::web) async fn get_apply_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    let (store, apex) = (&state.app.store, &state.settings.apex);
    let view = show::domain(store, apex, &id, state.app.env.now()).await?.ok_or_else(Problem::no_domain)?;
    let back = format!("{}/connected", state.settings.public_url);
    let nothing = || {
        let detail = "No DNS provider offers to set this domain's records, or they are in place.";
        Problem::new(StatusCode::NOT_FOUND, "nothing_to_apply", "No link to apply", detail)
    };
    let Made { zone, offer, link } = offered(&state, &view, &back).await?.ok_or_else(nothing)?;
    Ok(axum::Json(ApplyLinkBody { provider: visible(&offer.provider), host: offer.sync.host, zone, url: link }))
}
