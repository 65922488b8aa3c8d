//! What is stuck, by its reason, with those that have stood there longest.

use std::collections::BTreeMap;

use crate::model::evidence::Actor;
use crate::model::standing::Standing;
use crate::store::fleet::counts::Count;
use crate::store::fleet::lists::{self, After, FleetRow};
use crate::store::{StoreResult, Tx};

/// So many groups, and so many domains of each, are shown.
const GROUPS: usize = 16;
const WORST: i64 = 3;

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

/// What is stuck.
#[derive(Clone, Debug, Default)]
pub struct Stuck {
    /// Who acts first is asked first, then the larger group.
    pub groups: Vec<StuckGroup>,
    /// How many groups are not shown.
    pub more: usize,
}

/// What is stuck of a fleet counted like this.
pub(super) async fn stuck(tx: &mut Tx, counts: &[Count]) -> StoreResult<Stuck> {
    let mut sizes: BTreeMap<Standing, i64> = BTreeMap::new();
    for count in counts {
        if let Some(standing) = count.standing.filter(|s| s.is_stuck()) {
            *sizes.entry(standing).or_default() += count.domains;
        }
    }
    let rank = |actor: Actor| Actor::ALL.iter().position(|a| *a == actor);
    let mut order: Vec<(Standing, i64)> = sizes.into_iter().collect();
    order.sort_by_key(|(standing, n)| (rank(standing.acts()), std::cmp::Reverse(*n), *standing));
    let mut stuck = Stuck { more: order.len().saturating_sub(GROUPS), groups: Vec::new() };
    for (standing, domains) in order.into_iter().take(GROUPS) {
        let worst = lists::by_standing(tx, standing, &After::default(), WORST).await?;
        stuck.groups.push(StuckGroup { standing, domains, worst });
    }
    Ok(stuck)
}
