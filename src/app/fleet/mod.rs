//! What an operator sees: the fleet in numbers, what is stuck, the queue, the budget, the edges.
//!
//! Numbers over the whole fleet come from a [`Snapshot`], places in the queues from what was [`Played`]; both are taken afresh
//! for a small fleet and kept for a moment for a large one, with their age; everything else is a page of a list by an index. May
//! import what `app` may. To fake it: a store in memory. How to get it wrong: count in a page.

mod budget;
mod edges;
mod overview;
mod queue;
mod snapshot;
mod stuck;

pub use budget::{Budget, Shut, Tokens, budgets};
pub use edges::{EdgeView, Edges, edges};
pub use overview::{Overview, overview};
pub(in crate::app) use queue::queues_with;
pub use queue::{IssuerQueue, Queued, place_of};
pub use snapshot::{HORIZON_DAYS, Played, Snapshot, Snapshots, played, snapshot};
pub use stuck::{Stuck, StuckGroup};

use std::collections::HashMap;

use super::App;
use crate::model::evidence::Actor;
use crate::model::id::TenantId;
use crate::model::moment::Moment;
use crate::model::search::needle;
use crate::model::standing::Standing;
use crate::model::tenant::Tenant;
use crate::store::fleet::counts::{self, Count};
use crate::store::fleet::lists::{self, After, FleetRow};
use crate::store::{StoreResult, tenants};

/// Which domains a list of the operator holds.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Who stands there, longest first.
    Standing(Standing),
    /// Who waits for this actor, longest first.
    Acts(Actor),
    /// Whose certificate ends before then, soonest first.
    EndingBefore(Moment),
}

/// A page of such a list.
pub async fn list(app: &App, wanted: &Wanted, after: &After, limit: i64) -> StoreResult<Vec<FleetRow>> {
    let mut tx = app.store.read().await?;
    match wanted {
        Wanted::Standing(standing) => lists::by_standing(&mut tx, *standing, after, limit).await,
        Wanted::Acts(actor) => lists::by_actor(&mut tx, *actor, after, limit).await,
        Wanted::EndingBefore(until) => lists::ending(&mut tx, *until, after, limit).await,
    }
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Domains, each once, in order of the words they were found by.
    pub rows: Vec<FleetRow>,
    /// Where the next page begins: word and id.
    pub next: Option<(String, String)>,
}

/// Domains found by what somebody typed, after a word and an id.
pub async fn search(app: &App, typed: &str, after: (&str, &str), limit: usize) -> StoreResult<Results> {
    let Some(needle) = needle(typed) else { return Ok(Results::default()) };
    let mut tx = app.store.read().await?;
    let found = lists::search(&mut tx, &needle, after, i64::try_from(limit).unwrap_or(i64::MAX)).await?;
    let last = found.last().filter(|_| found.len() == limit);
    let next = last.map(|last| (last.word.clone(), last.row.id.to_string()));
    let mut results = Results { rows: Vec::with_capacity(found.len()), next };
    for one in found {
        if results.rows.iter().all(|row| row.id != one.row.id) {
            results.rows.push(one.row);
        }
    }
    Ok(results)
}

/// A tenant with the counts of its domains.
#[derive(Clone, Debug)]
pub struct TenantCounts {
    /// The tenant.
    pub tenant: Tenant,
    /// Its domains, counted.
    pub counts: Vec<Count>,
}

impl TenantCounts {
    /// How many claims still stand.
    pub fn open(&self) -> i64 {
        self.counts.iter().filter(|c| c.claim.is_open()).map(|c| c.domains).sum()
    }

    /// How many are served.
    pub fn serving(&self) -> i64 {
        self.counts.iter().filter(|c| c.standing.is_some_and(Standing::serves)).map(|c| c.domains).sum()
    }

    /// How many of those that stand wait for this actor.
    pub fn waiting_for(&self, actor: Actor) -> i64 {
        self.counts.iter().filter(|c| c.claim.is_open() && c.acts == actor).map(|c| c.domains).sum()
    }
}

/// Tenants in order of their age, after an id, each with its counts.
pub async fn tenant_list(app: &App, after: &str, limit: i64) -> StoreResult<Vec<TenantCounts>> {
    let mut tx = app.store.read().await?;
    let listed = tenants::list(&mut tx, after, limit).await?;
    let (Some(first), Some(last)) = (listed.first(), listed.last()) else { return Ok(vec![]) };
    let mut of: HashMap<TenantId, Vec<Count>> = HashMap::new();
    for (tenant, count) in counts::of_tenants(&mut tx, &first.id, &last.id).await? {
        of.entry(tenant).or_default().push(count);
    }
    let counted = |tenant: Tenant| TenantCounts { counts: of.remove(&tenant.id).unwrap_or_default(), tenant };
    Ok(listed.into_iter().map(counted).collect())
}

/// One tenant with a page of its domains.
pub async fn tenant(
    app: &App,
    id: &TenantId,
    after: &str,
    limit: i64,
) -> StoreResult<Option<(TenantCounts, Vec<FleetRow>)>> {
    let mut tx = app.store.read().await?;
    let Some(tenant) = tenants::lookup(&mut tx, id).await? else { return Ok(None) };
    let counts = counts::of_tenant(&mut tx, id).await?;
    let rows = lists::of_tenant(&mut tx, id, after, limit).await?;
    Ok(Some((TenantCounts { tenant, counts }, rows)))
}
