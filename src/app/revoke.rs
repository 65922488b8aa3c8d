//! Revoking certificates of names that were let go of, where policy says so: beside the release, never in its way.
//!
//! The row is written with what ended the certificate's use, and moved on before each try, so a crash costs a try and no more;
//! revoking twice is harmless (RFC 8555 §7.6: the second is told that it was done).

use std::time::Duration;

use serde_json::json;

use super::authorities::CaPlace;
use super::{App, AppError, account, ca};
use crate::acme::{AcmeError, Call, Class, chain};
use crate::mint;
use crate::model::alert::kinds::CERTIFICATE_REVOKED;
use crate::model::id::EventId;
use crate::model::moment::Moment;
use crate::model::outcome::NewEvent;
use crate::model::retries;
use crate::store::issuers;
use crate::store::revocations::{self, DueRevocation};
use crate::store::{claims, situation};
use crate::telemetry::Chain;

/// Calls of one round: a CA's other work comes first.
const BATCH: i64 = 10;
/// A try is nobody else's for so long.
const LEASE: Duration = Duration::from_secs(120);
/// What is kept of an error.
const SAID: usize = 200;

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Certificates that are revoked now.
    pub revoked: usize,
    /// Those that are tried again.
    pub waiting: usize,
    /// Those that never will be.
    pub given_up: usize,
}

/// Revokes what is due.
pub async fn round(app: &App) -> Result<Round, AppError> {
    let now = app.env.now();
    let due = revocations::take(&app.store, now, now + LEASE, BATCH).await?;
    app.boundary.cross("revocations taken").await;
    let mut round = Round::default();
    for one in due {
        match ask(app, &one).await? {
            Ok(()) => {
                done(app, &one).await?;
                round.revoked += 1;
            }
            Err(why) => {
                let said: String = why.said.chars().take(SAID).collect();
                let now = app.env.now();
                let next = retries::next_try(one.attempts, why.wait, now).filter(|at| !why.for_good && *at < one.not_after);
                match next {
                    Some(at) => app.store.execute(revocations::again(&one, at, &said)).await?,
                    None => app.store.execute(revocations::over(&one, None, Some(&said))).await?,
                };
                round.waiting += usize::from(next.is_some());
                round.given_up += usize::from(next.is_none());
                tracing::warn!(
                    certificate.id = %one.certificate_id, said, again = next.map(Moment::rfc3339),
                    "a certificate was not revoked"
                );
            }
        }
    }
    Ok(round)
}

struct Why {
    said: String,
    wait: Option<Duration>,
    for_good: bool,
}

impl From<AcmeError> for Why {
    fn from(e: AcmeError) -> Self {
        let (wait, for_good) = match e.class() {
            Class::RetryAt(wait) => (wait, false),
            Class::StepAgain | Class::WaitFor(_) | Class::Lost => (None, false),
            Class::GiveUp | Class::Missing => (None, true),
        };
        Why { said: Chain(&e).to_string(), wait, for_good }
    }
}

/// One call at the CA that issued it, by the account that got it.
async fn ask(app: &App, one: &DueRevocation) -> Result<Result<(), Why>, AppError> {
    let never = |said: &str| Ok(Err(Why { said: said.to_owned(), wait: None, for_good: true }));
    let Some(issuer) = issuers::list(&app.store).await?.into_iter().find(|i| i.id == one.issuer_id) else {
        return never("the issuer is not known any more");
    };
    let Some(leaf) = chain::leaf(&one.chain) else { return never("the stored chain cannot be read") };
    let Some(account) = account::of_row(app, &issuer)? else { return never("the issuer has no account any more") };
    // One that configuration does not name any more is nobody's CA to ask.
    let authority = match app.authorities.of(&CaPlace::of_row(&issuer)) {
        Ok(authority) => authority,
        Err(e) => return never(&e.to_string()),
    };
    Ok(ca::within(app, Call::Revocation, authority.revoke(&account, &leaf)).await.map_err(Why::from))
}

/// Kept, and told in the history of the claim that it was for.
async fn done(app: &App, one: &DueRevocation) -> Result<(), AppError> {
    let now = app.env.now();
    let mut tx = app.store.begin().await?;
    let domain = situation::fence(&mut tx, &one.domain_id).await?;
    if tx.execute(revocations::over(one, Some(now), None)).await? == 1 {
        let event = NewEvent {
            kind: CERTIFICATE_REVOKED,
            actor: "nameplate".to_owned(),
            cause: "the certificate was revoked at its CA, as the name was let go of".to_owned(),
            detail: json!({ "certificate": one.certificate_id }),
        };
        claims::tell(&mut tx, &domain, &event, &mint!(app.env, EventId), now).await?;
    }
    app.boundary.cross("before a revocation is kept").await;
    tx.commit().await?;
    app.bells.relay.notify_one();
    Ok(())
}
