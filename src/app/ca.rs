//! Speaking to a CA in a step: with which account, for how long, and what a refusal means.

use std::sync::Arc;
use std::time::Duration;

use super::authorities::CaPlace;
use super::{App, AppError, account};
use crate::acme::{AccountRef, AcmeError, Authority, Call, Class, Kind, OrderStatus, limited};
use crate::model::conclude::{CaStatus, CaVerdict, Trouble};
use crate::model::domain::Situation;
use crate::model::issuer::IssuerNews;
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
    Ok((app.authorities.of(&CaPlace::of(issuer))?, account::open(app, issuer)?))
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
pub(super) fn trouble(app: &App, e: &AcmeError) -> Trouble {
    let in_words = || e.told_in_words().map(|at| at.since(app.env.now())).filter(|wait| !wait.is_zero());
    Trouble {
        verdict: match e.class() {
            Class::RetryAt(wait) => CaVerdict::RetryAt(wait.or_else(in_words)),
            Class::WaitFor(_) => CaVerdict::WaitFor,
            Class::GiveUp => CaVerdict::GiveUp,
            Class::Missing => CaVerdict::Missing,
            Class::StepAgain => CaVerdict::StepAgain,
            Class::Lost => CaVerdict::Lost,
        },
        news: news(e),
        limited: limited(e),
        of_replaces: e.refuses_replaces(),
        said: Chain(e).to_string(),
        problem: e.problem.as_ref().map(|p| p.json().to_string()),
        acted_on: e.acted_on && matches!(e.call, Call::NewOrder | Call::Challenge | Call::Finalize),
    }
}

/// What a failed call tells of its CA.
fn news(e: &AcmeError) -> Option<IssuerNews> {
    let said = || Chain(e).to_string();
    if e.is_of_the_account() {
        return Some(if e.call == Call::NewOrder { IssuerNews::Halted(said()) } else { IssuerNews::InDoubt(said()) });
    }
    // Whoever turns new orders away for a while speaks to all who would come; at another resource it may be about the one.
    let told = e.retry_after.filter(|_| e.call == Call::NewOrder);
    e.is_of_the_ca().then(|| IssuerNews::Failed { said: said(), told })
}
