//! After a restore: the database is of yesterday, the CA and the edges are of today.
//!
//! What the CA did since the copy was made cannot be learnt from the copy, so its limits count as spent whole: orders go on at
//! the pace at which they come back, and no limit is passed whatever had been done. Edges keep all that they have and add what
//! the restored control plane tells them, until the operator ends the recovery.

use serde_json::json;

use crate::env::Env;
use crate::mint;
use crate::model::id::EventId;
use crate::model::ledger;
use crate::store::{Store, StoreError, issuers, restore};

/// Why a restore could not be declared, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Nothing to recover.
    #[error("this database's feed has no epoch before now: nothing ever ran on it, or this machine's clock is behind")]
    NothingBefore,
    /// No recovery is under way.
    #[error("no recovery is under way")]
    NotRecovering,
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
    if !restore::begin_epoch(&mut tx, now).await? {
        return Err(RestoreError::NothingBefore);
    }
    let grants = restore::spend_open_grants(&mut tx, now).await?;
    for issuer in &all {
        for (name, limit) in &issuer.limits {
            restore::spend_limit(&mut tx, &issuer.id, name.as_str(), ledger::spent_before(now, limit.burst, *limit)).await?;
        }
    }
    let invitations = restore::revoke_invitations(&mut tx, now).await?;
    let sessions = restore::end_sessions(&mut tx, now).await?;
    let detail = json!({ "epoch": now.micros(), "grants": grants, "invitations": invitations, "sessions": sessions });
    tx.execute(restore::event(mint!(env, EventId).as_str(), "restored", &detail, now)).await?;
    tx.commit().await?;
    Ok(Restored { epoch: now.micros(), grants, invitations })
}

/// Ends the recovery: edges let go of what the database does not have. The new epoch.
pub async fn end(store: &Store, env: &Env) -> Result<i64, RestoreError> {
    let now = env.now();
    let mut tx = store.begin().await?;
    if !restore::end_recovery(&mut tx, now).await? {
        return Err(RestoreError::NotRecovering);
    }
    let detail = json!({ "epoch": now.micros() });
    tx.execute(restore::event(mint!(env, EventId).as_str(), "recovery_ended", &detail, now)).await?;
    tx.commit().await?;
    Ok(now.micros())
}
