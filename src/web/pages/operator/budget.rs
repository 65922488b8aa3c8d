//! `GET /operator/budget`: what the CAs still let us spend, what comes back when, and who waits for what.

use askama::Template;
use axum::extract::State;
use axum::response::Html;

use super::{Operator, When, grouped, share, when};
use crate::app::fleet::{self, Budget, Tokens};
use crate::model::issuer::Circuit;
use crate::model::limits::{Closed, LimitName};
use crate::model::moment::Moment;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts::operator as o;
use crate::web::visible::visible;

/// A line of a ledger, as a page shows it.
pub(super) struct TokenLine {
    pub(super) issuer: String,
    pub(super) limit: &'static str,
    pub(super) is_known: bool,
    pub(super) key: String,
    pub(super) left: u32,
    pub(super) burst: u32,
    pub(super) width: i64,
    pub(super) open: u32,
    pub(super) next: When,
    pub(super) full: When,
    pub(super) closed: Option<ClosedLine>,
    pub(super) waiting: String,
    pub(super) first: Vec<(String, String)>,
    pub(super) more: usize,
}

/// Why a line is closed though we did not use it up.
pub(super) struct ClosedLine {
    pub(super) why: &'static str,
    pub(super) said: String,
    pub(super) link: Option<String>,
}

impl TokenLine {
    pub(super) fn of(budget: &Budget, t: &Tokens, now: Moment) -> Self {
        // Only the account's own line waits for the CA as a whole.
        let paused = budget.paused_until.filter(|_| t.limit_name == LimitName::OrdersPerAccount);
        let closed = t.closed.as_ref().map(|shut| ClosedLine {
            why: closed_words(shut.why),
            said: visible(&shut.said).to_string(),
            link: shut.link.clone(),
        });
        TokenLine {
            issuer: budget.issuer.clone(),
            limit: t.limit_name.words(),
            is_known: t.is_known,
            key: t.key.clone(),
            left: t.left,
            burst: t.limit.burst,
            width: share(i64::from(t.left), i64::from(t.limit.burst)),
            open: t.open,
            next: When::at(t.next_at.max(paused.unwrap_or(now)), now),
            full: When::at(t.full_at, now),
            closed,
            waiting: grouped(i64::try_from(t.waiting).unwrap_or(i64::MAX)),
            first: t.first.iter().map(|o| (o.domain_id.to_string(), o.hostname.display())).collect(),
            more: t.waiting.saturating_sub(t.first.len()),
        }
    }
}

fn closed_words(why: Closed) -> &'static str {
    match why {
        Closed::Others => o::used_up_by_others(),
        Closed::Paused => o::paused_by_ca(),
    }
}

/// How a CA is, in one sentence; nothing where all is well.
pub(super) fn trouble(budget: &Budget, now: Moment) -> Option<String> {
    let issuer = &budget.issuer;
    let last = budget.trouble.as_ref().map(|(said, _)| visible(said));
    let said = match (budget.circuit, last) {
        (Circuit::Closed, _) => return None,
        (Circuit::Probing, None) => o::ca_probed(issuer),
        (Circuit::Probing, Some(last)) => o::ca_probed_last(issuer, last),
        (Circuit::Open(until), None) => o::ca_left_alone(issuer, When::at(until, now).full),
        (Circuit::Open(until), Some(last)) => o::ca_left_alone_last(issuer, When::at(until, now).full, last),
        (Circuit::Halted, _) => o::ca_halted(issuer, visible(budget.halted.as_deref().unwrap_or_default())),
    };
    Some(said.plain())
}

struct IssuerView {
    name: String,
    directory: String,
    in_use: bool,
    has_account: bool,
    account_problem: Option<String>,
    trouble: Option<String>,
    to_do: Option<String>,
    paused: Option<When>,
    lines: Vec<TokenLine>,
}

#[derive(Template)]
#[template(path = "operator/budget.html")]
struct Page {
    here: &'static str,
    issuers: Vec<IssuerView>,
}

/// `GET /operator/budget`
pub(in crate::web) async fn show(State(state): State<WebState>, _: Operator) -> Result<Html<String>, Problem> {
    let now = state.app.env.now();
    let view = |b: Budget| IssuerView {
        trouble: trouble(&b, now),
        to_do: b.to_do(),
        lines: b.tokens.iter().map(|t| TokenLine::of(&b, t, now)).collect(),
        paused: when(b.paused_until, now),
        account_problem: b.account_problem.as_deref().map(|p| visible(p).to_string()),
        name: b.issuer,
        directory: b.directory,
        in_use: b.in_use,
        has_account: b.has_account,
    };
    let issuers = fleet::budgets(&state.app).await?.into_iter().map(view).collect();
    html(&Page { here: "budget", issuers })
}
