//! The addresses to which a tenant's mail goes.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::openapi::schema::{Array, ArrayBuilder, SchemaType, Type};
use utoipa::{IntoParams, ToSchema};

use super::tenants::{own_tenant, with_a_future};
use super::{Page, cursor, page, page_length};
use crate::app::contacts::{self, AddContactError};
use crate::app::show::{ContactView, words};
use crate::model::email::ContactKind;
use crate::model::id::ContactId;
use crate::store;
use crate::web::auth::ApiCaller;
use crate::web::input::{Asked, Id, NoQuery, TwoIds};
use crate::web::once::{Begun, Once};
use crate::web::problem::Problem;
use crate::web::state::WebState;

/// A contact to add.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewContact, example = json!({ "email": "dns@acme.com", "kinds": ["domains", "certificates"] }))]
pub(in crate::web) struct NewContactBody {
    /// The address.
    #[schema(min_length = 3, max_length = 254)]
    email: String,
    /// What is sent to it; everything where nothing is said.
    #[schema(schema_with = kinds)]
    kinds: Option<Vec<ContactKind>>,
}

fn kinds() -> Array {
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .items(words::contact_kind())
        .min_items(Some(1))
        .build()
}

/// Add a contact
///
/// An address to which the tenant's mail goes. A tenant may have 20.
#[utoipa::path(post, path = "/api/v1/tenants/{id}/contacts", tag = "Contacts", operation_id = "addContact",
    params(("id" = String, Path, description = "The tenant's id or slug.", example = "acme")),
    request_body = NewContactBody,
    responses(
        (status = 201, description = "The contact.", body = ContactView),
        (status = 404, description = "`tenant_not_found`"),
        (status = 409, description = "`contact_refused`, `tenant_not_active`, `idempotency_in_flight`"),
        (status = 422, description = "`email_invalid`, `kinds_invalid`, `wrong_fields`, `idempotency_key_reused`"),
    ))]
pub(in crate::web) async fn add_contact(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    _: NoQuery,
    once: Once<NewContactBody>,
) -> Result<Response, Problem> {
    let tenant = own_tenant(&state, &caller, &id).await?;
    with_a_future(&tenant)?;
    let (new, begun) = once.begin(&state, &caller).await?;
    let mut work = match begun {
        Begun::Before(answer) => return Ok(answer),
        Begun::Now(work) => work,
    };
    let kinds = new.kinds.unwrap_or_else(|| ContactKind::ALL.to_vec());
    if kinds.is_empty() {
        let detail = "Name at least one kind of mail, `domains` or `certificates`, or leave kinds out for both.";
        return Err(Problem::wrong("/kinds", "kinds_invalid", detail));
    }
    let (env, actor) = (&state.app.env, caller.actor());
    let added = contacts::add_in(&mut work.tx, env, &tenant.id, &new.email, &kinds, &actor).await;
    let row = added.map_err(|e| match e {
        AddContactError::Email(e) => Problem::wrong("/email", "email_invalid", e.to_string()),
        AddContactError::Refused => Problem::refused("contact_refused", e.to_string()),
        AddContactError::Store(e) => e.into(),
    })?;
    work.done(StatusCode::CREATED, None, None, &ContactView::from(row)).await
}

/// What narrows the list of contacts.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct ContactsQuery {
    /// From the `next` of the page before.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
    /// How many items a page holds.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// List contacts
#[utoipa::path(get, path = "/api/v1/tenants/{id}/contacts", tag = "Contacts", operation_id = "listContacts",
    params(("id" = String, Path, description = "The tenant's id or slug.", example = "acme"), ContactsQuery),
    responses(
        (status = 200, description = "A page of contacts, oldest first.", body = Page<ContactView>),
        (status = 404, description = "`tenant_not_found`"),
        (status = 422, description = "`limit_out_of_range`, `cursor_invalid`"),
    ))]
pub(in crate::web) async fn list_contacts(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    Id(id): Id,
    Asked(query): Asked<ContactsQuery>,
) -> Result<impl IntoResponse, Problem> {
    let tenant = own_tenant(&state, &caller, &id).await?;
    let limit = page_length(query.limit)?;
    let after: Option<ContactId> = cursor(query.cursor.as_deref())?;
    let after = after.as_ref().map_or("", ContactId::as_str);
    let rows = store::contacts::list(&state.app.store, &tenant.id, after, limit).await?;
    let path = format!("/api/v1/tenants/{}/contacts", tenant.id);
    Ok(axum::Json(page((&state, &path), (rows, limit), |row| row.id.to_string(), &[], ContactView::from)))
}

/// Remove a contact
#[utoipa::path(delete, path = "/api/v1/tenants/{id}/contacts/{contact}", tag = "Contacts", operation_id = "removeContact",
    params(("id" = String, Path, description = "The tenant's id or slug.", example = "acme"),
        ("contact" = String, Path, description = "The contact's id.", example = "con_019b0000000070008000000000000001")),
    responses(
        (status = 204, description = "Nothing is sent to it any more."),
        (status = 404, description = "`tenant_not_found`, `contact_not_found`"),
    ))]
pub(in crate::web) async fn remove_contact(
    State(state): State<WebState>,
    ApiCaller(caller): ApiCaller,
    TwoIds(id, contact): TwoIds,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let tenant = own_tenant(&state, &caller, &id).await?;
    let none = || Problem::no_such("contact_not_found", "The tenant has no contact with this id.");
    let contact: ContactId = contact.parse().map_err(|_| none())?;
    let app = &state.app;
    let removed = contacts::remove(&app.store, &app.env, &tenant.id, &contact, &caller.actor()).await?;
    if removed { Ok(StatusCode::NO_CONTENT) } else { Err(none()) }
}
