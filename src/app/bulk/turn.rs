//! Holding an import, letting it go on, giving it up, making a dry run come true.

use crate::app::tokens::Principal;
use crate::app::{App, AppError};
use crate::model::bulk::{Hold, ImportState};
use crate::model::id::ImportId;
use crate::store::bulk::{self, Import, Turn};
use crate::store::{StoreError, Tx, bulk_orders};

/// Why an import was not turned.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// There is none that the caller may know of.
    #[error("there is no import {0}")]
    NotFound(ImportId),
    /// It stands where this is not possible.
    #[error("the import is {state}; {why}")]
    Refused {
        /// Where it stands.
        state: ImportState,
        /// What would have to be.
        why: &'static str,
    },
    /// Not the caller's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for TurnError {
    fn from(e: StoreError) -> Self {
        TurnError::App(e.into())
    }
}

/// Who turns it.
#[derive(Clone, Copy)]
pub struct By<'a> {
    /// On whose behalf.
    pub principal: &'a Principal,
    /// The name that is written down.
    pub actor: &'a str,
}

/// Why a tenant cannot let it go on.
const OPERATORS: &str = "the operator paused it, and only they can let it go on; you can still cancel it";

async fn found(app: &App, principal: &Principal, id: &ImportId) -> Result<(Tx, Import), TurnError> {
    let mut tx = app.store.begin().await?;
    let import = super::find(&mut tx, principal, id).await?.ok_or_else(|| TurnError::NotFound(id.clone()))?;
    Ok((tx, import))
}

async fn ended(
    app: &App,
    mut tx: Tx,
    turned: Option<Import>,
    id: &ImportId,
    why: &'static str,
) -> Result<Import, TurnError> {
    let Some(import) = turned else {
        // Read again: it may have moved since it was found.
        let now = bulk::lookup(&mut tx, id).await?.ok_or_else(|| TurnError::NotFound(id.clone()))?;
        let possible =
            [ImportState::Working, ImportState::Paused].contains(&now.state) && now.hold == Some(Hold::ByOperator);
        return Err(TurnError::Refused { state: now.state, why: if possible { OPERATORS } else { why } });
    };
    let bell = app.bells.imports.clone();
    tx.after_commit(move || bell.notify_one());
    tx.commit().await?;
    tracing::info!(import.id = %id, state = %import.state, "an import was turned");
    Ok(import)
}

/// The states out of which an import can be held or given up. A dry run that is done has nothing to hold.
fn under_way(import: &Import, there: ImportState) -> Vec<ImportState> {
    let done = (!import.dry_run).then_some(ImportState::Done);
    [ImportState::Working, ImportState::Paused, there].into_iter().chain(done).collect()
}

/// Holds an import: no more of its rows are judged, and none of its claims is ordered for that waits for its turn. Held twice it is
/// held by who was first, unless an operator holds what a tenant held.
pub async fn pause(app: &App, by: By<'_>, id: &ImportId) -> Result<Import, TurnError> {
    let hold = if by.principal == &Principal::Operator { Hold::ByOperator } else { Hold::ByTenant };
    held(app, by, id, (ImportState::Paused, hold), "only one that is under way can be paused").await
}

/// Lets a held import go on. Claims that waited for their turn are looked at once more before they join the queue again.
pub async fn resume(app: &App, by: By<'_>, id: &ImportId) -> Result<Import, TurnError> {
    let (mut tx, import) = found(app, by.principal, id).await?;
    let from = [ImportState::Working, ImportState::Paused];
    let now = app.env.now();
    let over_operators = by.principal == &Principal::Operator;
    let turn = Turn { to: ImportState::Working, hold: None, over_operators };
    let turned = bulk::turn(&mut tx, id, &from, turn, by.actor, now).await?;
    if turned.is_some() && import.state == ImportState::Paused {
        bulk_orders::let_go(&mut tx, id, app.lap.apart(), now).await?;
    }
    ended(app, tx, turned, id, "only one that is paused can go on").await
}

/// Gives an import up: rows without a verdict get none, and nothing is ordered any more for its claims that wait for their turn.
/// Claims that were made stay; each can be removed, or claimed by hand, which takes it out of the import.
pub async fn cancel(app: &App, by: By<'_>, id: &ImportId) -> Result<Import, TurnError> {
    held(app, by, id, (ImportState::Cancelled, Hold::Cancelled), "only one that is under way can be cancelled").await
}

async fn held(
    app: &App,
    by: By<'_>,
    id: &ImportId,
    (to, hold): (ImportState, Hold),
    why: &'static str,
) -> Result<Import, TurnError> {
    let (mut tx, import) = found(app, by.principal, id).await?;
    let (from, now) = (under_way(&import, to), app.env.now());
    let turn = Turn { to, hold: Some(hold), over_operators: true };
    let turned = bulk::turn(&mut tx, id, &from, turn, by.actor, now).await?;
    if let Some(Import { hold: Some(hold), .. }) = turned
        && import.hold != Some(hold)
    {
        bulk_orders::hold(&mut tx, id, hold, now).await?;
    }
    ended(app, tx, turned, id, why).await
}

/// Makes a finished dry run an import: the rows that were kept are judged once more, and claimed.
pub async fn start(app: &App, principal: &Principal, id: &ImportId) -> Result<Import, TurnError> {
    let (mut tx, _) = found(app, principal, id).await?;
    let turned = bulk::start(&mut tx, id).await?;
    ended(app, tx, turned, id, "only a dry run that is done can be started").await
}
