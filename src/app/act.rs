//! Effects of a step: the intent is durable first, then the one call is made.

use std::sync::Arc;
use std::time::Duration;

use super::{App, AppError, account, advance};
use crate::acme::{AccountRef, AcmeError, Authority, Call, Class, Kind, OrderStatus, csr};
use crate::model::conclude::{self, CaStatus, CaVerdict, Trouble};
use crate::model::domain::{Effect, Situation};
use crate::model::order::Order;
use crate::model::outcome::Outcome;
use crate::model::secret::Secret;
use crate::store::StoreError;
use crate::store::record::{self, Recorded};
use crate::telemetry::Chain;
use crate::vault::Sealed;

/// Records the intent and does the effect; nothing when the situation is no longer the present one.
pub(super) async fn act(app: &App, s: &Situation, effect: Effect) -> Result<Option<Outcome>, AppError> {
    let Some(order) = &s.order else { return Ok(None) };
    // Whatever can fail on our side fails before the intent says that the CA may have acted.
    let (authority, account) = at_ca(app, s)?;
    let csr_der = match effect {
        Effect::Finalize => {
            let key = order_key(app, order)?;
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
        Effect::NewOrder => match authority.new_order(&account, std::slice::from_ref(&s.domain.hostname), None).await {
            Ok(placed) => Ok(conclude::placed(s, order, &placed.url, app.env.now())),
            Err(e) => Err(e),
        },
        Effect::Announce => authority
            .announce(&account, url, order.challenge_url.as_deref().unwrap_or_default())
            .await
            .map(|()| conclude::announced(s, order, app.env.now())),
        Effect::Finalize => {
            authority.finalize(&account, url, &csr_der).await.map(|_| conclude::finalized(s, order, app.env.now()))
        }
    };
    app.boundary.cross("effect done").await;
    Ok(Some(match outcome {
        Ok(outcome) => outcome,
        Err(e) => conclude::trouble(s, order, Some(effect), &trouble(&e), app.env.now()),
    }))
}

/// How long one call at the CA may take with everything it needs (directory, nonce, retries): a third of the lease.
const CALL: Duration = Duration::from_secs(30);

/// Ends a call that lasts too long as one that was not answered; the CA may have acted.
pub(super) async fn within<T>(
    app: &App,
    call: Call,
    done: impl Future<Output = Result<T, AcmeError>>,
) -> Result<T, AcmeError> {
    tokio::select! {
        biased;
        done = done => done,
        () = app.env.sleep(CALL) => Err(AcmeError {
            call,
            kind: Kind::Unanswered,
            problem: None,
            status: None,
            retry_after: None,
            acted_on: true,
            cause: None,
        }),
    }
}

/// The CA of the domain's issuer, and the account that speaks to it.
pub(super) fn at_ca(app: &App, s: &Situation) -> Result<(Arc<dyn Authority>, AccountRef), AppError> {
    let issuer = &s.issuer;
    let authority = app.authorities.get(&issuer.name).ok_or_else(|| AppError::NoAuthority(issuer.name.clone()))?;
    Ok((Arc::clone(authority), account::open(app, issuer)?))
}

/// The key of an order's certificate.
pub(super) fn order_key(app: &App, order: &Order) -> Result<Secret, AppError> {
    let sealed = order.sealed_key.clone().ok_or_else(|| StoreError::not_found(format!("the key of order {}", order.id)))?;
    Ok(app.vault.open(&advance::key_context(order), &Sealed::try_from(sealed)?)?)
}

/// The CA's word for a status in ours.
pub(super) fn status(s: OrderStatus) -> CaStatus {
    match s {
        OrderStatus::Pending => CaStatus::Pending,
        OrderStatus::Ready => CaStatus::Ready,
        OrderStatus::Processing => CaStatus::Processing,
        OrderStatus::Valid => CaStatus::Valid,
        OrderStatus::Invalid => CaStatus::Invalid,
    }
}

/// What a failed call means for the step.
pub(super) fn trouble(e: &AcmeError) -> Trouble {
    Trouble {
        verdict: match e.class() {
            Class::RetryAt(wait) => CaVerdict::RetryAt(wait),
            Class::WaitFor(_) => CaVerdict::WaitFor,
            Class::GiveUp => CaVerdict::GiveUp,
            Class::StepAgain => CaVerdict::StepAgain,
            Class::Lost => CaVerdict::Lost,
        },
        account_limited: e.is_rate_limited() && !of_one_name(e),
        said: Chain(e).to_string(),
        problem: e.problem.as_ref().map(ToString::to_string),
    }
}

/// Whether the limit that was hit is one name's (its certificates, its failed authorizations) and not the account's: the CA
/// says so only in words.
fn of_one_name(e: &AcmeError) -> bool {
    let detail = e.problem.as_ref().map(|p| p.detail().to_ascii_lowercase()).unwrap_or_default();
    ["already issued for", "failed authorizations", "certificates already issued"].iter().any(|words| detail.contains(words))
}
