//! Pages for people: rendered here, whole without JavaScript, styled by one file of our own.
//!
//! A page is one askama struct over the same document that the API gives out; its words are in `web::texts`, chosen in [`face`],
//! [`lights`] and [`panel`], never in a handler.
//! What stands around a page (brand, navigation, who is signed in) is `web::frame`'s. Whoever reads a signed-in page is a
//! `PageCaller`; forms carry its session's token and are taken from our own pages only; what is not the reader's answers as what
//! is not there. Text from outside passes `web::visible` before it is shown. One script of our own adds what only a script can:
//! copying, and loading `main` again when the stream says that something moved. May import what `web` may. To fake it: render
//! the struct with a sample, as the tests do with hostile ones. How to get it wrong: mark a value as safe, build a link from the
//! request, or write style or script into a page, which the content policy forbids.

pub(super) mod add;
pub(super) mod assets;
pub(super) mod back;
pub(super) mod bulk;
mod bulk_chart;
pub(super) mod bulk_claims;
pub(super) mod bulk_live;
pub(super) mod bulk_show;
pub(super) mod domain;
pub(super) mod enter;
mod face;
pub(super) mod hand_off;
pub(super) mod history;
mod lights;
pub(super) mod list;
pub(super) mod live;
pub(super) mod operator;
mod panel;
pub(super) mod pasted;
pub(super) mod remove;
#[cfg(test)]
mod samples;
pub(super) mod share;
pub(super) mod sign_in;
#[cfg(test)]
mod tests;
mod when;
pub(super) mod zone_file;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::problem::{Problem, html};
use super::state::WebState;
use super::texts as t;
use super::{auth, cookie};
use crate::app::tokens::Principal;

/// A problem, said to people.
#[derive(Template)]
#[template(path = "problem.html")]
pub(super) struct ProblemPage<'a> {
    pub(super) status: u16,
    pub(super) title: &'a str,
    pub(super) detail: &'a str,
    pub(super) home: &'a str,
    /// Where operators sign in, on the page that says that nobody is.
    pub(super) sign_in: Option<String>,
}

/// Where to go from the origin itself.
#[derive(Template)]
#[template(path = "start.html")]
struct StartPage;

/// Sends the browser on to a page of ours, with another GET.
pub(super) fn see(state: &WebState, path: &str) -> Response {
    let location = format!("{}{path}", state.settings.public_url);
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

/// Where somebody begins: operators with the fleet, tenants with their domains.
pub(super) fn home(principal: &Principal) -> &'static str {
    match principal {
        Principal::Operator => "/operator",
        Principal::Tenant(_) => "/domains",
    }
}

/// `GET /`: on to where the reader begins, or how to get in.
pub(super) async fn start(State(state): State<WebState>, headers: HeaderMap) -> Result<Response, Problem> {
    if let Some(secret) = cookie::read(&state, &headers)
        && let Some(reader) = auth::signed_in(&state, &secret).await?
    {
        return Ok(see(&state, home(&reader.caller.principal)));
    }
    Ok(html(&StartPage)?.into_response())
}
