//! Daily rechecks of live names, as read-only batches: only a difference wakes the one door.

use futures::stream::{self, StreamExt as _};

use super::{App, AppError, observe, preflight};
use crate::model::checks;
use crate::model::id::DomainId;
use crate::model::look::{Depth, Lane, Turn};
use crate::model::routine;
use crate::store::routine::Cursor;
use crate::store::{self, situation};
use crate::telemetry::Chain;

/// Domains looked at in one batch.
const BATCH: usize = 100;
/// Looks under way at once.
const AT_ONCE: usize = 16;

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
    let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
    let mut due = store::routine::due(&app.store, &at.done, &end, limit).await?;
    let full = due.len() == BATCH;
    if full && due.first().map(|(slot, _)| slot) == due.last().map(|(slot, _)| slot) {
        // A slot with more names than a batch: all of it, so that the cursor can pass it.
        let slot = due[0].0.clone();
        due = store::routine::due(&app.store, &at.done, &slot, i64::MAX).await?;
    } else if full {
        // The last slot may be cut in the middle: it is left for the next batch.
        let cut = due.last().map(|(slot, _)| slot.clone()).unwrap_or_default();
        due.retain(|(slot, _)| *slot != cut);
    }
    let done = if full { due.last().map(|(slot, _)| slot.clone()).unwrap_or(end) } else { end };
    let looked = due.len();
    let seen: Vec<Result<Option<DomainId>, AppError>> =
        stream::iter(due).map(|(_, id)| look(app, id)).buffer_unordered(AT_ONCE).collect().await;
    let mut differ = 0;
    for seen in seen {
        match seen {
            Ok(None) => {}
            Ok(Some(id)) => differ += usize::from(store::routine::ask_full_look(&app.store, &id, app.env.now()).await?),
            // One name's row must not keep the others from their look.
            Err(e) => tracing::warn!(error = %Chain(&e), "a routine look could not be made"),
        }
    }
    let to = match (full, at.lap < day) {
        (false, true) => Cursor { lap: day, done: String::new() },
        _ => Cursor { lap: at.lap, done },
    };
    let more = full || to.lap != at.lap;
    store::routine::advance(&app.store, &at, &to).await?;
    Ok(Batch { looked, differ, more })
}

/// Looks through one resolver; the domain's id when what is seen differs from its evidence.
async fn look(app: &App, id: DomainId) -> Result<Option<DomainId>, AppError> {
    let s = situation::around(&app.store, &id, app.edges()).await?;
    let mut ask = observe::question(app, &s, Vec::new()).await;
    ask.depth = Depth::Routine;
    ask.turn = Turn::of(&s.domain.tenant_id, Lane::Routine);
    let seen = app.look.look(&ask).await;
    let mut findings = checks::judge(&ask, &seen);
    preflight::behind_proxy(app, &s, false, &mut findings).await?;
    Ok(routine::differs(&s.domain.evidence, &findings).then_some(id))
}
