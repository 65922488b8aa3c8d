//! Tokens: made, listed, taken back. An operator has to do with all, a tenant with its own.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::domains::{tenant_of, whose};
use super::tenants::{own_tenant, with_a_future};
use super::{Page, cursor, page, page_length};
use crate::app::show::TokenView;
use crate::app::tokens::{self, Principal};
use crate::model::id::TokenId;
use crate::model::label::Label;
use crate::store;
use crate::store::StoreError;
use crate::store::tokens::TokenRow;
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::once::{Begun, Once};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// The longest time a token with an end may last.
const LONGEST: u64 = 10 * 365 * 24 * 3600;
/// The shortest.
const SHORTEST: u64 = 60;

/// A token to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewToken, example = json!({ "tenant": "acme", "label": "deployment", "expires_in": 7776000 }))]
pub(in crate::web) struct NewTokenBody {
    /// For which tenant, by id or slug; a tenant's token may leave it out.
    #[schema(nullable = true)]
    tenant: Option<String>,
    /// Instead of a tenant: a token for the platform itself, which sees and does everything. Operators only.
    #[serde(default)]
    operator: bool,
    /// What people call it.
    #[schema(min_length = 1, max_length = 200)]
    label: String,
    /// After how many seconds it ends; never where nothing is said.
    #[schema(minimum = 60, maximum = 315360000_i64, nullable = true)]
    expires_in: Option<u64>,
}

/// A token that was just made. Its secret is shown this once.
#[derive(Serialize, ToSchema)]
#[schema(as = MadeToken)]
pub(in crate::web) struct MadeBody {
    #[serde(flatten)]
    view: TokenView,
    /// What requests carry as `Authorization: Bearer …`. It is shown this once and kept nowhere.
    #[schema(example = "npt_…")]
    token: String,
}

/// Make a token
///
/// An operator makes tokens for everybody, a tenant for itself.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "Tokens", operation_id = "createToken",
    request_body = NewTokenBody,
    responses(
        (status = 201, description = "The token; its secret is shown this once.", body = MadeBody, headers(("Location" = String, description = "Where it is."))),
        (status = 403, description = "`operator_needed`"),
        (status = 409, description = "`tenant_not_active`, `idempotency_in_flight`"),
        (status = 422, description = "`tenant_missing`, `tenant_unknown`, `scope_unclear`, `label_length`, `label_unseen_character`, `expiry_out_of_range`, `wrong_fields`, `idempotency_key_reused`"),
    ))]
pub(in crate::web) async fn create_token(
    State(state): State<WebState>,
    caller: ApiCaller,
    _: NoQuery,
    once: Once<NewTokenBody>,
) -> Result<Response, Problem> {
    let wanted = &once.wanted;
    if wanted.operator && caller.0.principal != Principal::Operator {
        return Err(Problem::operators_only());
    }
    let ApiCaller(caller) = caller;
    let principal = match (wanted.operator, wanted.tenant.as_deref()) {
        (true, None) => Principal::Operator,
        (true, Some(_)) => {
            let detail = "A token is for an operator or for one tenant; leave one of the two out.";
            return Err(Problem::wrong("/operator", "scope_unclear", detail));
        }
        (false, named) => {
            let id = tenant_of(&state, &caller, named, "/tenant").await?;
            with_a_future(&own_tenant(&state, &caller, id.as_str()).await?)?;
            Principal::Tenant(id)
        }
    };
    let label = Label::TOKEN.read(&wanted.label).map_err(|e| Problem::label("/label", &e))?;
    let lasts = match wanted.expires_in {
        None => None,
        Some(secs @ SHORTEST..=LONGEST) => Some(Duration::from_secs(secs)),
        Some(secs) => {
            let detail = format!("expires_in is {secs}; it must be from {SHORTEST} to {LONGEST} seconds, or left out.");
            return Err(Problem::wrong("/expires_in", "expiry_out_of_range", detail));
        }
    };
    let (_, begun) = once.begin(&state, &caller).await?;
    let mut work = match begun {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(work) => work,
    };
    let env = &state.app.env;
    let ends = lasts.map(|lasts| env.now() + lasts);
    let made = tokens::mint_in(&mut work.tx, env, &principal, &label, ends).await?;
    let location = state.api_token(&made.id);
    let token = made.text.expose_str().unwrap_or_default().to_owned();
    tracing::info!(token.id = %made.id, scope = made.row.scope, by = caller.actor(), "a token was made");
    work.done(StatusCode::CREATED, Some(location), None, &MadeBody { view: made.row.into(), token }).await
}

/// Which tokens are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct TokensQuery {
    /// Of one tenant only, by id or slug.
    #[param(example = "acme")]
    tenant: Option<String>,
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List tokens
///
/// Oldest first, those that ended or were taken back too; never a secret.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "Tokens", operation_id = "listTokens", params(TokensQuery),
    responses(
        (status = 200, description = "A page of tokens.", body = Page<TokenView>),
        (status = 422, description = "`tenant_unknown`, `limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_tokens(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<TokensQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let tenant = whose(&state, &caller, query.tenant.as_deref()).await?;
    let after: Option<TokenId> = cursor(query.cursor.as_deref())?;
    let after = after.as_ref().map_or("", TokenId::as_str);
    let rows = store::tokens::list(&mut state.app.store.read().await?, tenant.as_ref(), after, limit).await?;
    let asked = [("tenant", query.tenant)];
    Ok(axum::Json(page((&state, "/api/v1/tokens"), (rows, limit), |row| row.id.to_string(), &asked, TokenView::from)))
}

/// The token of that id, if the caller may know of it.
async fn own(state: &WebState, principal: &Principal, id: &str) -> Result<TokenRow, Problem> {
    let none = || Problem::no_such("token_not_found", "There is no token with this id.");
    let id: TokenId = id.parse().map_err(|_| none())?;
    tokens::find(&state.app.store, principal, &id).await?.ok_or_else(none)
}

/// Show a token
#[utoipa::path(get, path = "/api/v1/tokens/{id}", tag = "Tokens", operation_id = "getToken",
    params(("id" = String, Path, description = "Its id.", example = "tok_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The token, without its secret.", body = TokenView),
        (status = 404, description = "`token_not_found`"),
    ))]
pub(in crate::web) async fn get_token(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let row = own(&state, &caller.principal, &id).await?;
    Ok(axum::Json(TokenView::from(row)))
}

/// Take a token back
///
/// At once: it opens nothing any more. A token may take itself back.
#[utoipa::path(delete, path = "/api/v1/tokens/{id}", tag = "Tokens", operation_id = "revokeToken",
    params(("id" = String, Path, description = "Its id.", example = "tok_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The token, taken back.", body = TokenView),
        (status = 404, description = "`token_not_found`"),
        (status = 409, description = "`token_revoked`"),
    ))]
pub(in crate::web) async fn revoke_token(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let row = own(&state, &caller.principal, &id).await?;
    match tokens::revoke(&state.app.store, &state.app.env, &row.id).await {
        Ok(()) => {}
        Err(StoreError::NotFound { .. }) => {
            return Err(Problem::refused("token_revoked", "This token was taken back before.".into()));
        }
        Err(e) => return Err(e.into()),
    }
    tracing::info!(token.id = %row.id, by = caller.actor(), "a token was taken back");
    let row = own(&state, &caller.principal, row.id.as_str()).await?;
    Ok(axum::Json(TokenView::from(row)))
}
