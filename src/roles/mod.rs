//! The composition root: from a [`Config`](crate::config::Config) to the roles that run in a process.
//!
//! **Owns** the order in which a process comes up: database and schema ([`open_store`]), vault and its canary, issuers, the
//! adapters, the feed ([`ControlPlane::open`]); then the loops of `serve` and `work`, and an edge ([`run_edge`]); and the
//! port for those who watch ([`observe`]). It is the
//! one place that knows which real part stands behind each seam. **May import** everything but `sandbox` and `cli`, which
//! start it. **Always holds**: whatever is wrong with configuration, schema or master key stops the start with a sentence,
//! before anything listens or acts; ports come as bound listeners; told to stop, every loop finishes what it has begun.
//!
//! **To fake it**: a configuration whose addresses lie on loopback, as the sandbox writes it. **To get it wrong**: decide
//! anything here that a use case should decide, or start a loop outside the schedule, where nothing waits for it.

mod adapters;
mod control;
pub mod doctor;
mod edge;
mod error;
mod feed;
mod loops;
pub mod observe;
pub mod put_back;
mod seal;
mod store;

pub use adapters::ByRow;
pub use control::{ControlPlane, ServeListeners};
pub use edge::{EDGE_DRAIN, run_edge};
pub use error::StartError;
pub use feed::{open_feed, open_vault};
pub use store::{open_current, open_existing, open_store};

use std::net::SocketAddr;

use tokio::net::TcpListener;

/// Binds the address of a setting.
pub async fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { key, address, source })
}
