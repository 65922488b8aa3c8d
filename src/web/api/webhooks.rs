//! Webhooks: added, listed, tried, replaced in their secret, switched on again, removed. An operator has to do with all, a
//! tenant with its own.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::domains::{tenant_of, whose};
use super::tenants::{own_tenant, with_a_future};
use super::{Page, cursor, page, page_length};
use crate::app::show::{WebhookView, words};
use crate::app::tokens::{Caller, Principal};
use crate::app::webhooks::{self, AddWebhookError, NewWebhook};
use crate::model::id::WebhookId;
use crate::model::secret::Secret;
use crate::store;
use crate::store::webhooks::WebhookRow;
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, NoQuery};
use crate::web::once::{Begun, Once};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// A place to add.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewWebhook)]
pub(in crate::web) struct NewWebhookBody {
    /// For which tenant, by id or slug; a tenant's token may leave it out.
    #[schema(nullable = true)]
    tenant: Option<String>,
    /// Instead of a tenant: for the platform, told of every tenant and of the platform itself. Operators only.
    #[serde(default)]
    platform: bool,
    /// Where requests go: https, a host name, a port of the web.
    #[schema(max_length = 2000, example = "https://hooks.acme.com/nameplate")]
    url: String,
    /// Of which kinds of events.
    #[schema(schema_with = words::event_kinds)]
    kinds: Vec<String>,
}

/// A place that was just made, or whose secret was just replaced. The secret is shown this once.
#[derive(Serialize, ToSchema)]
#[schema(as = MadeWebhook)]
pub(in crate::web) struct MadeBody {
    #[serde(flatten)]
    view: WebhookView,
    /// What requests are signed with (standardwebhooks.com). It is shown this once.
    #[schema(example = "whsec_…")]
    secret: String,
}

impl MadeBody {
    fn new(view: WebhookView, secret: &Secret) -> Self {
        MadeBody { view, secret: secret.expose_str().unwrap_or_default().to_owned() }
    }
}

/// The place of this id, if the caller may know of it.
pub(super) async fn own_webhook(state: &WebState, caller: &Caller, id: &str) -> Result<WebhookRow, Problem> {
    let none = || Problem::no_such("webhook_not_found", "There is no webhook with this id.");
    let id: WebhookId = id.parse().map_err(|_| none())?;
    let found = store::webhooks::lookup(&mut state.app.store.read().await?, &id).await?;
    let own = found.filter(|row| match (&caller.principal, &row.tenant_id) {
        (Principal::Operator, _) => true,
        (Principal::Tenant(own), Some(tenant)) => own == tenant,
        (Principal::Tenant(_), None) => false,
    });
    own.ok_or_else(none)
}

/// The document of a place: its whole URL is for its owner, which a tenant is of its own and an operator of the platform's.
fn view(state: &WebState, caller: &Caller, row: WebhookRow) -> WebhookView {
    let owns = row.tenant_id.is_none() || caller.principal != Principal::Operator;
    // One that cannot be opened is shown without it: its fault stands beside.
    let url = if owns { webhooks::url(&state.app, &row).ok() } else { None };
    WebhookView::new(row, url.as_ref(), state.app.env.now())
}

fn problem(e: AddWebhookError) -> Problem {
    match e {
        AddWebhookError::Url(e) => Problem::wrong("/url", "url_invalid", e.to_string()),
        AddWebhookError::Kinds(e) => Problem::wrong("/kinds", "event_kinds_invalid", e.to_string()),
        e @ AddWebhookError::TooMany => Problem::refused("too_many_webhooks", e.to_string()),
        AddWebhookError::App(e) => e.into(),
    }
}

/// Add a webhook
///
/// Events from now on are sent to it, each by a POST that is signed as standardwebhooks.com describes, in order for each domain,
/// and tried again for days until it is answered with 2xx. `webhook-id` is the event's id, the same at every try.
#[utoipa::path(post, path = "/api/v1/webhooks", tag = "Webhooks", operation_id = "createWebhook",
    request_body = NewWebhookBody,
    responses(
        (status = 201, description = "The webhook; its secret is shown this once.", body = MadeBody, headers(("Location" = String, description = "Where it is."))),
        (status = 403, description = "`operator_needed`"),
        (status = 409, description = "`too_many_webhooks`, `tenant_not_active`, `idempotency_in_flight`"),
        (status = 422, description = "`url_invalid`, `event_kinds_invalid`, `tenant_missing`, `tenant_unknown`, `scope_unclear`, `wrong_fields`, `idempotency_key_reused`"),
    ))]
pub(in crate::web) async fn create_webhook(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    _: NoQuery,
    once: Once<NewWebhookBody>,
) -> Result<Response, Problem> {
    let wanted = &once.wanted;
    if wanted.platform && caller.principal != Principal::Operator {
        return Err(Problem::operators_only());
    }
    let tenant = match (wanted.platform, wanted.tenant.as_deref()) {
        (true, None) => None,
        (true, Some(_)) => {
            let detail = "A webhook is for the platform or for one tenant; leave one of the two out.";
            return Err(Problem::wrong("/platform", "scope_unclear", detail));
        }
        (false, named) => {
            let id = tenant_of(&state, &caller, named, "/tenant").await?;
            with_a_future(&own_tenant(&state, &caller, id.as_str()).await?)?;
            Some(id)
        }
    };
    let (new, begun) = once.begin(&state, &caller).await?;
    let mut work = match begun {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(work) => work,
    };
    let new = NewWebhook { tenant, url: &new.url, kinds: &new.kinds };
    let added = webhooks::add_in(&mut work.tx, &state.app, &state.settings.hooks, new, &caller.actor()).await;
    let (row, secret) = added.map_err(problem)?;
    let location = format!("{}/api/v1/webhooks/{}", state.settings.public_url, row.id);
    let body = MadeBody::new(view(&state, &caller, row), &secret);
    work.done(StatusCode::CREATED, Some(location), None, &body).await
}

/// Which webhooks are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct WebhooksQuery {
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

/// List webhooks
#[utoipa::path(get, path = "/api/v1/webhooks", tag = "Webhooks", operation_id = "listWebhooks", params(WebhooksQuery),
    responses(
        (status = 200, description = "A page of webhooks, oldest first.", body = Page<WebhookView>),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`, `tenant_unknown`"),
    ))]
pub(in crate::web) async fn list_webhooks(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Asked(query): Asked<WebhooksQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page_length(query.limit)?;
    let tenant = whose(&state, &caller, query.tenant.as_deref()).await?;
    let after: Option<WebhookId> = cursor(query.cursor.as_deref())?;
    let after = after.as_ref().map_or("", WebhookId::as_str);
    let rows = store::webhooks::list(&state.app.store, tenant.as_ref(), after, limit).await?;
    let (asked, shown) = ([("tenant", query.tenant)], |row| view(&state, &caller, row));
    Ok(axum::Json(page((&state, "/api/v1/webhooks"), (rows, limit), |row| row.id.to_string(), &asked, shown)))
}

/// Read a webhook
#[utoipa::path(get, path = "/api/v1/webhooks/{id}", tag = "Webhooks", operation_id = "getWebhook",
    params(("id" = String, Path, description = "The webhook's id.", example = "whk_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The webhook.", body = WebhookView),
        (status = 404, description = "`webhook_not_found`"),
    ))]
pub(in crate::web) async fn get_webhook(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let row = own_webhook(&state, &caller, &id).await?;
    Ok(axum::Json(view(&state, &caller, row)))
}

/// Remove a webhook
///
/// What waits to be sent to it is forgotten.
#[utoipa::path(delete, path = "/api/v1/webhooks/{id}", tag = "Webhooks", operation_id = "removeWebhook",
    params(("id" = String, Path, description = "The webhook's id.", example = "whk_019b0000000070008000000000000001")),
    responses(
        (status = 204, description = "Nothing is sent to it any more."),
        (status = 404, description = "`webhook_not_found`"),
    ))]
pub(in crate::web) async fn remove_webhook(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let row = own_webhook(&state, &caller, &id).await?;
    webhooks::remove(&state.app, &row, &caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Replace a webhook's secret
///
/// For 24 hours requests carry two signatures, by the new secret and by the one before, so that nothing is missed meanwhile.
#[utoipa::path(post, path = "/api/v1/webhooks/{id}/rotate-secret", tag = "Webhooks", operation_id = "rotateWebhookSecret",
    params(("id" = String, Path, description = "The webhook's id.", example = "whk_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The webhook with its new secret, which is shown this once.", body = MadeBody),
        (status = 404, description = "`webhook_not_found`"),
    ))]
pub(in crate::web) async fn rotate_webhook_secret(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let mut row = own_webhook(&state, &caller, &id).await?;
    let mut tx = state.app.store.begin().await?;
    let (secret, until) = webhooks::rotate_in(&mut tx, &state.app, &row, &caller.actor()).await?;
    tx.commit().await?;
    row.previous_until = Some(until);
    Ok(axum::Json(MadeBody::new(view(&state, &caller, row), &secret)))
}

/// Switch a webhook on again
///
/// What waited is sent at once.
#[utoipa::path(post, path = "/api/v1/webhooks/{id}/enable", tag = "Webhooks", operation_id = "enableWebhook",
    params(("id" = String, Path, description = "The webhook's id.", example = "whk_019b0000000070008000000000000001")),
    responses(
        (status = 200, description = "The webhook, switched on.", body = WebhookView),
        (status = 404, description = "`webhook_not_found`"),
    ))]
pub(in crate::web) async fn enable_webhook(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
) -> Result<impl IntoResponse, Problem> {
    let row = own_webhook(&state, &caller, &id).await?;
    webhooks::enable(&state.app, &row, &caller.actor()).await?;
    let row = own_webhook(&state, &caller, &id).await?;
    Ok(axum::Json(view(&state, &caller, row)))
}
