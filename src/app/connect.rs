//! Finds out for whose names a DNS provider sets the records itself: beside the looks, a name at a time, and never while a page
//! is made. What is found is kept; pages read it from there.
//!
//! A name costs two small looks, and at most three documents of its provider, which other names of the zone share for a day. Silence
//! and whatever is odd count as "no offer", which is asked for again the next day: nothing depends on it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{App, AppError, ask};
use crate::model::checks;
use crate::model::domain_connect::{LABEL, LARGEST, MOST_PREFIXES, Offer, Prefix, Services, Settings};
use crate::model::hostname::Hostname;
use crate::model::id::DomainId;
use crate::model::look::{Ask, Depth, Kind};
use crate::reach::document::Documents;
use crate::store::{Store, StoreResult, domain_connect as rows};
use crate::telemetry::Chain;

/// How long an answer holds, be it an offer or none.
const HOLDS: Duration = Duration::from_secs(86_400);
/// For so long a name is one finder's own: more than the slowest answers take.
const LEASE: Duration = Duration::from_secs(120);
/// More names are not taken at once: strangers' servers are asked, one after the other.
const BATCH: i64 = 5;

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

/// Looks for offers; cheap to clone.
#[derive(Clone)]
pub struct Finder {
    app: App,
    documents: Arc<dyn Documents>,
    settings: Arc<FinderSettings>,
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
        Finder { app, documents, settings: Arc::new(settings) }
    }

    /// Asks for some names; how many.
    pub async fn round(&self) -> Result<usize, AppError> {
        let store = &self.app.store;
        let due = rows::due(&mut store.read().await?, self.app.env.now(), BATCH).await?;
        let mut asked = 0;
        for (id, hostname) in due {
            let now = self.app.env.now();
            if store.execute(rows::take(&id, now, now + LEASE)).await? == 1 {
                self.one(&id, &hostname).await?;
                asked += 1;
            }
        }
        Ok(asked)
    }

    async fn one(&self, id: &DomainId, hostname: &Hostname) -> Result<(), AppError> {
        let store = &self.app.store;
        let zone = self.zone_of(hostname).await;
        let offer = match &zone {
            None => None,
            Some(zone) => {
                let before = rows::of_zone(&mut store.read().await?, zone, self.app.env.now() - HOLDS).await?;
                match before {
                    Some(kept) => kept,
                    None => self.offer_for(zone).await.and_then(|offer| serde_json::to_string(&offer).ok()),
                }
            }
        };
        let now = self.app.env.now();
        let zone = zone.unwrap_or_default();
        store.execute(rows::found(id, &zone, offer.as_deref(), now, now + HOLDS)).await?;
        Ok(())
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
