//! Speaking to a CA in a step: with which account, for how long, and what a refusal means.

use std::sync::Arc;
use std::time::Duration;

use super::{App, AppError, account};
use crate::acme::{AccountRef, AcmeError, Authority, Call, Class, Kind, OrderStatus};
use crate::model::conclude::{CaStatus, CaVerdict, Trouble};
use crate::model::domain::Situation;
use crate::telemetry::Chain;

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
            Class::Missing => CaVerdict::Missing,
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
