//! The claims that an import made, in one state, a page at a time; and "check now" for all that wait for their records.

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, Response};
use serde::Deserialize;

use super::face::claim_words;
use super::list::ListRow;
use super::see;
use crate::app::bulk::check;
use crate::app::bulk::turn::By;
use crate::app::show;
use crate::app::tokens::Principal;
use crate::model::claim::Claim;
use crate::model::id::{DomainId, ImportId};
use crate::web::api::bulk::own_import;
use crate::web::auth::PageCaller;
use crate::web::form::{self, Button};
use crate::web::input::{Asked, Form, Id};
use crate::web::links::query;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;
use crate::web::visible::visible;

/// Claims on a page.
const LENGTH: i64 = 50;

#[derive(Template)]
#[template(path = "import_claims.html")]
struct ClaimsPage {
    id: ImportId,
    name: String,
    state: &'static str,
    rows: Vec<ListRow>,
    first: bool,
    next: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct ClaimsQuery {
    #[serde(default)]
    state: String,
    after: Option<String>,
}

/// `GET /imports/{id}/claims`
pub(in crate::web) async fn list_claims(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    Asked(asked): Asked<ClaimsQuery>,
) -> Result<Html<String>, Problem> {
    let import = own_import(&state, &reader.caller, &id).await?;
    let claim: Claim = asked.state.parse().map_err(|_| Problem::no_route())?;
    let after: Option<DomainId> = match &asked.after {
        Some(id) => Some(id.parse().map_err(|_| Problem::no_route())?),
        None => None,
    };
    let first = after.is_none();
    let now = state.app.env.now();
    let mut found = show::of_import(&state.app.store, &import.id, claim, after.as_ref(), LENGTH + 1, now).await?;
    let more = i64::try_from(found.len()).is_ok_and(|n| n > LENGTH);
    if more {
        found.pop();
    }
    let next = found.last().filter(|_| more).map(|last| {
        let question = [("state", claim.as_str()), ("after", last.id.as_str())];
        format!("/imports/{}/claims?{}", import.id, query(&question))
    });
    let operator = reader.caller.principal == Principal::Operator;
    let row = |domain: show::ListedDomain| {
        // A tenant's page says "your move"; an operator reads whose it is in the sentence.
        let mut row = ListRow::new(domain);
        row.yours &= !operator;
        row
    };
    html(&ClaimsPage {
        name: visible(&import.name),
        state: claim_words(claim),
        rows: found.into_iter().map(row).collect(),
        first,
        next,
        id: import.id,
    })
}

/// `POST /imports/{id}/check`
pub(in crate::web) async fn post_check(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    headers: HeaderMap,
    Form(body): Form<Button>,
) -> Result<Response, Problem> {
    let import = own_import(&state, &reader.caller, &id).await?;
    form::check(&state, &headers, &reader, &body.csrf)?;
    let by = By { principal: &reader.caller.principal, actor: &reader.actor };
    check::check_now(&state.app, by, &import.id).await?;
    Ok(see(&state, &format!("/imports/{}?asked=1", import.id)))
}
