//! Look-ups: from an [`Ask`] to a [`Seen`], never failing, because a failure is an observation.
//!
//! Owns the wire (own queries by UDP and TCP, so that response code, extended errors, AA, AD, TTL and SOA are all kept), the
//! limits of one look, the [`gate`] that all of them pass together, and the fakes. May import `model`, `env`, `telemetry` and
//! hickory's wire format; nothing else of the crate. What to ask is not decided here: [`model::checks::wanted`](crate::model::checks::wanted) says which probes are open, this folder
//! sends them until none is left or a limit is reached.
//!
//! [`Observers`] is the real one: configured resolvers, and the zones' own servers, whose addresses pass through an injected
//! map. A resolver can be asked twice, with its check of signatures and without; which of them check at all is found out. [`scripted::ScriptedDns`] needs no sockets: it answers from a [`world::ZoneStore`], which the sandbox's real server
//! serves too, so both fakes behave alike. How to get it wrong: ask a zone's server at an address nobody checked (it may be
//! inside our own network), or take a resolver's cached "no" for the zone's.

mod clock;
mod gate;
mod limits;
mod observers;
pub mod scripted;
mod validating;
pub mod wire;
pub mod world;

use async_trait::async_trait;

pub use gate::{Caps, Gate};
pub use limits::Limits;
pub use observers::{AddressMap, Observers, Settings};

use crate::model::look::{Ask, Seen};

/// Looks at DNS.
#[async_trait]
pub trait Look: Send + Sync {
    /// What is seen now. Never fails: what went wrong is part of what was seen.
    async fn look(&self, ask: &Ask) -> Seen;
}
