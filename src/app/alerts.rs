//! Watching: what somebody should know of is raised once and ends by itself, each time with the event that tells of it.
//!
//! A pass looks at rows alone, so that it is right whatever any job did or did not do, and may run in any process at any time:
//! an alert's unique row decides who raises it, and its event is written in the same transaction.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;

use super::{App, AppError};
use crate::mint;
use crate::model::alert::cause::{Cause, Known, cause_of};
use crate::model::alert::kinds::{ALERT_RAISED, ALERT_RESOLVED, CERTIFICATE_ENDING, CERTIFICATE_SAFE};
use crate::model::alert::level::{self, Step};
use crate::model::alert::threshold::Thresholds;
use crate::model::conclude::FRESH_EDGE;
use crate::model::id::{AlertId, EventId};
use crate::model::moment::Moment;
use crate::model::outcome::NewEvent;
use crate::model::standing::Standing;
use crate::store::alerts::{self, AlertRow, Ending};
use crate::store::{Tx, issuer_health, issuers, mail_items, pulse, webhooks};

/// Many certificates that end for one cause.
const TOGETHER: &str = "certificates_ending";
/// Rows that one transaction writes.
const PAGE: i64 = 200;
/// Failures in a row from which on an issuer is unwell.
const UNWELL: i64 = 5;
/// How long the longest lifetime is taken as known.
const LOOKED_UP_FOR: Duration = Duration::from_secs(3600);
/// How long mail may wait before that is an alert.
const MAIL_LATE: Duration = Duration::from_secs(3600);

/// What the operator decided.
#[derive(Clone, Debug)]
pub struct AlertSettings {
    /// With which shares of its lifetime left a certificate is told of.
    pub thresholds: Thresholds,
    /// After which silence the workers count as stopped.
    pub workers_silent: Duration,
    /// What was found out and holds for a while.
    longest: LongestLife,
}

impl AlertSettings {
    /// As decided.
    pub fn new(thresholds: Thresholds, workers_silent: Duration) -> Self {
        AlertSettings { thresholds, workers_silent, longest: LongestLife::default() }
    }
}

impl Default for AlertSettings {
    fn default() -> Self {
        AlertSettings::new(Thresholds::default(), Duration::from_secs(600))
    }
}

/// The longest lifetime of a certificate in use, looked up once an hour: what ends later than a share of it is left unread. One
/// that is issued meanwhile and lasts longer has most of its life before it.
#[derive(Clone, Debug, Default)]
pub struct LongestLife(Arc<Mutex<Option<(Moment, i64)>>>);

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

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Alerts raised.
    pub raised: usize,
    /// Alerts that ended.
    pub resolved: usize,
}

/// Looks at everything once.
pub async fn pass(app: &App, settings: &AlertSettings) -> Result<Passed, AppError> {
    let mut passed = Passed::default();
    passed.resolved += end_those_over(app).await?;
    let unwell = unwell_issuers(app).await?;
    passed.raised += raise_ending(app, settings, &unwell).await?;
    let mut conditions = together(app).await?;
    conditions.extend(of_the_platform(app, settings, &unwell).await?);
    let (raised, resolved) = settle(app, conditions).await?;
    passed.raised += raised;
    passed.resolved += resolved;
    if passed != Passed::default() {
        // The stream has something new.
        app.bells.relay.notify_one();
    }
    Ok(passed)
}

fn news(kind: &'static str, cause: String, detail: serde_json::Value) -> NewEvent {
    NewEvent { kind, actor: "nameplate".to_owned(), cause, detail }
}

async fn end_those_over(app: &App) -> Result<usize, AppError> {
    let mut ended = 0;
    loop {
        let over = alerts::over(&app.store, PAGE).await?;
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

/// The names of issuers that answer to nobody now, or whose account cannot be used, with what was said last.
async fn unwell_issuers(app: &App) -> Result<Vec<(String, String)>, AppError> {
    let health = issuer_health::all(&app.store).await?;
    let mut unwell = Vec::new();
    for issuer in issuers::list(&app.store).await?.into_iter().filter(issuers::IssuerRow::is_in_use) {
        let Some(health) = health.get(&issuer.id) else { continue };
        if health.halted.is_some() || health.failures >= UNWELL {
            let said = health.halted.clone().or_else(|| health.said.clone()).unwrap_or_default();
            unwell.push((issuer.name, said));
        }
    }
    Ok(unwell)
}

async fn raise_ending(app: &App, settings: &AlertSettings, unwell: &[(String, String)]) -> Result<usize, AppError> {
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
    unwell: &[(String, String)],
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
    unwell: &[(String, String)],
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

/// Something that is the case now.
struct Condition {
    kind: &'static str,
    subject: String,
    cause: String,
    said: String,
    many: i64,
    threshold: i64,
}

impl Condition {
    fn of(kind: &'static str, subject: &str, said: String) -> Condition {
        Condition { kind, subject: subject.to_owned(), cause: "platform/itself".to_owned(), said, many: 1, threshold: 0 }
    }
}

/// What open alerts of domains share.
async fn together(app: &App) -> Result<Vec<Condition>, AppError> {
    let said = |cause: &str, many: i64, tightest: i64| {
        let (certificates, end) =
            if many == 1 { ("1 certificate".to_owned(), "ends") } else { (format!("{many} certificates"), "end") };
        let left = if tightest == 0 {
            "some have ended already".to_owned()
        } else {
            format!("at least one has less than {tightest} % of its life left")
        };
        format!("{certificates} {end} soon for one cause; {left}. {}", Cause::sentence(cause))
    };
    let causes = alerts::by_cause(&app.store, CERTIFICATE_ENDING).await?;
    let condition = |(cause, many, tightest): (String, i64, i64)| Condition {
        kind: TOGETHER,
        said: said(&cause, many, tightest),
        subject: cause.clone(),
        cause,
        many,
        threshold: tightest,
    };
    Ok(causes.into_iter().map(condition).collect())
}

async fn of_the_platform(
    app: &App,
    settings: &AlertSettings,
    unwell: &[(String, String)],
) -> Result<Vec<Condition>, AppError> {
    let now = app.env.now();
    let mut out = Vec::new();
    let minutes = |since: Moment| now.since(since).as_secs() / 60;
    if let Some(at) = pulse::last(&app.store, pulse::SWEEP).await?
        && now.since(at) >= settings.workers_silent
    {
        out.push(Condition::of(
            "workers_stopped",
            "sweep",
            format!("the workers have done nothing for {} minutes: nothing is renewed", minutes(at)),
        ));
    }
    if let Some(since) = pulse::overdue_since(&app.store, now).await?
        && now.since(since) >= settings.workers_silent
    {
        let said = format!("a domain has been due for {} minutes and nobody works on it", minutes(since));
        out.push(Condition::of("work_overdue", "domains", said));
    }
    let (enrolled, counted) = pulse::edges(&app.store, now - FRESH_EDGE).await?;
    let wanted = app.settings.min_edges;
    if enrolled > 0 && usize::try_from(counted).unwrap_or(0) < wanted {
        let said = format!("{counted} edges count and {wanted} must: nothing is ordered until they do");
        out.push(Condition::of("edges_missing", "edges", said));
    }
    for (issuer, said) in unwell {
        let mut one =
            Condition::of("issuer_unwell", issuer, format!("issuer {issuer} does not issue; it last said: {said}"));
        one.cause = format!("ca/{issuer}");
        out.push(one);
    }
    for (id, url, why) in webhooks::switched_off(&app.store, PAGE).await? {
        let said = match why.as_str() {
            "gone" => format!("the webhook at {url} said that it is gone; nothing is sent to it any more"),
            _ => format!("the webhook at {url} failed for days; nothing is sent to it until it is enabled again"),
        };
        out.push(Condition::of("webhook_disabled", id.as_str(), said));
    }
    if let Some(since) = mail_items::oldest_due(&app.store, now).await?
        && now.since(since) >= MAIL_LATE
    {
        out.push(Condition::of(
            "mail_late",
            "mail",
            format!("mail has not been taken by its server for {} minutes", minutes(since)),
        ));
    }
    Ok(out)
}

/// Raises what holds and is not open, ends what is open and does not hold, tells again what grew.
async fn settle(app: &App, conditions: Vec<Condition>) -> Result<(usize, usize), AppError> {
    let open = alerts::open_of_platform(&app.store).await?;
    if open.is_empty() && conditions.is_empty() {
        return Ok((0, 0));
    }
    let now = app.env.now();
    let (mut raised, mut resolved) = (0, 0);
    let mut tx = app.store.begin().await?;
    let mut held = BTreeSet::new();
    for condition in &conditions {
        let known = open.iter().find(|a| a.kind == condition.kind && a.subject == condition.subject);
        if let Some(alert) = known {
            held.insert(alert.id.clone());
            grow(app, &mut tx, alert, condition, now).await?;
        } else {
            raised += usize::from(rise(app, &mut tx, condition, now).await?);
        }
    }
    for alert in open.iter().filter(|a| !held.contains(&a.id)) {
        match level::step(false, Some(alert.clear_since), now) {
            Step::Clear => drop(tx.execute(alerts::clear(&alert.id, Some(now))).await?),
            Step::Resolve => {
                let event = mint!(app.env, EventId);
                if tx.execute(alerts::resolve(&alert.id, "over", Some(&event), now)).await? == 1 {
                    resolved += 1;
                    let detail = json!({ "alert": alert.id, "kind": alert.kind, "subject": alert.subject });
                    let told = news(ALERT_RESOLVED, format!("over: {}", alert.said), detail);
                    tx.execute(alerts::event(&event, None, &told, now)).await?;
                }
            }
            Step::Rest | Step::Raise | Step::Stay => {}
        }
    }
    app.boundary.cross("alerts settled").await;
    tx.commit().await?;
    Ok((raised, resolved))
}

fn detail(id: &AlertId, c: &Condition) -> serde_json::Value {
    json!({ "alert": id, "kind": c.kind, "subject": c.subject, "count": c.many, "cause": c.cause })
}

async fn rise(app: &App, tx: &mut Tx, c: &Condition, now: Moment) -> Result<bool, AppError> {
    let (id, event) = (mint!(app.env, AlertId), mint!(app.env, EventId));
    let told = news(ALERT_RAISED, c.said.clone(), detail(&id, c));
    let alert = AlertRow {
        id,
        kind: c.kind.to_owned(),
        subject: c.subject.clone(),
        tenant_id: None,
        domain_id: None,
        certificate_id: None,
        threshold: None,
        cause: c.cause.clone(),
        said: c.said.clone(),
        many: c.many,
        told_many: c.many,
        told_threshold: c.threshold,
        raised_at: now,
        clear_since: None,
        resolved_at: None,
        resolution: None,
        raised_event: event.clone(),
        hostname: None,
    };
    if tx.execute(alerts::insert(&alert, None)).await? != 1 {
        return Ok(false);
    }
    tx.execute(alerts::event(&event, None, &told, now)).await?;
    Ok(true)
}

async fn grow(app: &App, tx: &mut Tx, alert: &AlertRow, c: &Condition, now: Moment) -> Result<(), AppError> {
    if level::grown(alert.told_many, c.many) || c.threshold < alert.told_threshold {
        let event = mint!(app.env, EventId);
        if tx.execute(alerts::tell_again(alert, c.many, c.threshold, &c.said, &event)).await? == 1 {
            let told = news(ALERT_RAISED, c.said.clone(), detail(&alert.id, c));
            tx.execute(alerts::event(&event, None, &told, now)).await?;
        }
        return Ok(());
    }
    tx.execute(alerts::count(&alert.id, c.many, &c.said)).await?;
    if level::step(true, Some(alert.clear_since), now) == Step::Stay {
        tx.execute(alerts::clear(&alert.id, None)).await?;
    }
    Ok(())
}
