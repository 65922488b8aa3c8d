//! The page of one domain, and its two forms.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::form::{self, FormBody};
use super::page::DomainPage;
use crate::app::{check, remove, show};
use crate::model::id::DomainId;
use crate::web::api::domains::own_domain;
use crate::web::auth::PageCaller;
use crate::web::input::{Asked, Form, Id};
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;

#[derive(Deserialize)]
pub(in crate::web) struct PageQuery {
    /// Set by the redirect after "check now": the page says so and loads itself once more.
    asked: Option<String>,
}

/// `GET /domains/{id}`
pub(in crate::web) async fn show_domain(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    Asked(query): Asked<PageQuery>,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    let now = state.app.env.now();
    let view = show::domain(&state.app.store, &state.settings.apex, &id, now).await?.ok_or_else(Problem::no_domain)?;
    let asked = query.asked.is_some();
    let page = DomainPage { view: &view, now, csrf: form::csrf(&reader.token, &id), asked };
    let mut response = html(&page)?.into_response();
    if asked && let Ok(refresh) = HeaderValue::from_str(&format!("3;url={}", state.domain_page(&id))) {
        response.headers_mut().insert(header::REFRESH, refresh);
    }
    Ok(response)
}

/// `POST /domains/{id}/check`
pub(in crate::web) async fn post_check(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(body): Form<FormBody>,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    form::check(&state, &headers, &reader.token, &id, &body)?;
    check::check_now(&state.app, &id, &reader.caller.actor()).await?;
    Ok(see(&format!("{}?asked=1", state.domain_page(&id))))
}

/// `POST /domains/{id}/remove`
pub(in crate::web) async fn post_remove(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(body): Form<FormBody>,
) -> Result<Response, Problem> {
    let id: DomainId = own_domain(&state, &reader.caller, &id).await?;
    form::check(&state, &headers, &reader.token, &id, &body)?;
    remove::remove(&state.app, &id, &reader.caller.actor()).await?;
    Ok(see(&state.domain_page(&id)))
}

fn see(location: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, location.to_owned())]).into_response()
}
