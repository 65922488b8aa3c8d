//! What API and pages ask the application to do, as a trait, so that they can be tried without it.

use std::time::Duration;

use async_trait::async_trait;

use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::store::StoreError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// There is no such domain.
    #[error("there is no such domain")]
    NotFound,
    /// Asked again too soon.
    #[error("this was asked for a moment ago; ask again in {} s", .0.as_secs().max(1))]
    TooSoon(Duration),
    /// Not possible as things stand: a stable code and a sentence.
    #[error("{message}")]
    Refused {
        /// Stable code.
        code: &'static str,
        /// What was seen and what to do.
        message: String,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// The doors through which a domain is moved.
#[async_trait]
pub trait Doors: Send + Sync + 'static {
    /// Claims a hostname for a tenant; a claim that stands already is answered with.
    async fn claim(&self, tenant: &TenantId, hostname: &Hostname, actor: &str) -> Result<DomainId, DoorError>;

    /// Looks at DNS at once.
    async fn check_now(&self, id: &DomainId, actor: &str) -> Result<(), DoorError>;

    /// Lets the domain go.
    async fn remove(&self, id: &DomainId, actor: &str) -> Result<(), DoorError>;
}
