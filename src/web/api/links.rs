//! Portal links and hand-off links: made, listed, taken back.

use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use super::domains::tenant_of;
use super::{Page, cursor, page_length};
use crate::app::links::{self, MintedLink, NewLink};
use crate::app::show;
use crate::app::tokens::{Caller, Principal};
use crate::config::{ReturnUrl, Setting as _};
use crate::model::id::{DomainId, LinkId, TenantId};
use crate::store::links::{LinkKind, LinkRow};
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, Json};
use crate::web::problem::{FieldError, Problem};
use crate::web::state::WebState;

/// The longest a hand-off link may be good for.
const LONGEST: Duration = Duration::from_secs(90 * 86_400);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct NewPortalLink {
    tenant: Option<String>,
    domain: Option<String>,
    return_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct NewHandOffLink {
    domain: String,
    expires_in: Option<String>,
}

#[derive(Serialize)]
struct LinkBody {
    id: LinkId,
    tenant_id: TenantId,
    domain_id: Option<DomainId>,
    return_url: Option<String>,
    created_by: String,
    created_at: String,
    expires_at: String,
    used_at: Option<String>,
    revoked_at: Option<String>,
}

/// What is said of a link when it is made: this once with its URL.
#[derive(Serialize)]
struct MadeBody {
    url: String,
    #[serde(flatten)]
    link: LinkBody,
}

fn body(link: LinkRow) -> LinkBody {
    LinkBody {
        id: link.id,
        tenant_id: link.tenant_id,
        domain_id: link.domain_id,
        return_url: link.return_url,
        created_by: link.created_by,
        created_at: link.created_at.rfc3339(),
        expires_at: link.expires_at.rfc3339(),
        used_at: link.used_at.map(|at| at.rfc3339()),
        revoked_at: link.revoked_at.map(|at| at.rfc3339()),
    }
}

fn wrong(field: &str, code: &'static str, detail: impl Into<String>) -> Problem {
    Problem::field(FieldError { field: field.into(), code, detail: detail.into(), suggestion: None })
}

/// The domain with this id and its tenant; somebody else's answers as an unknown one.
async fn domain_of(state: &WebState, caller: &Caller, named: &str) -> Result<(DomainId, TenantId), Problem> {
    let unknown = || wrong("/domain", "domain_unknown", "There is no domain with this id.");
    let id: DomainId = named.parse().map_err(|_| unknown())?;
    let owner = show::owner(&state.app.store, &id).await?;
    let owner = owner.filter(|tenant| caller.principal.may_touch(tenant)).ok_or_else(unknown)?;
    Ok((id, owner))
}

async fn made(state: &WebState, new: NewLink, caller: &Caller) -> Result<MintedLink, Problem> {
    let minted = links::mint(&state.app.store, &state.app.env, new, caller, &caller.actor()).await?;
    minted.ok_or_else(|| {
        Problem::new(
            StatusCode::CONFLICT,
            "tenant_not_active",
            "Not possible as things stand",
            "The tenant is not active, so that no link lets anybody in.",
        )
    })
}

fn answer(state: &WebState, path: &str, url: String, link: LinkRow) -> impl IntoResponse + use<> {
    let location = format!("{}{path}/{}", state.settings.public_url, link.id);
    (StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(MadeBody { url, link: body(link) }))
}

/// `POST /api/v1/portal-links`: an operator for any tenant, a tenant for itself.
pub(in crate::web) async fn create_portal_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Json(wanted): Json<NewPortalLink>,
) -> Result<impl IntoResponse, Problem> {
    let tenant = tenant_of(&state, &caller, wanted.tenant.as_deref(), "/tenant").await?;
    let domain = match &wanted.domain {
        None => None,
        Some(named) => {
            let (id, owner) = domain_of(&state, &caller, named).await?;
            if owner != tenant {
                return Err(wrong("/domain", "domain_unknown", "There is no domain with this id."));
            }
            Some(id)
        }
    };
    if let Some(url) = &wanted.return_url {
        ReturnUrl::check(&state.settings.portal.return_urls, url)
            .map_err(|e| wrong("/return_url", "return_url_not_allowed", format!("{e}.")))?;
    }
    let lifetime = state.settings.portal.link_lifetime;
    let new = NewLink { kind: LinkKind::Portal, tenant, domain, return_url: wanted.return_url, lifetime };
    let minted = made(&state, new, &caller).await?;
    let url = state.portal_link(minted.text.expose_str().unwrap_or_default());
    Ok(answer(&state, "/api/v1/portal-links", url, minted.row))
}

/// `POST /api/v1/hand-off-links`: for whoever owns the DNS of one domain.
pub(in crate::web) async fn create_hand_off_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Json(wanted): Json<NewHandOffLink>,
) -> Result<impl IntoResponse, Problem> {
    let (domain, tenant) = domain_of(&state, &caller, &wanted.domain).await?;
    let lifetime = match wanted.expires_in.as_deref() {
        None => state.settings.portal.hand_off_lifetime,
        Some(text) => {
            Duration::read(text).filter(|time| (Duration::from_secs(60)..=LONGEST).contains(time)).ok_or_else(|| {
                wrong("/expires_in", "expires_in_invalid", "Give a time from one minute to 90 days, such as 12h or 7d.")
            })?
        }
    };
    let new = NewLink { kind: LinkKind::HandOff, tenant, domain: Some(domain), return_url: None, lifetime };
    let minted = made(&state, new, &caller).await?;
    let url = state.hand_off_link(minted.text.expose_str().unwrap_or_default());
    Ok(answer(&state, "/api/v1/hand-off-links", url, minted.row))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct LinksQuery {
    tenant: Option<String>,
    cursor: Option<String>,
    limit: Option<u32>,
}

async fn list(
    state: WebState,
    caller: Caller,
    query: LinksQuery,
    kind: LinkKind,
    path: &str,
) -> Result<impl IntoResponse + use<>, Problem> {
    let limit = page_length(query.limit)?;
    let tenant = match (&query.tenant, &caller.principal) {
        (None, Principal::Operator) => None,
        (named, _) => Some(tenant_of(&state, &caller, named.as_deref(), "tenant").await?),
    };
    let after: Option<LinkId> = cursor(query.cursor.as_deref())?;
    let found = links::list(&state.app.store, kind, tenant.as_ref(), after.as_ref(), limit).await?;
    let full = i64::try_from(found.len()).is_ok_and(|n| n == limit);
    let next = found.last().filter(|_| full).map(|last| {
        let limit = limit.to_string();
        let mut question = vec![("cursor", last.id.as_str()), ("limit", &limit)];
        question.extend(query.tenant.as_deref().map(|tenant| ("tenant", tenant)));
        state.next_page(path, &question)
    });
    Ok(axum::Json(Page { items: found.into_iter().map(body).collect::<Vec<_>>(), next }))
}

async fn revoke(state: WebState, caller: Caller, id: &str, kind: LinkKind) -> Result<impl IntoResponse + use<>, Problem> {
    let missing = || Problem::new(StatusCode::NOT_FOUND, "link_not_found", "No such link", "There is no link with this id.");
    let id: LinkId = id.parse().map_err(|_| missing())?;
    links::find(&state.app.store, kind, &id, &caller.principal).await?.ok_or_else(missing)?;
    links::revoke(&state.app.store, &id, state.app.env.now()).await?;
    let link = links::find(&state.app.store, kind, &id, &caller.principal).await?.ok_or_else(missing)?;
    Ok(axum::Json(body(link)))
}

/// `GET /api/v1/portal-links`: oldest first; a tenant sees its own.
pub(in crate::web) async fn list_portal_links(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<LinksQuery>,
) -> Result<impl IntoResponse, Problem> {
    list(state, caller, query, LinkKind::Portal, "/api/v1/portal-links").await
}

/// `GET /api/v1/hand-off-links`: oldest first; a tenant sees its own.
pub(in crate::web) async fn list_hand_off_links(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<LinksQuery>,
) -> Result<impl IntoResponse, Problem> {
    list(state, caller, query, LinkKind::HandOff, "/api/v1/hand-off-links").await
}

/// `DELETE /api/v1/portal-links/{id}`: 200 with what became of it.
pub(in crate::web) async fn revoke_portal_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    revoke(state, caller, &id, LinkKind::Portal).await
}

/// `DELETE /api/v1/hand-off-links/{id}`: 200 with what became of it.
pub(in crate::web) async fn revoke_hand_off_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    revoke(state, caller, &id, LinkKind::HandOff).await
}
