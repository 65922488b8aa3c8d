//! The one door: `advance` moves a domain by one step, from whatever state a crash left it in.
//!
//! Steps that follow each other at once are one worker's: the record of one takes the lease for the next, so that in between
//! nothing is written but what was found and done.

use std::time::Duration;

use super::{App, AppError, act, keys, observe};
use crate::mint;
use crate::model::claim::Claim;
use crate::model::conclude::{self, Conclusion};
use crate::model::domain::Situation;
use crate::model::id::{DomainId, EventId};
use crate::model::moment::Moment;
use crate::model::order::OrderState;
use crate::model::outcome::{Outcome, Write};
use crate::model::plan::{self, Next};
use crate::store::record::{self, Keep, Recorded};
use crate::store::situation::{LeaseTerms, Taken};
use crate::store::{StoreError, situation};
use crate::telemetry::Chain;
use crate::telemetry::metrics::StepOutcome;

/// Longer than the longest step at a CA: three calls there, each as long as it may last, and the writing.
pub const LEASE: Duration = Duration::from_secs(120);
/// Longer than the longest step that asks no CA: a look with all that it may wait for, what stands before the name, and the writing. A
/// worker that dies keeps a name that is being proven no longer than this.
const LOOKING: Duration = Duration::from_secs(90);
const TERMS: LeaseTerms = LeaseTerms { looking: LOOKING, asking: LEASE };
/// A step that failed on our side is taken again after this.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// What could not be written is written again this much later, until the lease has run out: a database that restarts, or hands
/// over to its standby, costs no order whose URL nobody else knows, and no domain its lease.
const WRITE_AGAIN: Duration = Duration::from_millis(500);
/// What is due within this gets an alarm; the rest is found by the sweep.
const SOON: Duration = Duration::from_secs(60);
/// A worker that has a domain in hand waits this long for its next step instead of setting an alarm.
const IN_HAND: Duration = Duration::from_secs(2);
/// A worker goes on with one domain for at most so many steps, so that a busy one cannot keep it for ever.
const STEPS_IN_HAND: usize = 200;

/// A domain that somebody else moves under one's steps is tried again after this, and after twice as long each time.
const AFTER_SUPERSEDED: Duration = Duration::from_millis(20);
/// After so many tries in a row it is left to whoever moves it, and to the sweep.
const SUPERSEDED_AT_MOST: u32 = 6;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advanced {
    /// It was not due, or somebody else has it.
    NotDue,
    /// One step was recorded; the next is due then.
    Done(Moment),
    /// Somebody else moved the domain meanwhile: nothing was recorded.
    Superseded,
}

/// A domain's lease as one worker has it: taken before a step, or kept from the one before, whose record says so in the same
/// stroke. Dropped while it is kept, it runs out by itself, as a dead worker's does.
#[derive(Debug, Default)]
pub struct Grip {
    lease: Option<Taken>,
}

impl Grip {
    /// Moves a domain by one step, and keeps the lease when the next is due at once and `more` are wanted.
    pub async fn step(&mut self, app: &App, id: &DomainId, more: bool) -> Result<Advanced, AppError> {
        let began = app.env.now();
        let done = self.taken(app, id, more).await;
        let outcome = match &done {
            Ok(Advanced::NotDue) => StepOutcome::NotDue,
            Ok(Advanced::Done(_)) => StepOutcome::Done,
            Ok(Advanced::Superseded) => StepOutcome::Superseded,
            Err(_) => StepOutcome::Failed,
        };
        app.meters.step(outcome, app.env.now().since(began));
        done
    }

    async fn taken(&mut self, app: &App, id: &DomainId, more: bool) -> Result<Advanced, AppError> {
        let Taken { generation, until } = match self.lease.take() {
            Some(kept) => kept,
            None => {
                let taken = situation::take(&app.store, id, &app.worker, app.env.now(), TERMS).await?;
                let Some(taken) = taken else { return Ok(Advanced::NotDue) };
                app.boundary.cross("lease taken").await;
                taken
            }
        };
        let done = match situation::around(&app.store, id, app.edges()).await {
            // Somebody raised it meanwhile: theirs is the newer word.
            Ok(s) if s.domain.generation != generation => return Ok(Advanced::Superseded),
            Ok(mut s) => {
                s.lap = app.lap.takes();
                s.letting_go = app.settings.letting_go;
                step(app, &mut s, until, more).await
            }
            Err(e) => Err(e.into()),
        };
        let wait = match &done {
            Err(_) => AFTER_FAILURE,
            Ok((Advanced::Superseded, _)) => Duration::ZERO,
            Ok((advanced, kept)) => {
                self.lease = *kept;
                return Ok(*advanced);
            }
        };
        // Nothing was recorded. Without this the domain would wait for its lease to run out.
        let mut given = situation::give_back(&app.store, id, generation, app.env.now() + wait).await;
        while given.as_ref().is_err_and(StoreError::passes_by_itself) && may_wait(app, until).await {
            given = situation::give_back(&app.store, id, generation, app.env.now() + wait).await;
        }
        if let Err(e) = given {
            tracing::debug!(domain.id = %id, error = %Chain(&e), "the lease could not be given back; it runs out by itself");
        }
        done.map(|(advanced, _)| advanced)
    }
}

/// Goes on with a domain as long as its next step is due at once or in a moment.
pub async fn drive(app: &App, id: &DomainId) -> Result<(), AppError> {
    let (mut superseded, mut grip) = (0, Grip::default());
    for left in (0..STEPS_IN_HAND).rev() {
        let due = match grip.step(app, id, left > 0).await? {
            Advanced::NotDue => return Ok(()),
            Advanced::Superseded if superseded == SUPERSEDED_AT_MOST => {
                tracing::debug!(domain.id = %id, "somebody else moves the domain again and again; it is left to the sweep");
                return Ok(());
            }
            Advanced::Superseded => {
                app.env.sleep(AFTER_SUPERSEDED * 2_u32.pow(superseded)).await;
                superseded += 1;
                continue;
            }
            Advanced::Done(due) => due,
        };
        superseded = 0;
        // Somebody may have asked for a step while this one ran, and their alarm found the lease taken: the row knows, so it
        // is asked once more before the domain is let go of.
        let wait = due.since(app.env.now());
        if !wait.is_zero() && wait <= IN_HAND {
            app.env.sleep(wait).await;
        }
    }
    Ok(())
}

/// Moves a domain by one step, and lets go of it.
pub async fn advance(app: &App, id: &DomainId) -> Result<Advanced, AppError> {
    Grip::default().step(app, id, false).await
}

/// How long the lease for the step after this outcome lasts.
fn length(s: &Situation, out: &Outcome) -> Duration {
    if out.order_state(s).is_some_and(OrderState::is_at_ca) { LEASE } else { LOOKING }
}

/// Waits before something is written again; false when the lease will have run out by then.
async fn may_wait(app: &App, lease_until: Moment) -> bool {
    let may = app.env.now() + WRITE_AGAIN < lease_until;
    if may {
        app.env.sleep(WRITE_AGAIN).await;
    }
    may
}

/// Takes the step that the situation calls for; the lease if it was kept.
async fn step(app: &App, s: &mut Situation, until: Moment, more: bool) -> Result<(Advanced, Option<Taken>), AppError> {
    let now = app.env.now();
    let conclusion = match plan::plan(s, now) {
        Next::Rest(until) => Outcome::of(s, until).into(),
        Next::Change(change) => {
            let sealed = keys::sealed_key(app, s, change)?;
            conclude::change(s, change, sealed, now, &mut || app.env.id_bytes()).into()
        }
        Next::Observe(what) => {
            let mut what = what;
            loop {
                let seen = observe::observe(app, s, what).await?;
                app.boundary.cross("observed").await;
                match seen {
                    Conclusion::Observe(more) => what = more,
                    other => break other,
                }
            }
        }
        Next::Act(effect) => Conclusion::Act(effect),
    };
    let outcome = match conclusion {
        Conclusion::Record(outcome) => *outcome,
        Conclusion::Observe(_) => Outcome::of(s, now),
        Conclusion::Act(effect) => match act::act(app, s, effect).await? {
            Some(outcome) => outcome,
            None => return Ok((Advanced::Superseded, None)),
        },
    };
    app.boundary.cross("before recording").await;
    let mut tried = false;
    loop {
        match record_outcome(app, s, &outcome, more).await {
            // What was done outside is done: only the writing is tried again.
            Err(AppError::Store(e)) if e.passes_by_itself() && may_wait(app, until).await => tried = true,
            // It was written the first time, and the answer lost: the lease was kept, and is ours.
            Ok((Advanced::Superseded, _)) if tried => {
                let kept = situation::kept(&app.store, &s.domain.id, s.domain.generation, &app.worker).await?;
                let done = kept.map_or(Advanced::Superseded, |_| Advanced::Done(outcome.domain.due_at));
                return Ok((done, kept));
            }
            other => return other,
        }
    }
}

/// Records an outcome and what must come after it in one transaction.
async fn record_outcome(
    app: &App,
    s: &Situation,
    outcome: &Outcome,
    more: bool,
) -> Result<(Advanced, Option<Taken>), AppError> {
    let mut next = Some(outcome);
    while let Some(out) = next {
        let now = app.env.now();
        // What is due at once is gone on with: its lease is kept by the record itself.
        let keep = (more && out.domain.due_at <= now).then(|| Keep { owner: &app.worker, until: now + length(s, out) });
        let mut tx = app.store.begin().await?;
        let recorded = match record::outcome(&mut tx, s, out, keep, now, || mint!(app.env, EventId)).await {
            // A stale step may meet what the newer one wrote before its own guard is looked at.
            Err(StoreError::Conflict { constraint }) => {
                drop(tx);
                if situation::generation(&app.store, &s.domain.id).await? == s.domain.generation {
                    return Err(StoreError::Conflict { constraint }.into());
                }
                return Ok((Advanced::Superseded, None));
            }
            other => other?,
        };
        match recorded {
            Recorded::Yes => {
                let wait = out.domain.due_at.since(now);
                if wait > IN_HAND && wait <= SOON {
                    app.wake.wake(&mut tx, &s.domain.id, out.domain.due_at).await?;
                }
                ring_after(app, &mut tx, out);
                app.boundary.cross("before commit").await;
                tx.commit().await?;
                app.boundary.cross("recorded").await;
                log(s, out);
                let kept = keep.map(|keep| Taken { generation: s.domain.generation + 1, until: keep.until });
                return Ok((Advanced::Done(out.domain.due_at), kept));
            }
            Recorded::Superseded => return Ok((Advanced::Superseded, None)),
            Recorded::NotHolder => next = out.otherwise.as_deref(),
        }
    }
    Ok((Advanced::Superseded, None))
}

/// Rings the bells that an outcome calls for once it is durable.
pub(super) fn ring_after(app: &App, tx: &mut crate::store::Tx, out: &Outcome) {
    let bells = app.bells.clone();
    // Somebody new waits, or there is room for one more. Whatever else moves an order leaves the queue as it is.
    let waits = out.writes.iter().any(|w| match w {
        Write::OpenOrder { .. } | Write::GrantReturned(..) => true,
        Write::Order { order, .. } => order.state == OrderState::Waiting,
        _ => false,
    });
    let tells = !out.events.is_empty();
    tx.after_commit(move || {
        if waits {
            bells.dispatch.notify_one();
        }
        if tells {
            bells.relay.notify_one();
        }
    });
}

fn log(s: &Situation, out: &Outcome) {
    for event in &out.events {
        tracing::info!(
            domain.id = %s.domain.id,
            hostname.name = %s.domain.hostname,
            event.kind = event.kind,
            event.actor = %event.actor,
            "{}", event.cause
        );
    }
    if out.domain.claim != s.domain.claim && out.domain.claim == Claim::Live {
        tracing::info!(domain.id = %s.domain.id, "the name is live");
    }
}
