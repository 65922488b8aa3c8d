//! Asking the CAs when their certificates are to be renewed (ARI, RFC 9773 §4.3), in batches: nothing is moved here. Only a
//! moment that comes earlier than the one known before makes its domain due; a later one is seen when that is over.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::authorities::CaPlace;
use super::{App, AppError, ca};
use crate::acme::{Authority, Call};
use crate::model::id::IssuerId;
use crate::model::renewal::{Schedule, heard, unheard};
use crate::store::issuers;
use crate::store::renewals::{self, ToAsk};
use crate::telemetry::Chain;

/// Certificates asked about in one batch.
const BATCH: usize = 100;
/// Questions under way at once.
const AT_ONCE: usize = 8;
/// What one process took nobody else asks about for so long: longer than a batch takes that is answered slowly.
const TAKEN: Duration = Duration::from_secs(600);
/// A CA that does not tell windows is asked whether it does again after this; what is not in use any more likewise.
const SELDOM: Duration = Duration::from_secs(86_400);

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Certificates asked about.
    pub asked: usize,
    /// Those whose moment is another one now.
    pub moved: usize,
    /// Whether more are due.
    pub more: bool,
}

/// One batch of what is due by now.
pub async fn batch(app: &App) -> Result<Batch, AppError> {
    let now = app.env.now();
    let due = renewals::take_to_ask(&app.store, now, now + TAKEN, BATCH).await?;
    if due.is_empty() {
        return Ok(Batch::default());
    }
    let mut authorities: HashMap<IssuerId, Arc<dyn Authority>> = HashMap::new();
    for row in issuers::list(&app.store).await? {
        // An issuer that configuration does not name any more may have no CA behind it; its certificates keep their own time.
        if let Ok(authority) = app.authorities.of(&CaPlace::of_row(&row)) {
            authorities.insert(row.id, authority);
        }
    }
    let authorities = &authorities;
    let answers = stream::iter(due).map(|of| async move {
        let authority = of.issuer_id.as_ref().and_then(|id| authorities.get(id));
        let learnt = ask(app, &of, authority).await;
        (of, learnt)
    });
    let learnt: Vec<(ToAsk, Schedule)> = answers.buffer_unordered(AT_ONCE).collect().await;
    let moved = learnt.iter().filter(|(of, s)| s.at != of.schedule.at).count();
    renewals::learnt(&app.store, &learnt).await?;
    if moved > 0 {
        tracing::info!(asked = learnt.len(), moved, "CAs told other moments for renewals");
    }
    Ok(Batch { asked: learnt.len(), moved, more: learnt.len() >= BATCH })
}

async fn ask(app: &App, of: &ToAsk, authority: Option<&Arc<dyn Authority>>) -> Schedule {
    let seldom = || Schedule { poll_at: app.env.now() + SELDOM, ..of.schedule.clone() };
    let (Some(authority), Some(id), true) = (authority, &of.ari_id, of.in_use) else { return seldom() };
    match ca::within(app, Call::RenewalInfo, authority.renewal_info(id)).await {
        Ok(None) => seldom(),
        Ok(Some(advice)) => {
            let draw = u32::from_be_bytes(app.env.draw());
            heard(&of.schedule, &of.certificate_id, of.validity, &advice, draw, app.env.now())
        }
        Err(e) => {
            tracing::debug!(domain.id = %of.domain_id, error = %Chain(&e), "the CA did not say when to renew a certificate");
            unheard(&of.schedule, e.retry_after, &Chain(&e).to_string(), app.env.now())
        }
    }
}
