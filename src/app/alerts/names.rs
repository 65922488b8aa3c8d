//! Certificates of single names: raised when little of their life is left, ended when they were replaced.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;

use super::{AlertSettings, PAGE, Unwell, news};
use crate::app::{App, AppError};
use crate::mint;
use crate::model::alert::cause::{Cause, Known, cause_of};
use crate::model::alert::kinds::{CERTIFICATE_ENDING, CERTIFICATE_SAFE};
use crate::model::id::{AlertId, EventId};
use crate::model::moment::Moment;
use crate::model::standing::Standing;
use crate::store::Tx;
use crate::store::alerts::{self, AlertRow, Ending};

/// How long the longest lifetime is taken as known.
const LOOKED_UP_FOR: Duration = Duration::from_secs(3600);

/// The longest lifetime of a certificate in use, looked up once an hour: what ends later than a share of it is left unread. One
/// that is issued meanwhile and lasts longer has most of its life before it.
#[derive(Clone, Debug, Default)]
pub(super) struct LongestLife(Arc<Mutex<Option<(Moment, i64)>>>);

impl LongestLife {
    async fn horizon(&self, app: &App, percent: i64) -> Result<Moment, AppError> {
        let now = app.env.now();
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let life = match known {
            Some((at, life)) if now.since(at) < LOOKED_UP_FOR => life,
            _ => {
                let life = alerts::longest_life(&app.store).await?;
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, life));
                life
            }
        };
        // Rounded up: the shares themselves are compared to the microsecond.
        Ok(Moment::from_micros(now.micros().saturating_add((life / 100 + 1).saturating_mul(percent + 1))))
    }
}

pub(super) async fn end_those_over(app: &App) -> Result<usize, AppError> {
    let mut ended = 0;
    loop {
        let over = alerts::over(&app.store, PAGE).await?;
        if over.is_empty() {
            return Ok(ended);
        }
        let many = over.len();
        let now = app.env.now();
        let mut tx = app.store.begin().await?;
        for (alert, renewed) in over {
            let event = renewed.then(|| mint!(app.env, EventId));
            let resolution = if renewed { "renewed" } else { "let_go" };
            if tx.execute(alerts::resolve(&alert.id, resolution, event.as_ref(), now)).await? != 1 {
                continue;
            }
            ended += 1;
            if let Some(event) = event {
                let name = alert.hostname.as_deref().unwrap_or_default();
                let told = news(
                    CERTIFICATE_SAFE,
                    format!("the certificate of {name} that was about to end was replaced"),
                    json!({ "alert": alert.id, "domain": alert.domain_id, "hostname": name, "certificate": alert.certificate_id }),
                );
                tx.execute(alerts::event(&event, alert.tenant_id.as_ref(), &told, now)).await?;
            }
        }
        app.boundary.cross("alerts ended").await;
        tx.commit().await?;
        if i64::try_from(many).unwrap_or(PAGE) < PAGE {
            return Ok(ended);
        }
    }
}

pub(super) async fn raise_ending(app: &App, settings: &AlertSettings, unwell: &Unwell) -> Result<usize, AppError> {
    let (loosest, now) = (settings.thresholds.loosest(), app.env.now());
    let served = alerts::served_ending(&app.store, loosest, now, PAGE).await?;
    let mut raised = raise(app, settings, unwell, &served, now).await?;
    let horizon = settings.longest.horizon(app, loosest).await?;
    let mut after = String::new();
    loop {
        let page = alerts::ending_within(&app.store, loosest, now, horizon, &after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(raised) };
        after = last.domain_id.to_string();
        raised += raise(app, settings, unwell, &page, now).await?;
    }
}

async fn raise(
    app: &App,
    settings: &AlertSettings,
    unwell: &Unwell,
    page: &[Ending],
    now: Moment,
) -> Result<usize, AppError> {
    if page.is_empty() {
        return Ok(0);
    }
    let mut raised = 0;
    let mut tx = app.store.begin().await?;
    for ending in page {
        let Some(threshold) = settings.thresholds.crossed(ending.life, now) else { continue };
        raised += usize::from(raise_one(app, &mut tx, settings, unwell, ending, threshold, now).await?);
    }
    app.boundary.cross("alerts raised").await;
    tx.commit().await?;
    Ok(raised)
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
    let alert = AlertRow {
        id: mint!(app.env, AlertId),
        kind: CERTIFICATE_ENDING.to_owned(),
        subject: ending.domain_id.to_string(),
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
        return Ok(false);
    }
    tx.execute(alerts::escalate(&ending.domain_id, &ending.certificate_id, threshold, now)).await?;
    let detail = json!({
        "alert": alert.id, "domain": ending.domain_id, "hostname": name, "certificate": ending.certificate_id,
        "not_after": life.not_after.rfc3339(), "threshold_percent": threshold, "percent_left": life.percent_left(now),
        "cause": cause.key, "who_acts": cause.class,
    });
    tx.execute(alerts::event(&event, Some(&ending.tenant_id), &news(CERTIFICATE_ENDING, said, detail), now)).await?;
    Ok(true)
}
