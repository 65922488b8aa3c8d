//! Daily rechecks of live names, as read-only batches: only a difference wakes the one door.
//!
//! One process walks at a time. How far the walk has come, and whose it is, is one row, written when a batch ends, which time
//! decides and not the number of names: what is written grows with what changed, never with the fleet. Names flow through a
//! fixed number of places, and the next is read when one is free: who answers slowly holds a place and nobody else. While no resolver
//! of ours answers the walk stands still: that is one trouble of ours, not one of each name.

use std::time::Duration;
use std::vec;

use futures::stream::{FuturesUnordered, TryStreamExt as _};
use tokio::sync::Mutex;

use super::{App, AppError, observe, preflight};
use crate::model::checks;
use crate::model::id::DomainId;
use crate::model::look::{Depth, Lane, Turn};
use crate::model::moment::Moment;
use crate::model::reason::Reason;
use crate::model::routine::{self, Cursor, Stretch};
use crate::store::{self, situation};
use crate::telemetry::Chain;

/// Domains that are read at once.
const PAGE: usize = 100;
/// Looks under way at once.
const AT_ONCE: usize = 16;
/// A batch begins no more looks after this: no more than about this is done again after a crash.
const LASTS: Duration = Duration::from_secs(10);
/// How long the walk stays with a process that is not heard of any more: longer than a batch whose names are all silent, and
/// than clocks of one fleet differ.
const LEASE: Duration = Duration::from_secs(300);

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Names looked at.
    pub looked: usize,
    /// Names that look different and are due now.
    pub differ: usize,
    /// Looks in which no resolver of ours answered; these names are looked at again.
    pub unheard: usize,
    /// Whether more are due.
    pub more: bool,
}

/// One batch of what is due by now; nothing while another process is at it. A batch whose end was never recorded is done again,
/// which only reads.
pub async fn batch(app: &App) -> Result<Batch, AppError> {
    let now = app.env.now();
    let walk = store::routine::walk(&app.store, Cursor::due(now)).await?;
    let Some(stretch) = Stretch::due(walk.done, now) else { return Ok(Batch::default()) };
    let Some(term) = ours(app, &walk, stretch, now).await? else { return Ok(Batch::default()) };
    let names = Mutex::new(Names::of(app, stretch, now + LASTS));
    // Pages and looks are polled together: one that stood still might hold the connection that another waits for.
    let places: FuturesUnordered<_> = (0..AT_ONCE).map(|_| place(app, &names)).collect();
    let looks: Vec<Batch> = places.try_collect().await?;
    let sum = |of: fn(&Batch) -> usize| looks.iter().map(of).sum();
    let (looked, differ, unheard) = (sum(|l| l.looked), sum(|l| l.differ), sum(|l| l.unheard));
    let done = names.into_inner().done;
    if unheard > 0 {
        tracing::warn!("no resolver of ours answers: the daily looks stand still until one does");
    }
    let more = unheard == 0 && Stretch::due(done, now).is_some();
    // The next batch finds the walk still with this process, unless another may be answered where this one is not.
    let keep = more.then(|| app.env.now() + LEASE);
    let unheard_since = match looked {
        _ if unheard > 0 => walk.unheard_since.or(Some(now)),
        0 => walk.unheard_since,
        _ => None,
    };
    let moved = store::routine::advance(&app.store, term, done, keep, unheard_since).await?;
    if !moved {
        tracing::warn!(looked, "another process took the walk of the daily looks meanwhile; it looks at these names again");
    }
    Ok(Batch { looked, differ, unheard, more: more && moved })
}

/// The number by which the walk is this process's, which takes it where it has to; nothing while it is another's.
async fn ours(app: &App, walk: &store::routine::Walk, stretch: Stretch, now: Moment) -> Result<Option<i64>, AppError> {
    let kept = walk.owner.as_deref() == Some(&*app.worker) && walk.leased_until > now + LEASE / 2;
    if kept && walk.done == stretch.from() {
        return Ok(Some(walk.term));
    }
    Ok(store::routine::take(&app.store, walk, stretch.from(), &app.worker, (now, now + LEASE)).await?)
}

/// The names of a stretch, one by one, as long as there is time.
struct Names<'a> {
    app: &'a App,
    stretch: Stretch,
    ends: Moment,
    /// Read, and not handed out yet; the last one that was read, and whether there are none behind it.
    page: vec::IntoIter<DomainId>,
    after: Option<DomainId>,
    last_page: bool,
    /// All before this were handed out, ...
    done: Cursor,
    /// ... and no more will be.
    over: bool,
}

impl<'a> Names<'a> {
    fn of(app: &'a App, stretch: Stretch, ends: Moment) -> Self {
        let page = Vec::new().into_iter();
        Names { app, stretch, ends, page, after: None, last_page: false, done: stretch.from(), over: false }
    }

    /// The next one. A slot that was begun is finished, since slots are what the cursor counts.
    async fn next(&mut self) -> Result<Option<DomainId>, AppError> {
        if self.over {
            return Ok(None);
        }
        if self.page.len() == 0 && !self.last_page {
            let page = store::routine::due(&self.app.store, self.stretch, self.after.as_ref(), PAGE).await?;
            self.last_page = page.len() < PAGE;
            self.after = page.last().cloned();
            self.page = page.into_iter();
        }
        let next = self.page.next();
        let before = next.as_ref().map_or(self.stretch.to(), |id| self.stretch.before(id));
        self.over = next.is_none() || (before != self.done && self.app.env.now() >= self.ends);
        self.done = before;
        Ok(next.filter(|_| !self.over))
    }

    /// No more are handed out, and this one and those behind it are looked at again.
    fn stop_before(&mut self, id: &DomainId) {
        self.over = true;
        self.done = self.done.min(self.stretch.before(id));
    }
}

/// One of the places: looks at one name after the other.
async fn place(app: &App, names: &Mutex<Names<'_>>) -> Result<Batch, AppError> {
    let mut looks = Batch::default();
    loop {
        let next = names.lock().await.next().await?;
        let Some(id) = next else { return Ok(looks) };
        looks.looked += 1;
        match look(app, &id).await {
            Ok(Look::Same) => {}
            Ok(Look::Differs) => looks.differ += 1,
            Ok(Look::Unheard) => {
                looks.unheard += 1;
                names.lock().await.stop_before(&id);
            }
            // One name's row must not keep the others from their look.
            Err(e) => tracing::warn!(domain.id = %id, error = %Chain(&e), "a routine look could not be made"),
        }
    }
}

/// What a look came to.
enum Look {
    /// Nothing has changed.
    Same,
    /// What is seen differs from the domain's evidence, and the one door was asked to look.
    Differs,
    /// No resolver of ours answers anything: that says nothing of the name.
    Unheard,
}

/// Looks through one resolver.
async fn look(app: &App, id: &DomainId) -> Result<Look, AppError> {
    let s = situation::around(&app.store, id, app.edges()).await?;
    let mut ask = observe::question(app, &s, Vec::new()).await;
    ask.depth = Depth::Routine;
    ask.turn = Turn::of(&s.domain.tenant_id, Lane::Routine);
    let seen = app.look.look(&ask).await;
    let mut findings = checks::judge(&ask, &seen);
    if findings.iter().any(|f| f.reason == Reason::ResolverUnavailable) {
        return Ok(Look::Unheard);
    }
    preflight::behind_proxy(app, &s, false, &mut findings).await?;
    let asked = routine::differs(&s.domain.evidence, &findings)
        && store::routine::ask_full_look(&app.store, id, app.env.now()).await?;
    Ok(if asked { Look::Differs } else { Look::Same })
}
