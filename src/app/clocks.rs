//! One clock for everybody: the database's, where it has one. And what a clock that was wrong left behind is put right.

use super::{App, AppError};
use crate::env::{Correction, Env};
use crate::model::limits::LimitName;
use crate::store::{Store, StoreResult, ahead, health, issuers};

/// Takes the database's time for ours. Done before a process does anything, and again while it runs.
pub async fn agree(store: &Store, env: &Env) -> StoreResult<()> {
    let Some(at) = health::of(store).await?.now else { return Ok(()) };
    match env.correct(at) {
        Correction::None => {}
        Correction::Made(off) => {
            tracing::warn!(
                off_seconds = off,
                "this host's clock is not the database's, whose time is taken; set one of them right"
            );
        }
        Correction::Refused(off) => tracing::error!(
            off_seconds = off,
            "the database's clock jumped: this process keeps its own time; if the database is right, start it anew"
        ),
    }
    Ok(())
}

/// Puts back what was written by a clock that ran ahead; how many rows.
pub async fn mend(app: &App) -> Result<u64, AppError> {
    let now = app.env.now();
    let mut back = 0;
    loop {
        let page = ahead::domains(&app.store, now).await?;
        back += u64::try_from(page).unwrap_or(0);
        if page == 0 {
            break;
        }
    }
    back += ahead::work(&app.store, now).await?;
    back += ahead::telling(&app.store, now).await?;
    for issuer in issuers::list(&app.store).await? {
        // A CA may have refused for a limit that it is said not to have.
        for limit in LimitName::ALL {
            let numbers = issuer.limits.get(limit).copied().unwrap_or(limit.usual());
            back += ahead::ledger(&app.store, &issuer.id, *limit, numbers, now).await?;
        }
    }
    if back > 0 {
        tracing::warn!(rows = back, "a process whose clock ran ahead was at work; what it put off is due now");
        app.bells.dispatch.notify_one();
    }
    Ok(back)
}
