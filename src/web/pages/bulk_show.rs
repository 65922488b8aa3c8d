//! One import: how far it is, what the limits make of it, what was not taken and why, and its files.

use askama::Template;
use axum::extract::State;
use axum::response::{Html, Response};
use serde::Deserialize;

use super::bulk::state_words;
use super::bulk_chart::{Bar, Curve, bars, curve};
use super::when::{absolute, relative};
use crate::app::show::{self, ImportView};
use crate::model::bulk::{ImportState, Verdict};
use crate::model::moment::Moment;
use crate::store::bulk_rows::{self, ImportRow};
use crate::web::api::bulk::own_import;
use crate::web::api::bulk_files::{self, RecordsQuery, ResultsQuery};
use crate::web::auth::PageCaller;
use crate::web::input::{Asked, Id};
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts as t;
use crate::web::visible::visible;

/// Refused rows on the page; the result file has all.
const REFUSED: i64 = 50;
/// While nothing but claims moves, an open page looks again after so long.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(30);

/// A row that was not taken.
pub(super) struct RefusedLine {
    pub(super) line: i64,
    pub(super) typed: String,
    pub(super) why: String,
    pub(super) suggestion: Option<String>,
}

impl RefusedLine {
    fn of(row: ImportRow) -> RefusedLine {
        let refusal = row.refusal;
        RefusedLine {
            line: row.line,
            typed: if row.typed.is_empty() { t::nothing_readable().into() } else { visible(&row.typed) },
            why: refusal.as_ref().map(|r| visible(&r.detail)).unwrap_or_default(),
            suggestion: refusal.and_then(|r| r.suggestion).map(|name| visible(&name)),
        }
    }
}

/// A registered domain that makes its names wait.
pub(super) struct CollisionLine {
    pub(super) name: String,
    pub(super) names: u64,
    pub(super) at_once: u64,
    pub(super) last: String,
}

#[derive(Template)]
#[template(path = "import.html")]
pub(super) struct ImportPage {
    pub(super) view: ImportView,
    pub(super) name: String,
    pub(super) csrf: String,
    pub(super) state: &'static str,
    pub(super) tone: &'static str,
    pub(super) sentence: String,
    pub(super) bars: Vec<Bar>,
    pub(super) curve: Option<Curve>,
    pub(super) last_order: Option<(String, String)>,
    /// Whether the plan's time is over, or the import was given up: it says what was.
    pub(super) is_past: bool,
    pub(super) notice: Option<&'static str>,
    pub(super) next_look: Option<(String, String)>,
    pub(super) collisions: Vec<CollisionLine>,
    pub(super) refused: Vec<RefusedLine>,
    pub(super) live: Option<String>,
    pub(super) due: Option<String>,
}

impl ImportPage {
    pub(super) fn new(view: ImportView, refused: Vec<ImportRow>, csrf: String, asked: bool, now: Moment) -> ImportPage {
        let (state, tone) = state_words(view.state, view.dry_run);
        let plan = view.plan.as_ref();
        let last_order = plan.and_then(|p| p.last_order_at).map(|at| (relative(at, now), absolute(at)));
        let collisions = plan.map(|p| p.collisions.as_slice()).unwrap_or_default().iter().take(20).map(|c| CollisionLine {
            name: visible(&c.registered_domain),
            names: c.names,
            at_once: c.at_once,
            last: absolute(c.last_order_at),
        });
        ImportPage {
            name: visible(&view.name),
            csrf,
            state,
            tone,
            sentence: sentence(&view, now),
            bars: bars(&view),
            curve: curve(&view, now),
            last_order,
            is_past: is_past(&view, now),
            notice: asked.then(t::import_is_checked),
            next_look: view.next_look_at.map(|at| (relative(at.max(now), now), absolute(at))),
            collisions: collisions.collect(),
            refused: refused.into_iter().map(RefusedLine::of).collect(),
            live: Some(format!("/imports/{}/live?after={}", view.id, view.version)),
            due: (view.state == ImportState::Done && !view.dry_run).then(|| (now + AGAIN).rfc3339()),
            view,
        }
    }

    pub(super) fn made_at(&self, at: &Moment) -> String {
        absolute(*at)
    }

    pub(super) fn can(&self, what: &str) -> bool {
        match what {
            "pause" => self.view.state == ImportState::Working || self.waits(),
            "resume" => self.view.state == ImportState::Paused,
            "cancel" => matches!(self.view.state, ImportState::Working | ImportState::Paused) || self.waits(),
            "check" => self.view.claims.awaiting_dns > 0,
            "start" => self.view.state == ImportState::Done && self.view.dry_run,
            _ => false,
        }
    }

    /// Whether every row has its verdict and claims wait that can still be stopped.
    fn waits(&self) -> bool {
        let ImportView { state, dry_run, claims, .. } = &self.view;
        *state == ImportState::Done && !dry_run && claims.awaiting_dns + claims.queued > 0
    }

    pub(super) fn has_claims(&self) -> bool {
        self.view.verdicts.claimed + self.view.verdicts.already_yours > 0 && !self.view.dry_run
    }
}

/// Whether a plan says nothing of what is to come any more: its last order's time has passed, or the import was given up. What a
/// dry run found holds for whoever starts it.
fn is_past(view: &ImportView, now: Moment) -> bool {
    let over = || view.plan.as_ref().and_then(|plan| plan.last_order_at).is_some_and(|at| at < now);
    view.state == ImportState::Cancelled || !view.dry_run && over()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct ShowQuery {
    /// Set by the redirect after "check now".
    asked: Option<String>,
}

/// What there is to know, in a sentence or two.
fn sentence(view: &ImportView, now: Moment) -> String {
    match (view.state, view.dry_run) {
        (ImportState::Receiving, _) => match view.rows {
            1 => t::one_row_arrived().to_owned(),
            n => t::rows_arrived(n).plain(),
        },
        (ImportState::Working, _) => match (view.judged, view.rows) {
            (0, 1) => t::one_row_not_judged().to_owned(),
            (_, 1) => t::one_row_judged().to_owned(),
            (1, all) => t::one_of_rows_judged(all).plain(),
            (n, all) => t::of_rows_judged(n, all).plain(),
        },
        (ImportState::Paused, _) => turned(view, now, &t::held_at(view.judged, view.rows).plain()),
        (ImportState::Done, true) => format!("{} {} {}", t::was_a_check(), would_be_claimed(view), not_taken(view)),
        (ImportState::Done, false) => format!("{} {}", claimed(view), not_taken(view)),
        (ImportState::Cancelled | ImportState::Broken, _) => {
            turned(view, now, &t::given_up_at(view.judged, view.rows).plain())
        }
    }
}

/// Who holds it, or gave it up, and what that means for the claims it made.
fn turned(view: &ImportView, now: Moment, where_it_stands: &str) -> String {
    let by_tenant = view.turned_by.as_deref().is_some_and(|by| by.starts_with("tenant "));
    let paused = view.state == ImportState::Paused;
    let who = view.turned_at.map(|at| {
        let (ago, full) = (relative(at, now), absolute(at));
        match (paused, by_tenant) {
            (true, true) => t::paused_by_tenant(ago, full),
            (true, false) => t::paused_by_operator(ago, full),
            (false, true) => t::cancelled_by_tenant(ago, full),
            (false, false) => t::cancelled_by_operator(ago, full),
        }
        .plain()
    });
    let meant = match (view.claims.on_their_way(), paused) {
        (0, _) => None,
        (1, true) => Some(t::one_claim_held().to_owned()),
        (n, true) => Some(t::claims_held(n).plain()),
        (1, false) => Some(t::one_claim_given_up().to_owned()),
        (n, false) => Some(t::claims_given_up(n).plain()),
    };
    let said = [who.as_deref(), Some(where_it_stands), meant.as_deref()];
    said.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn would_be_claimed(view: &ImportView) -> String {
    match view.verdicts.would_be_claimed {
        1 => t::one_would_be_claimed().to_owned(),
        n => t::n_would_be_claimed(n).plain(),
    }
}

fn claimed(view: &ImportView) -> String {
    match (view.verdicts.claimed, view.verdicts.already_yours) {
        (1, 1) => t::one_claimed_one_yours(1, 1),
        (1, yours) => t::one_claimed_n_yours(1, yours),
        (n, 1) => t::n_claimed_one_yours(n, 1),
        (n, yours) => t::n_claimed_n_yours(n, yours),
    }
    .plain()
}

fn not_taken(view: &ImportView) -> String {
    match view.verdicts.refused {
        0 => t::every_row_taken().to_owned(),
        1 => t::one_row_not_taken().to_owned(),
        n => t::rows_not_taken(n).plain(),
    }
}

/// `GET /imports/{id}`
pub(in crate::web) async fn show_import(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    Asked(query): Asked<ShowQuery>,
) -> Result<Html<String>, Problem> {
    let import = own_import(&state, &reader.caller, &id).await?;
    let refused = bulk_rows::page(&state.app.store, &import.id, Some(Verdict::Refused), 0, REFUSED).await?;
    let view = show::import(&mut state.app.store.read().await?, import).await?;
    html(&ImportPage::new(view, refused, reader.csrf, query.asked.is_some(), state.app.env.now()))
}

/// `GET /imports/{id}/results`
pub(in crate::web) async fn take_results(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    Asked(query): Asked<ResultsQuery>,
) -> Result<Response, Problem> {
    bulk_files::results(&state, &reader.caller, &id, query).await
}

/// `GET /imports/{id}/records`
pub(in crate::web) async fn take_records(
    State(state): State<WebState>,
    reader: PageCaller,
    Id(id): Id,
    Asked(query): Asked<RecordsQuery>,
) -> Result<Response, Problem> {
    bulk_files::records(&state, &reader.caller, &id, query).await
}
