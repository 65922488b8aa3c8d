//! The seam to the alarm clock: a use case that leaves something to do within a minute says so in its own transaction.

use async_trait::async_trait;

use super::{StoreResult, Tx};
use crate::model::id::DomainId;
use crate::model::moment::Moment;

/// Sets alarms. The `domains` row stays the truth: a lost alarm costs a sweep, a doubled one costs a look.
#[async_trait]
pub trait Wake: Send + Sync + 'static {
    /// Asks that `advance` be called for `id` at `at`, once the transaction is durable.
    async fn wake(&self, tx: &mut Tx, id: &DomainId, at: Moment) -> StoreResult<()>;

    /// The same for somebody who waits for it: before all others that are due then.
    async fn wake_first(&self, tx: &mut Tx, id: &DomainId, at: Moment) -> StoreResult<()>;
}
