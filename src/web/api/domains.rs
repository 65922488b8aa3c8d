//! Domains: claim, list, show, check, remove.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Page, cursor, is_full, next_page, page_length};
use crate::app::show::{self, DomainSummary, DomainView, words};
use crate::app::tokens::{Caller, Principal};
use crate::app::{check, claim, pair, remove, tenants};
use crate::model::claim::Claim;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::vocabulary::UnknownWord;
use crate::store::Tx;
use crate::store::views::DomainFilter;
use crate::web::auth::ApiCaller;
use crate::web::freshness::{IfMatch, Version};
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::once::{Begun, Once};
use crate::web::problem::Problem;
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
    match (named, &caller.principal) {
        (None, Principal::Tenant(own)) => Ok(own.clone()),
        (None, Principal::Operator) => {
            Err(Problem::wrong(field, "tenant_missing", "An operator names the tenant, by id or slug."))
        }
        (Some(named), principal) => {
            let found = tenants::find(&state.app.store, named).await?.filter(|tenant| principal.may_touch(&tenant.id));
            let unknown = || Problem::wrong(field, "tenant_unknown", "There is no tenant with this id or slug.");
            found.map(|tenant| tenant.id).ok_or_else(unknown)
        }
    }
}

/// Whose things a list holds: everybody's only for an operator who names nobody.
pub(super) async fn whose(state: &WebState, caller: &Caller, named: Option<&str>) -> Result<Option<TenantId>, Problem> {
    match (named, &caller.principal) {
        (None, Principal::Operator) => Ok(None),
        (named, _) => tenant_of(state, caller, named, "tenant").await.map(Some),
    }
}

/// The domain that a list is narrowed to, if the caller may know of it.
pub(super) async fn narrowed_to(
    state: &WebState,
    caller: &Caller,
    named: Option<&str>,
) -> Result<Option<DomainId>, Problem> {
    let Some(named) = named else { return Ok(None) };
    let known = own_domain(state, caller, named).await;
    known.map(Some).map_err(|e| e.of_query("domain", "domain_unknown", "There is no domain with this id."))
}

/// A domain, with where people see it.
#[derive(Serialize, ToSchema)]
#[schema(as = Domain)]
pub(in crate::web) struct DomainBody {
    #[serde(flatten)]
    view: DomainView,
    /// The page that shows it to people.
    #[schema(format = "uri")]
    page: String,
}

async fn body_in(state: &WebState, tx: &mut Tx, id: &DomainId) -> Result<DomainBody, Problem> {
    let view = show::domain_in(tx, &state.settings.apex, id, state.app.env.now()).await?;
    Ok(DomainBody { page: state.domain_page(id), view: view.ok_or_else(Problem::no_domain)? })
}

pub(super) async fn body(state: &WebState, id: &DomainId) -> Result<(Version, axum::Json<DomainBody>), Problem> {
    let mut tx = state.app.store.read().await?;
    let body = body_in(state, &mut tx, id).await?;
    Ok((Version(body.view.version), axum::Json(body)))
}

/// A name to claim.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewClaim, example = json!({ "hostname": "support.acme.com", "tenant": "acme" }))]
pub(in crate::web) struct ClaimBody {
    /// For which tenant, by id or slug; a tenant's token may leave it out.
    #[schema(nullable = true)]
    tenant: Option<String>,
    /// The name, as typed: blanks around it, letter case, a dot at the end and Unicode are read leniently.
    hostname: String,
    /// Claims the other half, too, and links both: `www.` before a registered domain, or the registered domain of its `www`. Each
    /// has its own records and certificate.
    #[serde(default)]
    with_partner: bool,
    /// Which of the two the visitors of the other are sent on to, once it is served. Needs `with_partner`.
    #[schema(nullable = true, example = "www.acme.com")]
    redirect_to: Option<String>,
}

/// Claim a hostname
///
/// Claiming twice is harmless: the tenant gets the claim it has, and the value to publish stays the same.
#[utoipa::path(post, path = "/api/v1/domains", tag = "Domains", operation_id = "claimDomain",
    request_body = ClaimBody,
    responses(
        (status = 200, description = "The claim that the tenant has already.", body = DomainBody, headers(("Location" = String, description = "Where it is."))),
        (status = 201, description = "A new claim.", body = DomainBody, headers(("Location" = String, description = "Where it is."))),
        (status = 409, description = "`tenant_not_active`, `redirect_loop`, `idempotency_in_flight`"),
        (status = 422, description = "`hostname_…`, `no_other_half`, `not_the_other_half`, `redirect_without_partner`, `tenant_missing`, `tenant_unknown`, `wrong_fields`, `idempotency_key_reused`"),
    ))]
pub(in crate::web) async fn claim_domain(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    _: NoQuery,
    once: Once<ClaimBody>,
) -> Result<Response, Problem> {
    let tenant = tenant_of(&state, &caller, once.wanted.tenant.as_deref(), "/tenant").await?;
    let hostname = Hostname::parse(&once.wanted.hostname, &state.settings.rules).map_err(Problem::hostname)?;
    let with_partner = once.wanted.with_partner;
    let redirect_to = redirect_target(&state, once.wanted.redirect_to.as_deref())?;
    if redirect_to.is_some() && !with_partner {
        let said = "Visitors are sent on to the other half only; ask for it with with_partner.";
        return Err(Problem::wrong("/redirect_to", "redirect_without_partner", said));
    }
    if let Some(partner) = hostname.partner().filter(|_| with_partner) {
        Hostname::parse(partner.as_str(), &state.settings.rules).map_err(Problem::hostname)?;
    }
    let (_, begun) = once.begin(&state, &caller).await?;
    let mut work = match begun {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(work) => work,
    };
    let claimed = match with_partner {
        true => {
            let to = redirect_to.as_ref();
            pair::claim_with_partner_in(&state.app, &mut work.tx, &tenant, &hostname, to, &caller.actor()).await?
        }
        false => claim::claim_in(&state.app, &mut work.tx, &tenant, &hostname, &caller.actor()).await?,
    };
    let body = body_in(&state, &mut work.tx, &claimed.id).await?;
    let status = if claimed.new { StatusCode::CREATED } else { StatusCode::OK };
    work.done(status, Some(state.api_domain(&claimed.id)), Some(body.view.version), &body).await
}

/// A name that visitors are to be sent on to.
pub(super) fn redirect_target(state: &WebState, named: Option<&str>) -> Result<Option<Hostname>, Problem> {
    let read = |named: &str| Hostname::parse(named, &state.settings.rules);
    named.map(read).transpose().map_err(|e| Problem::hostname(e).at("/redirect_to"))
}

/// What narrows the list of domains.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct DomainsQuery {
    /// Of one tenant only, by id or slug.
    #[param(example = "acme")]
    tenant: Option<String>,
    /// With this hostname only.
    #[param(example = "support.acme.com")]
    hostname: Option<String>,
    /// In this state only.
    #[param(schema_with = words::claim)]
    claim: Option<String>,
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List domains
///
/// Oldest first, each in short; a tenant's token lists its own.
#[utoipa::path(get, path = "/api/v1/domains", tag = "Domains", operation_id = "listDomains", params(DomainsQuery),
    responses(
        (status = 200, description = "A page of domains.", body = Page<DomainSummary>),
        (status = 422, description = "`hostname_…`, `tenant_unknown`, `claim_invalid`, `limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_domains(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<DomainsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let tenant = whose(&state, &caller, query.tenant.as_deref()).await?;
    let read = |h: &str| Hostname::parse(h, &state.settings.rules);
    let hostname = query.hostname.as_deref().map(read).transpose().map_err(Problem::hostname)?;
    let claim: Option<Claim> = query
        .claim
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|e: UnknownWord| Problem::wrong("claim", "claim_invalid", e.to_string()))?;
    let after = cursor(query.cursor.as_deref())?;
    let items = show::list(&state.app.store, &DomainFilter { tenant, hostname, claim, after }, limit).await?;
    let question =
        [("limit", Some(limit.to_string())), ("tenant", query.tenant), ("hostname", query.hostname), ("claim", query.claim)];
    let last = items.last().map(|last| last.id.to_string());
    let next = next_page(&state, "/api/v1/domains", is_full(&items, limit), last, &question);
    Ok(axum::Json(Page { items, next }))
}

/// Show a domain
///
/// Everything there is to know: the sentence, the records to publish, each check, the order, the certificate, the history.
#[utoipa::path(get, path = "/api/v1/domains/{id}", tag = "Domains", operation_id = "getDomain",
    params(("id" = String, Path, description = "Its id.", example = "dom_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The domain.", body = DomainBody),
        (status = 404, description = "`domain_not_found`"),
    ))]
pub(in crate::web) async fn get_domain(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    body(&state, &id).await
}

/// Check a domain now
///
/// Asks for a look at DNS at once; the look follows in a moment. At most once in five seconds for a domain.
#[utoipa::path(post, path = "/api/v1/domains/{id}/check", tag = "Domains", operation_id = "checkDomain",
    params(("id" = String, Path, description = "Its id.", example = "dom_019b0000000070008000000000000001")),
    responses(
        (status = 202, description = "The domain as it stands; the look is under way.", body = DomainBody),
        (status = 404, description = "`domain_not_found`"),
        (status = 409, description = "`claim_closed`"),
        (status = 412, description = "`changed_meanwhile`"),
        (status = 429, description = "`too_soon`, `too_many_requests`"),
    ))]
pub(in crate::web) async fn check_domain(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    IfMatch(expect): IfMatch,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    check::check_now_if(&state.app, &id, &expect, &caller.actor()).await?;
    Ok((StatusCode::ACCEPTED, body(&state, &id).await?))
}

/// Let a domain go
///
/// A claim that was never proven is withdrawn; any other is releasing: it is not served from then on, and the name is kept
/// back for a while.
#[utoipa::path(delete, path = "/api/v1/domains/{id}", tag = "Domains", operation_id = "removeDomain",
    params(("id" = String, Path, description = "Its id.", example = "dom_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "What became of it.", body = DomainBody),
        (status = 404, description = "`domain_not_found`"),
        (status = 409, description = "`already_removed`"),
        (status = 412, description = "`changed_meanwhile`"),
    ))]
pub(in crate::web) async fn remove_domain(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    IfMatch(expect): IfMatch,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let id = own_domain(&state, &caller, &id).await?;
    remove::remove_if(&state.app, &id, &expect, &caller.actor()).await?;
    body(&state, &id).await
}
