//! Claims: making them, opening them again, asking for a look.

use super::record::document;
use super::{StoreResult, Tx, sql, standing};
use crate::model::claim::Claim;
use crate::model::domain::{Domain, RoutingMode};
use crate::model::evidence::Evidence;
use crate::model::hostname::Hostname;
use crate::model::id::{AttemptId, DomainId, EventId, TenantId};
use crate::model::moment::Moment;
use crate::model::order::Lane;
use crate::model::outcome::NewEvent;
use crate::model::standing::Standing;

/// A claim to make.
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct NewClaim {
    pub id: DomainId,
    pub attempt_id: AttemptId,
    pub event_id: EventId,
    pub tenant_id: TenantId,
    pub hostname: Hostname,
    pub lane: Lane,
    pub first_look_at: Moment,
    pub value: String,
    pub routing_mode: RoutingMode,
    pub target: String,
    pub deadline: Moment,
    pub actor: String,
}

/// The slug of a tenant that may claim names.
pub async fn active_tenant_slug(tx: &mut Tx, tenant: &TenantId) -> StoreResult<Option<String>> {
    let stmt = sql("SELECT slug FROM tenants WHERE id = $1 AND status = 'active'").bind(tenant.as_str());
    tx.fetch_optional(stmt).await?.map(|row| row.text("slug")).transpose()
}

/// The claim that this tenant has on the name, if one is open.
pub async fn open_claim(tx: &mut Tx, tenant: &TenantId, hostname: &Hostname) -> StoreResult<Option<(DomainId, Claim)>> {
    let stmt = sql("SELECT id, claim FROM domains WHERE tenant_id = $1 AND hostname = $2 \
         AND claim IN ('awaiting_dns', 'queued', 'live', 'expired')")
    .bind(tenant.as_str())
    .bind(hostname.as_str());
    tx.fetch_optional(stmt).await?.map(|row| Ok((row.parse("id")?, row.parse("claim")?))).transpose()
}

/// Makes a claim with its first attempt; false when the tenant got one on this name a moment ago.
pub async fn insert(tx: &mut Tx, c: &NewClaim, now: Moment) -> StoreResult<bool> {
    let domain = sql("INSERT INTO domains (id, tenant_id, hostname, claim, claim_since, routing_mode, target, attempt_id, \
           evidence, pace_from, nudged, tie, lost_for_us, due_at, lease_until, generation, settled, failures, event_seq, \
           created_at, standing, acts, standing_since, lane) \
         VALUES ($1, $2, $3, 'awaiting_dns', $4, $5, $6, $7, $8, $4, 0, 'held', 0, $11, 0, 1, 0, 0, 1, $4, $9, $10, $4, $12) \
         ON CONFLICT DO NOTHING")
    .bind(c.id.as_str())
    .bind(c.tenant_id.as_str())
    .bind(c.hostname.as_str())
    .bind(now)
    .bind(c.routing_mode.as_str())
    .bind(c.target.as_str())
    .bind(c.attempt_id.as_str())
    .bind(document(&Vec::<Evidence>::new())?)
    .bind(Standing::NotLookedYet.code())
    .bind(Standing::NotLookedYet.acts().as_str())
    .bind(c.first_look_at)
    .bind(c.lane.as_str());
    if tx.execute(domain).await? == 0 {
        return Ok(false);
    }
    let event = event(&c.actor, "claimed", "the name was claimed; records are to be published", c.hostname.as_str());
    let told = sql("INSERT INTO events (id, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
         VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8)")
    .bind(c.event_id.as_str())
    .bind(c.tenant_id.as_str())
    .bind(c.id.as_str())
    .bind(event.kind)
    .bind(event.actor)
    .bind(event.cause)
    .bind(event.detail.to_string())
    .bind(now);
    let mut rest = vec![attempt(&c.attempt_id, &c.id, &c.value, now, c.deadline), told];
    rest.extend(standing::words(&c.id, &c.hostname));
    tx.batch(rest).await.map(|_| true)
}

fn attempt(id: &AttemptId, domain: &DomainId, value: &str, now: Moment, deadline: Moment) -> super::Stmt {
    sql("INSERT INTO attempts (id, domain_id, value, opened_at, deadline) VALUES ($1, $2, $3, $4, $5)")
        .bind(id.as_str())
        .bind(domain.as_str())
        .bind(value)
        .bind(now)
        .bind(deadline)
}

fn event(actor: &str, kind: &'static str, cause: &str, hostname: &str) -> NewEvent {
    NewEvent { kind, actor: actor.to_owned(), cause: cause.to_owned(), detail: serde_json::json!({ "hostname": hostname }) }
}

/// A new attempt on an expired claim.
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct Reopened {
    pub claim: Claim,
    pub attempt_id: AttemptId,
    pub event_id: EventId,
    pub value: String,
    pub deadline: Moment,
    pub actor: String,
}

/// Opens an expired claim again, with a new attempt; `domain` was fenced in this transaction.
pub async fn reopen(tx: &mut Tx, domain: &Domain, r: &Reopened, now: Moment) -> StoreResult<()> {
    let row = sql("UPDATE domains SET claim = $3, claim_since = $4, attempt_id = $5, evidence = '[]', looked_at = NULL, \
           pace_from = $4, due_at = $4, settled = generation, failures = 0, event_seq = event_seq + 1, \
           standing = $6, acts = $7, standing_since = $4 \
         WHERE id = $1 AND generation = $2")
    .bind(domain.id.as_str())
    .bind(domain.generation)
    .bind(r.claim.as_str())
    .bind(now)
    .bind(r.attempt_id.as_str())
    .bind(Standing::NotLookedYet.code())
    .bind(Standing::NotLookedYet.acts().as_str());
    let event = event(&r.actor, "reopened", "a new attempt began, with a new value", domain.hostname.as_str());
    let told = super::record::event_row(domain, &event, domain.event_seq + 1, &r.event_id, now);
    tx.batch(vec![row, attempt(&r.attempt_id, &domain.id, &r.value, now, r.deadline), told]).await.map(|_| ())
}

/// Marks that somebody asked for a look, unless one was asked for after `not_since`; the domain's version if it was
/// marked.
pub async fn ask_check(tx: &mut Tx, id: &DomainId, actor: &str, now: Moment, not_since: Moment) -> StoreResult<Option<i64>> {
    let stmt = sql("UPDATE domains SET check_asked_at = $2, check_asked_by = $3, pace_from = $2, due_at = $2, \
           nudged = generation \
         WHERE id = $1 AND claim IN ('awaiting_dns', 'queued', 'live') \
           AND (check_asked_at IS NULL OR check_asked_at <= $4) RETURNING event_seq + edits AS version")
    .bind(id.as_str())
    .bind(now)
    .bind(actor)
    .bind(not_since);
    tx.fetch_optional(stmt).await?.map(|row| row.int("version")).transpose()
}

/// When somebody last asked for a look at a domain that is still looked at.
pub async fn last_check(tx: &mut Tx, id: &DomainId) -> StoreResult<Option<Moment>> {
    let stmt = sql("SELECT check_asked_at FROM domains WHERE id = $1 AND claim IN ('awaiting_dns', 'queued', 'live')")
        .bind(id.as_str());
    tx.fetch_optional(stmt).await?.map_or(Ok(None), |row| row.opt_moment("check_asked_at"))
}

/// Puts an event into the history of a domain that was fenced in this transaction, beside its own steps.
pub async fn tell(tx: &mut Tx, domain: &Domain, event: &NewEvent, id: &EventId, now: Moment) -> StoreResult<()> {
    let counted = sql("UPDATE domains SET event_seq = event_seq + 1 WHERE id = $1 AND generation = $2")
        .bind(domain.id.as_str())
        .bind(domain.generation);
    let told = super::record::event_row(domain, event, domain.event_seq + 1, id, now);
    tx.batch(vec![told, counted]).await.map(|_| ())
}
