//! `GET /operator`: the fleet on one page.

use askama::Template;
use axum::extract::State;
use axum::response::Html;

use super::budget::{TokenLine, trouble};
use super::edges::EdgeLine;
use super::expiry::within;
use super::line::Line;
use super::queue::{QueueView, queue_views};
use super::{Operator, When, actor_move, actor_tone, actor_word, claim_tone, claim_word, grouped, share};
use crate::app::fleet::{self, Overview, Snapshot};
use crate::model::claim::Claim;
use crate::model::evidence::Actor;
use crate::model::limits::Closed;
use crate::model::moment::Moment;
use crate::model::standing::Standing;
use crate::web::problem::{Problem, html};
use crate::web::state::WebState;
use crate::web::texts::{self as t, operator as o};
use crate::web::visible::visible;

/// So many edges, lines of each ledger, and places of each queue are on the first page; each has a page of its own.
const EDGES: usize = 12;
const TOKENS: usize = 6;
const PLACES: usize = 5;

/// A bar of a picture, with what it says in words.
struct Bar {
    name: &'static str,
    tone: &'static str,
    n: String,
    /// Of a thousand.
    width: i64,
    /// Where it begins in the stacked picture.
    from: i64,
    /// Its part of the whole, in percent.
    percent: String,
    /// Where its domains are listed.
    href: Option<String>,
}

struct Group {
    code: &'static str,
    sentence: &'static str,
    acts: &'static str,
    tone: &'static str,
    n: String,
    rows: Vec<Line>,
}

#[derive(Template)]
#[template(path = "operator/overview.html")]
struct Page {
    here: &'static str,
    counted: When,
    open: i64,
    total: String,
    served: String,
    alarms: Vec<String>,
    movers: Vec<Bar>,
    claims: Vec<Bar>,
    groups: Vec<Group>,
    more_groups: usize,
    queues: Vec<QueueView>,
    tokens: Vec<TokenLine>,
    edges: Vec<EdgeLine>,
    edge_count: usize,
    counted_edges: usize,
    ending: Vec<(i64, String)>,
}

/// `GET /operator`
pub(in crate::web) async fn show(State(state): State<WebState>, _: Operator) -> Result<Html<String>, Problem> {
    let overview = fleet::overview(&state.app).await?;
    html(&page(&overview, state.app.env.now(), state.app.settings.min_edges))
}

fn page(overview: &Overview, now: Moment, min_edges: usize) -> Page {
    let s = &overview.snapshot;
    let open = s.domains(|c| c.claim.is_open());
    let served = s.domains(|c| c.standing.is_some_and(Standing::serves));
    let group = |g: &fleet::StuckGroup| Group {
        code: g.standing.code(),
        sentence: g.standing.sentence(),
        acts: actor_move(g.standing.acts()),
        tone: actor_tone(g.standing.acts()),
        n: grouped(g.domains),
        rows: Line::all(&g.worst, now),
    };
    Page {
        here: "overview",
        counted: When::at(s.taken_at.min(overview.played.taken_at), now),
        open,
        total: grouped(open),
        served: grouped(served),
        alarms: alarms(overview, now, min_edges),
        movers: movers(s, open, served),
        claims: claims(s),
        groups: overview.snapshot.stuck.groups.iter().map(group).collect(),
        more_groups: overview.snapshot.stuck.more,
        queues: queue_views(&overview.played.queues, now, PLACES),
        tokens: overview
            .budgets
            .iter()
            .flat_map(|b| b.tokens.iter().take(TOKENS).map(|t| TokenLine::of(b, t, now)))
            .collect(),
        edges: overview.edges.edges.iter().take(EDGES).map(|e| EdgeLine::of(e, now)).collect(),
        edge_count: overview.edges.edges.len(),
        counted_edges: overview.edges.counted(),
        ending: [7, 14, 30].map(|days| (days, grouped(within(&s.ending, now, days)))).to_vec(),
    }
}

/// What needs somebody now, the worst first.
fn alarms(overview: &Overview, now: Moment, min_edges: usize) -> Vec<String> {
    let mut out = Vec::new();
    match overview.snapshot.ended {
        0 => {}
        1 => out.push(o::one_ended().to_owned()),
        n => out.push(o::n_ended(grouped(n)).plain()),
    }
    let counted = overview.edges.counted();
    match (counted, min_edges.max(1)) {
        (counted, wanted) if counted >= wanted => {}
        (1, wanted) => out.push(o::one_edge_missing(wanted).plain()),
        (counted, wanted) => out.push(o::edges_missing(counted, wanted).plain()),
    }
    match (overview.edges.in_trouble(), overview.edges.edges.len()) {
        (0, _) => {}
        (_, 1) => out.push(o::only_edge_in_trouble().to_owned()),
        (1, all) => out.push(o::one_edge_in_trouble(all).plain()),
        (n, all) => out.push(o::edges_in_trouble(n, all).plain()),
    }
    match overview.edges.exceptions.len() {
        0 => {}
        1 => out.push(o::one_not_served().to_owned()),
        n => out.push(o::not_served(n).plain()),
    }
    for budget in overview.budgets.iter().filter(|b| b.in_use) {
        out.extend(trouble(budget, now));
        let shut = budget.tokens.iter().filter(|t| t.closed.as_ref().is_some_and(|s| s.why == Closed::Paused)).count();
        match shut {
            0 => {}
            1 => out.push(o::one_name_paused(&budget.issuer).plain()),
            n => out.push(o::names_paused(&budget.issuer, n).plain()),
        }
        if let Some(until) = budget.paused_until {
            out.push(o::nothing_before(&budget.issuer, When::at(until, now).full).plain());
        }
        if !budget.has_account {
            out.push(match budget.account_problem.as_deref() {
                None => o::no_account_yet(&budget.issuer).plain(),
                Some(why) => o::no_account_because(&budget.issuer, visible(why)).plain(),
            });
        }
    }
    out
}

fn bar(name: &'static str, tone: &'static str, n: i64, all: i64, href: Option<String>) -> Bar {
    let permille = if all > 0 { n.saturating_mul(1000) / all } else { 0 };
    Bar {
        name,
        tone,
        n: grouped(n),
        width: share(n, all),
        from: 0,
        percent: o::percent(format!("{}.{}", permille / 10, permille % 10)).plain(),
        href,
    }
}

/// Open claims by whose move it is; those that are served wait for nobody and stand apart.
fn movers(s: &Snapshot, open: i64, served: i64) -> Vec<Bar> {
    let mut bars = vec![bar(o::served(), "good", served, open, Some("/operator/domains?reason=serving".into()))];
    for actor in Actor::ALL {
        let n = s.domains(|c| c.claim.is_open() && c.acts == *actor && !c.standing.is_some_and(Standing::serves));
        let name = if *actor == Actor::Nobody { o::under_way() } else { actor_word(*actor) };
        let href = (*actor != Actor::Nobody).then(|| format!("/operator/domains?acts={}", actor.as_str()));
        bars.push(bar(name, actor_tone(*actor), n, open, href));
    }
    let mut from = 0;
    for bar in &mut bars {
        bar.from = from;
        bar.width = bar.width.min(1000 - from);
        from += bar.width;
    }
    bars
}

fn claims(s: &Snapshot) -> Vec<Bar> {
    let all = s.domains(|_| true);
    Claim::ALL
        .iter()
        .map(|claim| bar(claim_word(*claim), claim_tone(*claim), s.domains(|c| c.claim == *claim), all, None))
        .collect()
}
