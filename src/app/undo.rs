//! Bringing a removed domain back while that is possible, and ending a release that is stuck.

use super::expect::Expect;
use super::{App, AppError, advance, observe};
use crate::mint;
use crate::model::checks;
use crate::model::claim::Claim;
use crate::model::conclude::{self, Looked, RefusedForce, RefusedUndo};
use crate::model::domain::Situation;
use crate::model::id::{DomainId, EventId};
use crate::model::look::Lane;
use crate::store::record::{self, Recorded};
use crate::store::{StoreError, attempts, claims, situation};

/// Why a removal was not undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// No such domain.
    #[error("there is no domain {0}")]
    NotFound(DomainId),
    /// As things stand.
    #[error(transparent)]
    Refused(#[from] RefusedUndo),
    /// The tenant claimed the name anew meanwhile.
    #[error("the name was claimed anew meanwhile; that claim goes on")]
    ClaimedAnew(DomainId),
    /// It is another version than the caller counted on.
    #[error("the domain changed in the meantime: its version is {0} now; read it again and decide anew")]
    Changed(i64),
    /// Not the caller's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for UndoError {
    fn from(e: StoreError) -> Self {
        UndoError::App(e.into())
    }
}

/// How often it is decided anew when something moved under it.
const TRIES: usize = 3;

/// Undoes a removal, when a look sees that the name is still tied to its tenant; the state it is in now.
pub async fn undo(app: &App, id: &DomainId, expect: &Expect, actor: &str) -> Result<Claim, UndoError> {
    for _ in 0..TRIES {
        let mut s = match situation::around(&app.store, id, app.edges()).await {
            Err(StoreError::NotFound { .. }) => return Err(UndoError::NotFound(id.clone())),
            other => other?,
        };
        if !expect.allows(s.domain.version()) {
            return Err(UndoError::Changed(s.domain.version()));
        }
        conclude::may_undo(&s, app.env.now())?;
        let looked = look(app, &s).await?;
        let now = app.env.now();
        let mut tx = app.store.begin().await?;
        let (seen, fenced) = (s.domain.version(), situation::fence(&mut tx, id).await?);
        if fenced.version() != seen {
            continue;
        }
        if let Some((anew, _)) = claims::open_claim(&mut tx, &s.domain.tenant_id, &s.domain.hostname).await? {
            return Err(UndoError::ClaimedAnew(anew));
        }
        s = situation::around_in(&mut tx, id, app.edges()).await?;
        let outcome = conclude::undo(&mut s, &looked, actor, now)?;
        if record::outcome(&mut tx, &s, &outcome, None, now, || mint!(app.env, EventId)).await? == Recorded::Yes {
            app.wake.wake_first(&mut tx, id, now).await?;
            advance::ring_after(app, &mut tx, &outcome);
            app.boundary.cross("before a removal is undone").await;
            tx.commit().await?;
            tracing::info!(domain.id = %id, claim = %outcome.domain.claim, "a removal was undone");
            return Ok(outcome.domain.claim);
        }
    }
    Err(UndoError::App(StoreError::Busy.into()))
}

/// What its own records say, from every vantage point: somebody waits for the answer.
async fn look(app: &App, s: &Situation) -> Result<Looked, UndoError> {
    let superseded = attempts::superseded(&app.store, &s.domain.id, &s.domain.attempt_id).await?;
    let mut ask = observe::question(app, s, superseded).await;
    ask.turn.lane = Lane::CheckNow;
    let seen = app.look.look(&ask).await;
    if seen.put_off.is_some() {
        return Err(RefusedUndo::Unseen.into());
    }
    Ok(Looked { findings: checks::judge(&ask, &seen), former: conclude::nobody() })
}

/// Why a release was not ended.
#[derive(Debug, thiserror::Error)]
pub enum ForceError {
    /// No such domain.
    #[error("there is no domain {0}")]
    NotFound(DomainId),
    /// Nothing was said for the record.
    #[error("say why, in up to {LONGEST_REASON} characters: it is kept in the domain's history")]
    NoReason,
    /// As things stand.
    #[error(transparent)]
    Refused(#[from] RefusedForce),
    /// It is another version than the caller counted on.
    #[error("the domain changed in the meantime: its version is {0} now; read it again and decide anew")]
    Changed(i64),
    /// Not the caller's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for ForceError {
    fn from(e: StoreError) -> Self {
        ForceError::App(e.into())
    }
}

/// So long may a reason be.
pub const LONGEST_REASON: usize = 300;

/// Ends a release at once, whatever DNS says; for operators, who say why. The state it is in now.
pub async fn force_release(
    app: &App,
    id: &DomainId,
    reason: &str,
    expect: &Expect,
    actor: &str,
) -> Result<Claim, ForceError> {
    let reason = reason.trim();
    if reason.is_empty() || reason.chars().count() > LONGEST_REASON || reason.chars().any(char::is_control) {
        return Err(ForceError::NoReason);
    }
    for _ in 0..TRIES {
        let now = app.env.now();
        let mut tx = app.store.begin().await?;
        let domain = match situation::fence(&mut tx, id).await {
            Err(StoreError::NotFound { .. }) => return Err(ForceError::NotFound(id.clone())),
            other => other?,
        };
        if !expect.allows(domain.version()) {
            return Err(ForceError::Changed(domain.version()));
        }
        let mut s = situation::around_in(&mut tx, id, app.edges()).await?;
        s.letting_go = app.settings.letting_go;
        let outcome = conclude::force_release(&s, reason, actor, now)?;
        if record::outcome(&mut tx, &s, &outcome, None, now, || mint!(app.env, EventId)).await? == Recorded::Yes {
            advance::ring_after(app, &mut tx, &outcome);
            app.boundary.cross("before a release is ended").await;
            tx.commit().await?;
            tracing::info!(domain.id = %id, "a release was ended by an operator");
            return Ok(outcome.domain.claim);
        }
    }
    Err(ForceError::App(StoreError::Busy.into()))
}
