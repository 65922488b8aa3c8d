//! "Check now": a fresh look at once, and the pace of looking from its beginning.

use std::time::Duration;

use super::expect::Expect;
use super::{App, AppError};
use crate::model::id::DomainId;
use crate::store::{StoreError, claims};

/// A domain is looked at on request at most once in this time.
pub const AT_MOST_EVERY: Duration = Duration::from_secs(5);

/// Why no look was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// No such domain, or one that is not looked at any more.
    #[error("there is nothing to check for {0}: it is not claimed any more")]
    NotOpen(DomainId),
    /// Asked again too soon.
    #[error("this name was checked a moment ago; it can be checked again in {} s", .0.as_secs().max(1))]
    TooSoon(Duration),
    /// It is another version than the caller counted on.
    #[error("the domain changed in the meantime: its version is {0} now; read it again and decide anew")]
    Changed(i64),
    /// Not the caller's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for CheckError {
    fn from(e: StoreError) -> Self {
        CheckError::App(e.into())
    }
}

/// Asks for a look now.
pub async fn check_now(app: &App, id: &DomainId, actor: &str) -> Result<(), CheckError> {
    check_now_if(app, id, &Expect::ANY, actor).await
}

/// Asks for a look now, if the domain is as expected.
pub async fn check_now_if(app: &App, id: &DomainId, expect: &Expect, actor: &str) -> Result<(), CheckError> {
    let now = app.env.now();
    let mut tx = app.store.begin().await?;
    let Some(version) = claims::ask_check(&mut tx, id, actor, now, now - AT_MOST_EVERY).await? else {
        return Err(match claims::last_check(&mut tx, id).await? {
            Some(asked) if now.since(asked) < AT_MOST_EVERY => CheckError::TooSoon(AT_MOST_EVERY - now.since(asked)),
            _ => CheckError::NotOpen(id.clone()),
        });
    };
    if !expect.allows(version) {
        return Err(CheckError::Changed(version));
    }
    app.wake.wake_first(&mut tx, id, now).await?;
    tx.commit().await?;
    Ok(())
}
