//! Taking a tenant off board, and the names that still lead to us afterwards. Operators only.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use super::{cursor, opaque, page_length};
use crate::app::offboard::{self, OffboardError};
use crate::app::tenants;
use crate::app::tokens::Caller;
use crate::model::id::DomainId;
use crate::model::tenant::Tenant;
use crate::store::offboarding::Progress;
use crate::web::auth::ApiCaller;
use crate::web::freshness::IfMatch;
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// How far a tenant's off-boarding is.
#[derive(Serialize, utoipa::ToSchema)]
pub(in crate::web) struct OffboardingBody {
    /// The tenant's id.
    tenant_id: String,
    /// Its slug, which never returns.
    slug: String,
    /// `deleted`.
    status: &'static str,
    /// When it began.
    #[schema(format = DateTime)]
    begun_at: String,
    /// When the last claim was let go of; null while some still stand.
    #[schema(required, format = DateTime)]
    finished_at: Option<String>,
    /// Claims that still stand; edges answer for none of them any more.
    claims_open: i64,
    /// Names that rest until their keys and certificates are destroyed.
    names_releasing: i64,
    /// Where to see which names still lead to us.
    #[schema(format = "uri")]
    dangling: String,
}

/// Former names of a tenant, looked up when asked for.
#[derive(Serialize, utoipa::ToSchema)]
pub(in crate::web) struct DanglingBody {
    /// Names whose DNS still leads to us: their owners should remove the records.
    items: Vec<DanglingName>,
    /// Names of which nothing could be learnt just now.
    unknown: Vec<String>,
    /// How many names were looked at for this page.
    looked_at: usize,
    /// The next page; null on the last one.
    #[schema(required, format = "uri")]
    next: Option<String>,
}

/// A name that still leads to us.
#[derive(Serialize, utoipa::ToSchema)]
pub(in crate::web) struct DanglingName {
    /// The claim it was.
    domain_id: String,
    /// The name.
    hostname: String,
    /// What DNS says.
    observed: Vec<String>,
}

fn body(state: &WebState, tenant: &Tenant, progress: Progress) -> OffboardingBody {
    OffboardingBody {
        tenant_id: tenant.id.to_string(),
        slug: tenant.slug.to_string(),
        status: tenant.status.as_str(),
        begun_at: progress.begun_at.rfc3339(),
        finished_at: progress.finished_at.map(|at| at.rfc3339()),
        claims_open: progress.open,
        names_releasing: progress.releasing,
        dangling: format!("{}/dangling", state.api_tenant(&tenant.id)),
    }
}

/// The tenant and the operator who asks: to a stranger there is no such tenant, to itself this is not allowed.
async fn found(state: &WebState, caller: ApiCaller, id_or_slug: &str) -> Result<(Tenant, Caller), Problem> {
    let found = tenants::find(&state.app.store, id_or_slug).await?;
    let tenant = found.filter(|tenant| caller.0.principal.may_touch(&tenant.id)).ok_or_else(Problem::no_tenant)?;
    Ok((tenant, caller.operator()?))
}

/// Let a tenant go
///
/// All its names stop being served at once and are let go one after the other; the slug never returns. Asked again, it answers
/// how far it is.
#[utoipa::path(
    delete, path = "/api/v1/tenants/{id}", operation_id = "removeTenant", tag = "Tenants",
    params(("id" = String, Path, description = "Id or slug of the tenant")),
    responses(
        (status = 202, description = "The tenant has left; its claims let go of their names one after the other", body = OffboardingBody),
        (status = 403, description = "`operator_needed`"),
        (status = 404, description = "`tenant_not_found`"),
        (status = 412, description = "`changed_meanwhile`"),
    )
)]
pub(in crate::web) async fn remove_tenant(
    State(state): State<WebState>,
    caller: ApiCaller,
    Id(id): Id,
    IfMatch(expect): IfMatch,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let (tenant, caller) = found(&state, caller, &id).await?;
    let app = &state.app;
    let leaving = offboard::begin_if(&app.store, &app.env, &tenant.id, &expect, &caller.actor()).await;
    let leaving = leaving.map_err(|e| match e {
        OffboardError::NotFound(_) => Problem::no_tenant(),
        OffboardError::Changed(_) => Problem::changed(e.to_string()),
        OffboardError::Store(e) => e.into(),
    })?;
    state.app.bells.relay.notify_one();
    state.app.bells.offboarding.notify_one();
    Ok((StatusCode::ACCEPTED, axum::Json(body(&state, &leaving.tenant, leaving.progress))))
}

/// Which page.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct DanglingQuery {
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many names are looked at.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List names that still lead here
///
/// Looks, when asked, whether DNS still sends the former names of a tenant that has left to us.
#[utoipa::path(
    get, path = "/api/v1/tenants/{id}/dangling", operation_id = "listDangling", tag = "Tenants",
    params(
        ("id" = String, Path, description = "Id or slug of a tenant that has left"),
        DanglingQuery,
    ),
    responses(
        (status = 200, description = "What DNS says now", body = DanglingBody),
        (status = 403, description = "`operator_needed`"),
        (status = 404, description = "`tenant_not_found`"),
        (status = 409, description = "`tenant_not_deleted`"),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`"),
    )
)]
pub(in crate::web) async fn list_dangling(
    State(state): State<WebState>,
    caller: ApiCaller,
    Id(id): Id,
    Asked(query): Asked<DanglingQuery>,
) -> Result<impl IntoResponse, Problem> {
    let (tenant, _) = found(&state, caller, &id).await?;
    let limit = page_length(query.limit)?;
    let after: Option<DomainId> = cursor(query.cursor.as_deref())?;
    if offboard::progress(&state.app.store, &tenant.id).await?.is_none() {
        let detail = "This tenant has not left: its names are meant to lead here.".to_owned();
        return Err(Problem::refused("tenant_not_deleted", detail));
    }
    let seen = offboard::dangling(&state.app, &tenant.id, after.as_ref(), limit).await?;
    let path = format!("/api/v1/tenants/{}/dangling", tenant.id);
    let next =
        seen.next.map(|id| state.next_page(&path, &[("cursor", &opaque(id.as_str())), ("limit", &limit.to_string())]));
    let named =
        |d: offboard::Dangling| DanglingName { domain_id: d.domain.to_string(), hostname: d.hostname, observed: d.observed };
    let items = seen.dangling.into_iter().map(named).collect();
    Ok(axum::Json(DanglingBody { items, unknown: seen.unknown, looked_at: seen.looked, next }))
}
