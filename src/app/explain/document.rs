//! The document, as the API gives it out and the command line takes it in.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::show::{DomainView, rfc3339, words};
use crate::model::domain::{HoldingState, TieState};
use crate::model::evidence::Actor;
use crate::model::hostname::Hostname;
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::store::fleet::one::{InsideRow, OrderRow};

/// A name, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The name as DNS has it.
    #[schema(value_type = String, example = "support.acme.com")]
    pub hostname: Hostname,
    /// The name as its readers write it.
    pub hostname_display: String,
    /// Where its records are published.
    pub registered_domain: String,
    /// When this was told.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub told_at: Moment,
    /// Who holds the name; to a tenant only where it is its own.
    #[schema(required)]
    pub holding: Option<HoldingStory>,
    /// The claims, open ones first, then the latest.
    pub claims: Vec<Story>,
    /// Older claims that are not told.
    pub more_claims: usize,
}

/// Who holds a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HoldingStory {
    /// Held, in quarantine, or free.
    #[schema(schema_with = words::holding_state)]
    pub state: HoldingState,
    /// The number of this holding.
    pub term: i64,
    /// Since when it is in that state.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub since: Moment,
    /// By which claim.
    #[schema(value_type = Option<String>, pattern = "^dom_[0-9a-f]{32}$", required)]
    pub domain_id: Option<DomainId>,
    /// By which tenant.
    #[schema(required)]
    pub tenant: Option<String>,
}

/// One claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Story {
    /// What blocks it, and whose move it is.
    pub standing: StandingStory,
    /// The tie between name and holder.
    #[schema(schema_with = words::tie)]
    pub tie: TieState,
    /// Since when the claim is in its state.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub claim_since: Moment,
    /// Its place in the queue.
    #[schema(required)]
    pub place: Option<PlaceStory>,
    /// Its orders, the latest first.
    pub orders: Vec<OrderStory>,
    /// Every edge, next to the certificate in use.
    pub edges: Vec<EdgeStory>,
    /// What happens next, in plain sentences.
    pub next: Vec<String>,
    /// The row's own bookkeeping, for operators.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
    /// The domain as its tenant sees it.
    pub domain: DomainView,
}

/// What blocks a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StandingStory {
    /// The stable word.
    pub code: String,
    /// In one sentence.
    pub sentence: String,
    /// Whose move it is.
    #[schema(schema_with = words::actor)]
    pub who_acts: Actor,
    /// Since when.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub since: Moment,
}

/// A place in the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlaceStory {
    /// At which issuer.
    pub issuer: String,
    /// In which lane.
    #[schema(schema_with = words::lane)]
    pub lane: Lane,
    /// 0: granted in the coming round; 1: the first after it.
    pub position: u32,
    /// How many wait there.
    pub waiting: i64,
    /// When its turn is expected.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub expected_at: Option<Moment>,
    /// The CA lets nothing through before.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub paused_until: Option<Moment>,
    /// The limit of its own that has no room for it now.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldStory>,
}

/// A limit that has no room for a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeldStory {
    /// Which.
    #[schema(example = "certificates_per_domain")]
    pub limit: String,
    /// What it is kept for: the registered domain, or the name.
    #[schema(example = "acme.com")]
    pub key: String,
    /// When it has room.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub until: Moment,
    /// `used_up_by_others` or `paused_by_ca`, where the CA refused although we had not used it up.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
    /// Where the CA says more.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// An order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct OrderStory {
    pub id: String,
    #[schema(schema_with = words::purpose)]
    pub purpose: String,
    #[schema(schema_with = words::lane)]
    pub lane: String,
    pub issuer: String,
    #[schema(schema_with = words::order_state)]
    pub state: String,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub state_since: Moment,
    /// Nothing where it is held back until the checks pass.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub not_before: Option<Moment>,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
    #[schema(required)]
    pub url: Option<String>,
    /// The CA's problem document, whole.
    #[schema(schema_with = words::anything, required)]
    pub problem: Option<Value>,
    #[schema(required)]
    pub grant_state: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub grant_expires: Option<Moment>,
}

impl From<OrderRow> for OrderStory {
    fn from(o: OrderRow) -> Self {
        OrderStory {
            id: o.id,
            purpose: o.purpose,
            lane: o.lane,
            issuer: o.issuer,
            state: o.state,
            state_since: o.state_since,
            not_before: (o.not_before != Moment::NEVER).then_some(o.not_before),
            created_at: o.created_at,
            url: o.url,
            problem: o.problem.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text))),
            grant_state: o.grant_state,
            grant_expires: o.grant_expires,
        }
    }
}

/// An edge next to the certificate in use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EdgeStory {
    /// Its name.
    pub name: String,
    /// Whether it takes part.
    pub status: String,
    /// Whether it counts now.
    pub counted: bool,
    /// Whether it has confirmed the certificate.
    pub has_it: bool,
    /// What its own probe saw instead of it.
    #[schema(required)]
    pub observed: Option<String>,
    /// When it was last heard of.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub heartbeat_at: Moment,
}

/// The row's own bookkeeping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct Inside {
    pub generation: i64,
    pub settled: i64,
    pub failures: i64,
    #[schema(required)]
    pub lease_owner: Option<String>,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub lease_until: Moment,
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub looked_at: Option<Moment>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub check_asked_at: Option<Moment>,
    #[schema(required)]
    pub check_asked_by: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub active_since: Option<Moment>,
    /// The import that brought the name.
    #[schema(required)]
    #[serde(default)]
    pub import_id: Option<String>,
    /// What was last about to be done outside.
    #[schema(required)]
    pub intent: Option<IntentStory>,
}

/// An intent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct IntentStory {
    pub effect: String,
    pub object_id: String,
    pub generation: i64,
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub recorded_at: Moment,
    /// Whether its outcome was never recorded.
    pub open: bool,
}

impl From<InsideRow> for Inside {
    fn from(r: InsideRow) -> Self {
        Inside {
            generation: r.generation,
            settled: r.settled,
            failures: r.failures,
            lease_owner: r.lease_owner,
            lease_until: r.lease_until,
            looked_at: r.looked_at,
            check_asked_at: r.check_asked_at,
            check_asked_by: r.check_asked_by,
            active_since: r.active_since,
            import_id: r.import_id,
            intent: r.intent.map(|i| IntentStory {
                open: i.generation > r.settled,
                effect: i.effect,
                object_id: i.object_id,
                generation: i.generation,
                recorded_at: i.recorded_at,
            }),
        }
    }
}
