//! `GET /operator/expiry`: on which day how many certificates in use end, and what keeps those from being renewed that should be.

use askama::Template;
use axum::extract::State;
use axum::response::Html;
use serde::Deserialize;

use super::domains::{after_of, cursor_of};
use super::line::Line;
use super::{Operator, PAGE, When, grouped};
use crate::app::fleet::{self, HORIZON_DAYS, Wanted};
use crate::model::alert::cause::{Cause, Class};
use crate::model::moment::Moment;
use crate::store::alerts;
use crate::web::input::Asked;
use crate::web::problem::{Problem, html};
use crate::web::query;
use crate::web::state::WebState;
use crate::web::texts::operator as o;

const DAY_SECONDS: i64 = 86_400;
/// How wide a day is in the picture.
const COLUMN: i64 = 10;
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
    /// From the bottom up: those that nothing is wrong with, then those of each cause.
    parts: Vec<Part>,
}

/// A part of a day's bar.
struct Part {
    x: i64,
    y: i64,
    height: i64,
    tone: &'static str,
    what: &'static str,
    n: String,
}

/// What a bar is made of: whose trouble, its colour, its words. Nobody's come first.
const LEGEND: [(Option<Class>, &str); 5] = [
    (None, "good"),
    (Some(Class::TenantDns), "link"),
    (Some(Class::DnsProvider), "off"),
    (Some(Class::Ca), "wait"),
    (Some(Class::Platform), "act"),
];

fn words_of(class: Option<Class>) -> &'static str {
    match class {
        None => o::renewed_in_time(),
        Some(Class::TenantDns) => o::tenants_own(),
        Some(Class::DnsProvider) => o::providers(),
        Some(Class::Ca) => o::cas(),
        Some(Class::Platform) => o::ours(),
    }
}

/// The parts of a bar for `n` certificates, of which `by_cause` have an alert.
fn parts(x: i64, n: i64, most: i64, by_cause: &[(Class, i64)]) -> Vec<Part> {
    let alerted: i64 = by_cause.iter().map(|(_, n)| n).sum();
    let mut top = 100;
    let mut out = Vec::new();
    for (class, tone) in LEGEND {
        let many = match class {
            None => (n - alerted).max(0),
            Some(class) => by_cause.iter().filter(|(c, _)| *c == class).map(|(_, n)| n).sum(),
        };
        if many > 0 && most > 0 {
            let height = (many.saturating_mul(100) / most.max(n)).clamp(2, top.max(2));
            top = (top - height).max(0);
            out.push(Part { x, y: top, height, tone, what: words_of(class), n: grouped(many) });
        }
    }
    out
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
    width: i64,
    legend: Vec<(&'static str, &'static str)>,
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
    let days = today..=today + HORIZON_DAYS;
    let most = days.clone().map(on).max().unwrap_or(0);
    let causes = alerts::days_by_cause(&state.app.store, now + std::time::Duration::from_secs(200 * 86_400)).await?;
    let column = |day: i64, last: i64, n: i64| {
        let of_days = causes.iter().filter(|(d, ..)| (day..=last).contains(d));
        let by_cause: Vec<(Class, i64)> = of_days.map(|(_, cause, n)| (Cause::class_of(cause), *n)).collect();
        Column {
            date: short_date(day),
            machine: Moment::from_secs(day.saturating_mul(DAY_SECONDS)).rfc3339()[..10].to_owned(),
            n: grouped(n),
            some: n > 0,
            parts: parts((day - today) * COLUMN, n, most, &by_cause),
        }
    };
    let week = |from: i64| column(from, from + 6, (from..from + 7).map(on).sum());
    let page = Page {
        here: "expiry",
        counted: When::at(snapshot.taken_at, now),
        horizon: HORIZON_DAYS,
        ended: grouped(ending.iter().filter(|(day, _)| *day < today).map(|(_, n)| n).sum()),
        within: [7, 14, 30].map(|days| (days, grouped(within(ending, now, days)))).to_vec(),
        most: grouped(most),
        legend: LEGEND.iter().map(|(class, tone)| (*tone, words_of(*class))).collect(),
        width: (HORIZON_DAYS + 1) * COLUMN,
        chart: days.map(|day| column(day, day, on(day))).collect(),
        days: (today..today + TABLE_DAYS).map(|day| column(day, day, on(day))).filter(|c| c.some).collect(),
        weeks: (today + TABLE_DAYS..=today + HORIZON_DAYS).step_by(7).map(week).filter(|c| c.some).collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_coloured_by_cause_and_no_higher_than_the_chart() {
        let of = |n, most, by_cause: &[(Class, i64)]| {
            parts(0, n, most, by_cause).iter().map(|p| (p.tone, p.y, p.height)).collect::<Vec<_>>()
        };
        assert_eq!(of(0, 10, &[]), []);
        assert_eq!(of(5, 10, &[]), [("good", 50, 50)]);
        assert_eq!(
            of(5, 10, &[(Class::Ca, 2), (Class::Platform, 1)]),
            [("good", 80, 20), ("wait", 60, 20), ("act", 50, 10)]
        );
        // One certificate of very many is seen; alerts that are more than the day has do not break it.
        assert_eq!(of(1, 100_000, &[]), [("good", 98, 2)]);
        assert_eq!(of(1, 1, &[(Class::Ca, 3)]), [("wait", 0, 100)]);
        assert!(of(100, 100, &[(Class::Ca, 50), (Class::Platform, 50)]).iter().all(|(_, y, h)| *y >= 0 && y + h <= 100));
    }
}
