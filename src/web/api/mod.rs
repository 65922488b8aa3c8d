//! `/api/v1`: one file a resource, one function an operation.
//!
//! A handler asks who calls, reads its input through `web::input`, checks whose the thing is, and calls one use case. What a
//! caller may not see does not exist: [`domains::own_domain`] is the only way to a domain's id. Lists are pages with a
//! `next` link that repeats the question. May import what `web` may. To fake it: call the router without a socket. How to
//! get it wrong: take an id from the path straight to a use case.

pub(super) mod domains;
pub(super) mod events;
pub(super) mod links;
pub(super) mod tenants;

use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;

use super::problem::{FieldError, Problem};

/// A page of a list.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Page<T> {
    items: Vec<T>,
    /// Where the next page is; null on the last one.
    next: Option<String>,
}

/// How many items a page holds at most.
const MOST: u32 = 200;

/// The id after which a page begins.
fn cursor<T: FromStr<Err: Display>>(asked: Option<&str>) -> Result<Option<T>, Problem> {
    let read = |text: &str| {
        text.parse().map_err(|e| {
            let detail = format!("{e}; take the cursor from the `next` of the page before");
            Problem::field(FieldError { field: "cursor".into(), code: "cursor_invalid", detail, suggestion: None })
        })
    };
    asked.map(read).transpose()
}

/// The wanted length of a page.
fn page_length(asked: Option<u32>) -> Result<i64, Problem> {
    match asked.unwrap_or(50) {
        n @ 1..=MOST => Ok(i64::from(n)),
        n => Err(Problem::field(FieldError {
            field: "limit".into(),
            code: "limit_out_of_range",
            detail: format!("limit is {n}; it must be from 1 to {MOST}."),
            suggestion: Some(n.clamp(1, MOST).to_string()),
        })),
    }
}
