//! Effects of a step: the intent is durable first, then the one call is made.

use super::{App, AppError, ca, keys};
use crate::acme::{Call, csr};
use crate::model::conclude;
use crate::model::domain::{Effect, Situation};
use crate::model::outcome::Outcome;
use crate::store::record::{self, Recorded};

/// Records the intent and does the effect; nothing when the situation is no longer the present one.
pub(super) async fn act(app: &App, s: &Situation, effect: Effect) -> Result<Option<Outcome>, AppError> {
    let Some(order) = &s.order else { return Ok(None) };
    // Whatever can fail on our side fails before the intent says that the CA may have acted.
    let (authority, account) = ca::at_ca(app, s)?;
    let csr_der = match effect {
        Effect::Finalize => {
            let key = keys::order_key(app, order)?;
            csr::csr(&key, std::slice::from_ref(&s.domain.hostname))?
        }
        Effect::NewOrder | Effect::Announce => Vec::new(),
    };
    app.boundary.cross("before the intent").await;
    if record::intent(&app.store, s, effect, order.id.as_str(), app.env.now()).await? != Recorded::Yes {
        return Ok(None);
    }
    app.boundary.cross("intent recorded").await;
    let url = order.url.as_deref().unwrap_or_default();
    let outcome = match effect {
        Effect::NewOrder => {
            let names = std::slice::from_ref(&s.domain.hostname);
            let placed = authority.new_order(&account, names, s.replaces(order));
            let placed = ca::within(app, Call::NewOrder, placed).await;
            placed.map(|placed| conclude::placed(s, order, &placed.url, placed.replaces, app.env.now()))
        }
        Effect::Announce => {
            let challenge = order.challenge_url.as_deref().unwrap_or_default();
            let told = ca::within(app, Call::Challenge, authority.announce(&account, url, challenge)).await;
            told.map(|()| conclude::announced(s, order, app.env.now()))
        }
        Effect::Finalize => {
            let sent = ca::within(app, Call::Finalize, authority.finalize(&account, url, &csr_der)).await;
            sent.map(|_| conclude::finalized(s, order, app.env.now()))
        }
    };
    app.boundary.cross("effect done").await;
    Ok(Some(match outcome {
        Ok(outcome) => conclude::answered(s, outcome),
        Err(e) => conclude::trouble(s, order, Some(effect), &ca::trouble(app, &e), app.env.now()),
    }))
}
