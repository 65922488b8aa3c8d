//! `GET /operator/domains`: search by hostname, and lists by reason or by whose move it is.

use std::str::FromStr;

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use super::line::Line;
use super::{Operator, PAGE, actor_move};
use crate::app::{fleet, tenants};
use crate::model::evidence::Actor;
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::model::standing::Standing;
use crate::store::fleet::lists::{After, FleetRow};
use crate::web::input::Asked;
use crate::web::problem::{Problem, html};
use crate::web::query;
use crate::web::state::WebState;
use crate::web::texts::{self as t, operator as o};
use crate::web::visible::{cut, visible};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct ListQuery {
    q: Option<String>,
    reason: Option<String>,
    acts: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "operator/domains.html")]
struct Page {
    here: &'static str,
    title: String,
    lead: String,
    typed: String,
    tenant: Option<(String, String)>,
    rows: Vec<Line>,
    next: Option<String>,
}

fn wrong_cursor() -> Problem {
    Problem::wrong("cursor", "cursor_invalid", "This is no cursor of this list; begin at its first page.")
}

/// The id after which a page begins.
pub(super) fn after_id<T: FromStr>(cursor: Option<&str>) -> Result<Option<T>, Problem> {
    cursor.map(|id| id.parse().map_err(|_| wrong_cursor())).transpose()
}

/// The row after which a page begins, from `micros:id`.
pub(super) fn after_of(cursor: Option<&str>) -> Result<After, Problem> {
    let Some(cursor) = cursor else { return Ok(After::default()) };
    let (at, id) = cursor.split_once(':').ok_or_else(wrong_cursor)?;
    let at = at.parse().map(Moment::from_micros).map_err(|_| wrong_cursor())?;
    let id: DomainId = id.parse().map_err(|_| wrong_cursor())?;
    Ok(After { at, id: id.to_string() })
}

/// The cursor of the next page, where this one is full.
pub(super) fn cursor_of(rows: &[FleetRow], at: impl Fn(&FleetRow) -> Moment) -> Option<String> {
    rows.last().filter(|_| rows.len() == PAGE).map(|last| format!("{}:{}", at(last).micros(), last.id))
}

/// `GET /operator/domains`
pub(in crate::web) async fn list(
    State(state): State<WebState>,
    _: Operator,
    Asked(asked): Asked<ListQuery>,
) -> Result<Html<String>, Problem> {
    let cursor = asked.cursor.as_deref();
    let page = match (&asked.q, &asked.reason, &asked.acts) {
        (Some(typed), None, None) => found(&state, typed, cursor).await?,
        (None, Some(code), None) => {
            let standing = Standing::from_code(code).ok_or_else(Problem::no_route)?;
            let after = after_of(cursor)?;
            let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
            let rows = fleet::list(&state.app, &fleet::Wanted::Standing(standing), &after, limit).await?;
            let lead = o::longest_first(standing.sentence()).plain();
            listed(&state, standing.code().to_owned(), lead, ("reason", code), &rows)
        }
        (None, None, Some(word)) => {
            let actor = Actor::from_word(word).ok_or_else(Problem::no_route)?;
            let after = after_of(cursor)?;
            let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
            let rows = fleet::list(&state.app, &fleet::Wanted::Acts(actor), &after, limit).await?;
            let title = actor_move(actor).to_owned();
            listed(&state, title, o::longest_first_why().to_owned(), ("acts", word), &rows)
        }
        (None, None, None) => Page {
            here: "domains",
            title: o::search().to_owned(),
            lead: o::search_lead().to_owned(),
            typed: String::new(),
            tenant: None,
            rows: Vec::new(),
            next: None,
        },
        _ => return Err(Problem::no_route()),
    };
    html(&page)
}

fn listed(state: &WebState, title: String, lead: String, (name, value): (&str, &str), rows: &[FleetRow]) -> Page {
    let cursor = cursor_of(rows, |row| row.since);
    Page {
        here: "domains",
        title,
        lead,
        typed: String::new(),
        tenant: None,
        rows: Line::all(rows, state.app.env.now()),
        next: cursor.map(|cursor| format!("/operator/domains?{}", query(&[(name, value), ("cursor", &cursor)]))),
    }
}

async fn found(state: &WebState, typed: &str, cursor: Option<&str>) -> Result<Page, Problem> {
    let after = match cursor {
        None => ("", ""),
        Some(cursor) => cursor.rsplit_once(':').ok_or_else(wrong_cursor)?,
    };
    if cursor.is_some() && (after.0.contains('\0') || after.1.parse::<DomainId>().is_err()) {
        return Err(wrong_cursor());
    }
    let results = fleet::search(&state.app, typed, after, PAGE).await?;
    let tenant = if cursor.is_none() { tenants::find(&state.app.store, typed.trim()).await? } else { None };
    let next = results.next.map(|(word, id)| {
        let cursor = format!("{word}:{id}");
        format!("/operator/domains?{}", query(&[("q", typed), ("cursor", &cursor)]))
    });
    Ok(Page {
        here: "domains",
        title: o::search().to_owned(),
        lead: match results.rows.is_empty() {
            true => o::none_found().to_owned(),
            false => o::found().to_owned(),
        },
        typed: cut(&visible(typed), 200),
        tenant: tenant.map(|t| (t.id.to_string(), t.slug.to_string())),
        rows: Line::all(&results.rows, state.app.env.now()),
        next,
    })
}
