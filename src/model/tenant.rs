//! A tenant: a customer of the SaaS, with its place in the catalogue.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::id::TenantId;
use super::moment::Moment;
use super::slug::Slug;

/// Whether a tenant's names are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TenantStatus {
    /// Served.
    Active,
    /// Between two placements.
    Moving,
    /// Known, not served.
    Suspended,
    /// Answers as one that never was.
    Deleted,
}

impl TenantStatus {
    /// The word in store and API.
    pub const fn as_str(self) -> &'static str {
        match self {
            TenantStatus::Active => "active",
            TenantStatus::Moving => "moving",
            TenantStatus::Suspended => "suspended",
            TenantStatus::Deleted => "deleted",
        }
    }
}

/// A text that is no status of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a status of a tenant")]
pub struct NotATenantStatus(String);

impl FromStr for TenantStatus {
    type Err = NotATenantStatus;
    fn from_str(s: &str) -> Result<Self, NotATenantStatus> {
        [TenantStatus::Active, TenantStatus::Moving, TenantStatus::Suspended, TenantStatus::Deleted]
            .into_iter()
            .find(|status| status.as_str() == s)
            .ok_or_else(|| NotATenantStatus(s.to_owned()))
    }
}

impl fmt::Display for TenantStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a tenant lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Region.
    pub region: String,
    /// Deployment stamp within the region.
    pub stamp: String,
    /// Shard within the stamp.
    pub shard: i64,
}

impl Default for Placement {
    /// One region, one stamp, one shard: what a first installation has.
    fn default() -> Self {
        Placement { region: "default".into(), stamp: "default".into(), shard: 0 }
    }
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// Its slug, never reused.
    pub slug: Slug,
    /// What people call it.
    pub name: String,
    /// Where it lives.
    pub placement: Placement,
    /// Its tier.
    pub tier: String,
    /// Whether its names are served.
    pub status: TenantStatus,
    /// Raised at each change; older is refused.
    pub version: i64,
    /// When it was added.
    pub created_at: Moment,
}
