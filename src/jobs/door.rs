//! The one door behind the workers' trait.

use async_trait::async_trait;
use tracing::Instrument as _;

use super::Step;
use crate::app::{App, advance};
use crate::model::id::DomainId;
use crate::telemetry::Chain;

/// Answers alarms by the use case that moves a domain on.
pub struct Door(App);

impl Door {
    /// For this application.
    pub fn new(app: App) -> Self {
        Door(app)
    }
}

#[async_trait]
impl Step for Door {
    async fn advance(&self, id: &DomainId) {
        let span = tracing::info_span!("job.advance", domain.id = %id);
        if let Err(e) = advance::drive(&self.0, id).instrument(span).await {
            // The row is as it was, or leased until the lease runs out; either way the sweep finds it due.
            tracing::warn!(domain.id = %id, error = %Chain(&e), "a step failed and will be tried again");
        }
    }
}
