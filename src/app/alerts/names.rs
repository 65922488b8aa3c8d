//! Certificates of single names: raised when little of their life is left, ended when they were replaced or let go of. Each name that
//! is due is looked at for what puts its renewal at risk, too.

use std::time::Duration;

use serde_json::json;

use super::{AlertSettings, PAGE, Passed, Unwell, news, risks};
use crate::app::{App, AppError};
use crate::mint;
use crate::model::alert::cause::{Cause, Known, cause_of};
use crate::model::alert::kinds::{CERTIFICATE_ENDING, CERTIFICATE_SAFE};
use crate::model::claim::Claim;
use crate::model::id::{AlertId, EventId};
use crate::model::moment::Moment;
use crate::model::standing::Standing;
use crate::store::ahead::AHEAD;
use crate::store::alerts::{self, AlertRow};
use crate::store::expiry::{self, Due, Ending};
use crate::store::{StoreResult, Tx};

/// A name whose former certificate an edge serves still is looked at so often.
const AGAIN: Duration = Duration::from_secs(60);

/// Looks at every name that is due.
pub(super) async fn look(app: &App, settings: &AlertSettings, unwell: &Unwell) -> Result<Passed, AppError> {
    let mut passed = Passed::default();
    settings.rethink(app).await?;
    let (loosest, now) = (settings.thresholds.loosest(), app.env.now());
    let served = expiry::served_instead(&app.store, loosest, now, PAGE).await?;
    if !served.is_empty() {
        let mut tx = app.store.begin().await?;
        for ending in &served {
            let Some(threshold) = settings.thresholds.crossed(ending.life, now) else { continue };
            passed.raised += usize::from(raise_one(app, &mut tx, settings, unwell, ending, threshold, now).await?);
            // It is over when no edge serves it any more, which nobody else tells.
            tx.execute(expiry::touch(&ending.domain_id)).await?;
        }
        tx.commit().await?;
    }
    loop {
        let mut page = expiry::due(&app.store, app.env.now(), PAGE).await?;
        if page.is_empty() {
            return Ok(passed);
        }
        // In one order, whoever else looks: nobody waits for somebody who waits for him.
        page.sort_by(|a, b| a.domain_id.cmp(&b.domain_id));
        let mut tx = app.store.begin().await?;
        for due in &page {
            one(app, &mut tx, settings, unwell, due, &mut passed).await?;
        }
        app.boundary.cross("alerts raised").await;
        tx.commit().await?;
    }
}

async fn one(
    app: &App,
    tx: &mut Tx,
    settings: &AlertSettings,
    unwell: &Unwell,
    due: &Due,
    passed: &mut Passed,
) -> Result<(), AppError> {
    let (now, mut next) = (app.env.now(), Moment::NEVER);
    if tx.execute(expiry::hold(due)).await? != 1 {
        return Ok(());
    }
    let at_risk = risks::look(app, tx, due, now).await?;
    passed.raised += at_risk.raised;
    passed.resolved += at_risk.resolved;
    next = next.min(at_risk.again.unwrap_or(Moment::NEVER));
    if due.open {
        for stale in expiry::stale(tx, &due.domain_id).await? {
            if stale.served {
                next = now + AGAIN;
            } else {
                let why = if stale.live { Over::Renewed } else { Over::LetGo };
                passed.resolved += usize::from(end(app, tx, &stale.alert, why, now).await?);
            }
        }
        if let Some(ending) = &due.in_use {
            for alert in expiry::open_of(tx, ending).await? {
                // No two clocks of one fleet are so far apart: whoever raised it had a wrong one.
                if alert.threshold.is_some_and(|percent| ending.life.crossing(percent) > now + AHEAD) {
                    passed.resolved += usize::from(end(app, tx, &alert, Over::Mistaken, now).await?);
                }
            }
        }
    }
    if let Some(ending) = &due.in_use {
        let crossed = settings.thresholds.crossed(ending.life, now);
        if let Some(threshold) = crossed {
            passed.raised += usize::from(raise_one(app, tx, settings, unwell, ending, threshold, now).await?);
        }
        next = next.min(settings.thresholds.next(ending.life, now).unwrap_or(Moment::NEVER));
    }
    let rests = matches!(due.claim, Claim::Live | Claim::Releasing) || next < Moment::NEVER;
    tx.execute(if rests { expiry::again(due, next) } else { expiry::done(due) }).await?;
    Ok(())
}

/// Why an alert ends.
#[derive(Clone, Copy)]
enum Over {
    /// The certificate was replaced.
    Renewed,
    /// The name was let go of.
    LetGo,
    /// It was never so.
    Mistaken,
}

/// Ends an alert; whoever was told of it is told that it is over.
async fn end(app: &App, tx: &mut Tx, alert: &AlertRow, why: Over, now: Moment) -> StoreResult<bool> {
    let event = mint!(app.env, EventId);
    let name = alert.hostname.as_deref().unwrap_or_default();
    let (resolution, said) = match why {
        Over::Renewed => ("renewed", format!("the certificate of {name} that was about to end was replaced")),
        Over::LetGo => (
            "let_go",
            format!("the certificate of {name} that was about to end is not needed any more: the name was let go of"),
        ),
        Over::Mistaken => (
            "mistaken",
            format!("the certificate of {name} is not about to end: whoever told so had a clock that ran far ahead"),
        ),
    };
    if tx.execute(alerts::resolve(&alert.id, resolution, &event, now)).await? != 1 {
        return Ok(false);
    }
    let detail = json!({
        "alert": alert.id, "domain": alert.domain_id, "hostname": name, "certificate": alert.certificate_id, "why": resolution,
    });
    tx.execute(alerts::event(&event, alert.tenant_id.as_ref(), &news(CERTIFICATE_SAFE, said, detail), now)).await?;
    tx.execute(alerts::tells(&event, alert, false, None)).await?;
    Ok(true)
}

async fn raise_one(
    app: &App,
    tx: &mut Tx,
    settings: &AlertSettings,
    unwell: &Unwell,
    ending: &Ending,
    threshold: i64,
    now: Moment,
) -> Result<bool, AppError> {
    let issuer = ending.order.as_ref().map_or("", |(_, name)| name.as_str());
    let cause = cause_of(&Known {
        standing: Standing::from_code(&ending.standing),
        order: ending.order.as_ref().map(|(state, _)| *state),
        issuer,
        issuer_unwell: unwell.iter().any(|(name, _)| name == issuer),
        served_another: ending.served_another,
    });
    let life = ending.life;
    let tighter = settings.thresholds.all().iter().copied().filter(|t| *t < threshold).max();
    let (event, name, end) = (mint!(app.env, EventId), &ending.hostname, life.not_after.in_words());
    let said = if threshold == 0 {
        format!("the certificate of {name} ended on {end}: visitors see a warning")
    } else {
        format!(
            "the certificate of {name} ends on {end} and has not been renewed: less than {threshold} % of its life is left"
        )
    };
    let said = format!("{said}. {}", Cause::sentence(&cause.key));
    let mut alert = AlertRow {
        id: mint!(app.env, AlertId),
        kind: CERTIFICATE_ENDING.to_owned(),
        subject: ending.domain_id.to_string(),
        topic: alerts::topic(CERTIFICATE_ENDING, ending.domain_id.as_str(), Some(ending.certificate_id.as_str())),
        tenant_id: Some(ending.tenant_id.clone()),
        domain_id: Some(ending.domain_id.clone()),
        certificate_id: Some(ending.certificate_id.clone()),
        threshold: Some(threshold),
        cause: cause.key.clone(),
        said: said.clone(),
        many: 1,
        told_many: 1,
        told_threshold: threshold,
        raised_at: now,
        clear_since: None,
        resolved_at: None,
        resolution: None,
        raised_event: event.clone(),
        hostname: None,
    };
    if tx.execute(alerts::insert(&alert, tighter.map(|t| life.crossing(t)))).await? != 1 {
        let Some(known) = alerts::reopen(tx, &alert).await? else { return Ok(false) };
        alert.id = known;
    }
    tx.execute(alerts::escalate(&ending.domain_id, &ending.certificate_id, threshold, now)).await?;
    let detail = json!({
        "alert": alert.id, "domain": ending.domain_id, "hostname": name, "certificate": ending.certificate_id,
        "not_after": life.not_after.rfc3339(), "threshold_percent": threshold, "percent_left": life.percent_left(now),
        "cause": cause.key, "who_acts": cause.class,
    });
    tx.execute(alerts::event(&event, Some(&ending.tenant_id), &news(CERTIFICATE_ENDING, said, detail), now)).await?;
    tx.execute(alerts::tells(&event, &alert, true, None)).await?;
    Ok(true)
}
