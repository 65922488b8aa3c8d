//! Replacements of certificates out of turn, for operators: begun, followed, given up.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Page, cursor, page, page_length};
use crate::app::reissue;
use crate::app::show::reissues::{self as shown, Plan, Progress};
use crate::model::id::ReissueId;
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::store::issuers;
use crate::store::reissues::{GivenUp, Selection};
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::once::{Begun, Once};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// Which certificates in use are to be replaced: by issuer, by serial numbers or by date, one of the three.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewReissue, example = json!({ "issuer": "letsencrypt" }))]
pub(in crate::web) struct NewReissueBody {
    /// Those of this issuer, by the name that it has in the configuration.
    #[schema(nullable = true)]
    issuer: Option<String>,
    /// Those with these serial numbers, in hex as lists have them.
    #[schema(nullable = true, min_items = 1)]
    serials: Option<Vec<String>>,
    /// Those valid from before this time.
    #[schema(nullable = true, format = "date-time")]
    before: Option<String>,
    /// Place their orders among those of renewals that are due, instead of after them: for a deadline that a CA sets.
    #[serde(default)]
    priority: bool,
    /// Count them and tell when it would be done; nothing is replaced.
    #[serde(default)]
    dry_run: bool,
}

impl NewReissueBody {
    async fn selection(&self, state: &WebState) -> Result<Selection, Problem> {
        match (&self.issuer, &self.serials, &self.before) {
            (Some(name), None, None) => {
                let known = issuers::list(&state.app.store).await?.iter().any(|issuer| issuer.name == *name);
                let detail = "There is no issuer of this name; GET /api/v1/budget lists them.";
                known
                    .then(|| Selection::Issuer(name.clone()))
                    .ok_or_else(|| Problem::wrong("/issuer", "issuer_unknown", detail))
            }
            (None, Some(serials), None) => {
                let form = |(n, text): (usize, &String)| {
                    let detail = "This is no serial number: expected hex such as 04a7c3f1e2b95d60.";
                    let wrong = || Problem::wrong(&format!("/serials/{n}"), "serial_invalid", detail);
                    reissue::serial_forms(text).ok_or_else(wrong)
                };
                let forms: Vec<_> = serials.iter().enumerate().map(form).collect::<Result<_, Problem>>()?;
                let none =
                    || Problem::wrong("/serials", "serial_invalid", "The list has no serial numbers; name at least one.");
                (!forms.is_empty()).then(|| reissue::of_serials(forms)).ok_or_else(none)
            }
            (None, None, Some(text)) => {
                let detail = "before is no time such as 2027-01-15T08:00:00Z.";
                let at = Moment::from_rfc3339(text).ok_or_else(|| Problem::wrong("/before", "time_invalid", detail))?;
                Ok(Selection::Before(at))
            }
            _ => {
                let detail = "Name one of issuer, serials and before: which certificates are to be replaced.";
                Err(Problem::wrong("", "selection_unclear", detail))
            }
        }
    }
}

/// Replace certificates
///
/// The certificates in use that are selected are replaced one after the other, as the order budget has room: after whatever is due for
/// renewal, and beside imports; with `priority` among what is due. What is selected is on its way already where another replacement has it, and left out. For operators.
#[utoipa::path(post, path = "/api/v1/reissues", tag = "Certificates", operation_id = "createReissue",
    request_body = NewReissueBody,
    responses(
        (status = 200, description = "Of a dry run: what it would come to.", body = Plan),
        (status = 201, description = "The replacement; it is selecting.", body = Progress, headers(("Location" = String, description = "Where it is."))),
        (status = 403, description = "`operator_needed`"),
        (status = 409, description = "`idempotency_in_flight`"),
        (status = 422, description = "`selection_unclear`, `issuer_unknown`, `serial_invalid`, `time_invalid`, `wrong_fields`, `idempotency_key_reused`"),
    ))]
pub(in crate::web) async fn create_reissue(
    State(state): State<WebState>,
    caller: ApiCaller,
    _: NoQuery,
    once: Once<NewReissueBody>,
) -> Result<Response, Problem> {
    let caller = caller.operator()?;
    let selection = once.wanted.selection(&state).await?;
    let env = &state.app.env;
    let lane = if once.wanted.priority { Lane::Renewal } else { Lane::Bulk };
    if once.wanted.dry_run {
        return Ok(axum::Json(shown::plan(&state.app.store, env, &selection, lane).await?).into_response());
    }
    let (_, begun) = once.begin(&state, &caller).await?;
    let mut work = match begun {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(work) => work,
    };
    let begun: Progress = reissue::begin(&mut work.tx, env, &selection, lane, &caller.actor()).await?.into();
    let bell = state.app.bells.replacements.clone();
    work.tx.after_commit(move || bell.notify_one());
    let location = state.api_reissue(&begun.id);
    tracing::info!(reissue.id = begun.id, by = caller.actor(), "a replacement of certificates was asked for");
    work.done(StatusCode::CREATED, Some(location), None, &begun).await
}

/// Which replacements are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct ReissuesQuery {
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List replacements
///
/// The latest first, each with how far it is. For operators.
#[utoipa::path(get, path = "/api/v1/reissues", tag = "Certificates", operation_id = "listReissues", params(ReissuesQuery),
    responses(
        (status = 200, description = "A page of replacements.", body = Page<Progress>),
        (status = 403, description = "`operator_needed`"),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_reissues(
    State(state): State<WebState>,
    caller: ApiCaller,
    Asked(query): Asked<ReissuesQuery>,
) -> Result<impl IntoResponse, Problem> {
    caller.operator()?;
    let limit = page_length(query.limit)?;
    let before: Option<ReissueId> = cursor(query.cursor.as_deref())?;
    let before = before.as_ref().map_or("", ReissueId::as_str);
    let items = shown::list(&state.app.store, &state.app.env, before, limit).await?;
    Ok(axum::Json(page((&state, "/api/v1/reissues"), (items, limit), |item| item.id.clone(), &[], |item| item)))
}

fn none() -> Problem {
    Problem::no_such("reissue_not_found", "There is no replacement with this id.")
}

/// The replacement of that id. What is no id is not asked for.
async fn find(state: &WebState, id: &str) -> Result<axum::Json<Progress>, Problem> {
    let id: ReissueId = id.parse().map_err(|_| none())?;
    let found = shown::show(&state.app.store, &state.app.env, id.as_str()).await?;
    found.map(axum::Json).ok_or_else(none)
}

/// Show a replacement
///
/// How much of it is done, how much is left, and by when the queue and the budget will have had room for that. For operators.
#[utoipa::path(get, path = "/api/v1/reissues/{id}", tag = "Certificates", operation_id = "getReissue",
    params(("id" = String, Path, description = "Its id.", example = "rei_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The replacement.", body = Progress),
        (status = 403, description = "`operator_needed`"),
        (status = 404, description = "`reissue_not_found`"),
    ))]
pub(in crate::web) async fn get_reissue(
    State(state): State<WebState>,
    caller: ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    caller.operator()?;
    find(&state, &id).await
}

/// Give a replacement up
///
/// What only waits ends, and its certificates stay in use; what the certificate authority knows of goes its way. For operators.
#[utoipa::path(post, path = "/api/v1/reissues/{id}/cancel", tag = "Certificates", operation_id = "cancelReissue",
    params(("id" = String, Path, description = "Its id.", example = "rei_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The replacement, given up.", body = Progress),
        (status = 403, description = "`operator_needed`"),
        (status = 404, description = "`reissue_not_found`"),
        (status = 409, description = "`reissue_over`"),
    ))]
pub(in crate::web) async fn cancel_reissue(
    State(state): State<WebState>,
    caller: ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let caller = caller.operator()?;
    let id: ReissueId = id.parse().map_err(|_| none())?;
    match reissue::cancel(&state.app.store, &state.app.env, id.as_str(), &caller.actor()).await? {
        GivenUp::Now => {}
        GivenUp::Unknown => return Err(none()),
        GivenUp::Over => {
            let detail = "This replacement is done, or was given up before.";
            return Err(Problem::refused("reissue_over", detail.into()));
        }
    }
    tracing::info!(reissue.id = %id, by = caller.actor(), "a replacement of certificates was given up");
    find(&state, id.as_str()).await
}
