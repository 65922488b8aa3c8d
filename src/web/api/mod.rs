//! `/api/v1`: one file a resource, one function an operation.
//!
//! A handler asks who calls, reads its input through `web::input`, checks whose the thing is, and calls one use case. What a
//! caller may not see does not exist: [`domains::own_domain`] is the only way to a domain's id. What makes something is a
//! [`super::once::Once`], so that it can be sent again. Lists are pages with a `next` link that repeats the question. Each
//! function carries its description; [`description`] puts them together and adds what holds for all. May import what `web`
//! may. To fake it: call the router without a socket. How to get it wrong: take an id from the path straight to a use case,
//! or describe an answer that the function does not give.

pub(super) mod alerts;
pub(super) mod apply_link;
pub(super) mod budget;
pub(super) mod bulk;
pub(super) mod bulk_check;
pub(super) mod bulk_files;
pub(super) mod certificates;
pub(super) mod contacts;
pub(super) mod deliveries;
pub(super) mod description;
pub(super) mod docs;
pub(super) mod domains;
pub(super) mod edges;
pub(super) mod events;
pub(super) mod explain;
pub(super) mod history;
pub(super) mod letting_go;
pub(super) mod links;
pub(super) mod offboard;
pub(super) mod orders;
pub(super) mod recovery;
pub(super) mod redirect;
pub(super) mod reissues;
pub(super) mod tenants;
pub(super) mod tokens;
pub(super) mod webhooks;
pub(super) mod zone_file;

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use utoipa::ToSchema;

use super::problem::{FieldError, Problem};
use super::state::WebState;

/// A page of a list.
#[derive(Serialize, ToSchema)]
pub(super) struct Page<T> {
    /// What is on it.
    items: Vec<T>,
    /// Where the next page is; null on the last one.
    #[schema(required, format = "uri")]
    next: Option<String>,
}

/// How many items a page holds at most.
const MOST: u32 = 200;

/// What the cursor of a page says; what it says is nobody's business but ours.
fn cursor_text(asked: Option<&str>) -> Result<Option<String>, Problem> {
    let read = |text: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        String::from_utf8(bytes).ok()
    };
    asked.map(|text| read(text).ok_or_else(wrong_cursor)).transpose()
}

fn wrong_cursor() -> Problem {
    Problem::wrong("cursor", "cursor_invalid", "This is no cursor of this list; take the `next` of the page before.")
}

/// The id after which a page begins.
fn cursor<T: FromStr>(asked: Option<&str>) -> Result<Option<T>, Problem> {
    cursor_text(asked)?.map(|text| text.parse().map_err(|_| wrong_cursor())).transpose()
}

/// The cursor that says `text`.
fn opaque(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// The link to the page after the item `last`, where this one is full.
fn next_page(
    state: &WebState,
    path: &str,
    full: bool,
    last: Option<String>,
    question: &[(&str, Option<String>)],
) -> Option<String> {
    let cursor = opaque(&last.filter(|_| full)?);
    let mut all = vec![("cursor", cursor.as_str())];
    all.extend(question.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
    Some(state.next_page(path, &all))
}

/// A page of `rows`, of which there may be `limit`: what is shown of each, and the link to what comes after the last, which asks for
/// the same.
fn page<R, V>(
    (state, path): (&WebState, &str),
    (rows, limit): (Vec<R>, i64),
    place: impl Fn(&R) -> String,
    asked: &[(&str, Option<String>)],
    shown: impl FnMut(R) -> V,
) -> Page<V> {
    let mut question = vec![("limit", Some(limit.to_string()))];
    question.extend(asked.iter().cloned());
    let next = next_page(state, path, is_full(&rows, limit), rows.last().map(place), &question);
    Page { items: rows.into_iter().map(shown).collect(), next }
}

/// Whether a page that may hold `limit` items has so many.
fn is_full<T>(items: &[T], limit: i64) -> bool {
    i64::try_from(items.len()).is_ok_and(|n| n >= limit)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::id::DomainId;

    proptest! {
        #[test]
        fn a_cursor_says_what_it_was_given_and_junk_says_nothing(text in "\\PC{0,80}", junk in "\\PC{0,80}") {
            prop_assert_eq!(cursor_text(Some(&opaque(&text))).ok().flatten(), Some(text));
            let read: Result<Option<DomainId>, Problem> = cursor(Some(&junk));
            prop_assert!(read.is_err(), "{junk}");
        }
    }

    #[test]
    fn pages_have_one_to_two_hundred_items() {
        assert_eq!(page_length(None).ok(), Some(50));
        assert_eq!([1, 200].map(|n| page_length(Some(n)).ok()), [Some(1), Some(200)]);
        assert!([0, 201, u32::MAX].iter().all(|n| page_length(Some(*n)).is_err()));
    }
}
