//! Domains: claim, list, show, check, remove.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use super::{Page, cursor, page_length};
use crate::app::claim::Claimed;
use crate::app::show::{self, DomainView};
use crate::app::tokens::{Caller, Principal};
use crate::app::{check, claim, remove, tenants};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::store::views::DomainFilter;
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, Json};
use crate::web::problem::{FieldError, Problem};
use crate::web::state::WebState;

/// The id, if it is of a domain that the caller may touch; else the same answer as for one that is not.
pub(in crate::web) async fn own_domain(state: &WebState, caller: &Caller, id: &str) -> Result<DomainId, Problem> {
    let id: DomainId = id.parse().map_err(|_| Problem::no_domain())?;
    let owner = show::owner(&state.app.store, &id).await?;
    match owner.filter(|tenant| caller.principal.may_touch(tenant)) {
        Some(_) => Ok(id),
        None => Err(Problem::no_domain()),
    }
}

/// The tenant that `named` (id or slug) means to this caller.
pub(super) async fn tenant_of(
    state: &WebState,
    caller: &Caller,
    named: Option<&str>,
    field: &str,
) -> Result<TenantId, Problem> {
    let wrong = |code: &'static str, detail: &str| {
        Problem::field(FieldError { field: field.into(), code, detail: detail.into(), suggestion: None })
    };
    match (named, &caller.principal) {
        (None, Principal::Tenant(own)) => Ok(own.clone()),
        (None, Principal::Operator) => Err(wrong("tenant_missing", "An operator names the tenant, by id or slug.")),
        (Some(named), principal) => {
            let found = tenants::find(&state.app.store, named).await?.filter(|tenant| principal.may_touch(&tenant.id));
            let unknown = || wrong("tenant_unknown", "There is no tenant with this id or slug.");
            found.map(|tenant| tenant.id).ok_or_else(unknown)
        }
    }
}

#[derive(Serialize)]
struct DomainBody {
    #[serde(flatten)]
    view: DomainView,
    /// The page that shows it to people.
    page: String,
}

async fn body(state: &WebState, id: &DomainId) -> Result<axum::Json<DomainBody>, Problem> {
    let view = show::domain(&state.app.store, &state.settings.apex, id, state.app.env.now())
        .await?
        .ok_or_else(Problem::no_domain)?;
    Ok(axum::Json(DomainBody { page: state.domain_page(id), view }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct ClaimBody {
    tenant: Option<String>,
    hostname: String,
}

/// `POST /api/v1/domains`: 201 for a new claim, 200 for one that stands already.
pub(in crate::web) async fn claim_domain(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Json(wanted): Json<ClaimBody>,
) -> Result<impl IntoResponse, Problem> {
    let tenant = tenant_of(&state, &caller, wanted.tenant.as_deref(), "/tenant").await?;
    let hostname = Hostname::parse(&wanted.hostname, &state.settings.rules).map_err(Problem::hostname)?;
    let Claimed { id, new } = claim::claim(&state.app, &tenant, &hostname, &caller.actor()).await?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, [(header::LOCATION, state.api_domain(&id))], body(&state, &id).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct DomainsQuery {
    tenant: Option<String>,
    hostname: Option<String>,
    cursor: Option<String>,
    limit: Option<u32>,
}

/// `GET /api/v1/domains`: oldest first; a tenant sees its own.
pub(in crate::web) async fn list_domains(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<DomainsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let tenant = match (&query.tenant, &caller.principal) {
        (None, Principal::Operator) => None,
        (named, _) => Some(tenant_of(&state, &caller, named.as_deref(), "tenant").await?),
    };
    let hostname = query
        .hostname
        .as_deref()
        .map(|h| Hostname::parse(h, &state.settings.rules))
        .transpose()
        .map_err(Problem::hostname)?;
    let after = cursor(query.cursor.as_deref())?;
    let items = show::list(&state.app.store, &DomainFilter { tenant, hostname, after }, limit).await?;
    let full = i64::try_from(items.len()).is_ok_and(|n| n == limit);
    let next = items.last().filter(|_| full).map(|last| {
        let limit = limit.to_string();
        let mut question = vec![("cursor", last.id.as_str()), ("limit", &limit)];
        question.extend(query.tenant.as_deref().map(|tenant| ("tenant", tenant)));
        question.extend(query.hostname.as_deref().map(|hostname| ("hostname", hostname)));
        state.next_page("/api/v1/domains", &question)
    });
    Ok(axum::Json(Page { items, next }))
}

/// `GET /api/v1/domains/{id}`
pub(in crate::web) async fn get_domain(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    body(&state, &id).await
}

/// `POST /api/v1/domains/{id}/check`: 202, the look is under way.
pub(in crate::web) async fn check_domain(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    check::check_now(&state.app, &id, &caller.actor()).await?;
    Ok((StatusCode::ACCEPTED, body(&state, &id).await?))
}

/// `DELETE /api/v1/domains/{id}`: 200 with what became of it.
pub(in crate::web) async fn remove_domain(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    remove::remove(&state.app, &id, &caller.actor()).await?;
    body(&state, &id).await
}
