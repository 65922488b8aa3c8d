//! Look at all names of an import now.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use crate::app::bulk::check::{self, CheckError};
use crate::app::bulk::turn::By;
use crate::app::show::CheckedView;
use crate::model::id::ImportId;
use crate::web::auth::ApiCaller;
use crate::web::input::{Id, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;
use crate::web::upload::sentence;

impl From<CheckError> for Problem {
    fn from(e: CheckError) -> Self {
        let said = sentence(&e.to_string());
        match e {
            CheckError::NotFound(_) => Problem::no_import(),
            CheckError::TooSoon(wait) => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_soon", "Asked again too soon", said).after(wait)
            }
            CheckError::NothingWaits => Problem::refused("nothing_to_check", said),
            CheckError::App(e) => e.into(),
        }
    }
}

/// Check an import now
///
/// Asks for a look at each of its names that waits for its records, one after the other, in the lane of imports. At most once a
/// minute for an import.
#[utoipa::path(post, path = "/api/v1/imports/{id}/check", tag = "Imports", operation_id = "checkImport",
    params(("id" = String, Path, description = "Id of the import")),
    responses(
        (status = 202, description = "The looks are on their way.", body = CheckedView),
        (status = 404, description = "`import_not_found`"),
        (status = 409, description = "`nothing_to_check`"),
        (status = 429, description = "`too_soon`, `too_many_requests`"),
    ))]
pub(in crate::web) async fn check_import(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let id: ImportId = id.parse().map_err(|_| Problem::no_import())?;
    let by = By { principal: &caller.principal, actor: &caller.actor() };
    let asked = check::check_now(&state.app, by, &id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(CheckedView { names: asked.names, last_look_at: asked.last_at })))
}
