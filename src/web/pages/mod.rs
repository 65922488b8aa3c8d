//! Pages for people: rendered here, whole without JavaScript, styled by one file of our own.
//!
//! A page is one askama struct over the same document that the API gives out; words are chosen beside it, never in a
//! handler. Forms carry a token made from the reader's own and are taken from their own page only. May import what `web`
//! may. To fake it: render the struct with a sample, as the tests do with hostile ones. How to get it wrong: mark a value
//! as safe, or build a link from the request.

pub(super) mod domain;
mod form;
mod page;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
mod when;

use askama::Template;
use axum::http::header;
use axum::response::IntoResponse;

/// A problem, said to people.
#[derive(Template)]
#[template(path = "problem.html")]
pub(super) struct ProblemPage<'a> {
    pub(super) status: u16,
    pub(super) title: &'a str,
    pub(super) detail: &'a str,
    pub(super) home: &'a str,
}

/// `GET /assets/style.css`
pub(super) async fn style() -> impl IntoResponse {
    let headers = [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "public, max-age=300")];
    (headers, include_str!("../../../templates/style.css"))
}
