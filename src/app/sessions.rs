//! Sessions of the pages: begun by a portal link or an operator's token, found again by the SHA-256 of a cookie.
//!
//! A session is looked up with everything it hangs by at every request: when its token or its link is taken back, its tenant
//! is not active any more, or its time is over, the next request finds none. Each sign-in makes a new one and ends the one before.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::tokens::{Caller, Principal, sha256};
use crate::env::Env;
use crate::mint;
use crate::model::id::SessionId;
use crate::model::moment::Moment;
use crate::model::secret::Secret;
use crate::store::links::LinkRow;
use crate::store::sessions::{self as rows, SessionRow};
use crate::store::{Store, StoreResult, Tx};

/// How long sessions that are over are kept for the record.
const KEPT: Duration = Duration::from_secs(7 * 86_400);
/// A session in use is noted at most so often.
const NOTED: Duration = Duration::from_secs(30);
/// Every session's text is so long: 256 bits in base64url.
const LENGTH: usize = 43;

/// How long sessions last.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// Unused.
    pub idle: Duration,
    /// In any case.
    pub lifetime: Duration,
}

/// A session that was just begun: the only time its text exists here.
pub struct Began {
    /// Its id.
    pub id: SessionId,
    /// What the cookie holds.
    pub text: Secret,
    /// After which time it ends in any case.
    pub lifetime: Duration,
}

/// Somebody with a session.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// On whose behalf, and by which token.
    pub caller: Caller,
    /// The session.
    pub session: SessionId,
    /// What people call the tenant.
    pub tenant_name: Option<String>,
    /// Where the portal leads back to.
    pub return_url: Option<String>,
    seen_at: Moment,
}

impl SignedIn {
    /// The name that events carry: an operator's token, or the tenant's session.
    pub fn actor(&self) -> String {
        match self.caller.principal {
            Principal::Operator => self.caller.actor(),
            Principal::Tenant(_) => format!("tenant {}", self.session),
        }
    }
}

/// Begins a session for somebody who has shown a token.
pub async fn begin(
    store: &Store,
    env: &Env,
    caller: &Caller,
    settings: &SessionSettings,
    before: Option<&Secret>,
) -> StoreResult<Began> {
    let mut tx = store.begin().await?;
    let began = begin_in(&mut tx, env, caller, None, settings, before).await?;
    tx.commit().await?;
    Ok(began)
}

/// The same inside a transaction, by a link.
pub(super) async fn begin_in(
    tx: &mut Tx,
    env: &Env,
    caller: &Caller,
    link: Option<&LinkRow>,
    settings: &SessionSettings,
    before: Option<&Secret>,
) -> StoreResult<Began> {
    let now = env.now();
    let text = Secret::from(URL_SAFE_NO_PAD.encode(env.draw::<32>()));
    let row = SessionRow {
        id: mint!(env, SessionId),
        tenant_id: match &caller.principal {
            Principal::Operator => None,
            Principal::Tenant(tenant) => Some(tenant.clone()),
        },
        token_id: caller.token.clone(),
        link_id: link.map(|link| link.id.clone()),
        return_url: link.and_then(|link| link.return_url.clone()),
        created_at: now,
        seen_at: now,
        expires_at: now + settings.lifetime,
    };
    if let Some(before) = before {
        tx.execute(rows::end(&sha256(before), now)).await?;
    }
    tx.execute(rows::forget(now - KEPT)).await?;
    tx.execute(rows::insert(&row, caller.principal.scope(), &sha256(&text))).await?;
    Ok(Began { id: row.id, text, lifetime: settings.lifetime })
}

/// Who has this session; `None` when there is none, or none any more. Changes nothing.
pub async fn look_at(store: &Store, env: &Env, text: &Secret, settings: &SessionSettings) -> StoreResult<Option<SignedIn>> {
    if text.expose().len() != LENGTH {
        return Ok(None);
    }
    let now = env.now();
    let found = rows::lasting(&mut store.read().await?, &sha256(text), now, now - settings.idle).await?;
    Ok(found.and_then(|found| {
        let principal = match (found.scope.as_str(), found.row.tenant_id) {
            ("operator", None) => Principal::Operator,
            ("tenant", Some(tenant)) => Principal::Tenant(tenant),
            _ => return None,
        };
        Some(SignedIn {
            caller: Caller { principal, token: found.row.token_id },
            session: found.row.id,
            tenant_name: found.tenant_name,
            return_url: found.row.return_url,
            seen_at: found.row.seen_at,
        })
    }))
}

/// The same, and notes that the session is in use.
pub async fn resume(store: &Store, env: &Env, text: &Secret, settings: &SessionSettings) -> StoreResult<Option<SignedIn>> {
    let found = look_at(store, env, text, settings).await?;
    if let Some(signed_in) = &found {
        let now = env.now();
        // The idle time may be shorter than the usual note. Guarded, so that many requests at once write once.
        let noted = now - NOTED.min(settings.idle / 4);
        if signed_in.seen_at < noted {
            store.execute(rows::touch(&signed_in.session, now, noted)).await?;
        }
    }
    Ok(found)
}

/// Ends a session; ending none is harmless.
pub async fn end(store: &Store, env: &Env, text: &Secret) -> StoreResult<()> {
    store.execute(rows::end(&sha256(text), env.now())).await.map(|_| ())
}
