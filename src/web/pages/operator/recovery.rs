//! `GET /operator/recovery`: what the end of a recovery would change, and the button that ends it.

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, Response};
use serde::Deserialize;

use super::{Operator, When};
use crate::app::restore::{self, Recovering};
use crate::web::auth::PageCaller;
use crate::web::form;
use crate::web::input::Form;
use crate::web::pages::see;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts::operator as o;

#[derive(Template)]
#[template(path = "operator/recovery.html")]
struct Page {
    here: &'static str,
    recovering: Option<Recovering>,
    since: Option<When>,
    lost: i64,
    csrf: String,
}

/// The form: how many names the page said would be lost.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct EndForm {
    csrf: String,
    names_lost: i64,
}

/// `GET /operator/recovery`
pub(in crate::web) async fn show(
    State(state): State<WebState>,
    _: Operator,
    reader: PageCaller,
) -> Result<Html<String>, Problem> {
    let recovering = restore::status(&state.app.store).await?;
    let now = state.app.env.now();
    html(&Page {
        here: "recovery",
        since: recovering.as_ref().map(|r| When::at(r.since, now)),
        lost: recovering.as_ref().map_or(0, |r| r.ahead.unknown + r.ahead.newer),
        recovering,
        csrf: reader.csrf,
    })
}

/// `POST /operator/recovery/end`
pub(in crate::web) async fn post_end(
    State(state): State<WebState>,
    _: Operator,
    reader: PageCaller,
    headers: HeaderMap,
    Form(sent): Form<EndForm>,
) -> Result<Response, Problem> {
    form::check(&state, &headers, &reader, &sent.csrf)?;
    restore::end(&state.app.store, &state.app.env, Some(sent.names_lost), &reader.actor).await?;
    state.app.bells.relay.notify_one();
    Ok(see(&state, "/operator/recovery"))
}
