//! The loops of a control plane.

use std::sync::Arc;
use std::time::Duration;

use crate::app::alerts::AlertSettings;
use crate::app::connect::Finder;
use crate::app::notify::Notifier;
use crate::app::{
    App, account, alerts, bulk, clocks, dispatch, lap, offboard, reissue, renewal, resting, restore, revoke, routine,
    webhooks,
};
use crate::feed::Feed;
use crate::jobs::door::Door;
use crate::jobs::queue::Queue;
use crate::jobs::schedule::{Failed, Round, Schedule};
use crate::jobs::sweep::{Sweep, SweepSettings};
use crate::model::alert::loops as beats;
use crate::store::retention::{self, Keep};
use crate::telemetry::Chain;

/// How long loops may take to finish once told to stop.
const GRACE: Duration = Duration::from_secs(20);
/// What tells people and machines.
pub(super) struct Telling {
    pub(super) notifier: Notifier,
    pub(super) alerts: AlertSettings,
    pub(super) kept: Kept,
}

/// For how long things that are done with are kept.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub(super) deliveries: Duration,
    pub(super) alerts: Duration,
}

/// Everything that moves domains: workers and sweep, dispatcher, accounts, routine looks, relay; and the finder of offers, where
/// Domain Connect is used.
pub(super) fn schedule(app: &App, feed: &Feed, queue: &Queue, finder: Option<Finder>, telling: &Telling) -> Schedule {
    let sweep = Sweep::new(&app.store, Arc::new(queue.clone()), &app.env, SweepSettings::default());
    let sweep = sweep.counted_by(&app.meters);
    let schedule = Schedule::new(&app.env, GRACE)
        .heard_in(&app.store)
        .with_workers(queue.clone(), Arc::new(Door::new(app.clone())), sweep)
        .when(beats::DISPATCHER, Arc::clone(&app.bells.dispatch), {
            let app = app.clone();
            move || dispatcher(app.clone())
        })
        .when(beats::ACCOUNTS, Arc::default(), {
            let app = app.clone();
            move || accounts(app.clone())
        })
        .when(beats::OFF_BOARDING, Arc::clone(&app.bells.offboarding), {
            let app = app.clone();
            move || leaving(app.clone())
        })
        .when(beats::IMPORTS, Arc::clone(&app.bells.imports), {
            let app = app.clone();
            move || imports(app.clone())
        })
        .when(beats::ROUTINE_LOOKS, Arc::default(), {
            let app = app.clone();
            move || looks(app.clone())
        })
        .when(beats::NAMES_AT_REST, Arc::default(), {
            let app = app.clone();
            move || rests(app.clone())
        })
        .when(beats::REMEMBERED, Arc::default(), {
            let app = app.clone();
            move || remembered(app.clone())
        })
        .when(beats::REVOCATIONS, Arc::default(), {
            let app = app.clone();
            move || revocations(app.clone())
        })
        .when(beats::RENEWAL_WINDOWS, Arc::default(), {
            let app = app.clone();
            move || windows(app.clone())
        })
        .when(beats::CLOCKS, Arc::default(), {
            let app = app.clone();
            move || one_clock(app.clone())
        })
        .when(beats::REPLACEMENTS, Arc::clone(&app.bells.replacements), {
            let app = app.clone();
            move || replacements(app.clone())
        })
        .when(beats::IMPORT_LAP, Arc::default(), {
            let app = app.clone();
            move || import_lap(app.clone())
        })
        .when(beats::ALERTS, Arc::default(), {
            let (app, settings) = (app.clone(), telling.alerts.clone());
            move || watch(app.clone(), settings.clone())
        })
        .with_beat(beats::WEBHOOKS, {
            let notifier = telling.notifier.clone();
            move |stop, beat| {
                let notifier = notifier.clone();
                async move { notifier.run_webhooks(stop, || beat.went_round()).await }
            }
        })
        .when(beats::MAIL, Arc::default(), {
            let notifier = telling.notifier.clone();
            move || write(notifier.clone())
        })
        .when(beats::OLD_DELIVERIES, Arc::default(), {
            let (app, kept) = (app.clone(), telling.kept);
            move || forget(app.clone(), kept)
        })
        .with_beat(beats::RELAY, {
            let feed = feed.clone();
            move |stop, beat| {
                let feed = feed.clone();
                async move { feed.run_relay(stop, || beat.went_round()).await }
            }
        });
    match finder {
        None => schedule,
        Some(finder) => schedule.when(beats::DOMAIN_CONNECT, Arc::default(), move || offers(finder.clone())),
    }
}

/// What could not be done is told to the log, and is tried again in its time.
fn told<T, E: std::error::Error + 'static>(done: Result<T, E>, what: &str) -> Result<T, Failed> {
    done.map_err(|error| {
        tracing::warn!(error = %Chain(&error), "{what}; trying again");
        Failed
    })
}

async fn offers(finder: Finder) -> Round {
    told(finder.round().await, "offers of DNS providers could not be looked for")?;
    // Never faster than its beat, however many wait: the servers that are asked are strangers'.
    Ok(None)
}

async fn accounts(app: App) -> Round {
    told(account::ensure_all(&app).await, "CA accounts could not be looked after")?;
    Ok(None)
}

async fn dispatcher(app: App) -> Round {
    told(dispatch::round(&app).await, "no grants could be given")
}

async fn leaving(app: App) -> Round {
    told(offboard::round(&app).await, "claims of tenants that leave could not be made due")
}

async fn imports(app: App) -> Round {
    told(bulk::round(&app).await, "rows of imports could not be judged")
}

async fn looks(app: App) -> Round {
    let batch = told(routine::batch(&app).await, "live names could not be looked at")?;
    Ok(batch.more.then(|| app.env.now()))
}

async fn rests(app: App) -> Round {
    told(resting::round(&app).await, "names at rest could not be looked at").map(|round| round.next)
}

async fn remembered(app: App) -> Round {
    let done = told(restore::settle(&app).await, "what edges remember could not be settled")?;
    Ok((done > 0).then(|| app.env.now()))
}

async fn revocations(app: App) -> Round {
    told(revoke::round(&app).await, "certificates could not be revoked")?;
    Ok(None)
}

async fn windows(app: App) -> Round {
    let batch = told(renewal::batch(&app).await, "CAs could not be asked when certificates are to be renewed")?;
    Ok(batch.more.then(|| app.env.now()))
}

async fn one_clock(app: App) -> Round {
    let agreed = told(clocks::agree(&app.store, &app.env).await, "the database could not be asked what time it is");
    told(clocks::mend(&app).await, "what a wrong clock left behind could not be looked for")?;
    agreed.map(|()| None)
}

async fn replacements(app: App) -> Round {
    told(reissue::round(&app).await, "replacements of certificates could not be gone on with")?;
    Ok(None)
}

async fn import_lap(app: App) -> Round {
    told(lap::round(&app).await, "imported names could not be looked at").map(|round| round.next)
}

async fn watch(app: App, settings: AlertSettings) -> Round {
    told(alerts::pass(&app, &settings).await, "alerts could not be looked for")?;
    app.meters.watched(app.env.now());
    Ok(None)
}

async fn write(notifier: Notifier) -> Round {
    told(notifier.write_round().await, "what is to be written could not be looked for")?;
    Ok(None)
}

async fn forget(app: App, kept: Kept) -> Round {
    let now = app.env.now();
    let sealed = told(webhooks::seal_urls(&app).await, "URLs of webhooks that stand in the open were not sealed");
    let keep = Keep { deliveries: now - kept.deliveries, alerts: now - kept.alerts };
    told(retention::prune(&app.store, keep, now).await, "old deliveries and alerts were not removed")?;
    sealed.map(|_| None)
}
