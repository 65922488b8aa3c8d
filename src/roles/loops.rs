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
use crate::jobs::schedule::Schedule;
use crate::jobs::sweep::{Sweep, SweepSettings};
use crate::model::moment::Moment;
use crate::store::retention::{self, Keep};
use crate::telemetry::Chain;

/// How long loops may take to finish once told to stop.
const GRACE: Duration = Duration::from_secs(20);
/// How often missing CA accounts are asked for.
const ACCOUNTS: Duration = Duration::from_secs(5);
/// The dispatcher looks at least so often, for what other processes queued.
const DISPATCH: Duration = Duration::from_secs(10);
/// How often tenants that leave are looked for, which another process may have let go.
const OFFBOARDING: Duration = Duration::from_secs(5);
/// How often names are looked for whose DNS provider may set the records itself.
const OFFERS: Duration = Duration::from_secs(5);
/// How often imports are looked for, whose files another process received.
const IMPORTS: Duration = Duration::from_secs(3);
/// The routine looks' batches follow the day this closely.
const ROUTINE: Duration = Duration::from_secs(60);

/// How often names at rest are looked for that are to be looked at.
const RESTING: Duration = Duration::from_secs(60);

/// How often certificates are looked for about which a CA is to be asked.
const WINDOWS: Duration = Duration::from_secs(60);

/// How often clocks are compared, and what one that ran ahead left behind is looked for.
const CLOCKS: Duration = Duration::from_secs(600);

/// How long a replacement that was begun elsewhere may stay unnoticed.
const REPLACEMENTS: Duration = Duration::from_secs(15);

/// How long imported names may stay unnoticed.
const LAP: Duration = Duration::from_secs(2);

/// How often alerts are looked for: a threshold that is crossed is told within a minute.
const ALERTS: Duration = Duration::from_secs(20);
/// How often addresses are looked for that something is to be written to.
const MAIL: Duration = Duration::from_secs(1);
/// How often what is older is removed.
const PRUNE: Duration = Duration::from_secs(3600);

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
        .with_workers(queue.clone(), Arc::new(Door::new(app.clone())), sweep)
        .when("dispatcher", Arc::clone(&app.bells.dispatch), DISPATCH, {
            let app = app.clone();
            move || dispatcher(app.clone())
        })
        .when("accounts", Arc::default(), ACCOUNTS, {
            let app = app.clone();
            move || accounts(app.clone())
        })
        .when("off-boarding", Arc::clone(&app.bells.offboarding), OFFBOARDING, {
            let app = app.clone();
            move || leaving(app.clone())
        })
        .when("imports", Arc::clone(&app.bells.imports), IMPORTS, {
            let app = app.clone();
            move || imports(app.clone())
        })
        .when("routine looks", Arc::default(), ROUTINE, {
            let app = app.clone();
            move || looks(app.clone())
        })
        .when("names at rest", Arc::default(), RESTING, {
            let app = app.clone();
            move || rests(app.clone())
        })
        .when("what edges remember", Arc::default(), RESTING, {
            let app = app.clone();
            move || remembered(app.clone())
        })
        .when("revocations", Arc::default(), RESTING, {
            let app = app.clone();
            move || revocations(app.clone())
        })
        .when("renewal windows", Arc::default(), WINDOWS, {
            let app = app.clone();
            move || windows(app.clone())
        })
        .when("clocks", Arc::default(), CLOCKS, {
            let app = app.clone();
            move || one_clock(app.clone())
        })
        .when("replacements", Arc::clone(&app.bells.replacements), REPLACEMENTS, {
            let app = app.clone();
            move || replacements(app.clone())
        })
        .when("imported names", Arc::default(), LAP, {
            let app = app.clone();
            move || import_lap(app.clone())
        })
        .when("alerts", Arc::default(), ALERTS, {
            let (app, settings) = (app.clone(), telling.alerts.clone());
            move || watch(app.clone(), settings.clone())
        })
        .with("webhooks", {
            let notifier = telling.notifier.clone();
            move |stop| {
                let notifier = notifier.clone();
                async move { notifier.run_webhooks(stop).await }
            }
        })
        .when("mail", Arc::default(), MAIL, {
            let notifier = telling.notifier.clone();
            move || write(notifier.clone())
        })
        .when("old deliveries", Arc::default(), PRUNE, {
            let (app, kept) = (app.clone(), telling.kept);
            move || forget(app.clone(), kept)
        })
        .with("relay", {
            let feed = feed.clone();
            move |stop| {
                let feed = feed.clone();
                async move { feed.run_relay(stop).await }
            }
        });
    match finder {
        None => schedule,
        Some(finder) => schedule.when("Domain Connect", Arc::default(), OFFERS, move || offers(finder.clone())),
    }
}

async fn offers(finder: Finder) -> Option<Moment> {
    if let Err(error) = finder.round().await {
        tracing::warn!(error = %Chain(&error), "offers of DNS providers could not be looked for; trying again");
    }
    // Never faster than its beat, however many wait: the servers that are asked are strangers'.
    None
}

async fn accounts(app: App) -> Option<Moment> {
    if let Err(error) = account::ensure_all(&app).await {
        tracing::warn!(error = %Chain(&error), "CA accounts could not be looked after");
    }
    None
}

async fn dispatcher(app: App) -> Option<Moment> {
    dispatch::round(&app).await.unwrap_or_else(|error| {
        tracing::warn!(error = %Chain(&error), "no grants could be given; trying again");
        None
    })
}

async fn leaving(app: App) -> Option<Moment> {
    offboard::round(&app).await.unwrap_or_else(|error| {
        tracing::warn!(error = %Chain(&error), "claims of tenants that leave could not be made due; trying again");
        None
    })
}

async fn imports(app: App) -> Option<Moment> {
    bulk::round(&app).await.unwrap_or_else(|error| {
        tracing::warn!(error = %Chain(&error), "rows of imports could not be judged; trying again");
        None
    })
}

async fn looks(app: App) -> Option<Moment> {
    match routine::batch(&app).await {
        Ok(batch) => batch.more.then(|| app.env.now()),
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "live names could not be looked at; trying again");
            None
        }
    }
}

async fn rests(app: App) -> Option<Moment> {
    match resting::round(&app).await {
        Ok(round) => round.next,
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "names at rest could not be looked at; trying again");
            None
        }
    }
}

async fn remembered(app: App) -> Option<Moment> {
    match restore::settle(&app).await {
        Ok(done) => (done > 0).then(|| app.env.now()),
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "what edges remember could not be settled; trying again");
            None
        }
    }
}

async fn revocations(app: App) -> Option<Moment> {
    if let Err(error) = revoke::round(&app).await {
        tracing::warn!(error = %Chain(&error), "certificates could not be revoked; trying again");
    }
    None
}

async fn windows(app: App) -> Option<Moment> {
    match renewal::batch(&app).await {
        Ok(batch) => batch.more.then(|| app.env.now()),
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "CAs could not be asked when certificates are to be renewed; trying again");
            None
        }
    }
}

async fn one_clock(app: App) -> Option<Moment> {
    if let Err(error) = clocks::agree(&app.store, &app.env).await {
        tracing::warn!(error = %Chain(&error), "the database could not be asked what time it is; trying again");
    }
    if let Err(error) = clocks::mend(&app).await {
        tracing::warn!(error = %Chain(&error), "what a wrong clock left behind could not be looked for; trying again");
    }
    None
}

async fn replacements(app: App) -> Option<Moment> {
    if let Err(error) = reissue::round(&app).await {
        tracing::warn!(error = %Chain(&error), "replacements of certificates could not be gone on with; trying again");
    }
    None
}

async fn import_lap(app: App) -> Option<Moment> {
    match lap::round(&app).await {
        Ok(round) => round.next,
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "imported names could not be looked at; trying again");
            None
        }
    }
}

async fn watch(app: App, settings: AlertSettings) -> Option<Moment> {
    match alerts::pass(&app, &settings).await {
        Ok(_) => app.meters.watched(app.env.now()),
        Err(error) => tracing::warn!(error = %Chain(&error), "alerts could not be looked for; trying again"),
    }
    None
}

async fn write(notifier: Notifier) -> Option<Moment> {
    if let Err(error) = notifier.write_round().await {
        tracing::warn!(error = %Chain(&error), "what is to be written could not be looked for; trying again");
    }
    None
}

async fn forget(app: App, kept: Kept) -> Option<Moment> {
    let now = app.env.now();
    if let Err(error) = webhooks::seal_urls(&app).await {
        tracing::warn!(error = %Chain(&error), "URLs of webhooks that stand in the open were not sealed; trying again");
    }
    let keep = Keep { deliveries: now - kept.deliveries, alerts: now - kept.alerts };
    if let Err(error) = retention::prune(&app.store, keep, now).await {
        tracing::warn!(error = %Chain(&error), "old deliveries and alerts were not removed; they are tried again");
    }
    None
}
