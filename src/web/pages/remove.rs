//! Removing a domain: a page of its own that says what follows, and the form on it; and undoing that.

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, Response};

use super::domain::face;
use super::face::Face;
use super::see;
use crate::app::expect::Expect;
use crate::app::{remove, undo};
use crate::model::claim::Claim;
use crate::web::api::domains::own_domain;
use crate::web::auth::PageCaller;
use crate::web::form::{self, Button};
use crate::web::input::{Form, Id};
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;

#[derive(Template)]
#[template(path = "remove.html")]
pub(super) struct RemovePage {
    pub(super) face: Face,
    pub(super) csrf: String,
}

/// `GET /domains/{id}/remove`
pub(in crate::web) async fn show_remove(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
) -> Result<Html<String>, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    let face = face(&state, &id).await?;
    if !face.can_remove() {
        return Err(Problem::already_removed(face.view.claim == Claim::Releasing));
    }
    html(&RemovePage { face, csrf: reader.csrf })
}

/// `POST /domains/{id}/remove`
pub(in crate::web) async fn post_remove(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(body): Form<Button>,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    form::check(&state, &headers, &reader, &body.csrf)?;
    remove::remove(&state.app, &id, &reader.actor).await?;
    Ok(see(&state, &format!("/domains/{id}")))
}

/// `POST /domains/{id}/undo-removal`
pub(in crate::web) async fn post_undo(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(body): Form<Button>,
) -> Result<Response, Problem> {
    let id = own_domain(&state, &reader.caller, &id).await?;
    form::check(&state, &headers, &reader, &body.csrf)?;
    undo::undo(&state.app, &id, &Expect::ANY, &reader.actor).await?;
    Ok(see(&state, &format!("/domains/{id}?returned=1")))
}
