//! The documents themselves, as the API gives them out and the command line takes them in.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::build::is_young;
use super::record::{DnsHostDocument, RecordDocument, ViewDocument};
use super::{rfc3339, words};
use crate::model::bulk::Hold;
use crate::model::claim::Claim;
use crate::model::evidence::{Actor, Check, DnsHost, Record, Verdict, View};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, ImportId, TenantId};
use crate::model::moment::Moment;

/// A tenant, as far as a domain's view names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TenantRef {
    /// Its id.
    #[schema(value_type = String, pattern = "^ten_[0-9a-f]{32}$", example = "ten_019b0000000070008000000000000001")]
    pub id: TenantId,
    /// Its slug.
    #[schema(example = "acme")]
    pub slug: String,
}

/// One check as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckView {
    /// Which check.
    #[schema(schema_with = words::check)]
    pub check: Check,
    /// Its outcome.
    #[schema(schema_with = words::verdict)]
    pub verdict: Verdict,
    /// The reason's stable code.
    #[schema(example = "cname_points_elsewhere")]
    pub code: String,
    /// The reason in one sentence.
    pub sentence: String,
    /// What should be seen.
    pub expected: String,
    /// What was seen.
    pub observed: Vec<String>,
    /// Who saw it.
    pub seen_by: Vec<String>,
    /// Everybody's word side by side, where they did not all say the same; else empty.
    #[schema(value_type = Vec<ViewDocument>)]
    #[serde(default)]
    pub views: Vec<View>,
    /// When the last copy of an answer that is not as expected is gone, if every server says what is expected by then.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(default, with = "rfc3339::option")]
    pub old_until: Option<Moment>,
    /// Whose move it is.
    #[schema(schema_with = words::actor)]
    pub who_acts: Actor,
    /// What to do.
    pub advice: String,
    /// The records that would satisfy it.
    #[schema(value_type = Vec<RecordDocument>)]
    pub record_to_publish: Vec<Record>,
    /// Where the zone is hosted and how its panel wants those records; absent while that is not recognised.
    #[schema(value_type = DnsHostDocument, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_host: Option<DnsHost>,
    /// When the look was made.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub looked_at: Moment,
    /// When the next one is due.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub next_look_at: Option<Moment>,
    /// Until when it must hold.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub deadline: Option<Moment>,
    /// What happens if nothing changes.
    pub consequence: String,
}

/// An import that is held, and with it the claims it brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeldView {
    /// By whom, or that it was given up.
    #[schema(schema_with = words::hold)]
    pub by: Hold,
    /// Since when.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub since: Option<Moment>,
    /// The import, where it is the tenant's own.
    #[schema(value_type = Option<String>, pattern = "^imp_[0-9a-f]{32}$", required)]
    pub import_id: Option<ImportId>,
}

/// The open order, or the latest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct OrderView {
    #[schema(schema_with = words::purpose)]
    pub purpose: String,
    #[schema(schema_with = words::order_state)]
    pub state: String,
    #[schema(schema_with = words::lane)]
    pub lane: String,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub state_since: Moment,
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub not_before: Option<Moment>,
    /// The CA's problem document, whole.
    #[schema(schema_with = words::anything, required)]
    pub problem: Option<Value>,
}

/// The certificate in use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct CertificateView {
    pub serial: String,
    #[schema(required)]
    pub issuer: Option<String>,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub not_before: Moment,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub not_after: Moment,
    /// Whole days until it ends; 0 on the last day, and once it is over.
    pub days_left: u64,
    /// Hundredths of its lifetime that are left, rounded down.
    pub percent_left: i64,
}

/// The renewal of the certificate in use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RenewalView {
    /// When it is renewed.
    #[schema(value_type = String, format = DateTime, example = "2027-03-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub at: Moment,
    /// When it comes and why then, or what stands against it; in plain sentences.
    pub sentence: String,
    /// Whether something stands against it.
    pub at_risk: bool,
    /// From when the certificate authority would like it (RFC 9773); null where the certificate's own life decides.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-03-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub window_start: Option<Moment>,
    /// Until when.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-03-17T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub window_end: Option<Moment>,
    /// Where the certificate authority says why.
    #[schema(required)]
    pub explanation: Option<String>,
}

/// How far the certificate has come on the edges that count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RolloutView {
    /// Edges that count.
    pub counted: usize,
    /// Those of them that do not serve it yet, by name.
    pub behind: Vec<String>,
}

/// What a request through the public name met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProbeView {
    /// When.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub at: Moment,
    /// Whether it met the certificate in use.
    pub ok: bool,
    /// What it met, one line an address.
    pub seen: Vec<String>,
}

/// The attempt at proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct AttemptView {
    #[schema(example = "nameplate-verify=0123456789abcdef0123456789abcdef")]
    pub value: String,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub opened_at: Moment,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub deadline: Moment,
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub proven_at: Option<Moment>,
}

/// One line of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct EventView {
    #[schema(value_type = String, pattern = "^evt_[0-9a-f]{32}$", example = "evt_019b0000000070008000000000000001")]
    pub id: String,
    /// Its place in the numbered stream of all events, once it has one.
    #[schema(required)]
    pub position: Option<i64>,
    #[schema(value_type = Option<String>, pattern = "^ten_[0-9a-f]{32}$", required)]
    pub tenant_id: Option<TenantId>,
    #[schema(value_type = Option<String>, pattern = "^dom_[0-9a-f]{32}$", required)]
    pub domain_id: Option<DomainId>,
    /// Its place in the domain's own history.
    #[schema(required)]
    pub seq: Option<i64>,
    #[schema(example = "claimed")]
    pub kind: String,
    pub actor: String,
    pub cause: String,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub at: Moment,
    #[schema(schema_with = words::anything)]
    pub detail: Value,
}

/// The other half of `www` and the bare name, where both are claimed and linked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PartnerView {
    /// Its id.
    #[schema(value_type = String, pattern = "^dom_[0-9a-f]{32}$", example = "dom_019b0000000070008000000000000002")]
    pub id: DomainId,
    /// The name as DNS has it.
    #[schema(value_type = String, example = "www.acme.com")]
    pub hostname: Hostname,
    /// The name as its readers write it.
    #[schema(example = "www.acme.com")]
    pub hostname_display: String,
    /// Where its claim stands.
    #[schema(schema_with = words::claim)]
    pub claim: Claim,
    /// Which way visitors are sent, in one sentence.
    pub sentence: String,
}

/// A domain, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DomainView {
    /// Its id.
    #[schema(value_type = String, pattern = "^dom_[0-9a-f]{32}$", example = "dom_019b0000000070008000000000000001")]
    pub id: DomainId,
    /// Whose it is.
    pub tenant: TenantRef,
    /// The name as DNS has it.
    #[schema(value_type = String, example = "support.acme.com")]
    pub hostname: Hostname,
    /// The name as its readers write it.
    #[schema(example = "support.acme.com")]
    pub hostname_display: String,
    /// Where the claim stands.
    #[schema(schema_with = words::claim)]
    pub claim: Claim,
    /// Visitors are served, or why not and whose move it is.
    pub sentence: String,
    /// Whose move it is.
    #[schema(schema_with = words::actor)]
    pub who_acts: Actor,
    /// Whether a visitor gets the tenant's page.
    pub serving: bool,
    /// Live, with a valid certificate on every counted edge.
    pub active: bool,
    /// What to publish.
    #[schema(value_type = Vec<RecordDocument>)]
    pub records: Vec<Record>,
    /// What is seen.
    pub checks: Vec<CheckView>,
    /// The import that brought the name, while it is paused or cancelled and nothing is ordered for that; else null.
    #[schema(required)]
    #[serde(default)]
    pub held: Option<HeldView>,
    /// The open order, or the latest.
    #[schema(required)]
    pub order: Option<OrderView>,
    /// The certificate in use.
    #[schema(required)]
    pub certificate: Option<CertificateView>,
    /// When it is renewed; null where it is not.
    #[schema(required)]
    #[serde(default)]
    pub renewal: Option<RenewalView>,
    /// How far it has come.
    pub rollout: RolloutView,
    /// What a request through the public name met.
    #[schema(required)]
    pub public_probe: Option<ProbeView>,
    /// The attempt at proof.
    pub attempt: AttemptView,
    /// Its other half, if they are linked.
    #[schema(required)]
    #[serde(default)]
    pub partner: Option<PartnerView>,
    /// Where its visitors are sent on to: its other half, once that is served.
    #[schema(value_type = Option<String>, example = "www.acme.com", required)]
    #[serde(default)]
    pub redirect_to: Option<Hostname>,
    /// Whether they are sent on by now.
    #[serde(default)]
    pub redirecting: bool,
    /// When something is looked at or done next.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub due_at: Option<Moment>,
    /// Until when a removal can be undone; null where there is none to undo.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(default, with = "rfc3339::option")]
    pub undo_until: Option<Moment>,
    /// Raised with each event of the domain; the first part of its ETag.
    pub version: i64,
    /// When the claim was made.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
    /// The latest events, latest first.
    pub events: Vec<EventView>,
}

/// A domain in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "as in DomainView")]
pub struct DomainSummary {
    #[schema(value_type = String, pattern = "^dom_[0-9a-f]{32}$", example = "dom_019b0000000070008000000000000001")]
    pub id: DomainId,
    pub tenant: TenantRef,
    #[schema(value_type = String, example = "support.acme.com")]
    pub hostname: Hostname,
    pub hostname_display: String,
    #[schema(schema_with = words::claim)]
    pub claim: Claim,
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub due_at: Option<Moment>,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
}

impl DomainView {
    /// Whether the last look found every record that the tenant publishes.
    pub fn records_are_right(&self) -> bool {
        let passes = |which: Check| self.checks.iter().any(|c| c.check == which && c.verdict == Verdict::Pass);
        passes(Check::Ownership) && passes(Check::Routing)
    }

    /// Whether it waits for its records as young claims do: since less than a day, and with nothing that is wrong.
    pub fn is_young(&self, now: Moment) -> bool {
        is_young(self.claim, self.created_at, self.checks.iter().map(|check| check.verdict), now)
    }

    /// Whether records are to be published or kept.
    pub fn wants_records(&self) -> bool {
        matches!(self.claim, Claim::AwaitingDns | Claim::Queued | Claim::Live)
    }
}
