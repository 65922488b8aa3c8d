//! What is shown of a domain: reads that join several aggregates, for pages, API and command line. Nothing is written here.

use super::{Row, StoreResult, Tx, renewals, sql};
use crate::model::bulk::Hold;
use crate::model::claim::Claim;
use crate::model::domain::{Attempt, PublicProbe, RoutingMode, TieState};
use crate::model::evidence::Evidence;
use crate::model::hostname::Hostname;
use crate::model::id::{AttemptId, DomainId, EventId, ImportId, TenantId};
use crate::model::moment::Moment;
use crate::model::order::OrderState;
use crate::model::renewal::Schedule;

/// A domain with its tenant, attempt and certificate in use.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct DomainRow {
    pub id: DomainId,
    pub tenant_id: TenantId,
    pub tenant_slug: String,
    pub hostname: Hostname,
    pub claim: Claim,
    pub routing_mode: RoutingMode,
    pub target: String,
    pub evidence: Vec<Evidence>,
    pub public_probe: Option<PublicProbe>,
    pub failures: i64,
    pub due_at: Moment,
    pub created_at: Moment,
    pub version: i64,
    pub attempt: Attempt,
    pub certificate: Option<CertificateRow>,
    pub renewal: Option<RenewalRow>,
    pub tie: TieState,
    pub redirects: bool,
    pub partner: Option<PartnerRow>,
    pub held: Option<HeldRow>,
}

/// An import that holds the claims it brought.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct HeldRow {
    pub by: Hold,
    pub since: Option<Moment>,
    pub import_id: ImportId,
    pub tenant_id: Option<TenantId>,
}

/// The other half of a linked claim.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct PartnerRow {
    pub id: DomainId,
    pub hostname: Hostname,
    pub claim: Claim,
    pub redirects: bool,
    /// The end of its certificate while it is live.
    pub certificate_until: Option<Moment>,
    pub active_since: Option<Moment>,
}

/// The renewal of the certificate in use.
#[derive(Clone, Debug)]
pub struct RenewalRow {
    /// When, and why then.
    pub schedule: Schedule,
    /// Whether the certificate before is served while edges take this one.
    pub hands_on: bool,
}

/// The certificate in use.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct CertificateRow {
    pub id: String,
    pub serial: String,
    pub not_before: Moment,
    pub not_after: Moment,
    pub issuer: Option<String>,
}

/// A domain in a list.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct SummaryRow {
    pub id: DomainId,
    pub tenant_id: TenantId,
    pub tenant_slug: String,
    pub hostname: Hostname,
    pub claim: Claim,
    pub due_at: Moment,
    pub created_at: Moment,
}

/// The open order, or the latest one.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct OrderRow {
    pub purpose: String,
    pub lane: String,
    pub state: OrderState,
    pub state_since: Moment,
    pub not_before: Moment,
    pub problem: Option<String>,
}

/// An event.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct EventRow {
    pub id: EventId,
    pub position: Option<i64>,
    pub tenant_id: Option<TenantId>,
    pub domain_id: Option<DomainId>,
    pub domain_seq: Option<i64>,
    pub kind: String,
    pub actor: String,
    pub cause: String,
    pub detail: String,
    pub at: Moment,
}

/// The domain with this id.
pub async fn domain(tx: &mut Tx, id: &DomainId) -> StoreResult<Option<DomainRow>> {
    let query = sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.routing_mode, d.target, d.evidence, \
                d.public_probe, d.failures, d.due_at, d.created_at, d.event_seq + d.edits AS version, a.value, a.opened_at, a.deadline, a.proven_at, \
                c.id AS certificate, c.serial, c.not_before, c.not_after, i.name AS issuer, d.redirects, p.id AS p_id, \
                p.hostname AS p_hostname, p.claim AS p_claim, p.redirects AS p_redirects, p.certificate_until AS p_until, \
                p.active_since AS p_active, d.tie, w.renew_at, w.window_start, w.window_end, w.explanation, w.poll_at, \
                w.failures AS w_failures, w.said AS w_said, w.former_id, m.id AS m_id, m.tenant_id AS m_tenant, \
                m.turned_at AS m_turned, m.hold \
         FROM domains d JOIN tenants t ON t.id = d.tenant_id JOIN attempts a ON a.id = d.attempt_id \
         LEFT JOIN certificates c ON c.id = d.certificate_id AND c.destroyed_at IS NULL \
         LEFT JOIN renewals w ON w.domain_id = d.id AND w.certificate_id = d.certificate_id \
         LEFT JOIN domains p ON p.id = d.linked_domain_id AND p.linked_domain_id = d.id AND p.tenant_id = d.tenant_id \
         LEFT JOIN issuers i ON i.id = c.issuer_id \
         LEFT JOIN imports m ON m.id = d.import_id AND d.lane = 'bulk' WHERE d.id = $1");
    let Some(row) = tx.fetch_optional(query.bind(id.as_str())).await? else { return Ok(None) };
    let certificate = match row.opt_text("certificate")? {
        None => None,
        Some(id) => Some(CertificateRow {
            id,
            serial: row.text("serial")?,
            not_before: row.moment("not_before")?,
            not_after: row.moment("not_after")?,
            issuer: row.opt_text("issuer")?,
        }),
    };
    Ok(Some(DomainRow {
        id: row.parse("id")?,
        tenant_id: row.parse("tenant_id")?,
        tenant_slug: row.text("slug")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
        claim: row.parse("claim")?,
        routing_mode: row.parse("routing_mode")?,
        target: row.text("target")?,
        evidence: row.json("evidence")?,
        public_probe: row.opt_json("public_probe")?,
        failures: row.int("failures")?,
        due_at: row.moment("due_at")?,
        created_at: row.moment("created_at")?,
        version: row.int("version")?,
        attempt: Attempt {
            value: row.text("value")?,
            opened_at: row.moment("opened_at")?,
            deadline: row.moment("deadline")?,
            proven_at: row.opt_moment("proven_at")?,
        },
        certificate,
        renewal: renewal(&row)?,
        tie: row.parse("tie")?,
        redirects: row.int("redirects")? != 0,
        partner: partner(&row)?,
        held: held(&row)?,
    }))
}

fn held(row: &Row) -> StoreResult<Option<HeldRow>> {
    let Some(by) = row.opt_parse("hold")? else { return Ok(None) };
    Ok(Some(HeldRow {
        by,
        since: row.opt_moment("m_turned")?,
        import_id: row.parse("m_id")?,
        tenant_id: row.opt_parse("m_tenant")?,
    }))
}

fn renewal(row: &Row) -> StoreResult<Option<RenewalRow>> {
    if row.opt_int("renew_at")?.is_none() {
        return Ok(None);
    }
    let schedule = renewals::schedule(row, "w_failures", "w_said")?;
    Ok(Some(RenewalRow { schedule, hands_on: row.opt_text("former_id")?.is_some() }))
}

fn partner(row: &Row) -> StoreResult<Option<PartnerRow>> {
    let Some(id) = row.opt_parse("p_id")? else { return Ok(None) };
    Ok(Some(PartnerRow {
        id,
        hostname: Hostname::trusted(&row.text("p_hostname")?),
        claim: row.parse("p_claim")?,
        redirects: row.int("p_redirects")? != 0,
        certificate_until: row.opt_moment("p_until")?,
        active_since: row.opt_moment("p_active")?,
    }))
}

/// Whose domain this is, if it exists.
pub async fn owner(tx: &mut Tx, id: &DomainId) -> StoreResult<Option<TenantId>> {
    let row = tx.fetch_optional(sql("SELECT tenant_id FROM domains WHERE id = $1").bind(id.as_str())).await?;
    row.map(|row| row.parse("tenant_id")).transpose()
}

/// The open order of a domain, else the latest. An order that has not begun yet shows what the one before it met; one that the
/// CA took shows nothing of what kept it waiting before.
pub async fn order(tx: &mut Tx, id: &DomainId) -> StoreResult<Option<OrderRow>> {
    let query = sql("SELECT o.purpose, o.lane, o.state, o.state_since, o.not_before, CASE \
           WHEN o.state NOT IN ('waiting', 'granted', 'failed', 'lost') THEN NULL \
           WHEN o.problem IS NULL AND o.state IN ('waiting', 'granted') THEN (SELECT p.problem FROM orders p \
             WHERE p.domain_id = o.domain_id AND p.id < o.id ORDER BY p.created_at DESC, p.id DESC LIMIT 1) \
           ELSE o.problem END AS problem \
         FROM orders o WHERE o.domain_id = $1 \
         ORDER BY CASE WHEN o.state IN ('issued', 'failed', 'lost') THEN 1 ELSE 0 END, o.created_at DESC, o.id DESC LIMIT 1");
    let row = tx.fetch_optional(query.bind(id.as_str())).await?;
    row.map(|row| {
        Ok(OrderRow {
            purpose: row.text("purpose")?,
            lane: row.text("lane")?,
            state: row.parse("state")?,
            state_since: row.moment("state_since")?,
            not_before: row.moment("not_before")?,
            problem: row.opt_text("problem")?,
        })
    })
    .transpose()
}

/// The latest events of a domain, latest first.
pub async fn domain_events(tx: &mut Tx, id: &DomainId, limit: i64) -> StoreResult<Vec<EventRow>> {
    let query = sql("SELECT * FROM events WHERE domain_id = $1 ORDER BY domain_seq DESC LIMIT $2");
    tx.fetch_all(query.bind(id.as_str()).bind(limit)).await?.iter().map(event).collect()
}

/// An event, with the name of the domain that it, or the alert behind it, is about.
pub async fn event_to_tell(tx: &mut Tx, id: &EventId) -> StoreResult<Option<(EventRow, Option<String>)>> {
    let query = sql("SELECT e.*, COALESCE(d.hostname, \
           (SELECT x.hostname FROM alert_events v JOIN domains x ON x.id = v.domain_id WHERE v.event_id = e.id)) AS hostname \
         FROM events e LEFT JOIN domains d ON d.id = e.domain_id WHERE e.id = $1");
    let row = tx.fetch_optional(query.bind(id.as_str())).await?;
    row.map(|row| Ok((event(&row)?, row.opt_text("hostname")?))).transpose()
}

/// Which events a reader wants.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Of this tenant only.
    pub tenant: Option<TenantId>,
    /// Of this domain only.
    pub domain: Option<DomainId>,
    /// After this position.
    pub after: i64,
}

/// Numbered events, oldest first.
pub async fn events_after(tx: &mut Tx, filter: &EventFilter, limit: i64) -> StoreResult<Vec<EventRow>> {
    let position = filter.after;
    let query = match (&filter.domain, &filter.tenant) {
        (Some(domain), tenant) => sql("SELECT * FROM events WHERE domain_id = $3 AND position > $1 \
               AND ($4 = '' OR tenant_id = $4) ORDER BY domain_seq LIMIT $2")
        .bind(position)
        .bind(limit)
        .bind(domain.as_str())
        .bind(tenant.as_ref().map_or("", TenantId::as_str)),
        (None, Some(tenant)) => {
            sql("SELECT * FROM events WHERE position > $1 AND tenant_id = $3 ORDER BY position LIMIT $2")
                .bind(position)
                .bind(limit)
                .bind(tenant.as_str())
        }
        (None, None) => {
            sql("SELECT * FROM events WHERE position > $1 ORDER BY position LIMIT $2").bind(position).bind(limit)
        }
    };
    tx.fetch_all(query).await?.iter().map(event).collect()
}

/// An attempt at proof with its id.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct AttemptRow {
    pub id: AttemptId,
    pub value: String,
    pub opened_at: Moment,
    pub deadline: Moment,
    pub proven_at: Option<Moment>,
    pub closed_at: Option<Moment>,
}

/// All attempts of a domain, oldest first.
pub async fn attempts(tx: &mut Tx, id: &DomainId) -> StoreResult<Vec<AttemptRow>> {
    let query = sql("SELECT * FROM attempts WHERE domain_id = $1 ORDER BY opened_at, id LIMIT 1000").bind(id.as_str());
    let rows = tx.fetch_all(query).await?;
    rows.iter()
        .map(|row| {
            Ok(AttemptRow {
                id: row.parse("id")?,
                value: row.text("value")?,
                opened_at: row.moment("opened_at")?,
                deadline: row.moment("deadline")?,
                proven_at: row.opt_moment("proven_at")?,
                closed_at: row.opt_moment("closed_at")?,
            })
        })
        .collect()
}

pub(super) fn event(row: &Row) -> StoreResult<EventRow> {
    Ok(EventRow {
        id: row.parse("id")?,
        position: row.opt_int("position")?,
        tenant_id: row.opt_parse("tenant_id")?,
        domain_id: row.opt_parse("domain_id")?,
        domain_seq: row.opt_int("domain_seq")?,
        kind: row.text("kind")?,
        actor: row.text("actor")?,
        cause: row.text("cause")?,
        detail: row.text("detail")?,
        at: row.moment("at")?,
    })
}

/// Which domains a list holds.
#[derive(Clone, Debug, Default)]
pub struct DomainFilter {
    /// Of this tenant only.
    pub tenant: Option<TenantId>,
    /// With this hostname only.
    pub hostname: Option<Hostname>,
    /// In this state only.
    pub claim: Option<Claim>,
    /// After this id.
    pub after: Option<DomainId>,
}

/// Domains in order of their ids, that is of their age.
pub async fn domains(tx: &mut Tx, filter: &DomainFilter, limit: i64) -> StoreResult<Vec<SummaryRow>> {
    let after = filter.after.as_ref().map_or("", DomainId::as_str);
    let claim = filter.claim.map_or("", Claim::as_str);
    let tenant = filter.tenant.as_ref().map_or("", TenantId::as_str);
    // One statement for each index that leads; what is left to filter is little.
    let query = match (&filter.hostname, &filter.tenant, filter.claim) {
        (Some(hostname), _, _) => sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.due_at, d.created_at \
             FROM domains d JOIN tenants t ON t.id = d.tenant_id WHERE d.id > $1 AND d.hostname = $3 \
               AND ($4 = '' OR d.tenant_id = $4) AND ($5 = '' OR d.claim = $5) ORDER BY d.id LIMIT $2")
        .bind(after)
        .bind(limit)
        .bind(hostname.as_str())
        .bind(tenant)
        .bind(claim),
        (None, Some(_), _) => sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.due_at, d.created_at \
             FROM domains d JOIN tenants t ON t.id = d.tenant_id WHERE d.id > $1 AND d.tenant_id = $3 \
               AND ($4 = '' OR d.claim = $4) ORDER BY d.id LIMIT $2")
        .bind(after)
        .bind(limit)
        .bind(tenant)
        .bind(claim),
        (None, None, Some(_)) => sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.due_at, d.created_at \
             FROM domains d JOIN tenants t ON t.id = d.tenant_id WHERE d.id > $1 AND d.claim = $3 ORDER BY d.id LIMIT $2")
        .bind(after)
        .bind(limit)
        .bind(claim),
        (None, None, None) => sql("SELECT d.id, d.tenant_id, t.slug, d.hostname, d.claim, d.due_at, d.created_at \
             FROM domains d JOIN tenants t ON t.id = d.tenant_id WHERE d.id > $1 ORDER BY d.id LIMIT $2")
        .bind(after)
        .bind(limit),
    };
    let rows = tx.fetch_all(query).await?;
    rows.iter()
        .map(|row| {
            Ok(SummaryRow {
                id: row.parse("id")?,
                tenant_id: row.parse("tenant_id")?,
                tenant_slug: row.text("slug")?,
                hostname: Hostname::trusted(&row.text("hostname")?),
                claim: row.parse("claim")?,
                due_at: row.moment("due_at")?,
                created_at: row.moment("created_at")?,
            })
        })
        .collect()
}
