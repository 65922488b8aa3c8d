//! Undoing a removal, ending a release that is stuck, and the names that still lead here.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::domains::{DomainBody, body, own_domain};
use super::{Page, cursor_text, is_full, next_page, page_length, wrong_cursor};
use crate::app::undo::{self, ForceError, UndoError};
use crate::model::conclude::RefusedUndo;
use crate::model::hostname::Hostname;
use crate::store::resting::{self, RestingRow};
use crate::web::auth::ApiCaller;
use crate::web::freshness::IfMatch;
use crate::web::input::{Asked, Id, Json, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;

impl From<UndoError> for Problem {
    fn from(e: UndoError) -> Self {
        let said = e.to_string();
        match e {
            UndoError::NotFound(_) => Problem::no_domain(),
            UndoError::Refused(RefusedUndo::Untied(_)) => Problem::refused("tie_gone", said),
            UndoError::Refused(RefusedUndo::Unseen) => Problem::refused("records_not_seen", said),
            UndoError::Refused(RefusedUndo::WentOn) => Problem::refused("name_went_on", said),
            UndoError::Refused(RefusedUndo::NotReleasing(_) | RefusedUndo::TenantLeft) => {
                Problem::refused("nothing_to_undo", said)
            }
            UndoError::ClaimedAnew(_) => Problem::refused("claimed_anew", said),
            UndoError::Changed(_) => Problem::changed(said),
            UndoError::App(e) => e.into(),
        }
    }
}

impl From<ForceError> for Problem {
    fn from(e: ForceError) -> Self {
        let said = e.to_string();
        match e {
            ForceError::NotFound(_) => Problem::no_domain(),
            ForceError::NoReason => Problem::wrong("/reason", "reason_missing", said),
            ForceError::Refused(_) => Problem::refused("nothing_to_end", said),
            ForceError::Changed(_) => Problem::changed(said),
            ForceError::App(e) => e.into(),
        }
    }
}

/// Undo a removal
///
/// Brings a domain back that is being released, when a look sees that the name is still tied to its tenant: the certificate that
/// was kept is served again, with no new record and no new order. Possible until `undo_until`, and never for a tenant that has left.
#[utoipa::path(post, path = "/api/v1/domains/{id}/undo-removal", tag = "Domains", operation_id = "undoRemoval",
    params(("id" = String, Path, description = "Its id.", example = "dom_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The domain as it is now.", body = DomainBody),
        (status = 404, description = "`domain_not_found`"),
        (status = 409, description = "`nothing_to_undo`, `tie_gone`, `records_not_seen`, `name_went_on`, `claimed_anew`"),
        (status = 412, description = "`changed_meanwhile`"),
    ))]
pub(in crate::web) async fn undo_removal(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    IfMatch(expect): IfMatch,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    undo::undo(&state.app, &id, &expect, &caller.actor()).await?;
    body(&state, &id).await
}

/// Why a release is ended.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EndOfRelease, example = json!({ "reason": "The customer sold the name; its new owner waits." }))]
pub(in crate::web) struct EndBody {
    /// Kept in the domain's history.
    #[schema(min_length = 1, max_length = 300)]
    reason: String,
}

/// End a release
///
/// For operators: ends what keeps a name back that was let go of, at once and whatever DNS says. Keys and certificate are destroyed
/// and the name is free; whoever wants it proves it as always.
#[utoipa::path(post, path = "/api/v1/domains/{id}/end-release", tag = "Domains", operation_id = "endRelease",
    params(("id" = String, Path, description = "Its id.", example = "dom_019b0000000070008000000000000001")),
    request_body = EndBody,
    responses(
        (status = 200, description = "The domain as it is now.", body = DomainBody),
        (status = 403, description = "`operator_needed`"),
        (status = 404, description = "`domain_not_found`"),
        (status = 409, description = "`nothing_to_end`"),
        (status = 412, description = "`changed_meanwhile`"),
        (status = 422, description = "`reason_missing`, `wrong_fields`"),
    ))]
pub(in crate::web) async fn end_release(
    State(state): State<WebState>,
    caller: ApiCaller,
    Id(id): Id,
    IfMatch(expect): IfMatch,
    _: NoQuery,
    Json(wanted): Json<EndBody>,
) -> Result<impl IntoResponse, Problem> {
    // To a stranger there is no such domain, to its tenant this is not allowed.
    let id = own_domain(&state, &caller.0, &id).await?;
    let caller = caller.operator()?;
    undo::force_release(&state.app, &id, &wanted.reason, &expect, &caller.actor()).await?;
    body(&state, &id).await
}

/// A name that was let go of and still leads here.
#[derive(Serialize, ToSchema)]
#[schema(as = LeftBehind)]
pub(in crate::web) struct LeftBehindBody {
    /// The claim it was.
    domain_id: String,
    /// Whose claim.
    tenant_id: String,
    /// The name.
    hostname: String,
    /// Where its record leads.
    target: String,
    /// When it was let go of.
    #[schema(format = DateTime)]
    let_go_at: String,
    /// Since when it is seen to lead here nevertheless.
    #[schema(required, format = DateTime)]
    dangles_since: Option<String>,
    /// When its former tenant was last reminded.
    #[schema(required, format = DateTime)]
    reminded_at: Option<String>,
}

impl LeftBehindBody {
    fn of(row: &RestingRow) -> Self {
        LeftBehindBody {
            domain_id: row.former.id.to_string(),
            tenant_id: row.former.tenant_id.to_string(),
            hostname: row.former.hostname.to_string(),
            target: row.former.target.clone(),
            let_go_at: row.resting.since.rfc3339(),
            dangles_since: row.resting.dangles_since.map(|at| at.rfc3339()),
            reminded_at: row.resting.reminded_at.map(|at| at.rfc3339()),
        }
    }
}

/// Which page.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct LeftBehindQuery {
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List names left behind
///
/// For operators: the names that were let go of and that DNS still sends here, as last looked at, by name.
#[utoipa::path(get, path = "/api/v1/left-behind", tag = "Domains", operation_id = "listLeftBehind", params(LeftBehindQuery),
    responses(
        (status = 200, description = "A page of names.", body = Page<LeftBehindBody>),
        (status = 403, description = "`operator_needed`"),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_left_behind(
    State(state): State<WebState>,
    caller: ApiCaller,
    Asked(query): Asked<LeftBehindQuery>,
) -> Result<impl IntoResponse, Problem> {
    caller.operator()?;
    let limit = page_length(query.limit)?;
    let name = |text: String| Hostname::parse(&text, &state.settings.rules).map_err(|_| wrong_cursor());
    let after = cursor_text(query.cursor.as_deref())?.map(name).transpose()?;
    let mut tx = state.app.store.read().await?;
    let rows = resting::dangling(&mut tx, after.as_ref().map_or("", Hostname::as_str), limit).await?;
    drop(tx);
    let items: Vec<LeftBehindBody> = rows.iter().map(LeftBehindBody::of).collect();
    let last = items.last().map(|last| last.hostname.clone());
    let question = [("limit", Some(limit.to_string()))];
    let next = next_page(&state, "/api/v1/left-behind", is_full(&items, limit), last, &question);
    Ok(axum::Json(Page { items, next }))
}
