//! `www` and the bare name as two linked claims: each with its own records, attempt and certificate, and a redirect from one to
//! the other where it is wanted.
//!
//! An edge sends visitors on only while the other name is served there with a valid certificate, so a redirect may be set at any
//! time and never leads to a dead name. How to get it wrong: let both redirect to each other, or link what two tenants hold.

use super::claim::{ClaimError, Claimed, claim_in};
use super::expect::Expect;
use super::{App, AppError};
use crate::mint;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, EventId, TenantId};
use crate::model::notice::NoticeKind;
use crate::store::pairs::{self, Half};
use crate::store::{StoreError, Tx};

/// Why two names were not linked, or visitors are not sent from one to the other.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// No such domain.
    #[error("there is no domain {0}")]
    NotFound(DomainId),
    /// The name is neither a registered domain nor its `www`.
    #[error("{0} has no other half: only a registered domain and its www belong together")]
    NoOtherHalf(Hostname),
    /// The name to redirect to is not the other half.
    #[error("visitors of {from} can be sent on to {half} only, not to {seen}")]
    NotTheOtherHalf {
        /// From where.
        from: Hostname,
        /// What was asked for.
        seen: Hostname,
        /// What would do.
        half: Hostname,
    },
    /// The other half is not claimed.
    #[error("{0} is not claimed; claim it first")]
    NotClaimed(Hostname),
    /// The other one redirects here.
    #[error("{0} sends its visitors here already; two names cannot redirect to each other")]
    Loop(Hostname),
    /// The claim is over.
    #[error("the domain was removed; visitors are not sent anywhere from it")]
    Closed,
    /// It is another version than the caller counted on.
    #[error("the domain changed in the meantime: its version is {0} now; read it again and decide anew")]
    Changed(i64),
    /// A name could not be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// Not the caller's fault.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<StoreError> for PairError {
    fn from(e: StoreError) -> Self {
        PairError::App(e.into())
    }
}

/// Claims a name together with its other half and links them; `redirect_to` is the one of the two that visitors of the other
/// are sent on to. What the tenant has already stays as it is. The claim on `hostname` is given back.
pub async fn claim_with_partner_in(
    app: &App,
    tx: &mut Tx,
    tenant: &TenantId,
    hostname: &Hostname,
    redirect_to: Option<&Hostname>,
    actor: &str,
) -> Result<Claimed, PairError> {
    let partner = hostname.partner().ok_or_else(|| PairError::NoOtherHalf(hostname.clone()))?;
    if let Some(seen) = redirect_to.filter(|to| **to != *hostname && **to != partner) {
        return Err(PairError::NotTheOtherHalf { from: hostname.clone(), seen: seen.clone(), half: partner });
    }
    // What there is already is locked by its ids, as everybody locks it; what is new comes in the order of the names, so that two
    // requests for both halves at once do not wait for each other.
    let mut names = [hostname, &partner];
    names.sort();
    pairs::hold_open(tx, tenant, names).await?;
    let first = claim_in(app, tx, tenant, names[0], actor).await?;
    let second = claim_in(app, tx, tenant, names[1], actor).await?;
    let own = if *names[0] == *hostname { first } else { second };
    let held = pairs::hold_open(tx, tenant, names).await?;
    let (own_half, other) = both(&held, hostname, &partner).ok_or_else(|| PairError::NotFound(own.id.clone()))?;
    ensure_link(app, tx, own_half, other, actor).await?;
    match redirect_to {
        None => {}
        Some(to) if *to == partner => set(app, tx, own_half, other, actor).await?,
        Some(_) => set(app, tx, other, own_half, actor).await?,
    }
    Ok(own)
}

/// The same in a transaction of its own.
pub async fn claim_with_partner(
    app: &App,
    tenant: &TenantId,
    hostname: &Hostname,
    redirect_to: Option<&Hostname>,
    actor: &str,
) -> Result<Claimed, PairError> {
    let mut tx = app.store.begin().await?;
    let claimed = claim_with_partner_in(app, &mut tx, tenant, hostname, redirect_to, actor).await?;
    tx.commit().await?;
    Ok(claimed)
}

/// How often a change is decided anew because the claim got another half while it was waited for.
const TRIES: usize = 5;

/// Sends a domain's visitors on to its other half, or, with nothing named, keeps them from now on.
pub async fn redirect_if(
    app: &App,
    id: &DomainId,
    to: Option<&Hostname>,
    expect: &Expect,
    actor: &str,
) -> Result<(), PairError> {
    for _ in 0..TRIES {
        let mut tx = app.store.begin().await?;
        if decide(app, &mut tx, id, to, expect, actor).await? {
            tx.commit().await?;
            return Ok(());
        }
    }
    Err(PairError::App(StoreError::Busy.into()))
}

/// Decides under the locks of both halves; false when the claim got another half meanwhile.
async fn decide(
    app: &App,
    tx: &mut Tx,
    id: &DomainId,
    to: Option<&Hostname>,
    expect: &Expect,
    actor: &str,
) -> Result<bool, PairError> {
    let seen = pairs::one(tx, id).await?.ok_or_else(|| PairError::NotFound(id.clone()))?;
    let half = seen.hostname.partner();
    let held = pairs::hold_open(tx, &seen.tenant_id, [&seen.hostname, half.as_ref().unwrap_or(&seen.hostname)]).await?;
    let locked = held.iter().find(|held| held.id == *id);
    let own = locked.unwrap_or(&seen);
    if !expect.allows(own.version) {
        return Err(PairError::Changed(own.version));
    }
    if locked.is_none() {
        return Err(PairError::Closed);
    }
    // One that another tenant took keeps its link while it rests: nobody waits for it.
    if let Some(linked) = own.linked.as_ref().filter(|linked| held.iter().all(|held| held.id != **linked)) {
        let other = pairs::one(tx, linked).await?;
        if other.is_some_and(|other| other.claim.is_open() && other.tenant_id == own.tenant_id) {
            return Ok(false);
        }
    }
    let Some(to) = to else {
        if let Some(half) = half.filter(|_| own.redirects) {
            turn(app, tx, own, &half, false, actor).await?;
        }
        return Ok(true);
    };
    let half = half.ok_or_else(|| PairError::NoOtherHalf(own.hostname.clone()))?;
    if *to != half {
        return Err(PairError::NotTheOtherHalf { from: own.hostname.clone(), seen: to.clone(), half });
    }
    let Some((own, other)) = both(&held, &own.hostname, &half) else {
        return Err(PairError::NotClaimed(half));
    };
    ensure_link(app, tx, own, other, actor).await?;
    set(app, tx, own, other, actor).await?;
    Ok(true)
}

/// The claims on these two names, of those that are held.
fn both<'a>(held: &'a [Half], own: &Hostname, other: &Hostname) -> Option<(&'a Half, &'a Half)> {
    let of = |name: &Hostname| held.iter().find(|half| half.hostname == *name);
    Some((of(own)?, of(other)?))
}

fn are_linked(a: &Half, b: &Half) -> bool {
    a.linked.as_ref() == Some(&b.id) && b.linked.as_ref() == Some(&a.id)
}

async fn ensure_link(app: &App, tx: &mut Tx, a: &Half, b: &Half, actor: &str) -> Result<(), PairError> {
    if are_linked(a, b) {
        return Ok(());
    }
    if !pairs::link(tx, &a.tenant_id, &a.id, &b.id).await? {
        return Err(PairError::NotFound(b.id.clone()));
    }
    for (half, other) in [(a, b), (b, a)] {
        tell(app, tx, &half.id, NoticeKind::Paired, &other.hostname, other.id.as_str(), actor).await?;
    }
    Ok(())
}

/// Sends the visitors of one of two linked claims on to the other, where they are not sent there already.
async fn set(app: &App, tx: &mut Tx, own: &Half, other: &Half, actor: &str) -> Result<(), PairError> {
    if other.redirects {
        return Err(PairError::Loop(other.hostname.clone()));
    }
    if own.redirects {
        return Ok(());
    }
    turn(app, tx, own, &other.hostname, true, actor).await
}

/// Turns a redirect on or off.
async fn turn(app: &App, tx: &mut Tx, own: &Half, to: &Hostname, on: bool, actor: &str) -> Result<(), PairError> {
    let (now, fresh) = (app.env.now(), mint!(app.env, EventId).to_string());
    pairs::redirect(tx, &own.id, on, &fresh, now).await?;
    let kind = if on { NoticeKind::RedirectSet } else { NoticeKind::RedirectDropped };
    tell(app, tx, &own.id, kind, to, &fresh, actor).await
}

async fn tell(
    app: &App,
    tx: &mut Tx,
    id: &DomainId,
    kind: NoticeKind,
    about: &Hostname,
    once: &str,
    actor: &str,
) -> Result<(), PairError> {
    let now = app.env.now();
    let notice = mint!(app.env, EventId).to_string();
    pairs::notice(tx, (&notice, once), id, kind, about, actor, now).await?;
    app.wake.wake(tx, id, now).await?;
    let relay = app.bells.relay.clone();
    tx.after_commit(move || relay.notify_one());
    Ok(())
}
