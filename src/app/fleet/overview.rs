//! The first page: numbers, what is stuck longest and why, and what needs somebody now.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Budget, Edges, Played, Snapshot, budgets, edges, played, snapshot};
use crate::app::App;
use crate::model::evidence::Actor;
use crate::model::standing::Standing;
use crate::store::StoreResult;
use crate::store::fleet::counts;
use crate::store::fleet::lists::{self, After, FleetRow};

/// So many groups, and so many domains of each, are shown.
const GROUPS: usize = 16;
const WORST: i64 = 3;
/// More certificates than this that have ended are not counted for a page.
const ENDED: i64 = 1_000;

/// Domains that are stuck for one reason.
#[derive(Clone, Debug)]
pub struct StuckGroup {
    /// The reason.
    pub standing: Standing,
    /// How many.
    pub domains: i64,
    /// Those that have stood there longest, the longest first.
    pub worst: Vec<FleetRow>,
}

/// The first page.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The numbers.
    pub snapshot: Arc<Snapshot>,
    /// The queues.
    pub played: Arc<Played>,
    /// What is stuck: who acts first is asked first, then the larger group.
    pub groups: Vec<StuckGroup>,
    /// How many groups are not shown.
    pub more_groups: usize,
    /// Certificates in use that have ended, up to a thousand.
    pub ended: i64,
    /// What the CAs let us spend.
    pub budgets: Vec<Budget>,
    /// The edges.
    pub edges: Edges,
}

/// Everything on the first page.
pub async fn overview(app: &App) -> StoreResult<Overview> {
    let (snapshot, played) = (snapshot(app).await?, played(app).await?);
    let mut sizes: BTreeMap<Standing, i64> = BTreeMap::new();
    for count in &snapshot.counts {
        if let Some(standing) = count.standing.filter(|s| s.is_stuck()) {
            *sizes.entry(standing).or_default() += count.domains;
        }
    }
    let rank = |actor: Actor| Actor::ALL.iter().position(|a| *a == actor);
    let mut order: Vec<(Standing, i64)> = sizes.into_iter().collect();
    order.sort_by_key(|(standing, n)| (rank(standing.acts()), std::cmp::Reverse(*n), *standing));
    let more_groups = order.len().saturating_sub(GROUPS);
    let mut groups = Vec::new();
    let mut tx = app.store.read().await?;
    for (standing, domains) in order.into_iter().take(GROUPS) {
        let worst = lists::by_standing(&mut tx, standing, &After::default(), WORST).await?;
        groups.push(StuckGroup { standing, domains, worst });
    }
    let ended = counts::ended(&mut tx, app.env.now(), ENDED).await?;
    drop(tx);
    Ok(Overview { snapshot, played, groups, more_groups, ended, budgets: budgets(app).await?, edges: edges(app).await? })
}
