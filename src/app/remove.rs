//! Removing a domain: everything that serves it or works on it goes in one transaction.

use super::expect::Expect;
use super::{App, AppError, advance};
use crate::mint;
use crate::model::claim::{Claim, RefusedStep};
use crate::model::conclude;
use crate::model::id::{DomainId, EventId};
use crate::store::record::{self, Recorded};
use crate::store::{StoreError, pairs, situation};

/// Why a domain was not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// No such domain.
    #[error("there is no domain {0}")]
    NotFound(DomainId),
    /// It is gone already, or on its way.
    #[error(transparent)]
    Refused(#[from] RefusedStep),
    /// It is another version than the caller counted on.
    #[error("the domain changed in the meantime: its version is {0} now; read it again and decide anew")]
    Changed(i64),
    /// Not the caller's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for RemoveError {
    fn from(e: StoreError) -> Self {
        RemoveError::App(e.into())
    }
}

/// How often a removal is decided anew when the dispatcher, a call being begun or a new other half moved something under it.
const TRIES: usize = 5;

/// Removes a domain; the state it is in now. A step in flight is fenced off and records nothing.
pub async fn remove(app: &App, id: &DomainId, actor: &str) -> Result<Claim, RemoveError> {
    remove_if(app, id, &Expect::ANY, actor).await
}

/// The same, if the domain is as expected.
pub async fn remove_if(app: &App, id: &DomainId, expect: &Expect, actor: &str) -> Result<Claim, RemoveError> {
    for _ in 0..TRIES {
        let now = app.env.now();
        let mut tx = app.store.begin().await?;
        if !pairs::hold_linked(&mut tx, id).await? {
            continue;
        }
        let domain = match situation::fence(&mut tx, id).await {
            Err(StoreError::NotFound { .. }) => return Err(RemoveError::NotFound(id.clone())),
            other => other?,
        };
        if !expect.allows(domain.version()) {
            return Err(RemoveError::Changed(domain.version()));
        }
        let s = situation::around_in(&mut tx, id, app.edges()).await?;
        let outcome = conclude::remove(&s, actor, now)?;
        if record::outcome(&mut tx, &s, &outcome, None, now, || mint!(app.env, EventId)).await? == Recorded::Yes {
            advance::ring_after(app, &mut tx, &outcome);
            tx.commit().await?;
            tracing::info!(domain.id = %id, claim = %outcome.domain.claim, "removed");
            return Ok(outcome.domain.claim);
        }
    }
    Err(RemoveError::App(StoreError::Busy.into()))
}
