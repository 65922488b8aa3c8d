//! When a look's turn comes among all the others.

use std::time::Duration;

use crate::model::id::TenantId;
use crate::model::vocabulary::vocabulary;

vocabulary! {
    /// The lane a look waits in, the most urgent first.
    Lane {
        /// Somebody pressed "check now" and waits.
        CheckNow = "check_now",
        /// A claim made one by one, and what stands before an order.
        Single = "single",
        /// The daily recheck of a live name.
        Routine = "routine",
        /// An imported name that waits for its records.
        Bulk = "bulk",
    }
}

/// A look's place among the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its lane.
    pub lane: Lane,
    /// For whom it is made; none for the platform itself.
    pub tenant: Option<TenantId>,
    /// How long it may wait before it is put off; none means that whoever asks cannot go on without it, so it never is.
    pub patience: Option<Duration>,
}

impl Default for Turn {
    fn default() -> Self {
        Turn { lane: Lane::Single, tenant: None, patience: None }
    }
}

impl Turn {
    /// The turn of a look for a tenant's claim, which is put off rather than keep others waiting behind it.
    pub fn of(tenant: &TenantId, lane: Lane) -> Self {
        let patience = match lane {
            Lane::CheckNow => Some(Duration::from_secs(10)),
            Lane::Single | Lane::Bulk => Some(Duration::from_secs(2)),
            // Batches of their own, which nobody waits behind.
            Lane::Routine => None,
        };
        Turn { lane, tenant: Some(tenant.clone()), patience }
    }
}
