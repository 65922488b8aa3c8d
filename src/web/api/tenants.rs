//! Tenants.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Page, cursor, is_full, next_page, page_length};
use crate::app::show::TenantView;
use crate::app::tenants::{self, AddTenantError, ChangeTenantError, NewTenant, TenantChange};
use crate::app::tokens::{Caller, Principal};
use crate::model::id::TenantId;
use crate::model::tenant::{Tenant, TenantStatus};
use crate::web::auth::ApiCaller;
use crate::web::freshness::{IfMatch, Version};
use crate::web::input::{Asked, Id, Json, NoQuery};
use crate::web::once::{Begun, Once};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// The tenant with this id or slug, if the caller may know of it.
pub(in crate::web) async fn own_tenant(state: &WebState, caller: &Caller, named: &str) -> Result<Tenant, Problem> {
    let found = tenants::find(&state.app.store, named).await?.filter(|tenant| caller.principal.may_touch(&tenant.id));
    found.ok_or_else(Problem::no_tenant)
}

/// A tenant that can still be given something: one that was taken off board cannot.
pub(in crate::web) fn with_a_future(tenant: &Tenant) -> Result<(), Problem> {
    if tenant.status == TenantStatus::Deleted {
        let detail = format!("The tenant {} was taken off board; nothing can be added or changed.", tenant.slug);
        return Err(Problem::refused("tenant_not_active", detail));
    }
    Ok(())
}

fn body(state: &WebState, tenant: Tenant) -> TenantView {
    let host = state.canonical_host(&tenant.slug);
    TenantView::new(tenant, Some(host))
}

fn answer(state: &WebState, tenant: Tenant) -> Response {
    (Version(tenant.version), axum::Json(body(state, tenant))).into_response()
}

/// A tenant to add.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTenant, example = json!({ "slug": "acme", "name": "Acme Inc." }))]
pub(in crate::web) struct NewTenantBody {
    /// The label of its canonical host: small letters, digits and hyphens. It is never given to another.
    slug: String,
    /// What people call it; the slug where nothing is said.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
}

/// Add a tenant
///
/// The slug is the label of the tenant's canonical host. It is never given to another tenant, in any spelling.
#[utoipa::path(post, path = "/api/v1/tenants", tag = "Tenants", operation_id = "createTenant",
    request_body = NewTenantBody,
    responses(
        (status = 201, description = "The tenant.", body = TenantView, headers(("Location" = String, description = "Where it is."))),
        (status = 403, description = "`operator_needed`"),
        (status = 409, description = "`slug_taken`, `idempotency_in_flight`"),
        (status = 422, description = "`slug_invalid`, `name_length`, `name_unseen_character`, `wrong_fields`, `idempotency_key_reused`"),
    ))]
pub(in crate::web) async fn create_tenant(
    State(state): State<WebState>,
    caller: ApiCaller,
    _: NoQuery,
    once: Once<NewTenantBody>,
) -> Result<Response, Problem> {
    let caller = caller.operator()?;
    let (new, begun) = once.begin(&state, &caller).await?;
    let mut work = match begun {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(work) => work,
    };
    let wanted = NewTenant { slug: &new.slug, name: new.name.as_deref() };
    let host = |slug: &_| Some(state.canonical_host(slug));
    let added = tenants::add_in(&mut work.tx, &state.app.env, wanted, host, &caller.actor()).await;
    let tenant = added.map_err(|e| match e {
        AddTenantError::Store(e) => e.into(),
        AddTenantError::Taken(_) => Problem::new(StatusCode::CONFLICT, "slug_taken", "The slug is taken", e.to_string()),
        AddTenantError::Slug(_) => Problem::wrong("/slug", "slug_invalid", e.to_string()),
        AddTenantError::Name(e) => Problem::label("/name", &e),
    })?;
    let (location, version) = (state.api_tenant(&tenant.id), tenant.version);
    work.done(StatusCode::CREATED, Some(location), Some(version), &body(&state, tenant)).await
}

/// What narrows the list of tenants.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct TenantsQuery {
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List tenants
///
/// All of them to an operator, oldest first; a tenant's token lists that tenant.
#[utoipa::path(get, path = "/api/v1/tenants", tag = "Tenants", operation_id = "listTenants", params(TenantsQuery),
    responses(
        (status = 200, description = "A page of tenants.", body = Page<TenantView>),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_tenants(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<TenantsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let after: Option<TenantId> = cursor(query.cursor.as_deref())?;
    let found = match &caller.principal {
        Principal::Operator => tenants::list(&state.app.store, after.as_ref(), limit).await?,
        Principal::Tenant(own) => {
            let own = tenants::find(&state.app.store, own.as_str()).await?;
            own.into_iter().filter(|own| after.as_ref().is_none_or(|after| own.id > *after)).collect()
        }
    };
    let full = caller.principal == Principal::Operator && is_full(&found, limit);
    let last = found.last().map(|last| last.id.to_string());
    let next = next_page(&state, "/api/v1/tenants", full, last, &[("limit", Some(limit.to_string()))]);
    let items = found.into_iter().map(|tenant| body(&state, tenant)).collect();
    Ok(axum::Json(Page { items, next }))
}

/// Show a tenant
#[utoipa::path(get, path = "/api/v1/tenants/{id}", tag = "Tenants", operation_id = "getTenant",
    params(("id" = String, Path, description = "Its id or slug.", example = "acme")),
    responses(
        (status = 200, description = "The tenant.", body = TenantView),
        (status = 404, description = "`tenant_not_found`"),
    ))]
pub(in crate::web) async fn get_tenant(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let tenant = own_tenant(&state, &caller, &id).await?;
    Ok(answer(&state, tenant))
}

/// What to change of a tenant; what is missing stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TenantChange, example = json!({ "name": "Acme GmbH", "tier": "gold" }), min_properties = 1)]
pub(in crate::web) struct ChangeBody {
    /// What people call it.
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Its tier: a word of the platform's own.
    #[schema(min_length = 1, max_length = 60)]
    tier: Option<String>,
}

/// Change a tenant
///
/// Changes the name, the tier or both. The slug never changes.
#[utoipa::path(patch, path = "/api/v1/tenants/{id}", tag = "Tenants", operation_id = "changeTenant",
    params(("id" = String, Path, description = "Its id or slug.", example = "acme")),
    request_body = ChangeBody,
    responses(
        (status = 200, description = "The tenant as it is now.", body = TenantView),
        (status = 403, description = "`operator_needed`"),
        (status = 404, description = "`tenant_not_found`"),
        (status = 409, description = "`tenant_not_active`"),
        (status = 412, description = "`changed_meanwhile`"),
        (status = 422, description = "`nothing_to_change`, `name_length`, `name_unseen_character`, `tier_length`, `tier_unseen_character`, `wrong_fields`"),
    ))]
pub(in crate::web) async fn change_tenant(
    State(state): State<WebState>,
    caller: ApiCaller,
    Id(id): Id,
    IfMatch(expect): IfMatch,
    _: NoQuery,
    Json(wanted): Json<ChangeBody>,
) -> Result<Response, Problem> {
    let caller = caller.operator()?;
    let tenant = own_tenant(&state, &caller, &id).await?;
    with_a_future(&tenant)?;
    if wanted.name.is_none() && wanted.tier.is_none() {
        return Err(Problem::wrong("", "nothing_to_change", "The body names nothing to change; give name, tier or both."));
    }
    let change = TenantChange { name: wanted.name, tier: wanted.tier };
    let app = &state.app;
    let changed = tenants::change(&app.store, &app.env, &tenant.id, &change, &expect, &caller.actor()).await;
    let tenant = changed.map_err(|e| match e {
        ChangeTenantError::NotFound(_) => Problem::no_tenant(),
        ChangeTenantError::Name(e) => Problem::label("/name", &e),
        ChangeTenantError::Tier(e) => Problem::label("/tier", &e),
        ChangeTenantError::Changed(_) => Problem::changed(e.to_string()),
        ChangeTenantError::Store(e) => e.into(),
    })?;
    app.bells.relay.notify_one();
    Ok(answer(&state, tenant))
}
