//! Documents of alerts, of the places that events are sent to, and of what was sent.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{rfc3339, words};
use crate::model::alert::cause::Cause;
use crate::model::id::{AlertId, CertificateId, DomainId, EventId, TenantId, WebhookId};
use crate::model::moment::Moment;
use crate::model::secret::Secret;
use crate::store::alerts::AlertRow;
use crate::store::deliveries::DeliveryRow;
use crate::store::webhooks::WebhookRow;

/// Something that somebody should know of, until it is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Alert)]
pub struct AlertView {
    /// Its id.
    #[schema(value_type = String, pattern = "^alr_[0-9a-f]{32}$", example = "alr_019b0000000070008000000000000001")]
    pub id: AlertId,
    /// What it is.
    #[schema(example = "certificate_ending")]
    pub kind: String,
    /// What it is about: a domain's id, a cause, an issuer's name.
    pub subject: String,
    /// Whose it is, where it is about a domain.
    #[schema(value_type = Option<String>, pattern = "^ten_[0-9a-f]{32}$", required)]
    pub tenant_id: Option<TenantId>,
    /// The domain.
    #[schema(value_type = Option<String>, pattern = "^dom_[0-9a-f]{32}$", required)]
    pub domain_id: Option<DomainId>,
    /// Its name.
    #[schema(required, example = "support.acme.com")]
    pub hostname: Option<String>,
    /// The certificate.
    #[schema(value_type = Option<String>, pattern = "^crt_[0-9a-f]{32}$", required)]
    pub certificate_id: Option<CertificateId>,
    /// Hundredths of its lifetime that were left when it was raised; 0 once it ended.
    #[schema(required)]
    pub threshold_percent: Option<i64>,
    /// What everything with the same cause is counted under.
    #[schema(example = "ca/main")]
    pub cause: String,
    /// Whose trouble it is.
    #[schema(schema_with = words::alert_class)]
    pub who_acts: String,
    /// One or two plain sentences.
    pub said: String,
    /// How many it stands for.
    pub count: i64,
    /// When it was raised.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub raised_at: Moment,
    /// When it was over; null while it is open.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    #[serde(with = "rfc3339::option")]
    pub resolved_at: Option<Moment>,
    /// How: `renewed`, `healed` (nothing stands in the way of the renewal any more), `let_go` (its name was), `escalated` (a tighter
    /// threshold took its place), `mistaken` (a clock was wrong) or `over`.
    #[schema(required)]
    pub resolution: Option<String>,
}

impl From<AlertRow> for AlertView {
    fn from(row: AlertRow) -> Self {
        AlertView {
            id: row.id,
            kind: row.kind,
            subject: row.subject,
            tenant_id: row.tenant_id,
            domain_id: row.domain_id,
            hostname: row.hostname,
            certificate_id: row.certificate_id,
            threshold_percent: row.threshold,
            who_acts: Cause::class_of(&row.cause).as_str().to_owned(),
            cause: row.cause,
            said: row.said,
            count: row.many,
            raised_at: row.raised_at,
            resolved_at: row.resolved_at,
            resolution: row.resolution,
        }
    }
}

/// A place that events are sent to. Its secret was shown when it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookView {
    /// Its id.
    #[schema(value_type = String, pattern = "^whk_[0-9a-f]{32}$", example = "whk_019b0000000070008000000000000001")]
    pub id: WebhookId,
    /// Whose it is; null for the platform's, which is told of every tenant.
    #[schema(value_type = Option<String>, pattern = "^ten_[0-9a-f]{32}$", required)]
    pub tenant_id: Option<TenantId>,
    /// Where requests go; null for others than its owner, as it may hold what opens a door.
    #[schema(required, example = "https://hooks.acme.com/nameplate")]
    pub url: Option<String>,
    /// Its host, with the port where that is not 443.
    #[schema(example = "hooks.acme.com")]
    pub host: String,
    /// The beginning of the URL's SHA-256, by which two of one host are told apart.
    #[schema(pattern = "^[0-9a-f]{8}$", example = "1f0c9a52")]
    pub fingerprint: String,
    /// Of which kinds of events; `*` for all.
    #[schema(schema_with = words::event_kinds)]
    pub kinds: Vec<String>,
    /// Until when the secret before this one is good, too.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    #[serde(with = "rfc3339::option")]
    pub previous_secret_until: Option<Moment>,
    /// Failures in a row.
    pub failures: i64,
    /// Since when it fails.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    #[serde(with = "rfc3339::option")]
    pub failing_since: Option<Moment>,
    /// Since when it is switched off.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    #[serde(with = "rfc3339::option")]
    pub disabled_at: Option<Moment>,
    /// Why: `gone` (it answered 410) or `failing` (it took nothing for days, or did not answer for weeks).
    #[schema(required)]
    pub disabled_why: Option<String>,
    /// Why nothing can be sent to it for a reason of the platform's own; what waits for it waits.
    #[schema(required)]
    pub fault: Option<String>,
    /// How much waits to be sent.
    pub pending: i64,
    /// When it was added.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
}

impl WebhookView {
    /// The document of a place, with its URL for its owner.
    pub fn new(row: WebhookRow, url: Option<&Secret>, now: Moment) -> Self {
        WebhookView {
            id: row.id,
            tenant_id: row.tenant_id,
            url: url.and_then(Secret::expose_str).map(str::to_owned),
            host: row.host,
            fingerprint: row.fingerprint,
            kinds: row.kinds,
            previous_secret_until: row.previous_until.filter(|until| now < *until),
            failures: row.failures,
            failing_since: row.failing_since,
            disabled_at: row.disabled_at,
            disabled_why: row.disabled_why,
            fault: row.fault,
            pending: row.pending,
            created_at: row.created_at,
        }
    }
}

/// An event that is, or was, sent to a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// The event's id, which requests carry as `webhook-id`.
    #[schema(value_type = String, pattern = "^evt_[0-9a-f]{32}$", example = "evt_019b0000000070008000000000000001")]
    pub event: EventId,
    /// Its kind.
    #[schema(example = "active")]
    pub kind: String,
    /// `pending`, `delivered`, `dropped` (what it told was over) or `given_up`.
    #[schema(schema_with = words::delivery_state)]
    pub state: String,
    /// Tries so far.
    pub attempts: i64,
    /// When it is tried next, while it is pending.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    #[serde(with = "rfc3339::option")]
    pub due_at: Option<Moment>,
    /// When it was last tried.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    #[serde(with = "rfc3339::option")]
    pub tried_at: Option<Moment>,
    /// What the receiver answered last.
    #[schema(required)]
    pub status: Option<i64>,
    /// What was wrong.
    #[schema(required)]
    pub error: Option<String>,
    /// When it was handed out.
    #[schema(value_type = String, format = DateTime, example = "2027-01-15T08:00:00Z")]
    #[serde(with = "rfc3339")]
    pub created_at: Moment,
}

impl From<DeliveryRow> for DeliveryView {
    fn from(row: DeliveryRow) -> Self {
        DeliveryView {
            event: row.event_id,
            due_at: (row.state == "pending").then_some(row.due_at),
            kind: row.kind,
            state: row.state,
            attempts: row.attempts,
            tried_at: row.tried_at,
            status: row.status,
            error: row.said,
            created_at: row.created_at,
        }
    }
}
