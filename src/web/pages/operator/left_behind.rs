//! `GET /operator/left-behind`: names that were let go of and still lead here.

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use super::{Operator, PAGE, When, when};
use crate::model::hostname::Hostname;
use crate::model::moment::Moment;
use crate::store::resting::{self, RestingRow};
use crate::web::input::Asked;
use crate::web::problem::{Problem, html};
use crate::web::query;
use crate::web::state::WebState;
use crate::web::texts::operator as o;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct PageQuery {
    /// After this name.
    after: Option<String>,
}

struct LeftLine {
    id: String,
    hostname: String,
    target: String,
    tenant: String,
    let_go: When,
    dangles: Option<When>,
    reminded: Option<When>,
}

impl LeftLine {
    fn of(row: &RestingRow, now: Moment) -> LeftLine {
        LeftLine {
            id: row.former.id.to_string(),
            hostname: row.former.hostname.display(),
            target: row.former.target.clone(),
            tenant: row.former.tenant_id.to_string(),
            let_go: When::at(row.resting.since, now),
            dangles: when(row.resting.dangles_since, now),
            reminded: when(row.resting.reminded_at, now),
        }
    }
}

#[derive(Template)]
#[template(path = "operator/left_behind.html")]
struct ListPage {
    here: &'static str,
    names: Vec<LeftLine>,
    next: Option<String>,
}

/// `GET /operator/left-behind`: by name.
pub(in crate::web) async fn list(
    State(state): State<WebState>,
    _: Operator,
    Asked(asked): Asked<PageQuery>,
) -> Result<Html<String>, Problem> {
    let now = state.app.env.now();
    // Whatever was typed: a name, or nothing that any name is.
    let after = asked.after.and_then(|name| Hostname::parse(&name, &state.settings.rules).ok());
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let mut tx = state.app.store.read().await?;
    let rows = resting::dangling(&mut tx, after.as_ref().map_or("", Hostname::as_str), limit).await?;
    drop(tx);
    let last = rows.last().filter(|_| rows.len() == PAGE);
    let next = last.map(|row| format!("/operator/left-behind?{}", query(&[("after", row.former.hostname.as_str())])));
    html(&ListPage { here: "left-behind", names: rows.iter().map(|row| LeftLine::of(row, now)).collect(), next })
}
