//! Who asks.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::access::ClientAddress;
use super::pace::Gate;
use super::problem::Problem;
use super::state::WebState;
use crate::app::tokens::{Caller, Principal, authenticate};
use crate::model::secret::Secret;

/// A caller of the API: by bearer token only, which no browser sends by itself.
pub(super) struct ApiCaller(pub Caller);

/// A reader of the pages: by bearer token, or by HTTP Basic with the token as password, which browsers ask for.
pub(super) struct PageCaller {
    /// Who.
    pub caller: Caller,
    /// The token shown, from which form tokens are made.
    pub token: Secret,
}

impl ApiCaller {
    /// Refuses all but operators.
    pub(super) fn operator(self) -> Result<Caller, Problem> {
        if self.0.principal == Principal::Operator { Ok(self.0) } else { Err(Problem::operators_only()) }
    }
}

fn credentials<'p>(parts: &'p Parts, scheme: &str) -> Option<&'p str> {
    let (given, rest) = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    given.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}

fn bearer(parts: &Parts) -> Option<Secret> {
    credentials(parts, "bearer").map(|token| Secret::from(token.to_owned()))
}

fn basic(parts: &Parts) -> Option<Secret> {
    let decoded = Secret::new(STANDARD.decode(credentials(parts, "basic")?).ok()?);
    let (_, password) = decoded.expose_str()?.split_once(':')?;
    Some(Secret::from(password.to_owned()))
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

impl FromRequestParts<WebState> for PageCaller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &WebState) -> Result<Self, Problem> {
        let refused =
            || Problem::unauthorized("Basic realm=\"Nameplate: any name, the API token as password\", charset=\"UTF-8\"");
        let token = bearer(parts).or_else(|| basic(parts)).ok_or_else(refused)?;
        let caller = authenticate(&state.app.store, state.app.env.now(), &token).await?.ok_or_else(refused)?;
        Ok(PageCaller { caller, token })
    }
}
