//! Documents of replacements: what one would come to, and how far it is.
//!
//! When it will be done is told by the queue itself, played with those who have yet to join it.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use super::words;
use crate::app::fleet;
use crate::app::reissue::{Begun, due};
use crate::env::Env;
use crate::model::dispatch::Waiting;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, OrderId, TenantId};
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::store::fleet::queue::QueuedRow;
use crate::store::reissues::{self, Marked, ReissueRow, Selection};
use crate::store::{Store, StoreResult};

/// An order that is held back for no longer is on its way to the queue: its name is being looked at.
const BEING_LOOKED_AT: Duration = Duration::from_secs(600);

/// What a replacement would come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ReissuePlan)]
pub struct Plan {
    /// How many certificates in use are selected and not on their way already.
    pub certificates: i64,
    /// When the last of their orders could be placed, as the queue and the budget are now.
    #[schema(format = "date-time", required)]
    pub eta: Option<String>,
}

/// Selects, and changes nothing.
pub async fn plan(store: &Store, env: &Env, selection: &Selection, lane: Lane) -> StoreResult<Plan> {
    let (now, mut from, mut joining) = (env.now(), String::new(), Vec::new());
    loop {
        let page = reissues::select(store, selection, now, &from).await?;
        for s in page.these {
            let at = due(now, joining.len());
            joining.push(joins(joining.len(), lane, s.domain_id, s.tenant_id, s.hostname, at));
        }
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    let certificates = i64::try_from(joining.len()).unwrap_or(i64::MAX);
    let domains: Vec<DomainId> = joining.iter().map(|row| row.domain_id.clone()).collect();
    let queues = fleet::queues_with(store, joining, now).await?;
    Ok(Plan { certificates, eta: last_of(&queues, domains.iter()).map(Moment::rfc3339) })
}

/// An order that will be opened, as the queue will have it.
fn joins(n: usize, lane: Lane, domain_id: DomainId, tenant_id: TenantId, name: Hostname, at: Moment) -> QueuedRow {
    let mut drawn = [0; 10];
    drawn[2..].copy_from_slice(&u64::try_from(n).unwrap_or(u64::MAX).to_be_bytes());
    let order_id = OrderId::mint(at, drawn);
    let waiting = Waiting { order_id, tenant_id, lane, not_before: at, ends: Moment::NEVER, served: 0, name };
    QueuedRow { waiting, domain_id, tenant_slug: String::new(), held_by: None }
}

/// When the last of these is served.
fn last_of<'d>(queues: &[fleet::IssuerQueue], domains: impl Iterator<Item = &'d DomainId>) -> Option<Moment> {
    domains.filter_map(|id| fleet::place_of(queues, id).and_then(|(_, place)| place.eta)).max()
}

/// How far a replacement is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Reissue)]
pub struct Progress {
    /// Its id.
    #[schema(example = "rei_019b0000000070008000000000000001")]
    pub id: String,
    /// What was selected, in words.
    #[schema(example = "issued by letsencrypt")]
    pub selection: String,
    /// Whether its orders are placed among those of renewals that are due, instead of after them.
    pub priority: bool,
    /// Who asked for it.
    pub actor: String,
    /// `selecting`, `under_way`, `finished` or `cancelled`.
    #[schema(schema_with = words::reissue_state)]
    pub state: State,
    /// How many certificates it is about; more may come while it is selecting.
    pub certificates: i64,
    /// How many were replaced, or are not in use any more.
    pub done: i64,
    /// How many are not replaced yet.
    pub left: i64,
    /// How many of those left have an order at the certificate authority now.
    pub at_ca: i64,
    /// How many of those left are held back until a check of theirs passes again; `eta` does not speak of them.
    pub held_back: i64,
    /// How many were given up.
    pub given_up: i64,
    /// When it was begun.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// When it was given up, if it was.
    #[schema(format = "date-time", required)]
    pub cancelled_at: Option<String>,
    /// When all was found to be replaced.
    #[schema(format = "date-time", required)]
    pub finished_at: Option<String>,
    /// When the last of those left is expected to have its turn, as the queue and the budget are now.
    #[schema(format = "date-time", required)]
    pub eta: Option<String>,
}

/// Where a replacement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are explained where they are used")]
pub enum State {
    Selecting,
    UnderWay,
    Finished,
    Cancelled,
}

impl State {
    pub(super) const ALL: &[State] = &[State::Selecting, State::UnderWay, State::Finished, State::Cancelled];

    fn of(row: &ReissueRow) -> State {
        match row {
            _ if row.cancelled_at.is_some() => State::Cancelled,
            _ if row.marking.is_some() => State::Selecting,
            _ if row.left == 0 => State::Finished,
            _ => State::UnderWay,
        }
    }

    /// As people read it.
    pub const fn word(self) -> &'static str {
        match self {
            State::Selecting => "selecting",
            State::UnderWay => "under way",
            State::Finished => "done",
            State::Cancelled => "given up",
        }
    }
}

impl From<Begun> for Progress {
    /// One of which nothing is selected yet.
    fn from(begun: Begun) -> Progress {
        Progress {
            id: begun.id.to_string(),
            selection: begun.selection,
            priority: begun.hurries,
            actor: begun.actor,
            state: State::Selecting,
            certificates: 0,
            done: 0,
            left: 0,
            at_ca: 0,
            held_back: 0,
            given_up: 0,
            created_at: begun.at.rfc3339(),
            cancelled_at: None,
            finished_at: None,
            eta: None,
        }
    }
}

fn lane_of(row: &ReissueRow) -> Lane {
    if row.hurries { Lane::Renewal } else { Lane::Bulk }
}

/// A page of replacements, the latest first, before this id.
pub async fn list(store: &Store, env: &Env, before: &str, limit: i64) -> StoreResult<Vec<Progress>> {
    progress(store, env, reissues::list(store, before, limit).await?).await
}

/// One of them.
pub async fn show(store: &Store, env: &Env, id: &str) -> StoreResult<Option<Progress>> {
    let row = reissues::find(store, id).await?;
    Ok(progress(store, env, row.into_iter().collect()).await?.pop())
}

/// What is left of one: how much of it where, and whose turns are awaited.
#[derive(Default)]
struct Left {
    at_ca: i64,
    held_back: i64,
    awaited: Vec<DomainId>,
}

async fn progress(store: &Store, env: &Env, rows: Vec<ReissueRow>) -> StoreResult<Vec<Progress>> {
    let (now, mut joining, mut lefts) = (env.now(), Vec::new(), Vec::new());
    for row in &rows {
        let mut left = Left::default();
        let marked = if row.left > 0 { reissues::marked(store, &row.id).await? } else { Vec::new() };
        for name in marked {
            left.sort(name, lane_of(row), &mut joining, now);
        }
        lefts.push(left);
    }
    joining.sort_by(|a: &QueuedRow, b| a.waiting.order_id.cmp(&b.waiting.order_id));
    let queues = match lefts.iter().all(|left| left.awaited.is_empty()) {
        true => Vec::new(),
        false => fleet::queues_with(store, joining, now).await?,
    };
    let one = |(row, left): (ReissueRow, Left)| Progress {
        state: State::of(&row),
        done: row.certificates - row.left - row.given_up,
        eta: last_of(&queues, left.awaited.iter()).map(Moment::rfc3339),
        id: row.id,
        selection: row.selection,
        priority: row.hurries,
        actor: row.actor,
        certificates: row.certificates,
        left: row.left,
        at_ca: left.at_ca,
        held_back: left.held_back,
        given_up: row.given_up,
        created_at: row.created_at.rfc3339(),
        cancelled_at: row.cancelled_at.map(Moment::rfc3339),
        finished_at: row.finished_at.map(Moment::rfc3339),
    };
    Ok(rows.into_iter().zip(lefts).map(one).collect())
}

impl Left {
    fn sort(&mut self, name: Marked, lane: Lane, joining: &mut Vec<QueuedRow>, now: Moment) {
        let joins_soon = match &name.order {
            _ if !name.tied => false,
            None => true,
            Some((state, since, held)) if state == "waiting" => *held && now.since(*since) < BEING_LOOKED_AT,
            Some(_) => {
                self.at_ca += 1;
                return;
            }
        };
        let in_line = name.tied && name.order.as_ref().is_some_and(|(_, _, held)| !held);
        if joins_soon {
            let at = name.due_at.max(now);
            joining.push(joins(joining.len(), lane, name.domain_id.clone(), name.tenant_id, name.hostname, at));
        } else if !in_line {
            self.held_back += 1;
            return;
        }
        self.awaited.push(name.domain_id);
    }
}
