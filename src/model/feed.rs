//! What the feed says: positions and the entries edges follow. The words of one message; [`super::feed_apply`] is the grammar.
//!
//! An entry is the whole present state of its subject under a version, never a difference, so that applying one twice or
//! skipping an older one changes nothing.

use serde::{Deserialize, Serialize};

use super::hostname::Hostname;
use super::id::{CertificateId, TenantId};
use super::moment::Moment;

/// A place in the feed. Positions of two epochs do not compare: a new epoch starts from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The microsecond of the control plane's first start, or of a restore.
    pub epoch: i64,
    /// The number of the last change seen.
    pub seq: i64,
}

/// Something an edge must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A tenant and its placement.
    Tenant(TenantEntry),
    /// A hostname and whose it is.
    Host(HostEntry),
    /// A certificate with its sealed key.
    Certificate(CertificateEntry),
    /// A token to answer a CA with.
    Challenge(ChallengeEntry),
}

/// A tenant and its placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantEntry {
    /// The tenant.
    pub id: TenantId,
    /// Its name in canonical hosts.
    pub slug: String,
    /// Region of its placement.
    pub region: String,
    /// Stamp of its placement.
    pub stamp: String,
    /// Shard of its placement.
    pub shard: i64,
    /// Its tier.
    pub tier: String,
    /// `active`, `moving`, `suspended` or `deleted`.
    pub status: String,
    /// Newer wins.
    pub version: i64,
}

/// What an edge does with requests for a hostname.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostAction {
    /// Serve it for its tenant.
    Serve,
    /// Answer as for any unknown host. Kept as an entry so that an older one cannot bring the name back.
    Gone,
}

/// A hostname and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEntry {
    /// The name; `*.` in front stands for one label.
    pub hostname: Hostname,
    /// Whose requests these are.
    pub tenant_id: TenantId,
    /// That tenant's slug.
    pub slug: String,
    /// The number of the hostname's holding.
    pub term: i64,
    /// Serve or not.
    pub action: HostAction,
    /// The certificate to show.
    pub certificate_id: Option<CertificateId>,
    /// Where visitors are sent on to, once that name is served for the same tenant. An edge that does not know the field serves
    /// the name itself, so it came without a new format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_to: Option<Hostname>,
    /// Newer wins.
    pub version: i64,
}

/// A certificate; without material it is destroyed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateEntry {
    /// The certificate.
    pub id: CertificateId,
    /// Newer wins.
    pub version: i64,
    /// What to serve with.
    pub material: Option<Material>,
}

/// Chain and key, as one unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Material {
    /// The names it is good for.
    pub names: Vec<String>,
    /// Leaf first, PEM.
    pub chain: String,
    /// The PKCS#8 key, sealed under a distribution key.
    #[serde(with = "base64_bytes")]
    pub sealed_key: Vec<u8>,
    /// The serial number the control plane knows it by.
    pub serial: String,
    /// When it stops being valid.
    pub not_after: Moment,
    /// Whether it is the platform's own: good for every host under its names that has no certificate of its own.
    #[serde(default)]
    pub platform: bool,
}

/// A token to answer a CA with; without an answer it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeEntry {
    /// The last segment of the path the CA asks for.
    pub token: String,
    /// The name being proven.
    pub hostname: Hostname,
    /// The body to answer with.
    pub key_authorization: Option<String>,
    /// Newer wins.
    pub version: i64,
}

/// Everything, as of a position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Where deltas go on from.
    pub position: Position,
    /// All there is.
    pub entries: Vec<Entry>,
}

/// What changed after one number up to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deltas {
    /// The epoch both numbers are of.
    pub epoch: i64,
    /// The last number before these.
    pub after: i64,
    /// The last number of these.
    pub upto: i64,
    /// What changed, each subject once.
    pub entries: Vec<Entry>,
}

/// Bytes as base64 in a JSON document.
mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}
