//! Replacing certificates out of turn: what an operator does after a CA's mistake, or before it is left.
//!
//! What is asked for is durable before anything is selected; selecting goes on in whatever process is there ([`round`]). Orders wait
//! behind all whose certificate is due. When it will be done is told by the queue itself, played with those who have yet to join it.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{App, AppError, fleet};
use crate::env::Env;
use crate::mint;
use crate::model::dispatch::Waiting;
use crate::model::id::{DomainId, EventId, OrderId, ReissueId};
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::model::outcome::NewEvent;
use crate::store::fleet::queue::QueuedRow;
use crate::store::reissues::{self, GivenUp, Marked, ReissueRow, Selected, Selection};
use crate::store::{Store, StoreResult, Tx};

/// Names are looked at anew before they are ordered for: so many a second begin.
const A_SECOND: u32 = 10;
/// An order that is held back for no longer is on its way to the queue: its name is being looked at.
const BEING_LOOKED_AT: Duration = Duration::from_secs(600);

/// What is told when one begins, is done, is given up.
pub const BEGAN: &str = "reissue_began";
/// All of it is replaced.
pub const FINISHED: &str = "reissue_finished";
/// What is left of it is given up.
pub const GIVEN_UP: &str = "reissue_given_up";

/// A selection in words.
fn in_words(selection: &Selection) -> String {
    match selection {
        Selection::Issuer(name) => format!("issued by {name}"),
        Selection::Serials(serials) => format!("{} serial numbers", serials.iter().filter(|s| !s.starts_with("00")).count()),
        Selection::Before(at) => format!("valid from before {at}"),
    }
}

/// A serial number as lists have it (hex with or without colons, `0x` or leading zeros) in both forms that DER has it in, with and without
/// a zero octet before a set first bit; nothing for what is none.
pub fn serial_forms(text: &str) -> Option<[String; 2]> {
    let hex: String = text.chars().filter(|c| !matches!(c, ':' | ' ')).collect::<String>().to_ascii_lowercase();
    let hex = hex.trim_start_matches("0x").trim_start_matches('0');
    if hex.is_empty() || hex.len() > 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let even = if hex.len().is_multiple_of(2) { hex.to_owned() } else { format!("0{hex}") };
    Some([format!("00{even}"), even])
}

/// The selection of these serial numbers.
pub fn of_serials(forms: impl IntoIterator<Item = [String; 2]>) -> Selection {
    let mut all: Vec<String> = forms.into_iter().flatten().collect();
    all.sort();
    all.dedup();
    Selection::Serials(all)
}

fn news(kind: &'static str, actor: &str, cause: String, id: &str, row: Option<&ReissueRow>) -> NewEvent {
    let detail =
        json!({"reissue": id, "certificates": row.map(|row| row.certificates), "given_up": row.map(|row| row.given_up)});
    NewEvent { kind, actor: actor.to_owned(), cause, detail }
}

/// Writes down that what is selected is to be replaced. Nothing is lost from here on; [`go_on`] or any process's [`round`] does it.
pub async fn begin(tx: &mut Tx, env: &Env, selection: &Selection, actor: &str) -> StoreResult<Progress> {
    let (id, now) = (mint!(env, ReissueId), env.now());
    let words = in_words(selection);
    reissues::create(tx, &id, &words, selection, actor, now).await?;
    let told = news(BEGAN, actor, format!("certificates in use are to be replaced: those {words}"), id.as_str(), None);
    reissues::tell(tx, &mint!(env, EventId), &told, now).await?;
    Ok(Progress {
        id: id.to_string(),
        selection: words,
        actor: actor.to_owned(),
        state: State::Selecting,
        certificates: 0,
        done: 0,
        left: 0,
        at_ca: 0,
        held_back: 0,
        given_up: 0,
        created_at: now.rfc3339(),
        cancelled_at: None,
        finished_at: None,
        eta: None,
    })
}

/// The same, and selects at once.
pub async fn begin_now(store: &Store, env: &Env, selection: &Selection, actor: &str) -> StoreResult<Progress> {
    let mut tx = store.begin().await?;
    let begun = begin(&mut tx, env, selection, actor).await?;
    tx.commit().await?;
    go_on(store, &begun.id).await?;
    Ok(show(store, env, &begun.id).await?.unwrap_or(begun))
}

/// Selects what is not selected yet, from where whoever did so before was stopped.
pub async fn go_on(store: &Store, id: &str) -> StoreResult<()> {
    while let Some(row) = reissues::find(store, id).await? {
        let (Some(from), Some(wanted)) = (&row.marking, &row.wanted) else { return Ok(()) };
        let Ok(id) = row.id.parse::<ReissueId>() else { return Ok(()) };
        let page = reissues::select(store, wanted, row.created_at, from).await?;
        let begun = usize::try_from(row.certificates).unwrap_or(0);
        let these: Vec<(Selected, Moment)> =
            page.these.into_iter().enumerate().map(|(n, s)| (s, due(row.created_at, begun + n))).collect();
        // Whether it was us or somebody else: the row says where it goes on.
        reissues::mark(store, &id, from, page.next.as_deref(), &these).await?;
    }
    Ok(())
}

/// When the n-th begins.
fn due(begin: Moment, n: usize) -> Moment {
    begin + Duration::from_secs(1) / A_SECOND * u32::try_from(n).unwrap_or(u32::MAX)
}

/// Gives one up: what only waits ends, what is at the CA goes on.
pub async fn cancel(store: &Store, env: &Env, id: &str, actor: &str) -> StoreResult<GivenUp> {
    let mut tx = store.begin().await?;
    let cause = "a replacement is given up; what is at the CA already goes on".to_owned();
    let given_up =
        reissues::give_up(&mut tx, id, &mint!(env, EventId), &news(GIVEN_UP, actor, cause, id, None), env.now()).await?;
    tx.commit().await?;
    if given_up == GivenUp::Now {
        while reissues::unmark(store, id, env.now()).await? {}
    }
    Ok(given_up)
}

/// One round: whatever was begun and stopped on the way goes on, and what is done is told.
pub async fn round(app: &App) -> Result<(), AppError> {
    for row in reissues::open(&app.store).await? {
        if row.cancelled_at.is_some() {
            while reissues::unmark(&app.store, &row.id, app.env.now()).await? {}
        } else if row.marking.is_some() {
            go_on(&app.store, &row.id).await?;
        } else if row.left == 0 {
            let told = news(
                FINISHED,
                "nameplate",
                "everything that was to be replaced is replaced".to_owned(),
                &row.id,
                Some(&row),
            );
            reissues::finish(&app.store, &row.id, &mint!(app.env, EventId), &told, app.env.now()).await?;
        }
    }
    Ok(())
}

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
pub async fn plan(store: &Store, env: &Env, selection: &Selection) -> StoreResult<Plan> {
    let (now, mut from, mut joining) = (env.now(), String::new(), Vec::new());
    loop {
        let page = reissues::select(store, selection, now, &from).await?;
        for s in page.these {
            let at = due(now, joining.len());
            joining.push(joins(joining.len(), s.domain_id, s.tenant_id, s.hostname, at));
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
fn joins(
    n: usize,
    domain_id: DomainId,
    tenant_id: crate::model::id::TenantId,
    name: crate::model::hostname::Hostname,
    at: Moment,
) -> QueuedRow {
    let mut drawn = [0; 10];
    drawn[2..].copy_from_slice(&u64::try_from(n).unwrap_or(u64::MAX).to_be_bytes());
    let order_id = OrderId::mint(at, drawn);
    let waiting = Waiting { order_id, tenant_id, lane: Lane::Bulk, not_before: at, served: 0, name };
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
    /// Who asked for it.
    pub actor: String,
    /// `selecting`, `under_way`, `finished` or `cancelled`.
    #[schema(inline)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words are explained where they are used")]
pub enum State {
    Selecting,
    UnderWay,
    Finished,
    Cancelled,
}

impl State {
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
            left.sort(name, &mut joining, now);
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
    fn sort(&mut self, name: Marked, joining: &mut Vec<QueuedRow>, now: Moment) {
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
            joining.push(joins(joining.len(), name.domain_id.clone(), name.tenant_id, name.hostname, at));
        } else if !in_line {
            self.held_back += 1;
            return;
        }
        self.awaited.push(name.domain_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_are_read_as_lists_have_them() {
        let forms = |text| serial_forms(text).map(|forms| forms.join(" "));
        assert_eq!(forms("04:A7:c3").as_deref(), Some("0004a7c3 04a7c3"));
        assert_eq!(forms("0xff01").as_deref(), Some("00ff01 ff01"));
        assert_eq!(forms("4a7c3").as_deref(), Some("0004a7c3 04a7c3"));
        for wrong in ["", "0", "xyz", "\u{202e}04", &"f".repeat(65)] {
            assert_eq!(forms(wrong), None, "{wrong:?}");
        }
    }
}
