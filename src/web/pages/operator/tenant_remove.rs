//! `GET /operator/tenants/{id}/remove`: what follows when a tenant is taken off board, and the form that does it.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use super::{Operator, grouped};
use crate::app::fleet;
use crate::app::offboard::{self, OffboardError};
use crate::model::id::TenantId;
use crate::model::tenant::TenantStatus;
use crate::web::auth::PageCaller;
use crate::web::form;
use crate::web::input::{Form, Id};
use crate::web::pages::see;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts::{self as t, operator as o};

#[derive(Template)]
#[template(path = "operator/tenant_remove.html")]
struct Page {
    here: &'static str,
    id: String,
    slug: String,
    canonical: String,
    open: String,
    serving: String,
    csrf: String,
    trouble: Option<&'static str>,
}

/// The form: who types the slug means this tenant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Leave {
    csrf: String,
    slug: String,
}

async fn page(state: &WebState, reader: &PageCaller, id: &TenantId, trouble: Option<&'static str>) -> Result<Page, Problem> {
    let (counted, _) = fleet::tenant(&state.app, id, "", 1).await?.ok_or_else(Problem::no_tenant)?;
    if counted.tenant.status == TenantStatus::Deleted {
        return Err(Problem::refused("tenant_not_active", "This tenant has left already.".to_owned()));
    }
    Ok(Page {
        here: "tenants",
        id: id.to_string(),
        canonical: format!("{}.{}", counted.tenant.slug, state.app.settings.canonical_suffix),
        slug: counted.tenant.slug.to_string(),
        open: grouped(counted.open()),
        serving: grouped(counted.serving()),
        csrf: reader.csrf.clone(),
        trouble,
    })
}

/// `GET /operator/tenants/{id}/remove`
pub(in crate::web) async fn show(
    State(state): State<WebState>,
    _: Operator,
    reader: PageCaller,
    Id(id): Id,
) -> Result<Html<String>, Problem> {
    let id: TenantId = id.parse().map_err(|_| Problem::no_tenant())?;
    html(&page(&state, &reader, &id, None).await?)
}

/// `POST /operator/tenants/{id}/remove`
pub(in crate::web) async fn post(
    State(state): State<WebState>,
    _: Operator,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(sent): Form<Leave>,
) -> Result<Response, Problem> {
    let id: TenantId = id.parse().map_err(|_| Problem::no_tenant())?;
    form::check(&state, &headers, &reader, &sent.csrf)?;
    let asked = page(&state, &reader, &id, Some(o::leave_wrong_slug())).await?;
    if sent.slug.trim() != asked.slug {
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, html(&asked)?).into_response());
    }
    let app = &state.app;
    offboard::begin(&app.store, &app.env, &id, &reader.actor).await.map_err(|e| match e {
        OffboardError::NotFound(_) => Problem::no_tenant(),
        OffboardError::Changed(_) => Problem::changed(e.to_string()),
        OffboardError::Store(e) => e.into(),
    })?;
    app.bells.relay.notify_one();
    app.bells.offboarding.notify_one();
    Ok(see(&state, &format!("/operator/tenants/{id}")))
}
