//! The loops of a control plane.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::app::{App, account, advance, dispatch};
use crate::feed::Feed;
use crate::jobs::Step;
use crate::jobs::queue::Queue;
use crate::jobs::schedule::Schedule;
use crate::jobs::sweep::{Sweep, SweepSettings};
use crate::model::id::DomainId;
use crate::telemetry::Chain;

/// How long loops may take to finish once told to stop.
const GRACE: Duration = Duration::from_secs(20);
/// How often missing CA accounts are asked for.
const ACCOUNTS: Duration = Duration::from_secs(5);
/// The dispatcher looks at least so often, for what other processes queued.
const DISPATCH_AT_LEAST: Duration = Duration::from_secs(10);
/// And at most so often when it is not rung.
const DISPATCH_AT_MOST: Duration = Duration::from_millis(100);

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
        .with("dispatcher", {
            let app = app.clone();
            move |stop| dispatcher(app.clone(), stop)
        })
        .every("accounts", ACCOUNTS, {
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

async fn accounts(app: App) {
    if let Err(error) = account::ensure_all(&app).await {
        tracing::warn!(error = %Chain(&error), "CA accounts could not be looked after");
    }
}

async fn dispatcher(app: App, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let next = dispatch::round(&app).await.unwrap_or_else(|error| {
            tracing::warn!(error = %Chain(&error), "no grants could be given; trying again");
            None
        });
        let wait = next.map_or(DISPATCH_AT_LEAST, |at| at.since(app.env.now())).clamp(DISPATCH_AT_MOST, DISPATCH_AT_LEAST);
        tokio::select! {
            () = stop.cancelled() => {}
            () = app.bells.dispatch.notified() => {}
            () = app.env.sleep(wait) => {}
        }
    }
}
