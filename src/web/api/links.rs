//! Portal links and hand-off links: made, listed, taken back.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::domains::{tenant_of, whose};
use super::{Page, cursor, page, page_length};
use crate::app::links::{self, MintedLink, NewLink};
use crate::app::show;
use crate::app::tokens::Caller;
use crate::config::ReturnUrl;
use crate::model::id::{DomainId, LinkId, TenantId};
use crate::store::links::{LinkKind, LinkRow};
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::once::{Begun, Once, Work};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// The shortest and the longest that a hand-off link may be good for, in seconds.
const SHORTEST: u64 = 60;
const LONGEST: u64 = 90 * 86_400;

/// A link that lets a tenant's admin into the portal, once.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "tenant": "acme" }))]
pub(in crate::web) struct NewPortalLink {
    /// For which tenant, by id or slug; a tenant's token may leave it out.
    tenant: Option<String>,
    /// The domain on whose page it opens; the list of domains where nothing is said.
    domain: Option<String>,
    /// Where the portal leads back to: one of the configured places.
    return_url: Option<String>,
}

/// A link that shows one domain's records to whoever owns its DNS.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "domain": "dom_019b0000000070008000000000000001", "expires_in": 604_800 }))]
pub(in crate::web) struct NewHandOffLink {
    /// Which domain, by its id.
    domain: String,
    /// After how many seconds it ends; `portal.hand_off_lifetime` where nothing is said.
    #[schema(minimum = 60, maximum = 7776000_i64, nullable = true)]
    expires_in: Option<u64>,
}

/// A link, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Link)]
pub(in crate::web) struct LinkBody {
    /// Its id, by which it is taken back.
    #[schema(value_type = String, pattern = "^lnk_[0-9a-f]{32}$")]
    id: LinkId,
    /// Whose it is.
    #[schema(value_type = String, pattern = "^ten_[0-9a-f]{32}$")]
    tenant_id: TenantId,
    /// The domain it leads to or shows.
    #[schema(value_type = Option<String>, pattern = "^dom_[0-9a-f]{32}$", required)]
    domain_id: Option<DomainId>,
    /// Where the portal leads back to.
    #[schema(required)]
    return_url: Option<String>,
    /// Who asked for it.
    created_by: String,
    /// When it was made.
    #[schema(format = DateTime, example = "2027-01-15T08:00:00Z")]
    created_at: String,
    /// When it ends by itself.
    #[schema(format = DateTime, example = "2027-01-15T08:00:00Z")]
    expires_at: String,
    /// When it was used, for one that is used once.
    #[schema(format = DateTime, required)]
    used_at: Option<String>,
    /// When it was taken back.
    #[schema(format = DateTime, required)]
    revoked_at: Option<String>,
}

/// What is said of a link when it is made: this once with its URL.
#[derive(Serialize, ToSchema)]
#[schema(as = MadeLink)]
pub(in crate::web) struct MadeBody {
    /// The link itself. It is shown this once and kept nowhere.
    #[schema(format = "uri")]
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

/// The domain with this id and its tenant; somebody else's answers as an unknown one.
async fn domain_of(state: &WebState, caller: &Caller, named: &str) -> Result<(DomainId, TenantId), Problem> {
    let unknown = || Problem::wrong("/domain", "domain_unknown", "There is no domain with this id.");
    let id: DomainId = named.parse().map_err(|_| unknown())?;
    let owner = show::owner(&state.app.store, &id).await?;
    let owner = owner.filter(|tenant| caller.principal.may_touch(tenant)).ok_or_else(unknown)?;
    Ok((id, owner))
}

/// Makes the link in the transaction of the work, and answers with it.
async fn made(
    state: &WebState,
    mut work: Box<Work>,
    new: NewLink,
    caller: &Caller,
    path: &str,
    url: impl Fn(&str) -> String,
) -> Result<Response, Problem> {
    let minted = links::mint_in(&mut work.tx, &state.app.env, new, caller, &caller.actor()).await?;
    let MintedLink { row, text } = minted.ok_or_else(|| {
        let detail = "The tenant is not active, so that no link lets anybody in.";
        Problem::refused("tenant_not_active", detail.into())
    })?;
    let location = format!("{}{path}/{}", state.settings.public_url, row.id);
    let body = MadeBody { url: url(text.expose_str().unwrap_or_default()), link: body(row) };
    work.done(StatusCode::CREATED, Some(location), None, &body).await
}

/// Make a portal link
///
/// It signs a tenant's admin in, once, and lasts for minutes. An operator makes them for any tenant, a tenant for itself.
#[utoipa::path(post, path = "/api/v1/portal-links", tag = "Links", operation_id = "createPortalLink",
    request_body = NewPortalLink,
    responses(
        (status = 201, description = "The link; its URL is shown this once.", body = MadeBody, headers(("Location" = String, description = "Where it is."))),
        (status = 409, description = "`tenant_not_active`, `idempotency_in_flight`"),
        (status = 422, description = "`tenant_missing`, `tenant_unknown`, `domain_unknown`, `return_url_not_allowed`, `wrong_fields`, `idempotency_key_reused`"),
    ))]
pub(in crate::web) async fn create_portal_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    _: NoQuery,
    once: Once<NewPortalLink>,
) -> Result<Response, Problem> {
    let wanted = &once.wanted;
    let tenant = tenant_of(&state, &caller, wanted.tenant.as_deref(), "/tenant").await?;
    let domain = match &wanted.domain {
        None => None,
        Some(named) => {
            let (id, owner) = domain_of(&state, &caller, named).await?;
            if owner != tenant {
                return Err(Problem::wrong("/domain", "domain_unknown", "There is no domain with this id."));
            }
            Some(id)
        }
    };
    if let Some(url) = &wanted.return_url {
        ReturnUrl::check(&state.settings.portal.return_urls, url)
            .map_err(|e| Problem::wrong("/return_url", "return_url_not_allowed", format!("{e}.")))?;
    }
    let lifetime = state.settings.portal.link_lifetime;
    let (wanted, begun) = once.begin(&state, &caller).await?;
    let work = match begun {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(work) => work,
    };
    let new = NewLink { kind: LinkKind::Portal, tenant, domain, return_url: wanted.return_url, lifetime };
    made(&state, work, new, &caller, "/api/v1/portal-links", |text| state.portal_link(text)).await
}

/// Make a hand-off link
///
/// It shows the records of one domain to whoever owns its DNS, read-only and without an account.
#[utoipa::path(post, path = "/api/v1/hand-off-links", tag = "Links", operation_id = "createHandOffLink",
    request_body = NewHandOffLink,
    responses(
        (status = 201, description = "The link; its URL is shown this once.", body = MadeBody, headers(("Location" = String, description = "Where it is."))),
        (status = 409, description = "`tenant_not_active`, `idempotency_in_flight`"),
        (status = 422, description = "`domain_unknown`, `expiry_out_of_range`, `wrong_fields`, `idempotency_key_reused`"),
    ))]
pub(in crate::web) async fn create_hand_off_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    _: NoQuery,
    once: Once<NewHandOffLink>,
) -> Result<Response, Problem> {
    let wanted = &once.wanted;
    let (domain, tenant) = domain_of(&state, &caller, &wanted.domain).await?;
    let lifetime = match wanted.expires_in {
        None => state.settings.portal.hand_off_lifetime,
        Some(seconds @ SHORTEST..=LONGEST) => Duration::from_secs(seconds),
        Some(seconds) => {
            let seen = format!("{seconds} seconds; a link is good for {SHORTEST} to {LONGEST} (90 days).");
            return Err(Problem::wrong("/expires_in", "expiry_out_of_range", &seen));
        }
    };
    let new = NewLink { kind: LinkKind::HandOff, tenant, domain: Some(domain), return_url: None, lifetime };
    let work = match once.begin(&state, &caller).await?.1 {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(work) => work,
    };
    made(&state, work, new, &caller, "/api/v1/hand-off-links", |text| state.hand_off_link(text)).await
}

/// Which links are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct LinksQuery {
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

async fn list(
    state: WebState,
    caller: Caller,
    query: LinksQuery,
    kind: LinkKind,
    path: &str,
) -> Result<impl IntoResponse + use<>, Problem> {
    let limit = page_length(query.limit)?;
    let tenant = whose(&state, &caller, query.tenant.as_deref()).await?;
    let after: Option<LinkId> = cursor(query.cursor.as_deref())?;
    let found = links::list(&state.app.store, kind, tenant.as_ref(), after.as_ref(), limit).await?;
    let asked = [("tenant", query.tenant)];
    Ok(axum::Json(page((&state, path), (found, limit), |link| link.id.to_string(), &asked, body)))
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
#[utoipa::path(get, path = "/api/v1/portal-links", tag = "Links", operation_id = "listPortalLinks", params(LinksQuery),
    responses(
        (status = 200, description = "A page of links, oldest first; a tenant sees its own.", body = Page<LinkBody>),
        (status = 422, description = "`tenant_unknown`, `limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_portal_links(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<LinksQuery>,
) -> Result<impl IntoResponse, Problem> {
    list(state, caller, query, LinkKind::Portal, "/api/v1/portal-links").await
}

/// List hand-off links
#[utoipa::path(get, path = "/api/v1/hand-off-links", tag = "Links", operation_id = "listHandOffLinks", params(LinksQuery),
    responses(
        (status = 200, description = "A page of links, oldest first; a tenant sees its own.", body = Page<LinkBody>),
        (status = 422, description = "`tenant_unknown`, `limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_hand_off_links(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<LinksQuery>,
) -> Result<impl IntoResponse, Problem> {
    list(state, caller, query, LinkKind::HandOff, "/api/v1/hand-off-links").await
}

/// Take a portal link back
///
/// It signs nobody in any more, and whoever came by it is signed out.
#[utoipa::path(delete, path = "/api/v1/portal-links/{id}", tag = "Links", operation_id = "revokePortalLink",
    params(("id" = String, Path, description = "Its id.", example = "lnk_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The link, taken back.", body = LinkBody),
        (status = 404, description = "`link_not_found`"),
    ))]
pub(in crate::web) async fn revoke_portal_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    revoke(state, caller, &id, LinkKind::Portal).await
}

/// Take a hand-off link back
#[utoipa::path(delete, path = "/api/v1/hand-off-links/{id}", tag = "Links", operation_id = "revokeHandOffLink",
    params(("id" = String, Path, description = "Its id.", example = "lnk_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The link, taken back.", body = LinkBody),
        (status = 404, description = "`link_not_found`"),
    ))]
pub(in crate::web) async fn revoke_hand_off_link(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    revoke(state, caller, &id, LinkKind::HandOff).await
}
