//! After a restore: the database is of yesterday, the CA and the edges are of today.
//!
//! What the CA did since the copy was made cannot be learnt from the copy, so its limits count as spent whole: orders go on at
//! the pace at which they come back, and no limit is passed whatever had been done. Edges keep all that they have and add what
//! the restored control plane tells them, until the operator ends the recovery.

use std::time::Duration;

use serde_json::json;

use super::{App, AppError, advance};
use crate::env::Env;
use crate::mint;
use crate::model::conclude;
use crate::model::id::{DomainId, EventId};
use crate::model::ledger;
use crate::model::moment::Moment;
use crate::store::record::{self, Recorded};
use crate::store::restore::{Ahead, RecollectionRow};
use crate::store::{Store, StoreError, issuers, pairs, restore, situation};
use crate::telemetry::Chain;

/// Why a restore could not be declared, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Nothing to recover.
    #[error("this database's feed has no epoch before now: nothing ever ran on it, or this machine's clock is behind")]
    NothingBefore,
    /// No recovery is under way.
    #[error("no recovery is under way")]
    NotRecovering,
    /// Edges remembered more, or less, since whoever ends it looked.
    #[error("ending the recovery would lose {0} names by now; look again and decide anew")]
    Changed(i64),
    /// What edges remember of so many names was not taken in yet: ended now, claims that were let go of would be served again.
    #[error(
        "what edges remember of {0} names is not settled yet; `serve` or `work` does that within a minute, once every edge that counts \
         has told: look again then"
    )]
    Unsettled(i64),
    /// The store.
    #[error("the database could not be changed")]
    Store(#[from] StoreError),
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The feed's new epoch.
    pub epoch: i64,
    /// Grants that count as used.
    pub grants: u64,
    /// Join tokens and links taken back.
    pub invitations: u64,
}

/// Declares that this database was restored; nothing else may run on it yet.
pub async fn begin(store: &Store, env: &Env) -> Result<Restored, RestoreError> {
    let now = env.now();
    let all = issuers::list(store).await?;
    let mut tx = store.begin().await?;
    tx.execute(restore::forget()).await?;
    if !restore::begin_epoch(&mut tx, now).await? {
        return Err(RestoreError::NothingBefore);
    }
    let grants = restore::spend_open_grants(&mut tx, now).await?;
    for issuer in &all {
        for (name, limit) in &issuer.limits {
            restore::spend_limit(&mut tx, &issuer.id, name.as_str(), ledger::spent_before(now, limit.burst, *limit)).await?;
        }
    }
    restore::begin_clocks_anew(&mut tx).await?;
    let invitations = restore::revoke_invitations(&mut tx, now).await?;
    let sessions = restore::end_sessions(&mut tx, now).await?;
    let detail = json!({ "epoch": now.micros(), "grants": grants, "invitations": invitations, "sessions": sessions });
    tx.execute(restore::event(mint!(env, EventId).as_str(), "restored", &detail, "command line", now)).await?;
    tx.commit().await?;
    Ok(Restored { epoch: now.micros(), grants, invitations })
}

/// A recovery that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovering {
    /// When the restore was declared.
    pub since: Moment,
    /// What its end would change.
    pub ahead: Ahead,
    /// Some of the names that edges serve with what is not stored.
    pub names: Vec<String>,
    /// Some of the canonical hosts whose tenants left after the copy was made.
    pub left: Vec<String>,
}

/// So many names are shown.
const NAMES: i64 = 50;

/// The recovery, if one is under way.
pub async fn status(store: &Store) -> Result<Option<Recovering>, StoreError> {
    let mut tx = store.read().await?;
    let Some(since) = restore::recovering_since(&mut tx).await? else { return Ok(None) };
    let (ahead, names) = (restore::ahead(&mut tx).await?, restore::unknown_names(&mut tx, NAMES).await?);
    Ok(Some(Recovering { since, ahead, names, left: restore::left_hosts(&mut tx, NAMES).await? }))
}

/// Ends the recovery: edges let go of what the database does not have. The new epoch. `seen`: how many names would be lost by what
/// whoever ends it was shown.
pub async fn end(store: &Store, env: &Env, seen: Option<i64>, actor: &str) -> Result<i64, RestoreError> {
    let now = env.now();
    let mut tx = store.begin().await?;
    let ahead = restore::ahead(&mut tx).await?;
    if !restore::end_recovery(&mut tx, now).await? {
        return Err(RestoreError::NotRecovering);
    }
    if ahead.unsettled > 0 {
        return Err(RestoreError::Unsettled(ahead.unsettled));
    }
    let lost = ahead.unknown + ahead.newer;
    if seen.is_some_and(|seen| seen != lost) {
        return Err(RestoreError::Changed(lost));
    }
    tx.execute(restore::forget()).await?;
    let detail = json!({ "epoch": now.micros(), "unknown": ahead.unknown, "newer": ahead.newer, "let_go": ahead.let_go });
    tx.execute(restore::event(mint!(env, EventId).as_str(), "recovery_ended", &detail, actor, now)).await?;
    tx.commit().await?;
    Ok(now.micros())
}

/// What edges remember, settled in one round.
const BATCH: i64 = 100;

/// Edges that were not heard of yet are waited for as long: they try again every half minute.
const COMING_BACK: Duration = Duration::from_secs(300);

/// Brings the database in line with what edges remember, once all that count have told, or had the time to; how much was settled. A name
/// that was let go of after the copy was made is let go of again, and so is one that went to another tenant. What edges serve and the
/// database does not know stays with them, and is counted for whoever ends the recovery.
pub async fn settle(app: &App) -> Result<usize, AppError> {
    let begun_since = app.env.now() - COMING_BACK;
    let rows = restore::unsettled(&app.store, app.edges().heard_since, begun_since, BATCH).await?;
    let mut done = 0;
    for row in rows {
        match one(app, &row).await {
            Ok(Some(outcome)) => {
                tracing::info!(hostname.name = %row.hostname, outcome, "edges remember this name");
                done += 1;
            }
            Ok(None) => {}
            // One name's rows must not keep the others, and with them the end of the recovery, waiting.
            Err(e) => {
                tracing::warn!(hostname.name = %row.hostname, error = %Chain(&e), "what edges remember was not settled")
            }
        }
    }
    Ok(done)
}

/// What came of one name; nothing when something moved meanwhile.
async fn one(app: &App, row: &RecollectionRow) -> Result<Option<&'static str>, AppError> {
    if let Some(overtaken) = &row.overtaken
        && !let_go(app, overtaken, Since::WentOn).await?
    {
        return Ok(None);
    }
    let outcome = match &row.claim {
        // Edges heard of it after the copy was made: what stands here was let go of since.
        Some(claim) if !row.serves => match let_go(app, claim, Since::LetGo).await? {
            true => "let_go",
            false => return Ok(None),
        },
        None if row.serves => "unknown",
        None if row.canonical => "left",
        None if row.overtaken.is_some() => "let_go",
        Some(_) if row.unknown_until.is_some() => "newer",
        Some(_) | None => "known",
    };
    let settled = app.store.execute(restore::settled(row, outcome, app.env.now())).await?;
    Ok((settled == 1).then_some(outcome))
}

/// What became of a claim after the copy was made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// It was let go of.
    LetGo,
    /// Its name went to another tenant.
    WentOn,
}

/// Lets go of a claim that stands here and stood no more; false when something moved it meanwhile.
async fn let_go(app: &App, id: &DomainId, since: Since) -> Result<bool, AppError> {
    let now = app.env.now();
    let mut tx = app.store.begin().await?;
    if !pairs::hold_linked(&mut tx, id).await? {
        return Ok(false);
    }
    situation::fence(&mut tx, id).await?;
    let s = situation::around_in(&mut tx, id, app.edges()).await?;
    // One that is on its way out already has nothing to be let go of.
    let concluded = match since {
        Since::LetGo => conclude::remembered_gone(&s, now),
        Since::WentOn => conclude::remembered_elsewhere(&s, now),
    };
    let Ok(outcome) = concluded else { return Ok(true) };
    if record::outcome(&mut tx, &s, &outcome, None, now, || mint!(app.env, EventId)).await? != Recorded::Yes {
        return Ok(false);
    }
    if since == Since::WentOn {
        tx.execute(restore::unroute(s.domain.hostname.as_str(), id)).await?;
    }
    advance::ring_after(app, &mut tx, &outcome);
    app.boundary.cross("before what edges remember is settled").await;
    tx.commit().await?;
    Ok(true)
}
