//! From rows to the document.

use std::time::Duration;

use serde_json::Value;

use super::document::{
    AttemptView, CertificateView, CheckView, DomainSummary, DomainView, EventView, HeldView, OrderView, ProbeView,
    RenewalView, RolloutView, TenantRef,
};
use super::pair;
use crate::model::alert::threshold::Life;
use crate::model::claim::Claim;
use crate::model::domain::{PublicProbe, RoutingMode};
use crate::model::evidence::{Check, Evidence, Record, Verdict};
use crate::model::moment::Moment;
use crate::model::records::{ApexRoute, records};
use crate::model::renewal::{Told, at_risk, planned};
use crate::model::routine;
use crate::model::sentence::{Facts, Reader, sentence_of};
use crate::store::views::{DomainRow, EventRow, HeldRow, OrderRow, SummaryRow};

pub(super) fn view(
    row: DomainRow,
    order: Option<OrderRow>,
    rollout: RolloutView,
    events: Vec<EventRow>,
    apex: &ApexRoute,
    (reader, now): (Reader, Moment),
) -> DomainView {
    let problem: Option<Value> = order.as_ref().and_then(|o| o.problem.as_deref()).map(document);
    let said = problem.as_ref().map(problem_line);
    let facts = Facts {
        reader,
        claim: row.claim,
        evidence: &row.evidence,
        order_state: order.as_ref().map(|o| o.state),
        held: row.held.as_ref().map(|h| h.by),
        order_problem: said.as_deref(),
        failures: row.failures,
        not_after: row.certificate.as_ref().map(|c| c.not_after),
        counted: rollout.counted,
        behind: rollout.behind.len(),
        renewed: row.renewal.as_ref().is_some_and(|r| r.hands_on),
        now,
    };
    let sentence = sentence_of(&facts);
    let checks = row.evidence.iter().map(|e| check(e, &row, now)).collect();
    let renewal = renewal(&row, now);
    let next = next(&row, now);
    let records = to_publish(&row, apex);
    let pair = pair::of(&row, sentence.serving, now);
    let held = held(&row);
    let undo_until = due(row.due_at).filter(|at| row.claim == Claim::Releasing && *at > now);
    DomainView {
        held,
        id: row.id,
        tenant: TenantRef { id: row.tenant_id, slug: row.tenant_slug },
        hostname_display: row.hostname.display(),
        records,
        hostname: row.hostname,
        claim: row.claim,
        sentence: sentence.text,
        who_acts: sentence.who_acts,
        serving: sentence.serving,
        active: sentence.active,
        checks,
        order: order.map(|o| OrderView {
            purpose: o.purpose,
            state: o.state.to_string(),
            lane: o.lane,
            state_since: o.state_since,
            not_before: due(o.not_before),
            problem,
        }),
        certificate: row.certificate.map(|c| CertificateView {
            serial: c.serial,
            issuer: c.issuer,
            not_before: c.not_before,
            not_after: c.not_after,
            days_left: c.not_after.since(now).as_secs() / 86_400,
            percent_left: Life { not_before: c.not_before, not_after: c.not_after }.percent_left(now),
        }),
        renewal,
        rollout,
        public_probe: row.public_probe.map(|PublicProbe { at, ok, seen }| ProbeView { at, ok, seen }),
        attempt: AttemptView {
            value: row.attempt.value,
            opened_at: row.attempt.opened_at,
            deadline: row.attempt.deadline,
            proven_at: row.attempt.proven_at,
        },
        partner: pair.partner,
        redirect_to: pair.redirect_to,
        redirecting: pair.redirecting,
        due_at: next,
        undo_until,
        version: row.version,
        created_at: row.created_at,
        events: events.into_iter().map(event).collect(),
    }
}

/// When the certificate in use is renewed, and what stands against it.
fn renewal(row: &DomainRow, now: Moment) -> Option<RenewalView> {
    let (renewal, certificate) = (row.renewal.as_ref()?, row.certificate.as_ref()?);
    if row.claim != Claim::Live {
        return None;
    }
    let schedule = &renewal.schedule;
    let told = Told {
        schedule,
        tie: row.tie,
        evidence: &row.evidence,
        failures: row.failures,
        not_after: certificate.not_after,
        now,
    };
    let risk = at_risk(&told);
    Some(RenewalView {
        at: schedule.at,
        at_risk: risk.is_some(),
        sentence: risk.unwrap_or_else(|| planned(&told)),
        window_start: schedule.window.map(|w| w.start),
        window_end: schedule.window.map(|w| w.end),
        explanation: schedule.explanation.clone(),
    })
}

/// What holds the import that brought the name, while that keeps it from being ordered for.
fn held(row: &DomainRow) -> Option<HeldView> {
    let HeldRow { by, since, import_id, tenant_id } = row.held.as_ref()?;
    let keeps = matches!(row.claim, Claim::AwaitingDns | Claim::Queued);
    // An operator's import may bring the names of others, too.
    let own = tenant_id.as_ref() == Some(&row.tenant_id);
    keeps.then(|| HeldView { by: *by, since: *since, import_id: own.then(|| import_id.clone()) })
}

/// A claim waits for its records so long before that is worth an alarm.
const YOUNG: Duration = Duration::from_secs(24 * 3600);

/// Whether a claim waits for its records as young claims do: since less than a day, and with nothing that is wrong.
pub(super) fn is_young(claim: Claim, created_at: Moment, seen: impl Iterator<Item = Verdict>, now: Moment) -> bool {
    claim == Claim::AwaitingDns && now.since(created_at) < YOUNG && seen.into_iter().all(|v| v != Verdict::Fail)
}

/// What to publish. Nothing has to be kept for a claim that is over or on its way out.
fn to_publish(row: &DomainRow, apex: &ApexRoute) -> Vec<Record> {
    let mut records = records(&row.hostname, &row.attempt.value, row.routing_mode, &row.target, apex);
    if !row.claim.is_open() {
        records.iter_mut().for_each(|record| record.keep = false);
    }
    records
}

/// When something is looked at or done next. A live name is looked at in its slot of the day, without being due for it.
fn next(row: &DomainRow, now: Moment) -> Option<Moment> {
    match row.claim {
        Claim::Live => Some(routine::next(&row.id, now).min(row.due_at)),
        _ => due(row.due_at),
    }
}

/// What is never due is shown as no time at all.
fn due(at: Moment) -> Option<Moment> {
    (at != Moment::NEVER).then_some(at)
}

fn check(e: &Evidence, row: &DomainRow, now: Moment) -> CheckView {
    let (finding, reason) = (&e.finding, e.finding.reason);
    let looking = matches!(row.claim, Claim::AwaitingDns | Claim::Queued | Claim::Live);
    let open = row.claim == Claim::AwaitingDns && reason.verdict() != Verdict::Pass;
    let deadline = open.then_some(row.attempt.deadline);
    CheckView {
        check: finding.check,
        verdict: reason.verdict(),
        code: reason.code().into(),
        sentence: reason.sentence().into(),
        expected: finding.expected.clone(),
        observed: finding.observed.clone(),
        seen_by: finding.seen_by.clone(),
        views: finding.views.clone(),
        old_until: e.old_until(),
        who_acts: reason.acts(),
        advice: finding.advice.clone(),
        record_to_publish: finding.record_to_publish.clone(),
        dns_host: finding.dns_host.clone(),
        looked_at: e.looked_at,
        next_look_at: next(row, now).filter(|_| looking),
        deadline,
        consequence: consequence(finding.check, reason.verdict(), row),
    }
}

fn consequence(check: Check, verdict: Verdict, row: &DomainRow) -> String {
    let tied_by_txt = row.routing_mode == RoutingMode::Shared || row.hostname.is_apex();
    match (row.claim, check, verdict) {
        (Claim::Live, Check::Ownership, Verdict::Pass) if tied_by_txt => {
            "Keep this record: without it the name is let go after a warning.".into()
        }
        (Claim::AwaitingDns | Claim::Queued | Claim::Live, _, Verdict::Pass) => String::new(),
        (Claim::AwaitingDns, _, Verdict::Unknown) => "Nothing is decided until we could look.".into(),
        (Claim::AwaitingDns, _, _) => {
            format!(
                "Until this passes nothing is served; on {} the claim ends and needs a new value.",
                row.attempt.deadline.in_words()
            )
        }
        (Claim::Queued, _, Verdict::Fail) => "No certificate is ordered until this passes.".into(),
        (Claim::Live, Check::Caa, Verdict::Fail) => match (&row.renewal, &row.certificate) {
            (Some(r), Some(c)) => format!(
                "The certificate in use stays valid until {}, but its renewal, on {}, will fail.",
                c.not_after.in_words(),
                r.schedule.at.in_words()
            ),
            _ => "The certificate in use stays valid, but cannot be renewed.".into(),
        },
        (Claim::Live, Check::Ownership, Verdict::Fail | Verdict::Wait) if tied_by_txt => {
            "If the record does not come back, the certificate is not renewed and the name is let go.".into()
        }
        (Claim::Live, Check::Holding, Verdict::Fail) => {
            "If the record does not come back, the name moves to whoever published the other one.".into()
        }
        (Claim::Live, Check::Routing, Verdict::Fail | Verdict::Wait) => {
            match row.certificate.as_ref().filter(|_| row.renewal.is_some()) {
                Some(c) => format!(
                    "Visitors go elsewhere, and the certificate cannot be renewed: it ends on {}.",
                    c.not_after.in_words()
                ),
                None => "Visitors go elsewhere, and the certificate cannot be renewed.".into(),
            }
        }
        _ => String::new(),
    }
}

pub(super) fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// A problem document (RFC 8555 §6.7) in one line.
fn problem_line(problem: &Value) -> String {
    let part = |key: &str| problem.get(key).and_then(Value::as_str);
    let line = match (part("type"), part("detail")) {
        (Some(kind), Some(detail)) => format!("{detail} ({kind})"),
        (kind, detail) => detail.or(kind).or(problem.as_str()).map_or_else(|| problem.to_string(), str::to_owned),
    };
    line.chars().take(400).collect()
}

pub(super) fn summary(row: SummaryRow) -> DomainSummary {
    DomainSummary {
        id: row.id,
        tenant: TenantRef { id: row.tenant_id, slug: row.tenant_slug },
        hostname_display: row.hostname.display(),
        hostname: row.hostname,
        claim: row.claim,
        due_at: due(row.due_at),
        created_at: row.created_at,
    }
}

pub(super) fn event(row: EventRow) -> EventView {
    EventView {
        id: row.id.to_string(),
        position: row.position,
        tenant_id: row.tenant_id,
        domain_id: row.domain_id,
        seq: row.domain_seq,
        kind: row.kind,
        actor: row.actor,
        cause: row.cause,
        at: row.at,
        detail: document(&row.detail),
    }
}
