//! "Check this import now": its names that wait for their records are looked at, one after the other, as the first looks of an
//! import are: in the lane of imports, under the caps of everybody, so that one claimed by hand is not kept waiting by them.

use std::time::Duration;

use super::turn::By;
use crate::app::{App, AppError};
use crate::model::id::ImportId;
use crate::model::moment::Moment;
use crate::store::{StoreError, bulk_checks};

/// An import is checked on request at most once in this time.
pub const AT_MOST_EVERY: Duration = Duration::from_secs(60);

/// Looks that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// How many names are looked at.
    pub names: u64,
    /// When the last of them has its turn.
    pub last_at: Moment,
}

/// Why no look was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There is none that the caller may know of.
    #[error("there is no import {0}")]
    NotFound(ImportId),
    /// Asked again too soon.
    #[error("this import was checked a moment ago; it can be checked again in {} s", .0.as_secs().max(1))]
    TooSoon(Duration),
    /// No claim of it waits for anything that a look could see.
    #[error("there is nothing to check: no name of this import waits for its records")]
    NothingWaits,
    /// Not the caller's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for CheckError {
    fn from(e: StoreError) -> Self {
        CheckError::App(e.into())
    }
}

/// Asks for a look at every name of an import that waits for its records, or is held back by what a look saw.
pub async fn check_now(app: &App, by: By<'_>, id: &ImportId) -> Result<Asked, CheckError> {
    let now = app.env.now();
    let mut tx = app.store.begin().await?;
    let import = super::find(&mut tx, by.principal, id).await?.ok_or_else(|| CheckError::NotFound(id.clone()))?;
    let since = bulk_checks::last(&mut tx, &import.id).await?.map_or(AT_MOST_EVERY, |at| now.since(at));
    if since < AT_MOST_EVERY || !bulk_checks::begin(&mut tx, &import.id, now, now - AT_MOST_EVERY).await? {
        return Err(CheckError::TooSoon(AT_MOST_EVERY.saturating_sub(since)));
    }
    let apart = app.lap.apart();
    let names = bulk_checks::ask(&mut tx, &import.id, apart, now).await?;
    if names == 0 {
        return Err(CheckError::NothingWaits);
    }
    tx.commit().await?;
    tracing::info!(import.id = %id, actor = by.actor, names, "an import was checked on request");
    Ok(Asked { names, last_at: now + apart.saturating_mul(u32::try_from(names).unwrap_or(u32::MAX)) })
}
