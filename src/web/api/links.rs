//! Portal links and hand-off links: made, listed, taken back.

use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::domains::tenant_of;
use super::{Page, cursor, page_length};
use crate::app::links::{self, MintedLink, NewLink};
use crate::app::show;
use crate::app::tokens::{Caller, Principal};
use crate::config::ReturnUrl;
use crate::model::id::{DomainId, LinkId, TenantId};
use crate::store::links::{LinkKind, LinkRow};
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, Json};
use crate::web::problem::{FieldError, Problem};
use crate::web::state::WebState;

/// The shortest and the longest that a hand-off link may be good for, in seconds.
const SHORTEST: u64 = 60;
const LONGEST: u64 = 90 * 86_400;

/// A link into the portal to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "tenant": "acme", "return_url": "https://app.example.com/settings/domains" }))]
pub(in crate::web) struct NewPortalLink {
    /// For which tenant, by id or slug; a tenant's token may leave it out.
    #[schema(nullable = true)]
    tenant: Option<String>,
    /// The domain that it leads to, instead of the list.
    #[schema(nullable = true)]
    domain: Option<String>,
    /// Where "back to the application" leads; under one of `portal.return_urls`.
    #[schema(nullable = true, max_length = 2000)]
    return_url: Option<String>,
}

/// A link to make for whoever owns the DNS of a domain.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct NewHandOffLink {
    /// The id of the domain.
    domain: String,
    /// After how many seconds it ends; `portal.hand_off_lifetime` where nothing is said.
    #[schema(minimum = 60, maximum = 7776000_i64, nullable = true)]
    expires_in: Option<u64>,
}

/// A link, without what opens it.
#[derive(Serialize, ToSchema)]
#[schema(as = Link)]
pub(in crate::web) struct LinkBody {
    /// Its id, by which it is taken back.
    id: String,
    /// Whose it is.
    tenant_id: String,
    /// The domain that it leads to, or shows.
    domain_id: Option<String>,
    /// Where the portal leads back to.
    return_url: Option<String>,
    /// Who asked for it.
    created_by: String,
    /// When it was made.
    created_at: String,
    /// When it ends.
    expires_at: String,
    /// When it signed somebody in.
    used_at: Option<String>,
    /// When it was taken back.
    revoked_at: Option<String>,
}

/// A link that was just made. Its URL is shown this once.
#[derive(Serialize, ToSchema)]
#[schema(as = MadeLink)]
pub(in crate::web) struct MadeBody {
    /// What to open.
    url: String,
    #[serde(flatten)]
    link: LinkBody,
}

fn body(link: LinkRow) -> LinkBody {
    LinkBody {
        id: link.id.into(),
        tenant_id: link.tenant_id.into(),
        domain_id: link.domain_id.map(String::from),
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

/// Make a portal link
///
/// It signs a tenant's admin in, once. An operator makes links for any tenant, a tenant for itself.
#[utoipa::path(post, path = "/api/v1/portal-links", tag = "Links", operation_id = "createPortalLink",
    request_body = NewPortalLink,
    responses(
        (status = 201, description = "The link; its URL is shown this once.", body = MadeBody, headers(("Location" = String, description = "Where it is."))),
        (status = 409, description = "`tenant_not_active`"),
        (status = 422, description = "`tenant_missing`, `tenant_unknown`, `domain_unknown`, `return_url_not_allowed`, `wrong_fields`"),
    ))]
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

/// Make a hand-off link
///
/// It shows one domain's records and state to whoever owns its DNS, without an account.
#[utoipa::path(post, path = "/api/v1/hand-off-links", tag = "Links", operation_id = "createHandOffLink",
    request_body = NewHandOffLink,
    responses(
        (status = 201, description = "The link; its URL is shown this once.", body = MadeBody, headers(("Location" = String, description = "Where it is."))),
        (status = 409, description = "`tenant_not_active`"),
        (status = 422, description = "`domain_unknown`, `expiry_out_of_range`, `wrong_fields`"),
    ))]
pub(in crate::web) async fn create_hand_off_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Json(wanted): Json<NewHandOffLink>,
) -> Result<impl IntoResponse, Problem> {
    let (domain, tenant) = domain_of(&state, &caller, &wanted.domain).await?;
    let lifetime = match wanted.expires_in {
        None => state.settings.portal.hand_off_lifetime,
        Some(secs @ SHORTEST..=LONGEST) => Duration::from_secs(secs),
        Some(secs) => {
            let detail = format!("expires_in is {secs}; it must be from {SHORTEST} to {LONGEST} seconds, or left out.");
            return Err(wrong("/expires_in", "expiry_out_of_range", detail));
        }
    };
    let new = NewLink { kind: LinkKind::HandOff, tenant, domain: Some(domain), return_url: None, lifetime };
    let minted = made(&state, new, &caller).await?;
    let url = state.hand_off_link(minted.text.expose_str().unwrap_or_default());
    Ok(answer(&state, "/api/v1/hand-off-links", url, minted.row))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct LinksQuery {
    /// Of this tenant only, by id or slug.
    tenant: Option<String>,
    /// Where the page begins, out of the `next` of the page before.
    cursor: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 200)]
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

/// List portal links
///
/// Oldest first, without what opens them; a tenant sees its own.
#[utoipa::path(get, path = "/api/v1/portal-links", tag = "Links", operation_id = "listPortalLinks", params(LinksQuery),
    responses((status = 200, description = "A page of links.", body = Page<LinkBody>)))]
pub(in crate::web) async fn list_portal_links(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<LinksQuery>,
) -> Result<impl IntoResponse, Problem> {
    list(state, caller, query, LinkKind::Portal, "/api/v1/portal-links").await
}

/// List hand-off links
///
/// Oldest first, without what opens them; a tenant sees its own.
#[utoipa::path(get, path = "/api/v1/hand-off-links", tag = "Links", operation_id = "listHandOffLinks", params(LinksQuery),
    responses((status = 200, description = "A page of links.", body = Page<LinkBody>)))]
pub(in crate::web) async fn list_hand_off_links(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<LinksQuery>,
) -> Result<impl IntoResponse, Problem> {
    list(state, caller, query, LinkKind::HandOff, "/api/v1/hand-off-links").await
}

/// Take a portal link back
///
/// Sessions that it began go on.
#[utoipa::path(delete, path = "/api/v1/portal-links/{id}", tag = "Links", operation_id = "revokePortalLink",
    params(("id" = String, Path, description = "The link's id.")),
    responses((status = 200, description = "What became of it.", body = LinkBody), (status = 404, description = "`link_not_found`")))]
pub(in crate::web) async fn revoke_portal_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    revoke(state, caller, &id, LinkKind::Portal).await
}

/// Take a hand-off link back
///
/// Its page says so from then on.
#[utoipa::path(delete, path = "/api/v1/hand-off-links/{id}", tag = "Links", operation_id = "revokeHandOffLink",
    params(("id" = String, Path, description = "The link's id.")),
    responses((status = 200, description = "What became of it.", body = LinkBody), (status = 404, description = "`link_not_found`")))]
pub(in crate::web) async fn revoke_hand_off_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    revoke(state, caller, &id, LinkKind::HandOff).await
}
