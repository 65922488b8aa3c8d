//! The list of a tenant's domains: by name, with what each needs at a glance; searched, filtered, a page at a time. Operators
//! have lists of their own, by index over all tenants.

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::face::{claim_words, tone};
use super::see;
use crate::app::show::{self, ListedDomain};
use crate::app::tokens::Principal;
use crate::model::claim::Claim;
use crate::model::evidence::Actor;
use crate::model::id::DomainId;
use crate::store::portal::Listing;
use crate::web::auth::PageCaller;
use crate::web::input::Asked;
use crate::web::links::query;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;
use crate::web::visible::visible;

/// Domains on a page.
const LENGTH: i64 = 50;
/// The longest part of a name that is searched for.
const LONGEST: usize = 253;

/// The filters, as the form offers them.
const FILTERS: [(&str, &str, &[Claim]); 5] = [
    ("", t::in_use(), &[Claim::AwaitingDns, Claim::Queued, Claim::Live, Claim::Expired]),
    ("live", t::live(), &[Claim::Live]),
    ("waiting", t::not_live_yet(), &[Claim::AwaitingDns, Claim::Queued, Claim::Expired]),
    ("removed", t::removed(), &[Claim::Releasing, Claim::Released, Claim::Withdrawn]),
    ("all", t::all(), &[]),
];

#[derive(Template)]
#[template(path = "list.html")]
pub(super) struct ListPage {
    pub(super) rows: Vec<ListRow>,
    pub(super) typed: String,
    pub(super) filter: &'static str,
    /// Where the next page is.
    pub(super) next: Option<String>,
    /// Whether this page begins at the first domain.
    pub(super) first: bool,
    pub(super) live: String,
}

/// One row.
pub(super) struct ListRow {
    pub(super) id: DomainId,
    pub(super) name: String,
    /// The name in DNS, where it is spelled otherwise.
    pub(super) ascii: Option<String>,
    pub(super) tone: &'static str,
    pub(super) state: &'static str,
    pub(super) sentence: String,
    /// Whether the reader has to act.
    pub(super) yours: bool,
}

impl ListRow {
    pub(super) fn new(domain: ListedDomain) -> ListRow {
        let differs = domain.hostname != domain.hostname_display;
        ListRow {
            name: visible(&domain.hostname_display),
            ascii: differs.then(|| domain.hostname.clone()),
            tone: if domain.is_young { "wait" } else { tone(domain.claim, domain.who_acts, domain.serving) },
            state: if domain.claim == Claim::Live && !domain.serving {
                t::live_not_served()
            } else {
                claim_words(domain.claim)
            },
            sentence: domain.in_a_list,
            yours: domain.who_acts == Actor::Tenant,
            id: domain.id,
        }
    }
}

impl ListPage {
    pub(super) fn filters(&self) -> [(&'static str, &'static str, &'static [Claim]); 5] {
        FILTERS
    }

    /// Whether something narrows the list.
    pub(super) fn is_narrowed(&self) -> bool {
        !self.typed.is_empty() || !self.filter.is_empty()
    }

    /// Whether the script keeps the list in step: beyond its first page a list that moves would jump.
    pub(super) fn follows(&self) -> bool {
        self.first
    }
}

#[derive(Deserialize)]
pub(in crate::web) struct ListQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    state: String,
    after: Option<String>,
}

/// What is looked for, as names are stored: lower case, other scripts in their `xn--` form where that is one.
fn part_of(typed: &str) -> String {
    let text: String = typed.trim().trim_end_matches('.').chars().take(LONGEST).collect::<String>().to_lowercase();
    let text = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest.split('/').next().unwrap_or_default());
    // No hostname holds a NUL, and PostgreSQL takes none in a text.
    let text = text.replace('\0', "\u{fffd}");
    if text.is_ascii() { text } else { idna::domain_to_ascii(&text).unwrap_or(text) }
}

fn cursor(after: Option<&str>) -> Option<(String, String)> {
    let (name, id) = after?.split_once(',')?;
    let id: DomainId = id.parse().ok()?;
    (name.len() <= LONGEST && name.bytes().all(|b| b.is_ascii_graphic())).then(|| (name.to_owned(), id.to_string()))
}

/// `GET /domains`: operators are sent on to the list of all tenants' domains.
pub(in crate::web) async fn list_pages(
    State(state): State<WebState>,
    reader: PageCaller,
    Asked(asked): Asked<ListQuery>,
) -> Result<Response, Problem> {
    let Principal::Tenant(tenant) = reader.caller.principal else { return Ok(see(&state, "/operator/domains")) };
    let (filter, _, claims) = FILTERS.iter().find(|(name, ..)| *name == asked.state).copied().unwrap_or(FILTERS[0]);
    let after = cursor(asked.after.as_deref());
    let first = after.is_none();
    let position = show::position(&state.app.store).await?;
    let listing = Listing { tenant, part: part_of(&asked.q), claims: claims.to_vec(), after };
    let mut found = show::listing(&state.app.store, &listing, LENGTH + 1, state.app.env.now()).await?;
    let more = i64::try_from(found.len()).is_ok_and(|n| n > LENGTH);
    if more {
        found.pop();
    }
    let typed: String = visible(&asked.q).chars().take(LONGEST).collect();
    let next = found.last().filter(|_| more).map(|last| {
        let after = format!("{},{}", last.hostname, last.id);
        format!("/domains?{}", query(&[("q", &typed), ("state", filter), ("after", &after)]))
    });
    let rows = found.into_iter().map(ListRow::new).collect();
    let live = format!("/domains/live?after={position}");
    Ok(html(&ListPage { rows, typed, filter, next, first, live })?.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_looked_for_as_names_are_stored() {
        assert_eq!(part_of(" Support.ACME "), "support.acme");
        assert_eq!(part_of("bücher.example."), "xn--bcher-kva.example");
        assert_eq!(part_of("https://shop.acme.com/path?x"), "shop.acme.com");
        assert_eq!(part_of("a\0b"), "a\u{fffd}b");
        assert_eq!(part_of(&"x".repeat(9_000)).len(), 253);
    }

    #[test]
    fn a_cursor_that_is_none_begins_at_the_first() {
        let id = "dom_00000000000000000000000000000000";
        assert_eq!(cursor(Some(&format!("a.example,{id}"))), Some(("a.example".to_owned(), id.to_owned())));
        for odd in ["", ",", "a", "a.example,dom_1", &format!("\0,{id}"), &format!("{},{id}", "x".repeat(300))] {
            assert_eq!(cursor(Some(odd)), None, "{odd:?}");
        }
    }
}
