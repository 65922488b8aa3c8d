//! Claiming a hostname for a tenant.

use super::ask::{ATTEMPT_LIFE, TXT_PREFIX};
use super::{App, AppError};
use crate::mint;
use crate::model::claim::{Claim, ClaimStep};
use crate::model::hostname::Hostname;
use crate::model::id::{AttemptId, DomainId, EventId, TenantId};
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::store::claims::{self, NewClaim};
use crate::store::{StoreError, Tx, bulk_rows, lap, situation};

/// Why a claim was not made.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// No such tenant, or one that may claim nothing any more.
    #[error("there is no active tenant {0}")]
    NoTenant(TenantId),
    /// Not the caller's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for ClaimError {
    fn from(e: StoreError) -> Self {
        ClaimError::App(e.into())
    }
}

/// A claim that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Its id.
    pub id: DomainId,
    /// Whether this call made it; of many at once, one did.
    pub new: bool,
}

/// Claims a name. A tenant that claims it already gets that claim with its value; an expired one gets a new attempt.
pub async fn claim(app: &App, tenant: &TenantId, hostname: &Hostname, actor: &str) -> Result<Claimed, ClaimError> {
    let mut tx = app.store.begin().await?;
    let claimed = claim_in(app, &mut tx, tenant, hostname, actor).await?;
    tx.commit().await?;
    Ok(claimed)
}

/// The same inside a transaction, for those who write more into it.
pub async fn claim_in(
    app: &App,
    tx: &mut Tx,
    tenant: &TenantId,
    hostname: &Hostname,
    actor: &str,
) -> Result<Claimed, ClaimError> {
    claim_in_lane(app, tx, tenant, hostname, actor, Lane::Single).await
}

/// The same for one of many that are imported together ([`Lane::Bulk`]): it is looked at when its turn comes, and ordered
/// behind those made one by one.
pub async fn claim_in_lane(
    app: &App,
    tx: &mut Tx,
    tenant: &TenantId,
    hostname: &Hostname,
    actor: &str,
    lane: Lane,
) -> Result<Claimed, ClaimError> {
    let now = app.env.now();
    let slug = claims::active_tenant_slug(tx, tenant).await?.ok_or_else(|| ClaimError::NoTenant(tenant.clone()))?;
    loop {
        if let Some((id, state)) = claims::open_claim(tx, tenant, hostname).await? {
            if state == Claim::Expired {
                reopen(app, tx, &id, actor, now).await?;
                if lane != Lane::Bulk {
                    bulk_rows::by_hand(tx, &id, now).await?;
                    app.wake.wake(tx, &id, now).await?;
                }
            } else if lane != Lane::Bulk && bulk_rows::by_hand(tx, &id, now).await? {
                app.wake.wake(tx, &id, now).await?;
            }
            return Ok(Claimed { id, new: false });
        }
        let first_look_at = match lane {
            Lane::Bulk => app.lap.first_look_at(lap::last_in_line(tx, tenant).await?, now),
            Lane::Renewal | Lane::Single => now,
        };
        let new = NewClaim {
            id: mint!(app.env, DomainId),
            attempt_id: mint!(app.env, AttemptId),
            event_id: mint!(app.env, EventId),
            tenant_id: tenant.clone(),
            hostname: hostname.clone(),
            lane,
            first_look_at,
            value: fresh_value(app),
            routing_mode: app.settings.routing_mode,
            target: app.settings.target_of(&slug),
            deadline: now + ATTEMPT_LIFE,
            actor: actor.to_owned(),
        };
        if !claims::insert(tx, &new, now).await? {
            // The same tenant claimed the same name a moment ago: answer with that claim.
            continue;
        }
        if lane != Lane::Bulk {
            app.wake.wake(tx, &new.id, now).await?;
        }
        let relay = app.bells.relay.clone();
        let (id, hostname, tenant) = (new.id.clone(), hostname.clone(), tenant.clone());
        tx.after_commit(move || {
            relay.notify_one();
            tracing::info!(domain.id = %id, hostname.name = %hostname, tenant.id = %tenant, "claimed");
        });
        return Ok(Claimed { id: new.id, new: true });
    }
}

/// A value never given out before: 128 random bits.
fn fresh_value(app: &App) -> String {
    format!("{TXT_PREFIX}{}", app.env.draw_hex(16))
}

async fn reopen(app: &App, tx: &mut Tx, id: &DomainId, actor: &str, now: Moment) -> Result<(), ClaimError> {
    let domain = situation::fence(tx, id).await?;
    // Read under the fence: another request may have re-opened it a moment ago.
    let Ok(claim) = domain.claim.after(ClaimStep::Reopen) else { return Ok(()) };
    let reopened = claims::Reopened {
        claim,
        attempt_id: mint!(app.env, AttemptId),
        event_id: mint!(app.env, EventId),
        value: fresh_value(app),
        deadline: now + ATTEMPT_LIFE,
        actor: actor.to_owned(),
    };
    claims::reopen(tx, &domain, &reopened, now).await?;
    Ok(())
}
