//! Documents of what stands beside domains: tenants, contacts, tokens, edges, certificates, orders, attempts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{rfc3339, words};
use crate::model::conclude::FRESH_EDGE;
use crate::model::feed::Position;
use crate::model::hostname::Hostname;
use crate::model::id::{AttemptId, CertificateId, ContactId, DomainId, EdgeId, OrderId, TenantId, TokenId};
use crate::model::moment::Moment;
use crate::model::tenant::{Tenant, TenantStatus};
use crate::store::certificates::CertificateMeta;
use crate::store::contacts::ContactRow;
use crate::store::edges::{EdgeRow, EdgeStatus};
use crate::store::orders::OpenOrder;
use crate::store::tokens::TokenRow;
use crate::store::views::AttemptRow;

/// Where a tenant lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlacementView {
    /// Region.
    pub region: String,
    /// Deployment stamp within the region.
    pub stamp: String,
    /// Shard within the stamp.
    pub shard: i64,
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Tenant)]
pub struct TenantView {
    /// Its id.
    #[schema(value_type = String, pattern = "^ten_[0-9a-f]{32}$", example = "ten_019b0000000070008000000000000001")]
    pub id: TenantId,
    /// Its slug, never reused.
    #[schema(example = "acme")]
    pub slug: String,
    /// What people call it.
    #[schema(example = "Acme Inc.")]
    pub name: String,
    /// The host under which it is always reached; null where no suffix is configured.
    #[schema(required, example = "acme.app.example")]
    pub canonical_host: Option<String>,
    /// Where it lives.
    pub placement: PlacementView,
    /// Its tier.
    #[schema(example = "standard")]
    pub tier: String,
    /// Whether its names are served.
    #[schema(schema_with = words::tenant_status)]
    pub status: TenantStatus,
    /// Raised at each change; the first part of its ETag.
    pub version: i64,
    /// When it was added.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
}

impl TenantView {
    /// The document of a tenant with its canonical host.
    pub fn new(tenant: Tenant, canonical_host: Option<Hostname>) -> Self {
        let Tenant { id, slug, name, placement, tier, status, version, created_at } = tenant;
        TenantView {
            id,
            slug: slug.to_string(),
            name,
            canonical_host: canonical_host.map(|host| host.to_string()),
            placement: PlacementView { region: placement.region, stamp: placement.stamp, shard: placement.shard },
            tier,
            status,
            version,
            created_at,
        }
    }
}

/// An address to which a tenant's mail goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Contact)]
pub struct ContactView {
    /// Its id.
    #[schema(value_type = String, pattern = "^con_[0-9a-f]{32}$", example = "con_019b0000000070008000000000000001")]
    pub id: ContactId,
    /// The address.
    #[schema(example = "dns@acme.com")]
    pub email: String,
    /// What is sent to it.
    #[schema(example = json!(["domains", "certificates"]))]
    pub kinds: Vec<String>,
    /// When it was added.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
}

impl From<ContactRow> for ContactView {
    fn from(row: ContactRow) -> Self {
        ContactView { id: row.id, email: row.email, kinds: row.kinds, created_at: row.created_at }
    }
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Token)]
pub struct TokenView {
    /// Its id, by which it is taken back.
    #[schema(value_type = String, pattern = "^tok_[0-9a-f]{32}$", example = "tok_019b0000000070008000000000000001")]
    pub id: TokenId,
    /// What it opens: `operator`, `tenant`, or `edge_join` for a token that one edge enrols with.
    #[schema(example = "tenant")]
    pub scope: String,
    /// Whose it is, for a tenant's.
    #[schema(value_type = Option<String>, pattern = "^ten_[0-9a-f]{32}$", required)]
    pub tenant_id: Option<TenantId>,
    /// What people call it.
    #[schema(example = "deployment")]
    pub label: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
    /// When it ends by itself.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub expires_at: Option<Moment>,
    /// When it was used, for one that is used once.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub used_at: Option<Moment>,
    /// When it was taken back.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub revoked_at: Option<Moment>,
}

impl From<TokenRow> for TokenView {
    fn from(row: TokenRow) -> Self {
        let TokenRow { id, scope, tenant_id, label, created_at, expires_at, used_at, revoked_at } = row;
        TokenView { id, scope, tenant_id, label, created_at, expires_at, used_at, revoked_at }
    }
}

/// A place in the feed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Cursor)]
pub struct CursorView {
    /// The feed's epoch.
    pub epoch: i64,
    /// The number in it.
    pub seq: i64,
}

/// An edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Edge)]
pub struct EdgeView {
    /// Its id.
    #[schema(value_type = String, pattern = "^edg_[0-9a-f]{32}$", example = "edg_019b0000000070008000000000000001")]
    pub id: EdgeId,
    /// The name its operator gave it.
    #[schema(example = "rack-1")]
    pub name: String,
    /// `active`, `drained` or `revoked`.
    #[schema(example = "active")]
    pub status: String,
    /// Whether certificates wait for it: it is active, heard of within half a minute and not left behind.
    pub counted: bool,
    /// What it has confirmed.
    pub cursor: CursorView,
    /// How many changes it lacks; null while it follows another epoch than the feed's.
    #[schema(required)]
    pub lag: Option<i64>,
    /// When it was last heard of.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub heartbeat_at: Moment,
    /// Since when it is left behind.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub lost_at: Option<Moment>,
    /// When it enrolled.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub enrolled_at: Moment,
}

impl EdgeView {
    /// The document of an edge as it stands to the feed's head at this moment.
    pub fn new(row: EdgeRow, head: Option<Position>, now: Moment) -> Self {
        let same = head.filter(|head| head.epoch == row.cursor.epoch);
        EdgeView {
            counted: row.status == EdgeStatus::Active && row.lost_at.is_none() && row.heartbeat_at > now - FRESH_EDGE,
            lag: same.map(|head| (head.seq - row.cursor.seq).max(0)),
            id: row.id,
            name: row.name,
            status: row.status.as_str().to_owned(),
            cursor: CursorView { epoch: row.cursor.epoch, seq: row.cursor.seq },
            heartbeat_at: row.heartbeat_at,
            lost_at: row.lost_at,
            enrolled_at: row.enrolled_at,
        }
    }
}

/// A certificate, without its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = CertificateMetadata)]
pub struct CertificateDocument {
    /// Its id.
    #[schema(value_type = String, pattern = "^crt_[0-9a-f]{32}$", example = "crt_019b0000000070008000000000000001")]
    pub id: CertificateId,
    /// The domain it was ordered for.
    #[schema(value_type = Option<String>, pattern = "^dom_[0-9a-f]{32}$", required)]
    pub domain_id: Option<DomainId>,
    /// Whose it is.
    #[schema(value_type = Option<String>, pattern = "^ten_[0-9a-f]{32}$", required)]
    pub tenant_id: Option<TenantId>,
    /// The names in it.
    #[schema(example = json!(["support.acme.com"]))]
    pub names: Vec<String>,
    /// `order` or `import`.
    #[schema(example = "order")]
    pub source: String,
    /// The issuer it came from, by the name it has in the configuration.
    #[schema(required)]
    pub issuer: Option<String>,
    /// Its serial number.
    pub serial: String,
    /// SHA-256 of it.
    pub fingerprint: String,
    /// Since when it is valid.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub not_before: Moment,
    /// When it ends.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub not_after: Moment,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub stored_at: Moment,
    /// Whether it is the one that its domain is served with.
    pub in_use: bool,
}

impl From<CertificateMeta> for CertificateDocument {
    fn from(c: CertificateMeta) -> Self {
        CertificateDocument {
            id: c.id,
            domain_id: c.domain_id,
            tenant_id: c.tenant_id,
            names: c.names,
            source: c.source,
            issuer: c.issuer,
            serial: c.serial,
            fingerprint: c.fingerprint,
            not_before: c.not_before,
            not_after: c.not_after,
            stored_at: c.stored_at,
            in_use: c.in_use,
        }
    }
}

/// An order that is not over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = OpenOrder)]
pub struct OpenOrderView {
    /// Its id.
    #[schema(value_type = String, pattern = "^ord_[0-9a-f]{32}$", example = "ord_019b0000000070008000000000000001")]
    pub id: OrderId,
    /// The domain it is for.
    #[schema(value_type = String, pattern = "^dom_[0-9a-f]{32}$", example = "dom_019b0000000070008000000000000001")]
    pub domain_id: DomainId,
    /// Whose that is.
    #[schema(value_type = String, pattern = "^ten_[0-9a-f]{32}$", example = "ten_019b0000000070008000000000000001")]
    pub tenant_id: TenantId,
    /// Its hostname.
    #[schema(value_type = String, example = "support.acme.com")]
    pub hostname: Hostname,
    /// The issuer it goes to, by the name it has in the configuration.
    #[schema(example = "letsencrypt")]
    pub issuer: String,
    /// What for.
    #[schema(schema_with = words::purpose)]
    pub purpose: String,
    /// In which lane it waits.
    #[schema(schema_with = words::lane)]
    pub lane: String,
    /// Where it stands.
    #[schema(schema_with = words::order_state)]
    pub state: String,
    /// Since when.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub state_since: Moment,
    /// Before when nothing is tried; null when nothing holds it back.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub not_before: Option<Moment>,
    /// The CA's problem document, whole.
    #[schema(schema_with = words::anything, required)]
    pub problem: Option<serde_json::Value>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
}

impl From<OpenOrder> for OpenOrderView {
    fn from(o: OpenOrder) -> Self {
        OpenOrderView {
            id: o.id,
            domain_id: o.domain_id,
            tenant_id: o.tenant_id,
            hostname: o.hostname,
            issuer: o.issuer,
            purpose: o.purpose,
            lane: o.lane,
            state: o.state.to_string(),
            state_since: o.state_since,
            not_before: Some(o.not_before).filter(|at| at.micros() > 0 && *at != Moment::NEVER),
            problem: o.problem.as_deref().map(super::build::document),
            created_at: o.created_at,
        }
    }
}

/// One try at proving a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PastAttempt)]
pub struct PastAttempt {
    /// Its id.
    #[schema(value_type = String, pattern = "^att_[0-9a-f]{32}$", example = "att_019b0000000070008000000000000001")]
    pub id: AttemptId,
    /// The value to publish.
    #[schema(example = "nameplate-verify=0123456789abcdef0123456789abcdef")]
    pub value: String,
    /// When it began.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub opened_at: Moment,
    /// Until when it can be proven.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub deadline: Moment,
    /// When it was.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub proven_at: Option<Moment>,
    /// When it was closed without proof.
    #[schema(value_type = Option<String>, format = DateTime, example = "2027-01-15T08:00:00Z", required)]
    #[serde(with = "rfc3339::option")]
    pub closed_at: Option<Moment>,
}

impl From<AttemptRow> for PastAttempt {
    fn from(a: AttemptRow) -> Self {
        let AttemptRow { id, value, opened_at, deadline, proven_at, closed_at } = a;
        PastAttempt { id, value, opened_at, deadline, proven_at, closed_at }
    }
}
