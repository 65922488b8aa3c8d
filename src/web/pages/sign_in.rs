//! Operators sign in with their token; everybody signs out here.

use askama::Template;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use super::{home, see};
use crate::app::sessions;
use crate::app::tokens::{Principal, authenticate};
use crate::model::secret::Secret;
use crate::web::access::ClientAddress;
use crate::web::auth::PageCaller;
use crate::web::cookie;
use crate::web::form::{self, Button};
use crate::web::input::{Asked, Form};
use crate::web::links::local_path;
use crate::web::pace::Gate;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;

#[derive(Template)]
#[template(path = "sign_in.html")]
pub(super) struct SignInPage<'a> {
    pub(super) next: &'a str,
    pub(super) trouble: Option<&'static str>,
}

#[derive(Template)]
#[template(path = "signed_out.html")]
pub(super) struct SignedOutPage {
    pub(super) operator: bool,
    pub(super) return_url: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::web) struct SignInQuery {
    next: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct SignInForm {
    token: String,
    #[serde(default)]
    next: String,
}

/// `GET /operator/sign-in`
pub(in crate::web) async fn show_sign_in(Asked(query): Asked<SignInQuery>) -> Result<Html<String>, Problem> {
    let next = query.next.as_deref().and_then(local_path).unwrap_or_default();
    html(&SignInPage { next, trouble: None })
}

/// `POST /operator/sign-in`: the token is looked up by its digest, so that time tells nothing of it. A wrong one counts
/// as a request of the API without a valid token does.
pub(in crate::web) async fn post_sign_in(
    State(state): State<WebState>,
    Extension(gate): Extension<Gate>,
    Extension(from): Extension<ClientAddress>,
    headers: HeaderMap,
    Form(body): Form<SignInForm>,
) -> Result<Response, Problem> {
    form::from_our_page(&state, &headers)?;
    let now = state.app.env.now();
    let next = local_path(&body.next).unwrap_or_default();
    let shown = Secret::from(body.token.trim().to_owned());
    let caller = authenticate(&state.app.store, now, &shown).await?;
    let Some(caller) = caller.filter(|caller| caller.principal == Principal::Operator) else {
        gate.by_nobody(from.0, now)?;
        let trouble = Some(t::not_a_token());
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, html(&SignInPage { next, trouble })?).into_response());
    };
    let before = cookie::read(&state, &headers);
    let settings = state.settings.sessions();
    let began = sessions::begin(&state.app.store, &state.app.env, &caller, &settings, before.as_ref()).await?;
    tracing::info!(session.id = %began.id, token.id = %caller.token, "an operator signed in");
    let mut response = see(&state, if next.is_empty() { home(&caller.principal) } else { next });
    if let Some(cookie) = cookie::set(&state, &began) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// `POST /sign-out`
pub(in crate::web) async fn post_sign_out(
    State(state): State<WebState>,
    reader: PageCaller,
    headers: HeaderMap,
    Form(body): Form<Button>,
) -> Result<Response, Problem> {
    form::check(&state, &headers, &reader, &body.csrf)?;
    sessions::end(&state.app.store, &state.app.env, &reader.secret).await?;
    let page = SignedOutPage { operator: reader.caller.principal == Principal::Operator, return_url: reader.return_url };
    let mut response = html(&page)?.into_response();
    if let Some(cookie) = cookie::clear(&state) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    // Whatever the browser keeps of this origin goes, where it knows how.
    response.headers_mut().insert("clear-site-data", HeaderValue::from_static("\"cache\""));
    Ok(response)
}
