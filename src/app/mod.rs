//! Use cases: the only place that joins store, model and adapters.
//!
//! [`advance::advance`] is the one door through which a domain moves: it takes the lease, asks the pure `plan` what comes next,
//! observes or records an intent and does at most one effect, and records the outcome with its events in one transaction.
//! Everything else here either prepares (a claim, a "check now", a removal, a grant) or shows.
//!
//! What always holds: a decision is made by `model` alone; whatever is acknowledged was committed; a step that lost its lease
//! can write nothing. May import `store vault dns acme reach notify config telemetry env model`. To fake it: hand [`App`] scripted
//! adapters, a hand-driven `Env` and a store in memory. How to get it wrong: decide by a value read before an await, call an
//! adapter inside a transaction, or do a second effect in one step.

pub mod account;
mod act;
mod addresses;
pub mod advance;
pub mod alerts;
mod ask;
pub mod authorities;
pub mod bulk;
mod ca;
pub mod check;
mod choice;
pub mod claim;
pub mod clocks;
pub mod connect;
pub mod contacts;
pub mod dispatch;
pub mod expect;
pub mod explain;
pub mod fleet;
pub mod imports;
mod keys;
pub mod lap;
pub mod links;
pub mod notify;
mod observe;
pub mod offboard;
pub mod pair;
pub mod preflight;
pub mod reissue;
pub mod remove;
pub mod renewal;
pub mod resting;
pub mod restore;
pub mod revoke;
pub mod routine;
pub mod sessions;
pub mod show;
pub mod tenants;
pub mod tokens;
pub mod undo;
pub mod webhooks;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::acme::AcmeError;
use crate::dns::Look;
use crate::env::Env;
use crate::model::conclude::FRESH_EDGE;
use crate::model::domain::RoutingMode;
use crate::model::hostname::Hostname;
use crate::model::letting_go::LettingGo;
use crate::model::look::Platform;
use crate::reach::Reach;
use crate::store::situation::CountedEdges;
use crate::store::{Store, StoreError, Wake};
use crate::telemetry::metrics::ControlMeters;
use crate::vault::{Vault, VaultError};

/// What the operator decided.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Our own zones and addresses.
    pub platform: Platform,
    /// `app.example`: a tenant's canonical host is its slug and this.
    pub canonical_suffix: String,
    /// What tenants are told to point names at.
    pub routing_mode: RoutingMode,
    /// The target where everybody shares one.
    pub shared_target: Option<String>,
    /// What an ALIAS at an apex should follow: the addresses it has now are ours.
    pub apex_target: Option<Hostname>,
    /// Whether a request through the public name must reach an edge before anything is ordered for it.
    pub preflight: bool,
    /// At least so many edges must count before a certificate is ordered or called active.
    pub min_edges: usize,
    /// How names are let go of.
    pub letting_go: LettingGo,
}

impl Settings {
    /// What this tenant's names should point at.
    pub fn target_of(&self, slug: &str) -> String {
        match (&self.routing_mode, &self.shared_target) {
            (RoutingMode::Shared, Some(target)) => target.clone(),
            _ => format!("{slug}.{}", self.canonical_suffix),
        }
    }
}

/// A place in a step where a process may die; tests let it.
#[async_trait]
pub trait Boundary: Send + Sync + 'static {
    /// Crosses the named place.
    async fn cross(&self, place: &'static str);
}

/// Nothing happens at a boundary.
pub struct Smooth;

#[async_trait]
impl Boundary for Smooth {
    async fn cross(&self, _place: &'static str) {}
}

/// Rung after commits: somebody waits for a grant, or the feed has something new.
#[derive(Clone, Default)]
pub struct Bells {
    /// For the dispatcher.
    pub dispatch: Arc<Notify>,
    /// For the relay of outbox and events.
    pub relay: Arc<Notify>,
    /// For the claims of tenants that leave.
    pub offboarding: Arc<Notify>,
    /// For files of names that arrived.
    pub imports: Arc<Notify>,
    /// For replacements of certificates that were asked for.
    pub replacements: Arc<Notify>,
}

/// Everything a use case needs, cheap to clone.
#[derive(Clone)]
pub struct App {
    /// Time and chance.
    pub env: Env,
    /// The store.
    pub store: Store,
    /// The vault.
    pub vault: Arc<Vault>,
    /// Looks at DNS.
    pub look: Arc<dyn Look>,
    /// Asks public names.
    pub reach: Arc<dyn Reach>,
    /// The CAs by issuer.
    pub authorities: Arc<dyn authorities::Authorities>,
    /// The alarm clock.
    pub wake: Arc<dyn Wake>,
    /// What the operator decided.
    pub settings: Arc<Settings>,
    /// Who we are, in leases.
    pub worker: Arc<str>,
    /// Rung after commits.
    pub bells: Bells,
    /// The fleet as it was last counted.
    pub fleet: fleet::Snapshots,
    /// How fast imported names are looked at.
    pub lap: Arc<lap::Lap>,
    /// Requests through public names that are under way.
    pub flights: Arc<preflight::Flights>,
    /// Where a step may be cut.
    pub boundary: Arc<dyn Boundary>,
    /// What is counted.
    pub meters: Arc<ControlMeters>,
}

impl App {
    /// Which edges count now, and how many must.
    pub(crate) fn edges(&self) -> CountedEdges {
        CountedEdges { heard_since: self.env.now() - FRESH_EDGE, min: self.settings.min_edges }
    }
}

/// Why a use case could not be carried out, for reasons that are not the caller's.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The store.
    #[error("the store could not be used")]
    Store(#[from] StoreError),
    /// The vault.
    #[error("a secret could not be sealed or opened")]
    Vault(#[from] VaultError),
    /// Sealed bytes that are none.
    #[error("a sealed value in the store is not readable")]
    Sealed(#[from] crate::vault::NotSealed),
    /// A distribution key that is none.
    #[error("a distribution key in the store is not usable")]
    Distribution(#[from] crate::vault::distribution::DistributionError),
    /// Key or request making.
    #[error("a key or certificate request could not be made")]
    Csr(#[from] crate::acme::csr::CsrError),
    /// The CA, where no order is there to carry the answer.
    #[error("the CA did not do what it was asked")]
    Ca(#[from] AcmeError),
    /// An issuer in the store that configuration does not name.
    #[error("issuer {0:?} is in the store but not configured; add it to the configuration or remove its row")]
    NoAuthority(String),
    /// A domain of an issuer whose account is not there yet.
    #[error("issuer {0:?} has no account yet; it is made when the CA answers")]
    NoAccount(String),
}
