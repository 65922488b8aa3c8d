//! The platform as a whole: what is wrong with it, and what many names share, each as one alert with a count.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::{AlertSettings, Unwell, lasting, loops, news};
use crate::app::{App, AppError};
use crate::mint;
use crate::model::alert::cause::{Cause, Class};
use crate::model::alert::kinds::{ALERT_RAISED, ALERT_RESOLVED, CERTIFICATE_ENDING, RENEWAL_AT_RISK};
use crate::model::alert::level::{self, Step};
use crate::model::conclude::FRESH_EDGE;
use crate::model::id::{AlertId, EventId};
use crate::model::issuer::Oddity;
use crate::model::moment::Moment;
use crate::store::alerts::{self, AlertRow};
use crate::store::{Tx, issuer_health, mail_items, pulse, webhooks};

/// Many certificates that end for one cause.
const TOGETHER: &str = "certificates_ending";
/// Many renewals that records of ours stand in the way of.
const AT_RISK: &str = "renewals_at_risk";
/// How long mail may wait before that is an alert.
const MAIL_LATE: Duration = Duration::from_secs(3600);
/// For how long mail that was given up is an alert.
const MAIL_LOST: Duration = Duration::from_secs(86_400);
/// So many places are named.
pub(super) const NAMED: i64 = 3;

/// Looks at the platform; how many alerts were raised, and how many ended.
pub(super) async fn look(app: &App, settings: &AlertSettings, unwell: &Unwell) -> Result<(usize, usize), AppError> {
    let mut conditions = together(app).await?;
    conditions.extend(of_the_platform(app, settings, unwell).await?);
    settle(app, conditions).await
}

/// Something that is the case now.
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) subject: String,
    pub(super) cause: String,
    pub(super) said: String,
    pub(super) many: i64,
    pub(super) threshold: i64,
}

impl Condition {
    pub(super) fn of(kind: &'static str, subject: &str, said: String) -> Condition {
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

/// Renewals that records of the platform's own stand in the way of: one condition a cause, however many they are.
async fn ours_at_risk(app: &App) -> Result<Vec<Condition>, AppError> {
    let causes = alerts::by_cause(&app.store, RENEWAL_AT_RISK).await?;
    let ours = causes.into_iter().filter(|(cause, ..)| Cause::class_of(cause) == Class::Platform);
    let condition = |(cause, many, _): (String, i64, i64)| {
        let renewals = if many == 1 { "1 renewal".to_owned() } else { format!("{many} renewals") };
        let said = format!("{renewals} will fail for one cause. {}", Cause::sentence(&cause));
        Condition { many, cause: cause.clone(), ..Condition::of(AT_RISK, &cause, said) }
    };
    Ok(ours.map(condition).collect())
}

async fn of_the_platform(app: &App, settings: &AlertSettings, unwell: &Unwell) -> Result<Vec<Condition>, AppError> {
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
    out.extend(odd_issuers(app, now).await?);
    let silent = loops::silent(app, settings).await?;
    out.extend(silent.into_iter().map(|(name, said)| Condition::of(loops::SILENT, name, said)));
    out.extend(ours_at_risk(app).await?);
    out.extend(of_places(app).await?);
    out.extend(of_mail(app, now).await?);
    out.extend(lasting::conditions(app, now).await?);
    Ok(out)
}

/// Issuers that answer well and do not give what is needed: one condition for each, however many names meet it.
async fn odd_issuers(app: &App, now: Moment) -> Result<Vec<Condition>, AppError> {
    let condition = |(issuer, oddity, said): (String, Oddity, String)| match oddity {
        Oddity::ChallengeTypeMissing => {
            let said = format!(
                "issuer {issuer} does not offer http-01, the one type of challenge that is answered here: it issues nothing to \
                 us until it does, or names go to another issuer ({said})"
            );
            Condition { cause: format!("ca/{issuer}"), ..Condition::of(oddity.as_str(), &issuer, said) }
        }
        Oddity::ClockDiffers => {
            let said = format!(
                "our clock and that of issuer {issuer} differ, so that certificates wait to be served: set the clock right of the \
                 database, or of this host ({said})"
            );
            Condition::of(oddity.as_str(), &issuer, said)
        }
    };
    Ok(issuer_health::oddities(&app.store, now).await?.into_iter().map(condition).collect())
}

/// Places that nothing is sent to any more, or cannot be sent to: one condition a cause, however many they are.
async fn of_places(app: &App) -> Result<Vec<Condition>, AppError> {
    let mut out = Vec::new();
    let counted = |many: i64| if many == 1 { "1 webhook".to_owned() } else { format!("{many} webhooks") };
    for off in webhooks::switched_off(&app.store, NAMED).await? {
        let said = match off.why.as_str() {
            "gone" => "said that it is gone (410)",
            _ => "failed for days",
        };
        let said = format!(
            "{} {said}, and nothing is sent there until it is enabled again: {}",
            counted(off.many),
            named(&off.some, off.many)
        );
        out.push(Condition { many: off.many, ..Condition::of("webhook_disabled", &off.why, said) });
    }
    if let Some(faulty) = webhooks::faulty(&app.store, NAMED).await? {
        let said = format!(
            "{} cannot be sent to for a reason of ours ({}): {}",
            counted(faulty.many),
            faulty.why,
            named(&faulty.some, faulty.many)
        );
        out.push(Condition { many: faulty.many, ..Condition::of("webhook_unusable", "webhooks", said) });
    }
    Ok(out)
}

pub(super) fn named(some: &[String], many: i64) -> String {
    let more = many - i64::try_from(some.len()).unwrap_or(0);
    if more > 0 { format!("{} and {more} more", some.join(", ")) } else { some.join(", ") }
}

/// Mail that waits for its server, and mail that was given up for good: other channels tell of both.
async fn of_mail(app: &App, now: Moment) -> Result<Vec<Condition>, AppError> {
    let (mut out, minutes) = (Vec::new(), |since: Moment| now.since(since).as_secs() / 60);
    if let Some(since) = mail_items::oldest_due(&app.store, now).await?
        && now.since(since) >= MAIL_LATE
    {
        let said = format!("mail has not been taken by its server for {} minutes", minutes(since));
        out.push(Condition::of("mail_late", "mail", said));
    }
    let lost = mail_items::given_up_since(&app.store, now - MAIL_LOST).await?;
    if lost > 0 {
        let said = format!(
            "{lost} things that were to be written by mail were given up within a day: the server refused the addressee, or put it off for days"
        );
        out.push(Condition { many: lost, ..Condition::of("mail_given_up", "mail", said) });
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
                if tx.execute(alerts::resolve(&alert.id, "over", &event, now)).await? == 1 {
                    resolved += 1;
                    let detail = json!({ "alert": alert.id, "kind": alert.kind, "subject": alert.subject });
                    let told = news(ALERT_RESOLVED, format!("over: {}", alert.said), detail);
                    tx.execute(alerts::event(&event, None, &told, now)).await?;
                    tx.execute(alerts::tells(&event, alert, false, None)).await?;
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
        topic: alerts::topic(c.kind, &c.subject, None),
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
    tx.execute(alerts::tells(&event, &alert, true, None)).await?;
    Ok(true)
}

async fn grow(app: &App, tx: &mut Tx, alert: &AlertRow, c: &Condition, now: Moment) -> Result<(), AppError> {
    let worse = level::grown(alert.told_many, c.many) || c.threshold < alert.told_threshold;
    if worse || lasting::is_due_again(tx, alert, now).await? {
        let event = mint!(app.env, EventId);
        if tx.execute(alerts::tell_again(alert, c.many, c.threshold, &c.said, &event)).await? == 1 {
            let told = news(ALERT_RAISED, c.said.clone(), detail(&alert.id, c));
            tx.execute(alerts::event(&event, None, &told, now)).await?;
            tx.execute(alerts::tells(&event, alert, true, None)).await?;
        }
        return Ok(());
    }
    tx.execute(alerts::count(&alert.id, c.many, &c.said)).await?;
    if level::step(true, Some(alert.clear_since), now) == Step::Stay {
        tx.execute(alerts::clear(&alert.id, None)).await?;
    }
    Ok(())
}
