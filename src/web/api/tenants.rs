//! Tenants.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use super::{Page, cursor, page_length};
use crate::app::tenants::{self, AddTenantError, NewTenant};
use crate::app::tokens::Principal;
use crate::model::id::TenantId;
use crate::model::tenant::Tenant;
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, Json};
use crate::web::problem::{FieldError, Problem};
use crate::web::state::WebState;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct NewTenantBody {
    slug: String,
    name: Option<String>,
}

#[derive(Serialize)]
struct TenantBody {
    #[serde(flatten)]
    tenant: Tenant,
    canonical_host: String,
    created_at: String,
}

fn body(state: &WebState, tenant: Tenant) -> TenantBody {
    let canonical_host = state.canonical_host(&tenant.slug).to_string();
    TenantBody { canonical_host, created_at: tenant.created_at.rfc3339(), tenant }
}

/// `POST /api/v1/tenants`
pub(in crate::web) async fn create_tenant(
    State(state): State<WebState>,
    caller: ApiCaller,
    Json(new): Json<NewTenantBody>,
) -> Result<impl IntoResponse, Problem> {
    let actor = caller.operator()?.actor();
    let wanted = NewTenant { slug: &new.slug, name: new.name.as_deref() };
    let added =
        tenants::add(&state.app.store, &state.app.env, wanted, |slug| Some(state.canonical_host(slug)), &actor).await;
    let tenant = added.map_err(|e| {
        let (field, code) = match &e {
            AddTenantError::Store(_) => ("", ""),
            AddTenantError::Name(_) => ("/name", "name_length"),
            AddTenantError::Unseen(_) => ("/name", "name_unseen_character"),
            AddTenantError::Slug(_) => ("/slug", "slug_invalid"),
            AddTenantError::Taken(_) => ("/slug", "slug_taken"),
        };
        let detail = e.to_string();
        match e {
            AddTenantError::Store(e) => e.into(),
            AddTenantError::Taken(_) => Problem::new(StatusCode::CONFLICT, code, "The slug is taken", detail),
            AddTenantError::Slug(_) | AddTenantError::Name(_) | AddTenantError::Unseen(_) => {
                Problem::field(FieldError { field: field.into(), code, detail, suggestion: None })
            }
        }
    })?;
    let location = state.api_tenant(&tenant.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(body(&state, tenant))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct TenantsQuery {
    cursor: Option<String>,
    limit: Option<u32>,
}

/// `GET /api/v1/tenants`: all of them to an operator, itself to a tenant.
pub(in crate::web) async fn list_tenants(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<TenantsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let after: Option<TenantId> = cursor(query.cursor.as_deref())?;
    let found = match &caller.principal {
        Principal::Operator => tenants::list(&state.app.store, after.as_ref(), limit).await?,
        Principal::Tenant(own) => tenants::find(&state.app.store, own.as_str()).await?.into_iter().collect(),
    };
    let full = caller.principal == Principal::Operator && i64::try_from(found.len()).is_ok_and(|n| n == limit);
    let next = found
        .last()
        .filter(|_| full)
        .map(|last| state.next_page("/api/v1/tenants", &[("cursor", last.id.as_str()), ("limit", &limit.to_string())]));
    let items = found.into_iter().map(|tenant| body(&state, tenant)).collect();
    Ok(axum::Json(Page { items, next }))
}

/// `GET /api/v1/tenants/{id}`: by id or slug.
pub(in crate::web) async fn get_tenant(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    let found = tenants::find(&state.app.store, &id).await?.filter(|tenant| caller.principal.may_touch(&tenant.id));
    let tenant = found.ok_or_else(Problem::no_tenant)?;
    Ok(axum::Json(body(&state, tenant)))
}
