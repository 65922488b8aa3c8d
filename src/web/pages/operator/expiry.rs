//! `GET /operator/expiry`: on which day how many certificates in use end.

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use super::domains::{after_of, cursor_of};
use super::line::Line;
use super::{Operator, PAGE, When, grouped};
use crate::app::fleet::{self, HORIZON_DAYS, Wanted};
use crate::model::moment::Moment;
use crate::web::input::Asked;
use crate::web::problem::{Problem, html};
use crate::web::query;
use crate::web::state::WebState;
use crate::web::texts::operator as o;

const DAY_SECONDS: i64 = 86_400;
/// Below the chart the next days are a table, the rest is told by weeks.
const TABLE_DAYS: i64 = 30;

fn day_of(at: Moment) -> i64 {
    at.secs().div_euclid(DAY_SECONDS)
}

/// How many end before the end of the day in `days` days, those that have ended included.
pub(super) fn within(ending: &[(i64, i64)], now: Moment, days: i64) -> i64 {
    let last = day_of(now).saturating_add(days);
    ending.iter().filter(|(day, _)| *day <= last).map(|(_, n)| n).sum()
}

struct Column {
    /// `29 Nov`.
    date: String,
    machine: String,
    n: String,
    some: bool,
    x: i64,
    y: i64,
    height: i64,
    tone: &'static str,
}

#[derive(Template)]
#[template(path = "operator/expiry.html")]
struct Page {
    here: &'static str,
    counted: When,
    horizon: i64,
    ended: String,
    within: Vec<(i64, String)>,
    most: String,
    chart: Vec<Column>,
    days: Vec<Column>,
    weeks: Vec<Column>,
    rows: Vec<Line>,
    next: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct ExpiryQuery {
    cursor: Option<String>,
}

/// `GET /operator/expiry`
pub(in crate::web) async fn show(
    State(state): State<WebState>,
    _: Operator,
    Asked(asked): Asked<ExpiryQuery>,
) -> Result<Html<String>, Problem> {
    let now = state.app.env.now();
    let snapshot = fleet::snapshot(&state.app).await?;
    let after = after_of(asked.cursor.as_deref())?;
    let horizon = now + std::time::Duration::from_secs(30 * 86_400);
    let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
    let rows = fleet::list(&state.app, &Wanted::EndingBefore(horizon), &after, limit).await?;
    let cursor = cursor_of(&rows, |row| row.certificate_until.unwrap_or_default());
    let ending = &snapshot.ending;
    let today = day_of(now);
    let on = |day: i64| ending.iter().find(|(d, _)| *d == day).map_or(0, |(_, n)| *n);
    let most = (today..today + HORIZON_DAYS).map(on).max().unwrap_or(0);
    let column = |day: i64, n: i64| {
        let height = if n == 0 || most == 0 { 0 } else { (n.saturating_mul(100) / most).max(2) };
        Column {
            date: short_date(day),
            machine: Moment::from_secs(day.saturating_mul(DAY_SECONDS)).rfc3339()[..10].to_owned(),
            n: grouped(n),
            some: n > 0,
            x: (day - today) * 10,
            y: 100 - height,
            height,
            tone: match day - today {
                ..=6 => "act",
                7..=29 => "wait",
                _ => "good",
            },
        }
    };
    let week = |from: i64| column(from, (from..from + 7).map(on).sum());
    let page = Page {
        here: "expiry",
        counted: When::at(snapshot.taken_at, now),
        horizon: HORIZON_DAYS,
        ended: grouped(ending.iter().filter(|(day, _)| *day < today).map(|(_, n)| n).sum()),
        within: [7, 14, 30].map(|days| (days, grouped(within(ending, now, days)))).to_vec(),
        most: grouped(most),
        chart: (today..today + HORIZON_DAYS).map(|day| column(day, on(day))).collect(),
        days: (today..today + TABLE_DAYS).map(|day| column(day, on(day))).filter(|c| c.some).collect(),
        weeks: (today + TABLE_DAYS..today + HORIZON_DAYS).step_by(7).map(week).filter(|c| c.some).collect(),
        rows: Line::all(&rows, now),
        next: cursor.map(|cursor| format!("/operator/expiry?{}", query(&[("cursor", &cursor)]))),
    };
    html(&page)
}

fn short_date(day: i64) -> String {
    let format = time::macros::format_description!("[day padding:none] [month repr:short]");
    time::OffsetDateTime::from_unix_timestamp(day.saturating_mul(DAY_SECONDS))
        .ok()
        .and_then(|t| t.format(format).ok())
        .unwrap_or_else(|| day.to_string())
}
