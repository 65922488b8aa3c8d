//! Sending the visitors of one half of a pair on to the other.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use super::domains::{DomainBody, body, own_domain, redirect_target};
use crate::app::pair;
use crate::web::auth::ApiCaller;
use crate::web::freshness::IfMatch;
use crate::web::input::{Id, Json, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// What to change of a domain.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DomainChange, example = json!({ "redirect_to": "www.acme.com" }), min_properties = 1)]
pub(in crate::web) struct ChangeBody {
    /// Where visitors are sent on to once it is served: the other half of `www` and the bare name. Null keeps them here.
    #[schema(value_type = Option<String>, required = false, nullable = true)]
    #[serde(default, deserialize_with = "given")]
    redirect_to: Option<Option<String>>,
}

/// Null is something that was given, too.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Change a domain
///
/// Sends the visitors of one half of a pair on to the other, or keeps them. Links the two where they are not linked yet. The
/// edges answer 308 only while the other name is served there; before that, and after, they serve this one.
#[utoipa::path(patch, path = "/api/v1/domains/{id}", tag = "Domains", operation_id = "changeDomain",
    params(("id" = String, Path, description = "Its id.", example = "dom_019b0000000070008000000000000001")),
    request_body = ChangeBody,
    responses(
        (status = 200, description = "The domain as it is now.", body = DomainBody),
        (status = 404, description = "`domain_not_found`"),
        (status = 409, description = "`claim_closed`, `other_half_not_claimed`, `redirect_loop`"),
        (status = 412, description = "`changed_meanwhile`"),
        (status = 422, description = "`nothing_to_change`, `hostname_…`, `no_other_half`, `not_the_other_half`, `wrong_fields`"),
    ))]
pub(in crate::web) async fn change_domain(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    IfMatch(expect): IfMatch,
    _: NoQuery,
    Json(wanted): Json<ChangeBody>,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    let Some(to) = wanted.redirect_to else {
        return Err(Problem::wrong("", "nothing_to_change", "The body names nothing to change; give redirect_to."));
    };
    let to = redirect_target(&state, to.as_deref())?;
    let done = pair::redirect_if(&state.app, &id, to.as_ref(), &expect, &caller.actor()).await;
    done.map_err(|e| match e {
        e @ pair::PairError::NoOtherHalf(_) => Problem::from(e).at("/redirect_to"),
        e => e.into(),
    })?;
    body(&state, &id).await
}
