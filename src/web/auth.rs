//! Who asks: the API's callers by bearer token, the pages' readers by session.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::access::ClientAddress;
use super::pace::Gate;
use super::problem::Problem;
use super::state::WebState;
use super::{cookie, form, frame};
use crate::app::sessions::{self, SignedIn};
use crate::app::tokens::{Caller, Principal, authenticate};
use crate::model::secret::Secret;

/// A caller of the API: by bearer token only, which no browser sends by itself.
pub(super) struct ApiCaller(pub Caller);

/// A reader of the pages: by session only. Every signed-in page takes one.
pub(super) struct PageCaller {
    /// On whose behalf.
    pub caller: Caller,
    /// The name that events carry.
    pub actor: String,
    /// The token that this session's forms carry.
    pub csrf: String,
    /// Where a tenant came from.
    pub return_url: Option<String>,
    /// What its cookie holds.
    pub secret: Secret,
}

impl ApiCaller {
    /// Refuses all but operators.
    pub(super) fn operator(self) -> Result<Caller, Problem> {
        if self.0.principal == Principal::Operator { Ok(self.0) } else { Err(Problem::operators_only()) }
    }
}

/// Sent by our script where it loads a page again without being asked.
const BY_ITSELF: &str = "x-nameplate-refresh";

fn bearer(parts: &Parts) -> Option<Secret> {
    let (scheme, rest) = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Secret::from(rest.trim().to_owned()))
}

impl FromRequestParts<WebState> for ApiCaller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &WebState) -> Result<Self, Problem> {
        let now = state.app.env.now();
        let caller = match bearer(parts) {
            Some(token) => authenticate(&state.app.store, now, &token).await?,
            None => None,
        };
        let gate = parts.extensions.get::<Gate>();
        match caller {
            Some(caller) => {
                gate.map_or(Ok(()), |gate| gate.by_token(&caller.token, now))?;
                Ok(ApiCaller(caller))
            }
            None => {
                let from = parts.extensions.get::<ClientAddress>().and_then(|client| client.0);
                gate.map_or(Ok(()), |gate| gate.by_nobody(from, now))?;
                Err(Problem::unauthorized("Bearer realm=\"nameplate\""))
            }
        }
    }
}

/// Who has the session of this request, without writing that it is in use.
pub(super) async fn signed_in(state: &WebState, secret: &Secret) -> Result<Option<SignedIn>, Problem> {
    Ok(sessions::look_at(&state.app.store, &state.app.env, secret, &state.settings.sessions()).await?)
}

impl FromRequestParts<WebState> for PageCaller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &WebState) -> Result<Self, Problem> {
        let secret = cookie::read(state, &parts.headers).ok_or_else(Problem::not_signed_in)?;
        let (store, env, settings) = (&state.app.store, &state.app.env, state.settings.sessions());
        // An open page that looks again by itself is no use of the session: nobody may be sitting there.
        let found = if parts.headers.contains_key(BY_ITSELF) {
            sessions::look_at(store, env, &secret, &settings).await?
        } else {
            sessions::resume(store, env, &secret, &settings).await?
        };
        let found = found.ok_or_else(Problem::not_signed_in)?;
        let csrf = form::csrf(&secret);
        frame::read_by(&found, &csrf);
        Ok(PageCaller { actor: found.actor(), caller: found.caller, csrf, return_url: found.return_url, secret })
    }
}
