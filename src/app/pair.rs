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
use crate::store::pairs;
use crate::store::{StoreError, Tx, claims};

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
    // Always in the same order: two requests for both halves at once must not wait for each other.
    let mut names = [hostname, &partner];
    names.sort();
    let first = claim_in(app, tx, tenant, names[0], actor).await?;
    let second = claim_in(app, tx, tenant, names[1], actor).await?;
    let (own, other) = if *names[0] == *hostname { (first, second) } else { (second, first) };
    ensure_link(app, tx, tenant, [(&own.id, hostname), (&other.id, &partner)], actor).await?;
    match redirect_to {
        None => {}
        Some(to) if *to == partner => set(app, tx, &own.id, true, actor).await?,
        Some(_) => set(app, tx, &other.id, true, actor).await?,
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

/// Sends a domain's visitors on to its other half, or, with nothing named, keeps them from now on.
pub async fn redirect_if(
    app: &App,
    id: &DomainId,
    to: Option<&Hostname>,
    expect: &Expect,
    actor: &str,
) -> Result<(), PairError> {
    let mut tx = app.store.begin().await?;
    let own = pairs::one(&mut tx, id).await?.ok_or_else(|| PairError::NotFound(id.clone()))?;
    if !expect.allows(own.event_seq) {
        return Err(PairError::Changed(own.event_seq));
    }
    if !own.claim.is_open() {
        return Err(PairError::Closed);
    }
    let Some(to) = to else {
        set(app, &mut tx, id, false, actor).await?;
        tx.commit().await?;
        return Ok(());
    };
    let half = own.hostname.partner().ok_or_else(|| PairError::NoOtherHalf(own.hostname.clone()))?;
    if *to != half {
        return Err(PairError::NotTheOtherHalf { from: own.hostname, seen: to.clone(), half });
    }
    let Some((other, _)) = claims::open_claim(&mut tx, &own.tenant_id, &half).await? else {
        return Err(PairError::NotClaimed(half));
    };
    ensure_link(app, &mut tx, &own.tenant_id, [(id, &own.hostname), (&other, &half)], actor).await?;
    set(app, &mut tx, id, true, actor).await?;
    tx.commit().await?;
    Ok(())
}

async fn ensure_link(
    app: &App,
    tx: &mut Tx,
    tenant: &TenantId,
    [(a, a_name), (b, b_name)]: [(&DomainId, &Hostname); 2],
    actor: &str,
) -> Result<(), PairError> {
    if pairs::are_linked(tx, a, b).await? {
        return Ok(());
    }
    if !pairs::link(tx, tenant, a, b).await? {
        return Err(PairError::NotFound(b.clone()));
    }
    for (id, other, name) in [(a, b, b_name), (b, a, a_name)] {
        tell(app, tx, id, NoticeKind::Paired, name, other.as_str(), actor).await?;
    }
    Ok(())
}

/// Turns a domain's redirect on or off, where that changes anything.
async fn set(app: &App, tx: &mut Tx, id: &DomainId, on: bool, actor: &str) -> Result<(), PairError> {
    let Some((own, other)) = pairs::lock(tx, id).await? else { return Ok(()) };
    if on && other.redirects {
        return Err(PairError::Loop(other.hostname));
    }
    if own.redirects == on {
        return Ok(());
    }
    let (now, fresh) = (app.env.now(), mint!(app.env, EventId).to_string());
    pairs::redirect(tx, id, on, &fresh, now).await?;
    let kind = if on { NoticeKind::RedirectSet } else { NoticeKind::RedirectDropped };
    tell(app, tx, id, kind, &other.hostname, &fresh, actor).await
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
