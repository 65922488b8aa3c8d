//! Renewals at risk: raised when what was last seen of a live name would keep its certificate from being renewed, told again when
//! something else does, ended when nothing does or the name was let go of.
//!
//! A name is looked at here when a look from everywhere saw something new of it: a routine look that differs is confirmed before
//! that, and once a day while it is at risk, since its day may move. Whoever must act hears of it: the tenant, or operators where the
//! platform's own records stand in the way.

use serde_json::{Value, json};

use super::news;
use crate::app::App;
use crate::mint;
use crate::model::alert::cause::{Cause, Class};
use crate::model::alert::kinds::{RENEWAL_AT_RISK, RENEWAL_SAFE};
use crate::model::alert::risk::{self, CHECKS, Risk, Says};
use crate::model::evidence::Check;
use crate::model::id::{AlertId, EventId, TenantId};
use crate::model::moment::Moment;
use crate::store::alerts::{self, AlertRow};
use crate::store::expiry::{Due, Renewing};
use crate::store::{StoreResult, Tx, risks};

/// What is one story: one check of one name.
fn topic(due: &Due, check: Check) -> String {
    alerts::topic(RENEWAL_AT_RISK, due.domain_id.as_str(), Some(check.as_str()))
}

/// Who hears of it: its tenant, unless the platform must act.
fn heard_by<'a>(tenant: &'a TenantId, cause: &str) -> Option<&'a TenantId> {
    (Cause::class_of(cause) != Class::Platform).then_some(tenant)
}

/// What a look at one name did.
#[derive(Clone, Copy, Default)]
pub(super) struct Looked {
    /// Alerts raised or told again.
    pub(super) raised: usize,
    /// Alerts that ended.
    pub(super) resolved: usize,
    /// When it is to be looked at again, whatever happens.
    pub(super) again: Option<Moment>,
}

/// Looks at one name.
pub(super) async fn look(app: &App, tx: &mut Tx, due: &Due, now: Moment) -> StoreResult<Looked> {
    let open = if due.open { risks::open_of(tx, &due.domain_id).await? } else { Vec::new() };
    let mut looked = Looked::default();
    if due.in_use.is_none() {
        for alert in &open {
            looked.resolved += usize::from(end(app, tx, alert, Over::LetGo, now).await?);
        }
        return Ok(looked);
    }
    let Some(name) = &due.renewing else { return Ok(looked) };
    for check in CHECKS {
        let topic = topic(due, check);
        let known = open.iter().find(|alert| alert.topic == topic);
        match (risk::says(&name.last_seen(), check), known) {
            (Says::Refuses(by), known) => {
                let of = Risk { hostname: &name.hostname, by, renew_at: name.renew_at, not_after: name.not_after };
                looked.raised += usize::from(rise(app, tx, due, name, &of, known, now).await?);
                looked.again = Some(now + risk::ROUND);
            }
            (Says::Allows, Some(alert)) => looked.resolved += usize::from(end(app, tx, alert, Over::Healed, now).await?),
            (Says::Allows, None) | (Says::Silent, _) => {}
        }
    }
    Ok(looked)
}

/// Raises it, or tells it again where it is open for another cause.
async fn rise(
    app: &App,
    tx: &mut Tx,
    due: &Due,
    name: &Renewing,
    of: &Risk<'_>,
    known: Option<&AlertRow>,
    now: Moment,
) -> StoreResult<bool> {
    let (cause, said, event) = (of.cause(), of.sentence(now), mint!(app.env, EventId));
    let alert = match known {
        Some(alert) if alert.cause == cause.key => {
            if alert.said != said {
                tx.execute(risks::reword(alert, &said)).await?;
            }
            return Ok(false);
        }
        Some(alert) => {
            if tx.execute(risks::tell_again(alert, &cause.key, &said, &event)).await? != 1 {
                return Ok(false);
            }
            alert.clone()
        }
        None => {
            let alert = row(mint!(app.env, AlertId), due, name, of, &said, &event, now);
            if tx.execute(alerts::insert(&alert, None)).await? != 1 {
                return Ok(false);
            }
            alert
        }
    };
    let detail = detail(&alert, of, &cause);
    let tenant = heard_by(&name.tenant_id, &cause.key);
    tx.execute(alerts::event(&event, tenant, &news(RENEWAL_AT_RISK, said, detail), now)).await?;
    let mail_at = risk::mail_at(alert.raised_at, name.not_after, now);
    tx.execute(alerts::tells(&event, &alert, true, Some(mail_at))).await?;
    Ok(true)
}

fn row(id: AlertId, due: &Due, name: &Renewing, of: &Risk<'_>, said: &str, event: &EventId, now: Moment) -> AlertRow {
    AlertRow {
        id,
        kind: RENEWAL_AT_RISK.to_owned(),
        subject: due.domain_id.to_string(),
        topic: topic(due, of.by.finding.check),
        tenant_id: Some(name.tenant_id.clone()),
        domain_id: Some(due.domain_id.clone()),
        certificate_id: None,
        threshold: None,
        cause: of.cause().key,
        said: said.to_owned(),
        many: 1,
        told_many: 1,
        told_threshold: 0,
        raised_at: now,
        clear_since: None,
        resolved_at: None,
        resolution: None,
        raised_event: event.clone(),
        hostname: Some(name.hostname.to_string()),
    }
}

fn detail(alert: &AlertRow, of: &Risk<'_>, cause: &Cause) -> Value {
    let finding = &of.by.finding;
    json!({
        "alert": alert.id, "domain": alert.domain_id, "hostname": of.hostname, "check": finding.check,
        "code": finding.reason, "advice": risk::bounded(&finding.advice), "found_at": finding.found_at,
        "renews_at": of.renew_at.rfc3339(), "not_after": of.not_after.rfc3339(), "cause": cause.key, "who_acts": cause.class,
    })
}

/// Why it ends.
#[derive(Clone, Copy)]
enum Over {
    /// Nothing stands in the way any more.
    Healed,
    /// The name was let go of.
    LetGo,
}

async fn end(app: &App, tx: &mut Tx, alert: &AlertRow, why: Over, now: Moment) -> StoreResult<bool> {
    let event = mint!(app.env, EventId);
    let name = alert.hostname.as_deref().unwrap_or_default();
    let (resolution, said) = match why {
        Over::Healed => ("healed", format!("the renewal of {name} is not at risk any more for what was told")),
        Over::LetGo => ("let_go", format!("the renewal of {name} is not needed any more: the name was let go of")),
    };
    if tx.execute(alerts::resolve(&alert.id, resolution, &event, now)).await? != 1 {
        return Ok(false);
    }
    let detail = json!({
        "alert": alert.id, "domain": alert.domain_id, "hostname": name, "cause": alert.cause, "why": resolution,
    });
    // Its tenant may have been told of an earlier cause; who was told of none is passed over.
    tx.execute(alerts::event(&event, alert.tenant_id.as_ref(), &news(RENEWAL_SAFE, said, detail), now)).await?;
    tx.execute(alerts::tells(&event, alert, false, Some(now + risk::ROUND))).await?;
    Ok(true)
}
