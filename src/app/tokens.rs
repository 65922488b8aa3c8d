//! Tokens of the API: made once and shown once, kept as SHA-256, found again by it.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::env::Env;
use crate::mint;
use crate::model::id::{TenantId, TokenId};
use crate::model::moment::Moment;
use crate::model::secret::Secret;
use crate::store::tokens::{self, TokenRow};
use crate::store::{Store, StoreError, StoreResult, Tx};

/// On whose behalf somebody acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// The platform: sees and does everything.
    Operator,
    /// One tenant: sees and does what is its own.
    Tenant(TenantId),
}

impl Principal {
    /// Whether what belongs to `tenant` may be seen and touched.
    pub fn may_touch(&self, tenant: &TenantId) -> bool {
        match self {
            Principal::Operator => true,
            Principal::Tenant(own) => own == tenant,
        }
    }

    /// The text by which what it left behind is told from others'.
    pub fn key(&self) -> &str {
        match self {
            Principal::Operator => "operator",
            Principal::Tenant(id) => id.as_str(),
        }
    }

    /// What a token of this scope begins with, so that people and scanners know one when they see it.
    fn prefix(&self) -> &'static str {
        match self {
            Principal::Operator => "npo_",
            Principal::Tenant(_) => "npt_",
        }
    }

    pub(super) fn scope(&self) -> &'static str {
        match self {
            Principal::Operator => "operator",
            Principal::Tenant(_) => "tenant",
        }
    }
}

/// Somebody who has shown a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// On whose behalf.
    pub principal: Principal,
    /// By which token.
    pub token: TokenId,
}

impl Caller {
    /// The name that events carry.
    pub fn actor(&self) -> String {
        format!("{} {}", self.principal.scope(), self.token)
    }
}

/// A token that was just made: the only time its text exists here.
pub struct Minted {
    /// Its id, by which it is taken back.
    pub id: TokenId,
    /// Its text.
    pub text: Secret,
    /// All that is kept of it, but for the digest.
    pub row: TokenRow,
}

/// Makes a token.
pub async fn mint(
    store: &Store,
    env: &Env,
    principal: &Principal,
    label: &str,
    expires_at: Option<Moment>,
) -> StoreResult<Minted> {
    let mut tx = store.begin().await?;
    let minted = mint_in(&mut tx, env, principal, label, expires_at).await?;
    tx.commit().await?;
    Ok(minted)
}

/// The same inside a transaction, for those who write more into it.
pub async fn mint_in(
    tx: &mut Tx,
    env: &Env,
    principal: &Principal,
    label: &str,
    expires_at: Option<Moment>,
) -> StoreResult<Minted> {
    let text = Secret::from(format!("{}{}", principal.prefix(), URL_SAFE_NO_PAD.encode(env.draw::<32>())));
    let row = TokenRow {
        id: mint!(env, TokenId),
        scope: principal.scope().into(),
        tenant_id: match principal {
            Principal::Operator => None,
            Principal::Tenant(id) => Some(id.clone()),
        },
        label: label.chars().take(200).collect(),
        created_at: env.now(),
        expires_at,
        used_at: None,
        revoked_at: None,
    };
    tx.execute(tokens::insert(&row, &sha256(&text))).await?;
    Ok(Minted { id: row.id.clone(), text, row })
}

/// The token of that id, if the principal may know of it.
pub async fn find(store: &Store, principal: &Principal, id: &TokenId) -> StoreResult<Option<TokenRow>> {
    let found = tokens::lookup(&mut store.read().await?, id).await?;
    Ok(found.filter(|row| match principal {
        Principal::Operator => true,
        Principal::Tenant(own) => row.scope == "tenant" && row.tenant_id.as_ref() == Some(own),
    }))
}

/// Who shows this token; `None` for one that is unknown, taken back, ended, or for something else. The look-up is by digest,
/// so its time says nothing of how near a guess is.
pub async fn authenticate(store: &Store, now: Moment, presented: &Secret) -> StoreResult<Option<Caller>> {
    let Some(text) = presented.expose_str().filter(|text| text.len() == 47) else { return Ok(None) };
    let found = tokens::lookup_by_digest(&mut store.read().await?, &sha256(presented)).await?;
    let Some(row) = found.filter(|row| row.revoked_at.is_none() && row.expires_at.is_none_or(|end| now < end)) else {
        return Ok(None);
    };
    let principal = match (row.scope.as_str(), row.tenant_id) {
        ("operator", None) => Principal::Operator,
        ("tenant", Some(tenant)) => Principal::Tenant(tenant),
        _ => return Ok(None),
    };
    Ok(text.starts_with(principal.prefix()).then_some(Caller { principal, token: row.id }))
}

/// Takes a token back at once.
pub async fn revoke(store: &Store, env: &Env, id: &TokenId) -> StoreResult<()> {
    match store.execute(tokens::revoke(id, env.now())).await? {
        0 => Err(StoreError::not_found(format!("a valid token {id}"))),
        _ => Ok(()),
    }
}

pub(super) fn sha256(text: &Secret) -> Vec<u8> {
    digest(&SHA256, text.expose()).as_ref().to_vec()
}
