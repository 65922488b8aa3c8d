//! The loops of a control plane.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::app::{App, account, advance, dispatch};
use crate::feed::Feed;
use crate::jobs::Step;
use crate::jobs::queue::Queue;
use crate::jobs::schedule::Schedule;
use crate::jobs::sweep::{Sweep, SweepSettings};
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::telemetry::Chain;

/// How long loops may take to finish once told to stop.
const GRACE: Duration = Duration::from_secs(20);
/// How often missing CA accounts are asked for.
const ACCOUNTS: Duration = Duration::from_secs(5);
/// The dispatcher looks at least so often, for what other processes queued.
const DISPATCH_AT_LEAST: Duration = Duration::from_secs(10);

/// Answers alarms by the one door.
struct Drive(App);

#[async_trait]
impl Step for Drive {
    async fn advance(&self, id: &DomainId) {
        if let Err(error) = advance::drive(&self.0, id).await {
            tracing::warn!(domain.id = %id, error = %Chain(&error), "a step failed; it is taken again when its lease has run out");
        }
    }
}

/// Everything that moves domains: workers and sweep, dispatcher, accounts, relay.
pub(super) fn schedule(app: &App, feed: &Feed, queue: &Queue) -> Schedule {
    let sweep = Sweep::new(&app.store, Arc::new(queue.clone()), &app.env, SweepSettings::default());
    Schedule::new(&app.env, GRACE)
        .with_workers(queue.clone(), Arc::new(Drive(app.clone())), sweep)
        .when("dispatcher", Arc::clone(&app.bells.dispatch), DISPATCH_AT_LEAST, {
            let app = app.clone();
            move || grants(app.clone())
        })
        .when("accounts", Arc::default(), ACCOUNTS, {
            let app = app.clone();
            move || accounts(app.clone())
        })
        .with("relay", {
            let feed = feed.clone();
            move |stop| {
                let feed = feed.clone();
                async move { feed.run_relay(stop).await }
            }
        })
}

/// Nothing rings for an account: it is asked for again after a while.
async fn accounts(app: App) -> Option<Moment> {
    if let Err(error) = account::ensure_all(&app).await {
        tracing::warn!(error = %Chain(&error), "CA accounts could not be looked after");
    }
    None
}

/// One round of the dispatcher; when the next is due.
async fn grants(app: App) -> Option<Moment> {
    dispatch::round(&app).await.unwrap_or_else(|error| {
        tracing::warn!(error = %Chain(&error), "no grants could be given; trying again");
        None
    })
}
