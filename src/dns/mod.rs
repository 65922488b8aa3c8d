//! x
mod limits;
use crate::model::look::{Ask, Seen};
use async_trait::async_trait;
pub use limits::Limits;
/// Looks at DNS.
#[async_trait]
pub trait Look: Send + Sync {
    /// What is seen now. Never fails: what went wrong is part of what was seen.
    async fn look(&self, ask: &Ask) -> Seen;
}
