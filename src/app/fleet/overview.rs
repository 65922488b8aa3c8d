//! The first page: numbers, what is stuck longest and why, and what needs somebody now.

use std::sync::Arc;

use super::{Budget, Edges, Played, Snapshot, budgets, edges, played, snapshot};
use crate::app::App;
use crate::store::StoreResult;

/// The first page.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The numbers, and what is stuck.
    pub snapshot: Arc<Snapshot>,
    /// The queues.
    pub played: Arc<Played>,
    /// What the CAs let us spend.
    pub budgets: Vec<Budget>,
    /// The edges.
    pub edges: Edges,
}

/// Everything on the first page.
pub async fn overview(app: &App) -> StoreResult<Overview> {
    let (edges, budgets) = (edges(app).await?, budgets(app).await?);
    let (snapshot, played) = (snapshot(app).await?, played(app).await?);
    Ok(Overview { snapshot, played, budgets, edges })
}
