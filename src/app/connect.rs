//! Finds out for whose names a DNS provider sets the records itself: beside the looks, a few names at a time, and never while a
//! page is made. What is found is kept; pages read it from there.
//!
//! Strangers' servers may be silent for as long as they like: a round starts a few names and waits for them no longer than its
//! patience; what is slow goes on behind it, in places of which one tenant has a few only.
//!
//! A name costs two small looks, and at most three documents of its provider, which other names of the zone share for a day. Silence
//! and whatever is odd count as "no offer", which is asked for again the next day: nothing depends on it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};

use super::{App, AppError, ask};
use crate::model::checks;
use crate::model::domain_connect::{LABEL, LARGEST, MOST_PREFIXES, Offer, Prefix, Services, Settings};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::look::{Ask, Depth, Kind};
use crate::reach::document::Documents;
use crate::store::domain_connect::{self as rows, Due};
use crate::store::{Store, StoreResult};
use crate::telemetry::Chain;

/// How long an answer holds, be it an offer or none.
const HOLDS: Duration = Duration::from_secs(86_400);
/// For so long a name is one finder's own: more than the slowest answers take.
const LEASE: Duration = Duration::from_secs(120);
/// A round starts no more names than this: strangers' servers are asked.
const BATCH: usize = 8;
/// So many names are under way at once, those of earlier rounds included, and so many of them are one tenant's.
const AT_ONCE: usize = 16;
const OF_ONE_TENANT: usize = 2;
/// Among so many there are always some of tenants that have a place left.
const CANDIDATES: i64 = 32;
/// A round waits so long for what is under way.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the operator decided.
#[derive(Clone, Debug)]
pub struct FinderSettings {
    /// Who we are to providers.
    pub provider_id: String,
    /// What our templates are called.
    pub services: Services,
    /// Registered domains of providers whose pages live elsewhere than their settings.
    pub known_hosts: Vec<String>,
}

/// Looks for offers; cheap to clone. What is under way ends with the last clone.
#[derive(Clone)]
pub struct Finder {
    asker: Asker,
    under_way: Arc<tokio::sync::Mutex<UnderWay>>,
}

/// Names that are being asked about, and whose each is.
#[derive(Default)]
struct UnderWay {
    tasks: JoinSet<Result<(), AppError>>,
    whose: HashMap<Id, TenantId>,
}

/// Asks about one name.
#[derive(Clone)]
struct Asker {
    app: App,
    documents: Arc<dyn Documents>,
    settings: Arc<FinderSettings>,
    /// The zones that are being asked about: one name of each asks, the others wait for what it finds.
    zones: Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>,
}

/// Why there is no offer.
#[derive(Debug, thiserror::Error)]
enum NoOffer {
    #[error("{0} has no address")]
    NoAddress(String),
    #[error("{host} could not be asked for its {what}")]
    Reach {
        host: String,
        what: &'static str,
        #[source]
        source: crate::reach::ReachError,
    },
    #[error("{host} answered status {status} when asked for its {what}")]
    Status { host: String, what: &'static str, status: u16 },
    #[error("{host} answered with more than {LARGEST} bytes when asked for its {what}")]
    TooLong { host: String, what: &'static str },
    #[error("{host} answered with settings that cannot be used")]
    Settings {
        host: String,
        #[source]
        source: crate::model::domain_connect::Unusable,
    },
    #[error("{0} has no synchronous flow")]
    NoFlow(String),
}

impl Finder {
    /// On these parts.
    pub fn new(app: App, documents: Arc<dyn Documents>, settings: FinderSettings) -> Self {
        let asker = Asker { app, documents, settings: Arc::new(settings), zones: Arc::default() };
        Finder { asker, under_way: Arc::default() }
    }

    /// Starts to ask for some names, and waits for the answers that come soon; how many were started.
    pub async fn round(&self) -> Result<usize, AppError> {
        let Asker { app, .. } = &self.asker;
        let mut under_way = self.under_way.lock().await;
        let mut patience = std::pin::pin!(app.env.sleep(PATIENCE));
        let mut done = under_way.reap();
        let mut due = rows::due(&mut app.store.read().await?, app.env.now(), CANDIDATES).await?;
        let mut started = 0;
        loop {
            while started < BATCH && done.is_ok() {
                let Some(next) = under_way.next_of(&mut due) else { break };
                let now = app.env.now();
                if app.store.execute(rows::take(&next.id, now, now + LEASE)).await? == 1 {
                    under_way.start(&self.asker, next);
                    started += 1;
                }
            }
            tokio::select! {
                ended = under_way.tasks.join_next_with_id() => match ended {
                    None => break,
                    Some(ended) => done = done.and(under_way.ended(ended)),
                },
                () = &mut patience => break,
            }
        }
        done.map(|()| started)
    }
}

impl UnderWay {
    /// What ended since the last round.
    fn reap(&mut self) -> Result<(), AppError> {
        let mut done = Ok(());
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            done = done.and(self.ended(ended));
        }
        done
    }

    fn ended(&mut self, ended: Result<(Id, Result<(), AppError>), JoinError>) -> Result<(), AppError> {
        let (id, done) = match ended {
            Ok((id, done)) => (id, done),
            Err(e) => {
                tracing::error!(error = %e, "the search for an offer ended before its end; the name is asked about again");
                (e.id(), Ok(()))
            }
        };
        self.whose.remove(&id);
        done
    }

    /// The first of these whose tenant has a place left.
    fn next_of(&self, due: &mut Vec<Due>) -> Option<Due> {
        if self.tasks.len() >= AT_ONCE {
            return None;
        }
        let has_place = |due: &Due| self.whose.values().filter(|whose| **whose == due.tenant_id).count() < OF_ONE_TENANT;
        let at = due.iter().position(has_place)?;
        Some(due.remove(at))
    }

    fn start(&mut self, asker: &Asker, due: Due) {
        let asker = asker.clone();
        let Due { id, tenant_id, hostname } = due;
        let task = self.tasks.spawn(async move { asker.one(&id, &hostname).await });
        self.whose.insert(task.id(), tenant_id);
    }
}

impl Asker {
    async fn one(&self, id: &DomainId, hostname: &Hostname) -> Result<(), AppError> {
        let Some(zone) = self.zone_of(hostname).await else { return self.found(id, "", None).await };
        let turn = Arc::clone(self.zones().entry(zone.clone()).or_default());
        let alone = turn.lock().await;
        let done = self.in_zone(id, &zone).await;
        drop(alone);
        let mut zones = self.zones();
        // The table's and our own: nobody else waits.
        if Arc::strong_count(&turn) == 2 {
            zones.remove(&zone);
        }
        done
    }

    async fn in_zone(&self, id: &DomainId, zone: &str) -> Result<(), AppError> {
        let store = &self.app.store;
        let before = rows::of_zone(&mut store.read().await?, zone, self.app.env.now() - HOLDS).await?;
        let offer = match before {
            Some(kept) => kept,
            None => self.offer_for(zone).await.and_then(|offer| serde_json::to_string(&offer).ok()),
        };
        self.found(id, zone, offer.as_deref()).await
    }

    async fn found(&self, id: &DomainId, zone: &str, offer: Option<&str>) -> Result<(), AppError> {
        let now = self.app.env.now();
        self.app.store.execute(rows::found(id, zone, offer, now, now + HOLDS)).await?;
        Ok(())
    }

    fn zones(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<tokio::sync::Mutex<()>>>> {
        self.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The zone that a name lies in, if it is not one that belongs to everybody.
    async fn zone_of(&self, hostname: &Hostname) -> Option<String> {
        let mut ask = self.question(hostname);
        ask.zone_of = Some(hostname.to_string());
        let seen = self.app.look.look(&ask).await;
        checks::zone_of(&ask, &seen, hostname.as_str())
    }

    /// What the provider of a zone offers.
    async fn offer_for(&self, zone: &str) -> Option<Offer> {
        let name = format!("{LABEL}.{zone}");
        let mut ask = self.question(&Hostname::trusted(zone));
        ask.text = Some(name.clone());
        let seen = self.app.look.look(&ask).await;
        let prefixes = checks::texts(&ask, &seen, &name).into_iter().filter_map(|text| Prefix::read(&text));
        for prefix in prefixes.take(MOST_PREFIXES) {
            match self.ask(zone, &prefix).await {
                Ok(offer) => return Some(offer),
                Err(why) => tracing::debug!(zone, why = %Chain(&why), "no Domain Connect"),
            }
        }
        None
    }

    async fn ask(&self, zone: &str, prefix: &Prefix) -> Result<Offer, NoOffer> {
        let asked = &prefix.0;
        let document = self.document(&asked.host, &prefix.settings_path(zone), "settings").await?;
        let settings = Settings::read(&document, asked, &self.settings.known_hosts)
            .map_err(|source| NoOffer::Settings { host: asked.host.clone(), source })?;
        let (provider, Services { beneath, zone }) = (&self.settings.provider_id, &self.settings.services);
        let mut known = Vec::new();
        let mut unknown = None;
        for service in [beneath, zone] {
            match self.document(&settings.api.host, &settings.template_path(provider, service), "template").await {
                Ok(_) => known.push(service.clone()),
                // It is asked for the other one only if it answered: silence twice would be a long time.
                Err(why @ NoOffer::Status { .. }) => unknown = Some(why),
                Err(why) => return Err(why),
            }
        }
        match (known.is_empty(), unknown) {
            (true, Some(why)) => Err(why),
            _ => settings.offer(known).ok_or_else(|| NoOffer::NoFlow(asked.host.clone())),
        }
    }

    async fn document(&self, host: &str, path: &str, what: &'static str) -> Result<Vec<u8>, NoOffer> {
        let name = Hostname::trusted(host);
        let addresses = self.addresses(&name).await;
        if addresses.is_empty() {
            return Err(NoOffer::NoAddress(host.to_owned()));
        }
        let fetched = self.documents.fetch(&name, path, &addresses, LARGEST).await;
        let document = fetched.map_err(|source| NoOffer::Reach { host: host.to_owned(), what, source })?;
        if document.body.len() > LARGEST {
            return Err(NoOffer::TooLong { host: host.to_owned(), what });
        }
        match document.status {
            200..=299 => Ok(document.body),
            status => Err(NoOffer::Status { host: host.to_owned(), what, status }),
        }
    }

    async fn addresses(&self, name: &Hostname) -> Vec<IpAddr> {
        let seen = self.app.look.look(&ask::addresses(&self.app, name)).await;
        let of_name = |kind| matches!(kind, Kind::A | Kind::Aaaa);
        let answers = seen.observations.iter().filter(|o| o.probe.name == name.as_str() && of_name(o.probe.kind));
        let mut all: Vec<IpAddr> = answers.flat_map(|o| o.answer.addresses()).collect();
        all.sort();
        all.dedup();
        all
    }

    fn question(&self, about: &Hostname) -> Ask {
        let mut ask = Ask::new(about.clone(), self.app.settings.platform.clone());
        ask.depth = Depth::Routine;
        ask
    }
}

/// What was found for a domain: the zone that its name lies in, and the offer of the zone's provider.
pub async fn offer(store: &Store, id: &DomainId) -> StoreResult<Option<(String, Offer)>> {
    let kept = rows::lookup(&mut store.read().await?, id).await?;
    // What an earlier version kept in another form is no offer; it is asked for again.
    Ok(kept.and_then(|(zone, offer)| Some((zone, serde_json::from_str(&offer).ok()?))))
}
