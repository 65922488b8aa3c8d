//! Pages for people: rendered here, whole without JavaScript, styled by one file of our own.
//!
//! A page is one askama struct over the same document that the API gives out; words are chosen beside it, never in a
//! handler. Forms carry a token made from the reader's own and are taken from their own page only. May import what `web`
//! may. To fake it: render the struct with a sample, as the tests do with hostile ones. How to get it wrong: mark a value
//! as safe, or build a link from the request.

pub(super) mod domain;
mod form;
pub(super) mod operator;
mod page;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
mod when;

use askama::Template;
use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse};

use super::problem::{Problem, html};
use super::state::WebState;

/// A problem, said to people.
#[derive(Template)]
#[template(path = "problem.html")]
pub(super) struct ProblemPage<'a> {
    pub(super) status: u16,
    pub(super) title: &'a str,
    pub(super) detail: &'a str,
    pub(super) home: &'a str,
}

/// Where to go from the origin itself.
#[derive(Template)]
#[template(path = "start.html")]
struct StartPage<'a> {
    home: &'a str,
}

/// `GET /`
pub(super) async fn start(State(state): State<WebState>) -> Result<Html<String>, Problem> {
    html(&StartPage { home: &state.settings.public_url })
}

/// `GET /assets/style.css`
pub(super) async fn style() -> impl IntoResponse {
    let headers = [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "public, max-age=300")];
    (headers, include_str!("../../../templates/style.css"))
}
