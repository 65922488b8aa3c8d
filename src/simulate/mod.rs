//! The product on a hand-driven clock: what an operator runs to plan capacity, and what tests run to prove the dispatcher.
//!
//! **Owns** a world in one process ([`world`]): the real use cases on a store in memory, a scripted DNS, an edge that is a row,
//! and a CA that counts as Let's Encrypt does ([`ca`]) and answers late and out of order. One loop ([`engine`]) runs
//! everything: a step goes on until it waits for the CA, then the next one; when nothing can go on, the clock jumps to what
//! comes next. So days pass in seconds, and one seed makes one history.
//! **May import** everything below `cli`. **Always holds:** nothing here decides what a domain does; that is `app`'s, called as
//! the workers call it. **To get it wrong:** move the clock while a step runs, or read a result off the world that the
//! product did not write.

mod ca;
mod chart;
mod engine;
mod import;
mod report;
mod world;
mod year;

pub use ca::{CaLimits, Used};
pub use chart::{svg, terminal};
pub use import::{ImportOptions, simulate_import};
pub use report::{FloorLimit, HourPoint, ImportReport, LaneWaits};
pub use year::{DayPoint, EventKind, Sabotage, YearOptions, YearReport, simulate_year, year_terminal};

/// Why a simulation could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The product failed.
    #[error("the product failed in the simulation")]
    App(#[from] crate::app::AppError),
    /// A claim was refused.
    #[error("a claim was refused in the simulation")]
    Claim(#[from] crate::app::claim::ClaimError),
    /// The store failed.
    #[error("the simulation's store failed")]
    Store(#[from] crate::store::StoreError),
    /// A key could not be sealed.
    #[error("the simulation's vault failed")]
    Vault(#[from] crate::vault::VaultError),
    /// The CA could not be set up.
    #[error("the simulation's CA cannot be set up")]
    Ca(#[from] crate::sandbox::ca::AuthorityError),
    /// The pretend DNS refused a record.
    #[error("the simulation's DNS refused a record")]
    Dns(#[from] crate::dns::world::EditError),
    /// A tenant could not be added.
    #[error("the simulation's tenant could not be added")]
    Tenant(#[from] crate::app::tenants::AddTenantError),
    /// A tenant could not leave.
    #[error("a tenant could not leave in the simulation")]
    Leave(#[from] crate::app::offboard::OffboardError),
    /// A domain could not be removed.
    #[error("a domain could not be removed in the simulation")]
    Remove(#[from] crate::app::remove::RemoveError),
    /// The place for webhooks was refused.
    #[error("the simulation's webhook was refused")]
    Webhook(#[from] crate::app::webhooks::AddWebhookError),
    /// The world was made without a key that edges answer by.
    #[error("the simulation's world has no distribution key")]
    NoKey,
    /// Something that can not come to an end.
    #[error("after {days} days {left} names have no certificate; nothing moves any more")]
    Stuck {
        /// Days that passed.
        days: u64,
        /// Names left.
        left: usize,
    },
}
