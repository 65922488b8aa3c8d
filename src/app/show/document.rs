//! The documents themselves, as the API gives them out and the command line takes them in.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rfc3339;
use crate::model::claim::Claim;
use crate::model::evidence::{Actor, Check, Record, Verdict};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::moment::Moment;

/// A tenant, as far as a domain's view names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantRef {
    /// Its id.
    pub id: TenantId,
    /// Its slug.
    pub slug: String,
}

/// One check as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckView {
    /// Which check.
    pub check: Check,
    /// Its outcome.
    pub verdict: Verdict,
    /// The reason's stable code.
    pub code: String,
    /// The reason in one sentence.
    pub sentence: String,
    /// What should be seen.
    pub expected: String,
    /// What was seen.
    pub observed: Vec<String>,
    /// Who saw it.
    pub seen_by: Vec<String>,
    /// Whose move it is.
    pub who_acts: Actor,
    /// What to do.
    pub advice: String,
    /// The records that would satisfy it.
    pub record_to_publish: Vec<Record>,
    /// When the look was made.
    #[serde(with = "rfc3339")]
    pub looked_at: Moment,
    /// When the next one is due.
    #[serde(with = "rfc3339::option")]
    pub next_look_at: Option<Moment>,
    /// Until when it must hold.
    #[serde(with = "rfc3339::option")]
    pub deadline: Option<Moment>,
    /// What happens if nothing changes.
    pub consequence: String,
}

/// The open order, or the latest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct OrderView {
    pub purpose: String,
    pub state: String,
    pub lane: String,
    #[serde(with = "rfc3339")]
    pub state_since: Moment,
    #[serde(with = "rfc3339::option")]
    pub not_before: Option<Moment>,
    /// The CA's problem document, whole.
    pub problem: Option<Value>,
}

/// The certificate in use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct CertificateView {
    pub serial: String,
    pub issuer: Option<String>,
    #[serde(with = "rfc3339")]
    pub not_before: Moment,
    #[serde(with = "rfc3339")]
    pub not_after: Moment,
}

/// How far the certificate has come on the edges that count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RolloutView {
    /// Edges that count.
    pub counted: usize,
    /// Those of them that do not serve it yet, by name.
    pub behind: Vec<String>,
}

/// What a request through the public name met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeView {
    /// When.
    #[serde(with = "rfc3339")]
    pub at: Moment,
    /// Whether it met the certificate in use.
    pub ok: bool,
    /// What it met, one line an address.
    pub seen: Vec<String>,
}

/// The attempt at proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct AttemptView {
    pub value: String,
    #[serde(with = "rfc3339")]
    pub opened_at: Moment,
    #[serde(with = "rfc3339")]
    pub deadline: Moment,
    #[serde(with = "rfc3339::option")]
    pub proven_at: Option<Moment>,
}

/// One line of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct EventView {
    pub id: String,
    /// Its place in the numbered stream of all events, once it has one.
    pub position: Option<i64>,
    pub tenant_id: Option<TenantId>,
    pub domain_id: Option<DomainId>,
    /// Its place in the domain's own history.
    pub seq: Option<i64>,
    pub kind: String,
    pub actor: String,
    pub cause: String,
    #[serde(with = "rfc3339")]
    pub at: Moment,
    pub detail: Value,
}

/// A domain, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainView {
    /// Its id.
    pub id: DomainId,
    /// Whose it is.
    pub tenant: TenantRef,
    /// The name as DNS has it.
    pub hostname: Hostname,
    /// The name as its readers write it.
    pub hostname_display: String,
    /// Where the claim stands.
    pub claim: Claim,
    /// Visitors are served, or why not and whose move it is.
    pub sentence: String,
    /// Whose move it is.
    pub who_acts: Actor,
    /// Whether a visitor gets the tenant's page.
    pub serving: bool,
    /// Live, with a valid certificate on every counted edge.
    pub active: bool,
    /// What to publish.
    pub records: Vec<Record>,
    /// What is seen.
    pub checks: Vec<CheckView>,
    /// The open order, or the latest.
    pub order: Option<OrderView>,
    /// The certificate in use.
    pub certificate: Option<CertificateView>,
    /// How far it has come.
    pub rollout: RolloutView,
    /// What a request through the public name met.
    pub public_probe: Option<ProbeView>,
    /// The attempt at proof.
    pub attempt: AttemptView,
    /// When something is looked at or done next.
    #[serde(with = "rfc3339::option")]
    pub due_at: Option<Moment>,
    /// When the claim was made.
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
    /// The latest events, latest first.
    pub events: Vec<EventView>,
}

/// A domain in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as in DomainView")]
pub struct DomainSummary {
    pub id: DomainId,
    pub tenant: TenantRef,
    pub hostname: Hostname,
    pub hostname_display: String,
    pub claim: Claim,
    #[serde(with = "rfc3339::option")]
    pub due_at: Option<Moment>,
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
}
