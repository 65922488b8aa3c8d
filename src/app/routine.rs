//! Daily rechecks of live names, as read-only batches: only a difference wakes the one door.
//!
//! How far the day's walk has come is one row, written when a batch ends, which time decides and not the number of names: what is
//! written grows with what changed, never with the fleet.

use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::{App, AppError, observe, preflight};
use crate::model::checks;
use crate::model::id::DomainId;
use crate::model::look::{Depth, Lane, Turn};
use crate::model::routine;
use crate::store::routine::Cursor;
use crate::store::{self, situation};
use crate::telemetry::Chain;

/// Domains that are read at once.
const PAGE: usize = 100;
/// Looks under way at once.
const AT_ONCE: usize = 16;
/// A batch ends with the page that is under way after this: no more than about this is done again after a crash.
const LASTS: Duration = Duration::from_secs(10);

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Names looked at.
    pub looked: usize,
    /// Names that look different and are due now.
    pub differ: usize,
    /// Whether more are due.
    pub more: bool,
}

/// One batch of what is due by now. A batch whose end was never recorded is done again, which only reads.
pub async fn batch(app: &App) -> Result<Batch, AppError> {
    let (day, slot) = routine::position(app.env.now());
    let until = format!("{slot:04x}");
    let at = store::routine::cursor(&app.store, &Cursor { lap: day, done: until.clone() }).await?;
    if at.lap > day + 1 {
        // A clock that ran ahead was here; beside it, one may be on the other side of midnight.
        store::routine::advance(&app.store, &at, &Cursor { lap: day, done: String::new() }).await?;
        return Ok(Batch { more: true, ..Batch::default() });
    }
    // A day that passed while nobody looked is finished first; one is enough, however many passed.
    let end = if at.lap < day { "ffff".to_owned() } else { until };
    let mut walk = Walk { done: at.done.clone(), end, over: false };
    let (mut batch, ends) = (Batch::default(), app.env.now() + LASTS);
    while !walk.over && app.env.now() < ends {
        let page = walk.page(app).await?;
        batch.looked += page.len();
        // Nothing else waits for the store while looks are under way: they may hold the connections that it would wait for.
        let looks = stream::iter(page).map(|id| async move { (look(app, &id).await, id) });
        let seen: Vec<_> = looks.buffer_unordered(AT_ONCE).collect().await;
        for (differs, id) in seen {
            match differs {
                Ok(false) => {}
                Ok(true) => {
                    let asked = store::routine::ask_full_look(&app.store, &id, app.env.now()).await?;
                    batch.differ += usize::from(asked);
                }
                // One name's row must not keep the others from their look.
                Err(e) => tracing::warn!(domain.id = %id, error = %Chain(&e), "a routine look could not be made"),
            }
        }
    }
    let to = match (walk.over, at.lap < day) {
        (true, true) => Cursor { lap: day, done: String::new() },
        _ => Cursor { lap: at.lap, done: walk.done },
    };
    batch.more = !walk.over || to.lap != at.lap;
    if to != at {
        store::routine::advance(&app.store, &at, &to).await?;
    }
    Ok(batch)
}

/// A walk through the slots of a day, page by page.
struct Walk {
    /// The last slot that is taken.
    done: String,
    end: String,
    /// Whether the last page is taken.
    over: bool,
}

impl Walk {
    async fn page(&mut self, app: &App) -> Result<Vec<DomainId>, AppError> {
        let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let mut due = store::routine::due(&app.store, &self.done, &self.end, limit).await?;
        self.over = due.len() < PAGE;
        if self.over {
            self.done.clone_from(&self.end);
        } else {
            let last = due.last().map(|(slot, _)| slot.clone()).unwrap_or_default();
            if due.first().is_some_and(|(slot, _)| *slot == last) {
                // A slot with more names than a page: all of it, so that the walk can pass it.
                due = store::routine::due(&app.store, &self.done, &last, i64::MAX).await?;
            } else {
                // The last slot may be cut in the middle: it is left for the next page.
                due.retain(|(slot, _)| *slot != last);
            }
            self.done = due.last().map(|(slot, _)| slot.clone()).unwrap_or(last);
        }
        Ok(due.into_iter().map(|(_, id)| id).collect())
    }
}

/// Looks through one resolver; whether what is seen differs from the domain's evidence.
async fn look(app: &App, id: &DomainId) -> Result<bool, AppError> {
    let s = situation::around(&app.store, id, app.edges()).await?;
    let mut ask = observe::question(app, &s, Vec::new()).await;
    ask.depth = Depth::Routine;
    ask.turn = Turn::of(&s.domain.tenant_id, Lane::Routine);
    let seen = app.look.look(&ask).await;
    let mut findings = checks::judge(&ask, &seen);
    preflight::behind_proxy(app, &s, false, &mut findings).await?;
    Ok(routine::differs(&s.domain.evidence, &findings))
}
