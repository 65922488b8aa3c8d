//! Links that let people in: a portal link signs a tenant's admin in once, a hand-off link shows one domain's records.
//!
//! A link's text exists when it is made and in the hands of whoever got it; kept is its SHA-256. It hangs by the token that
//! asked for it and by its tenant: when that token is taken back, or the tenant is not active, it lets nobody in.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::sessions::{self, Began, SessionSettings};
use super::tokens::{Caller, Principal, sha256};
use crate::env::Env;
use crate::mint;
use crate::model::id::{DomainId, LinkId, TenantId};
use crate::model::moment::Moment;
use crate::model::secret::Secret;
use crate::store::links::{self as rows, FoundLink, LinkKind, LinkRow};
use crate::store::{Store, StoreResult, Tx, tenants};

/// How long links that are over are kept for the record.
const KEPT: Duration = Duration::from_secs(30 * 86_400);
/// Every link's text is so long: 256 bits in base64url.
const LENGTH: usize = 43;

/// A link to make.
#[derive(Clone, Debug)]
pub struct NewLink {
    /// What it is for.
    pub kind: LinkKind,
    /// Whose it is.
    pub tenant: TenantId,
    /// Where it leads, or what it shows.
    pub domain: Option<DomainId>,
    /// Where the portal leads back to.
    pub return_url: Option<String>,
    /// How long it is good.
    pub lifetime: Duration,
}

/// A link that was just made: the only time its text exists here.
pub struct MintedLink {
    /// What is kept of it.
    pub row: LinkRow,
    /// Its text.
    pub text: Secret,
}

/// Why a link lets nobody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dead {
    /// It is none of ours, or forgotten.
    Unknown,
    /// It was used.
    Used,
    /// Its time is over.
    Expired,
    /// It was taken back, or what it hung by is gone.
    Revoked,
}

/// Makes a link, asked for by `caller` under the name `actor`; `None` when the tenant is not active.
pub async fn mint(store: &Store, env: &Env, new: NewLink, caller: &Caller, actor: &str) -> StoreResult<Option<MintedLink>> {
    let mut tx = store.begin().await?;
    let minted = mint_in(&mut tx, env, new, caller, actor).await?;
    if minted.is_some() {
        tx.commit().await?;
    }
    Ok(minted)
}

/// The same inside a transaction, for those who write more into it.
pub async fn mint_in(tx: &mut Tx, env: &Env, new: NewLink, caller: &Caller, actor: &str) -> StoreResult<Option<MintedLink>> {
    let now = env.now();
    let text = Secret::from(URL_SAFE_NO_PAD.encode(env.draw::<32>()));
    let row = LinkRow {
        id: mint!(env, LinkId),
        tenant_id: new.tenant,
        domain_id: new.domain,
        return_url: new.return_url,
        token_id: caller.token.clone(),
        created_by: actor.to_owned(),
        created_at: now,
        expires_at: now + new.lifetime,
        used_at: None,
        revoked_at: None,
    };
    let active = tenants::lookup(tx, &row.tenant_id).await?.is_some_and(|tenant| tenant.status.as_str() == "active");
    if !active {
        return Ok(None);
    }
    tx.execute(rows::forget(now - KEPT)).await?;
    tx.execute(rows::insert(&row, new.kind, &sha256(&text))).await?;
    Ok(Some(MintedLink { row, text }))
}

/// The link with this text, if it still lets somebody in. Changes nothing.
pub async fn look_at(store: &Store, kind: LinkKind, text: &Secret, now: Moment) -> StoreResult<Result<FoundLink, Dead>> {
    if text.expose().len() != LENGTH {
        return Ok(Err(Dead::Unknown));
    }
    let found = rows::lookup_by_digest(&mut store.read().await?, kind, &sha256(text), now).await?;
    Ok(found.ok_or(Dead::Unknown).and_then(|found| alive(found, now)))
}

fn alive(found: FoundLink, now: Moment) -> Result<FoundLink, Dead> {
    if found.row.used_at.is_some() {
        Err(Dead::Used)
    } else if found.row.revoked_at.is_some() || !found.holds {
        Err(Dead::Revoked)
    } else if now >= found.row.expires_at {
        Err(Dead::Expired)
    } else {
        Ok(found)
    }
}

/// Uses a portal link and begins the session it is for, in one transaction: of many at once, one succeeds.
pub async fn enter(
    store: &Store,
    env: &Env,
    text: &Secret,
    settings: &SessionSettings,
    before: Option<&Secret>,
) -> StoreResult<Result<(Began, LinkRow), Dead>> {
    let now = env.now();
    if text.expose().len() != LENGTH {
        return Ok(Err(Dead::Unknown));
    }
    let mut tx = store.begin().await?;
    let found = rows::lookup_by_digest(&mut tx, LinkKind::Portal, &sha256(text), now).await?;
    let link = match found.ok_or(Dead::Unknown).and_then(|found| alive(found, now)) {
        Ok(found) => found.row,
        Err(dead) => return Ok(Err(dead)),
    };
    // The guard decides, not what was read.
    if tx.execute(rows::consume(&link.id, now)).await? == 0 {
        return Ok(Err(Dead::Used));
    }
    let whose = Caller { principal: Principal::Tenant(link.tenant_id.clone()), token: link.token_id.clone() };
    let began = sessions::begin_in(&mut tx, env, &whose, Some(&link), settings, before).await?;
    tx.commit().await?;
    Ok(Ok((began, link)))
}

/// A link that `principal` may see.
pub async fn find(store: &Store, kind: LinkKind, id: &LinkId, principal: &Principal) -> StoreResult<Option<LinkRow>> {
    let found = rows::lookup(&mut store.read().await?, kind, id).await?;
    Ok(found.filter(|link| principal.may_touch(&link.tenant_id)))
}

/// Links in order of their age: all to an operator, a tenant's own to itself.
pub async fn list(
    store: &Store,
    kind: LinkKind,
    tenant: Option<&TenantId>,
    after: Option<&LinkId>,
    limit: i64,
) -> StoreResult<Vec<LinkRow>> {
    rows::list(&mut store.read().await?, kind, tenant, after, limit).await
}

/// The hand-off links of a domain that still work.
pub async fn hand_offs(store: &Store, domain: &DomainId, now: Moment) -> StoreResult<Vec<LinkRow>> {
    rows::open_hand_offs(&mut store.read().await?, domain, now, 20).await
}

/// Takes a link back at once; doing so twice is harmless.
pub async fn revoke(store: &Store, id: &LinkId, now: Moment) -> StoreResult<()> {
    store.execute(rows::revoke(id, now)).await.map(|_| ())
}
