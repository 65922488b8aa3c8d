//! The control plane of one process: `serve`, or `work` without API, pages and feed.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::observe::{self, WatchedControl, Watching};
use super::{StartError, adapters, bind, loops, seal, store};
use crate::app::connect::Finder;
use crate::app::fleet::Snapshots;
use crate::app::lap::Lap;
use crate::app::{App, Bells, Smooth, clocks};
use crate::config::{Config, Role};
use crate::env::Env;
use crate::feed::Feed;
use crate::jobs::queue::{Queue, QueueSettings};
use crate::store::Store;
use crate::telemetry::metrics::ControlMeters;
use crate::vault::Vault;
use crate::web::{self, WebSettings, WebState};

/// A control plane, opened and not yet running.
pub struct ControlPlane {
    config: Config,
    app: App,
    feed: Feed,
    queue: Queue,
    finder: Option<Finder>,
    telling: loops::Telling,
}

/// The listeners of `serve`.
pub struct ServeListeners {
    /// API and pages.
    pub web: TcpListener,
    /// The feed.
    pub feed: TcpListener,
}

impl ServeListeners {
    /// Binds what the configuration says.
    pub async fn bind(config: &Config) -> Result<Self, StartError> {
        let web = bind("server.listen", config.server.listen).await?;
        Ok(ServeListeners { web, feed: bind("feed.listen", config.feed.listen).await? })
    }
}

impl ControlPlane {
    /// Opens what `role` needs. `serve` brings the database to this binary's schema; `work`, of which many may run beside
    /// each other, only takes a current one.
    pub async fn open(config: &Config, role: Role, env: &Env) -> Result<ControlPlane, StartError> {
        config.check_for(role)?;
        let store = match role {
            Role::Work => store::open_current(config).await?,
            Role::Serve | Role::Edge => store::open_store(config).await?,
        };
        clocks::agree(&store, env).await?;
        let vault = Arc::new(seal::open(&config.vault, &store, env).await?);
        let authorities = Arc::new(adapters::ByRow::new(env));
        adapters::seed_issuers(config, &store, &vault, &authorities, env).await?;
        let bells = Bells::default();
        let feed = Feed::open(store.clone(), Arc::clone(&vault), env.clone(), Arc::clone(&bells.relay)).await?;
        let concurrency = usize::try_from(config.jobs.concurrency).unwrap_or(usize::MAX);
        let queue = Queue::new(&store, env, QueueSettings { concurrency, ..QueueSettings::default() });
        let meters = Arc::<ControlMeters>::default();
        let gate = adapters::gate(&config.looks, env, &meters);
        let look = adapters::observers(&config.dns, env)?.behind(gate);
        let app = App {
            env: env.clone(),
            store,
            vault,
            look: Arc::new(look),
            reach: Arc::new(adapters::public_name(config, env)?),
            authorities,
            wake: Arc::new(queue.clone()),
            settings: Arc::new(adapters::settings(config)),
            worker: format!("{}-{}", std::process::id(), env.draw_hex(4)).into(),
            bells,
            fleet: Snapshots::default(),
            lap: Arc::new(Lap::new(config.looks.imports_per_second, config.looks.lap_per_second)),
            flights: Arc::default(),
            boundary: Arc::new(Smooth),
            meters,
        };
        let finder = adapters::finder(config, &app)?;
        let telling = adapters::telling(config, &app)?;
        Ok(ControlPlane { config: config.clone(), app, feed, queue, finder, telling })
    }

    /// Its store.
    pub fn store(&self) -> &Store {
        &self.app.store
    }

    /// Its vault.
    pub fn vault(&self) -> &Vault {
        &self.app.vault
    }

    /// Its side of the feed.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Serves API, pages and feed and does the work, until told to stop; then drains and closes the database.
    pub async fn serve(self, listeners: ServeListeners, stop: CancellationToken) -> Result<(), StartError> {
        let _watching = self.watching(&stop).await?;
        let public_url = self.config.server.public_url.as_ref().map(|url| url.as_str()).unwrap_or_default();
        let mut settings = WebSettings::new(&self.config, public_url).map_err(StartError::Brand)?;
        settings.connect = adapters::connect(&self.config)?;
        let state = WebState::new(self.app.clone(), settings);
        let (stopped, live) = (stop.clone(), state.live.clone());
        let told = async move {
            stopped.cancelled().await;
            // Pages that wait for changes would hold up the drain to its end.
            live.close();
        };
        let web = async {
            let served = web::serve(listeners.web, web::router(state), self.app.env.clone(), told).await;
            // Without its API a control plane is no use to anybody: whoever started it should know.
            stop.cancel();
            served
        };
        let schedule = loops::schedule(&self.app, &self.feed, &self.queue, self.finder.clone(), &self.telling);
        let (web, (), _) = tokio::join!(web, self.feed.serve(listeners.feed, stop.clone()), schedule.run(stop.clone()));
        self.app.store.close().await;
        web.map_err(StartError::Web)
    }

    /// Does the work alone, until told to stop; then drains and closes the database.
    pub async fn work(self, stop: CancellationToken) -> Result<(), StartError> {
        let _watching = self.watching(&stop).await?;
        loops::schedule(&self.app, &self.feed, &self.queue, self.finder.clone(), &self.telling).run(stop).await;
        self.app.store.close().await;
        Ok(())
    }

    async fn watching(&self, stop: &CancellationToken) -> Result<Option<Watching>, StartError> {
        let watched = WatchedControl::new(self.app.clone(), stop.clone());
        observe::start(&self.config, Arc::new(watched), &self.app.env).await
    }
}
