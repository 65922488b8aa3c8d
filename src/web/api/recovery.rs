//! The recovery of a restored system: what its end would change, and ending it. Operators only.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::restore::{self, Recovering, RestoreError};
use crate::web::auth::ApiCaller;
use crate::web::input::{Json, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;

impl From<RestoreError> for Problem {
    fn from(e: RestoreError) -> Self {
        let said = e.to_string();
        match e {
            RestoreError::NotRecovering | RestoreError::NothingBefore => Problem::refused("not_recovering", said),
            RestoreError::Changed(_) => Problem::refused("recovery_changed", said),
            RestoreError::Unsettled(_) => Problem::refused("recovery_unsettled", said),
            RestoreError::Store(e) => e.into(),
        }
    }
}

/// How a recovery stands.
#[derive(Serialize, ToSchema)]
#[schema(as = Recovery)]
pub(in crate::web) struct RecoveryBody {
    /// Whether one is under way.
    recovering: bool,
    /// Since when.
    #[schema(required, format = DateTime)]
    since: Option<String>,
    /// Names that edges serve and the database does not know: they are served no longer after the end.
    unknown: i64,
    /// Names whose newest certificate only edges have: they get a new one after the end.
    newer: i64,
    /// Names that were let go of after the copy was made, and were again.
    let_go: i64,
    /// What edges remember and was not settled yet: it does not end before.
    unsettled: i64,
    /// Edges that have taken what is stored.
    edges: i64,
    /// Edges that have not: what only they remember is not counted yet.
    edges_behind: i64,
    /// Up to fifty of the names that are unknown or have a newer certificate.
    names: Vec<String>,
    /// Tenants that left after the copy was made, and are here again: take them off board again.
    tenants_left: i64,
    /// Up to fifty of their canonical hosts.
    canonical_hosts_left: Vec<String>,
}

impl RecoveryBody {
    fn of(recovering: Option<Recovering>) -> Self {
        let since = recovering.as_ref().map(|r| r.since.rfc3339());
        let (ahead, names, left) = recovering.map(|r| (r.ahead, r.names, r.left)).unwrap_or_default();
        RecoveryBody {
            recovering: since.is_some(),
            since,
            unknown: ahead.unknown,
            newer: ahead.newer,
            let_go: ahead.let_go,
            unsettled: ahead.unsettled,
            edges: ahead.edges,
            edges_behind: ahead.edges_behind,
            names,
            tenants_left: ahead.left,
            canonical_hosts_left: left,
        }
    }
}

/// Show the recovery
///
/// After a restore edges keep what they have and only add to it, until an operator ends that. This tells what the end would change.
#[utoipa::path(get, path = "/api/v1/recovery", tag = "Edges", operation_id = "getRecovery",
    responses(
        (status = 200, description = "How it stands.", body = RecoveryBody),
        (status = 403, description = "`operator_needed`"),
    ))]
pub(in crate::web) async fn get_recovery(
    State(state): State<WebState>,
    caller: ApiCaller,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    caller.operator()?;
    Ok(axum::Json(RecoveryBody::of(restore::status(&state.app.store).await?)))
}

/// What whoever ends it was shown.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EndOfRecovery, example = json!({ "names_lost": 0 }))]
pub(in crate::web) struct EndRecoveryBody {
    /// The sum of `unknown` and `newer` as it was shown: where it is another by now, nothing is done.
    #[schema(minimum = 0)]
    names_lost: i64,
}

/// End the recovery
///
/// Edges take exactly what is stored and let go of everything else.
#[utoipa::path(post, path = "/api/v1/recovery/end", tag = "Edges", operation_id = "endRecovery", request_body = EndRecoveryBody,
    responses(
        (status = 200, description = "It is over.", body = RecoveryBody),
        (status = 403, description = "`operator_needed`"),
        (status = 409, description = "`not_recovering`, `recovery_changed`, `recovery_unsettled`"),
        (status = 422, description = "`wrong_fields`"),
    ))]
pub(in crate::web) async fn end_recovery(
    State(state): State<WebState>,
    caller: ApiCaller,
    _: NoQuery,
    Json(wanted): Json<EndRecoveryBody>,
) -> Result<impl IntoResponse, Problem> {
    let caller = caller.operator()?;
    restore::end(&state.app.store, &state.app.env, Some(wanted.names_lost), &caller.actor()).await?;
    state.app.bells.relay.notify_one();
    Ok(axum::Json(RecoveryBody::of(restore::status(&state.app.store).await?)))
}
