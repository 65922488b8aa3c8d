//! One try of one delivery: taken by a guard, judged right before it is sent, its outcome written under the number of the try.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::json;

use super::words::Failure;
use super::{Notifier, payload};
use crate::app::{App, AppError, ask, webhooks as places};
use crate::mint;
use crate::model::alert::kinds::{self, WEBHOOK_DISABLED};
use crate::model::alert::telling::{Listener, Says, worth_telling};
use crate::model::hook_url::{HookHost, HookUrl};
use crate::model::hostname::Hostname;
use crate::model::id::{EventId, WebhookId};
use crate::model::look::Kind;
use crate::model::moment::Moment;
use crate::model::outcome::NewEvent;
use crate::model::retries::{self, OUT_OF_ORDER};
use crate::notify::webhook;
use crate::reach::hook::HookRequest;
use crate::store::deliveries::{self, DeliveryRow, Tried};
use crate::store::telling::{self, Telling};
use crate::store::webhooks::{self, WebhookRow};
use crate::store::{StoreResult, Tx, alerts, views};
use crate::telemetry::Chain;

/// How long a try is nobody else's: more than it can take.
const LEASE: Duration = Duration::from_secs(90);
/// The longest that a whole place is left alone because it asked for it.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);
/// How long a place is left alone that cannot be sent to for a reason of ours.
const FAULT: Duration = Duration::from_secs(600);
/// What is kept of an error.
const SAID: usize = 200;

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing was to be sent after all.
    Nothing,
    Tried,
    Delivered,
    /// Something went wrong on our side; it is tried again.
    Fault,
}

/// A try that was taken.
struct Taken {
    row: WebhookRow,
    delivery: DeliveryRow,
    telling: Telling,
    /// This try is the first by which the place may hear of the topic.
    first_word: bool,
    body: Vec<u8>,
    now: Moment,
}

impl Notifier {
    /// One try. Whatever goes wrong is its own: nobody else's delivery waits for it.
    pub(super) async fn one(&self, place: &WebhookId, event: &EventId, attempts: i64) -> End {
        let done = match self.take(place, event, attempts).await {
            Ok(Some(taken)) => self.send_taken(taken).await,
            Ok(None) => Ok(End::Nothing),
            Err(error) => Err(error),
        };
        match done {
            Ok(end) => end,
            Err(error) => {
                tracing::warn!(error = %Chain(&error), webhook.id = %place, event.id = %event, "a webhook could not be sent; it is tried again");
                End::Fault
            }
        }
    }

    async fn take(&self, place: &WebhookId, event: &EventId, attempts: i64) -> Result<Option<Taken>, AppError> {
        let (app, now) = (&self.app, self.app.env.now());
        let mut tx = app.store.begin().await?;
        if tx.execute(deliveries::take(place, event, attempts, now, now + LEASE)).await? != 1 {
            return Ok(None);
        }
        let Some((row, delivery)) = deliveries::taken(&mut tx, place, event).await? else {
            tx.commit().await?;
            return Ok(None);
        };
        if !deliveries::concerns(&mut tx, row.tenant_id.as_ref(), &delivery.kind).await? {
            let said = Some("its tenant is gone");
            let tried = Tried { endpoint: place, event, attempt: delivery.attempts, status: None, said };
            tx.execute(deliveries::ended(&tried, "dropped", now)).await?;
            tx.execute(webhooks::rested(place)).await?;
            tx.commit().await?;
            return Ok(None);
        }
        let mut telling = telling::of(&mut tx, event, &delivery.kind).await?;
        let told =
            matches!(telling.says, Says::Ends { .. }) && telling::is_told(&mut tx, place.as_str(), &telling.topic).await?;
        let listener = Listener { told, hears_beginnings: kinds::hears_beginning_of(&row.kinds, &delivery.kind) };
        if !worth_telling(telling.says, listener) {
            if !delivery.asked {
                let tried = Tried { endpoint: place, event, attempt: delivery.attempts, status: None, said: None };
                tx.execute(deliveries::ended(&tried, "dropped", now)).await?;
                tx.execute(webhooks::rested(place)).await?;
                tx.commit().await?;
                return Ok(None);
            }
            // Somebody wants to see it again: that changes nothing of what the place was told.
            telling.says = Says::Else;
        }
        let first_word = matches!(telling.says, Says::Begins { .. })
            && tx.execute(telling::about_to(place.as_str(), &telling.topic, event, now)).await? == 1;
        let told = views::event_to_tell(&mut tx, event).await?;
        tx.commit().await?;
        let Some((told, hostname)) = told else { return Ok(None) };
        app.boundary.cross("delivery taken").await;
        Ok(Some(Taken { row, delivery, telling, first_word, body: payload::body(told, hostname), now }))
    }

    async fn send_taken(&self, mut taken: Taken) -> Result<End, AppError> {
        let opened = places::url(&self.app, &taken.row).and_then(|url| {
            let secrets = places::secrets(&self.app, &taken.row, taken.now)?;
            Ok((url, secrets))
        });
        let (url, secrets) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.at_fault(&taken, &error).await,
        };
        let event = taken.delivery.event_id.clone();
        let body = std::mem::take(&mut taken.body);
        let headers = webhook::headers(&secrets, event.as_str(), taken.now, &body);
        let answer = self.send(url.expose_str().unwrap_or_default(), HookRequest { headers, body }).await;
        self.app.boundary.cross("delivery sent").await;
        self.ended(&taken, answer).await
    }

    /// The place cannot be sent to for a reason of ours: it is marked, what waits for it waits, and an alert tells operators.
    async fn at_fault(&self, taken: &Taken, error: &AppError) -> Result<End, AppError> {
        let (app, now) = (&self.app, self.app.env.now());
        let said = "its URL or its secret cannot be opened with the master keys there are";
        tracing::error!(error = %Chain(error), webhook.id = %taken.row.id, "a webhook's secret cannot be opened");
        let (row, delivery) = (&taken.row, &taken.delivery);
        let tried = Tried {
            endpoint: &row.id,
            event: &delivery.event_id,
            attempt: delivery.attempts,
            status: None,
            said: Some(said),
        };
        let mut tx = app.store.begin().await?;
        tx.execute(deliveries::again(&tried, false, now + FAULT)).await?;
        tx.execute(webhooks::at_fault(&row.id, said, now + FAULT)).await?;
        self.not_told(&mut tx, taken).await?;
        tx.commit().await?;
        app.meters.delivered("webhook", "failed");
        Ok(End::Fault)
    }

    async fn send(&self, url: &str, request: HookRequest) -> Result<(u16, Option<Duration>), Failure> {
        // The rules may have become stricter since it was added.
        let hook = HookUrl::read(url, &self.settings.rules).map_err(Failure::Url)?;
        let addresses = match &hook.host {
            HookHost::Address(address) => vec![*address],
            HookHost::Name(name) => addresses(&self.app, name).await,
        };
        if addresses.is_empty() {
            return Err(Failure::NoAddress);
        }
        let reply = self.hooks.post(&hook, &addresses, &request).await.map_err(Failure::Reach)?;
        Ok((reply.status, reply.retry_after))
    }

    /// Writes what became of it.
    async fn ended(&self, taken: &Taken, answer: Result<(u16, Option<Duration>), Failure>) -> Result<End, AppError> {
        let (row, delivery) = (&taken.row, &taken.delivery);
        let (failure, asked) = match answer {
            Ok((status @ 200..=299, _)) => return self.delivered(taken, status).await,
            Ok((status, asked)) => (Failure::Answered(status), asked),
            Err(failure) => (failure, None),
        };
        let (app, now, status) = (&self.app, self.app.env.now(), failure.status());
        if let Failure::Reach(error) = &failure {
            tracing::debug!(webhook.id = %row.id, error = %Chain(error), "a receiver was not reached");
        }
        let said: String = failure.said().chars().take(SAID).collect();
        let tried =
            Tried { endpoint: &row.id, event: &delivery.event_id, attempt: delivery.attempts, status, said: Some(&said) };
        let mut tx = app.store.begin().await?;
        // The place is out of order, or it will not have this one.
        let whole = retries::is_out_of_order(status) || deliveries::others_fail(&mut tx, row, &delivery.event_id).await?;
        let pause = retries::pause_after(row.failures + 1).max(asked.unwrap_or_default().min(LONGEST_ASKED));
        let failing = webhooks::failed(&mut tx, &row.id, status.is_some(), now + pause, now, retries::COUNTED).await?;
        let why = match status {
            Some(410) => Some("gone"),
            Some(_) if whole && failing.refused >= self.settings.disable_after => Some("failing"),
            None if failing.silent >= self.settings.disable_silent_after => Some("failing"),
            _ => None,
        };
        // Only a refusal of this very thing counts towards giving it up; nothing is given up for a place that takes nothing: it
        // waits until that is back, or is switched off.
        let stmt = match retries::next_try(delivery.refusals + 1, asked, now) {
            _ if whole || why.is_some() => deliveries::again(&tried, false, now + pause),
            Some(at) => deliveries::again(&tried, true, at),
            None => deliveries::ended(&tried, "given_up", now),
        };
        tx.execute(stmt).await?;
        if !failure.may_have_arrived() {
            self.not_told(&mut tx, taken).await?;
        }
        if let Some(why) = why {
            self.switch_off(&mut tx, row, why, status.is_some(), now).await?;
        }
        app.boundary.cross("before delivery told").await;
        tx.commit().await?;
        app.meters.delivered("webhook", "failed");
        tracing::info!(webhook.id = %row.id, event.id = %delivery.event_id, attempt = delivery.attempts, said, "a webhook was not taken");
        Ok(End::Tried)
    }

    async fn delivered(&self, taken: &Taken, status: u16) -> Result<End, AppError> {
        let (app, now, row) = (&self.app, self.app.env.now(), &taken.row);
        let (event, attempt) = (&taken.delivery.event_id, taken.delivery.attempts);
        let tried = Tried { endpoint: &row.id, event, attempt, status: Some(status), said: None };
        let mut tx = app.store.begin().await?;
        // Who came late, after its lease, finds that another one wrote; the place took it all the same.
        tx.execute(deliveries::ended(&tried, "delivered", now)).await?;
        let place = row.id.as_str();
        match taken.telling.says {
            Says::Begins { .. } => {
                tx.execute(telling::told(place, &taken.telling.topic, event, now)).await?;
            }
            Says::Ends { .. } => {
                tx.execute(telling::over(place, &taken.telling.topic)).await?;
            }
            Says::Else | Says::Forgotten => {}
        }
        tx.execute(webhooks::took(&row.id, now)).await?;
        if row.failures >= OUT_OF_ORDER {
            tx.execute(webhooks::due(&row.id, now)).await?;
        }
        app.boundary.cross("before delivery told").await;
        tx.commit().await?;
        app.meters.delivered("webhook", "delivered");
        Ok(End::Delivered)
    }

    /// Nothing of it reached the place.
    async fn not_told(&self, tx: &mut Tx, taken: &Taken) -> StoreResult<()> {
        if taken.first_word {
            let was_not = telling::was_not(taken.row.id.as_str(), &taken.telling.topic, &taken.delivery.event_id);
            tx.execute(was_not).await?;
        }
        Ok(())
    }

    async fn switch_off(
        &self,
        tx: &mut Tx,
        row: &WebhookRow,
        why: &'static str,
        answered: bool,
        now: Moment,
    ) -> Result<(), AppError> {
        if tx.execute(webhooks::disable(&row.id, why, now)).await? != 1 {
            return Ok(());
        }
        let said = match (why, answered) {
            ("gone", _) => "the receiver said that it is gone (410); nothing is sent to it any more",
            (_, true) => "the receiver took nothing for days; nothing is sent to it until it is enabled again",
            (_, false) => "the receiver did not answer for weeks; nothing is sent to it until it is enabled again",
        };
        let told = NewEvent {
            kind: WEBHOOK_DISABLED,
            actor: "nameplate".to_owned(),
            cause: said.to_owned(),
            detail: json!({ "webhook": row.id, "host": row.host, "fingerprint": row.fingerprint, "why": why }),
        };
        tx.execute(alerts::event(&mint!(self.app.env, EventId), row.tenant_id.as_ref(), &told, now)).await?;
        let bell = std::sync::Arc::clone(&self.app.bells.relay);
        tx.after_commit(move || bell.notify_one());
        tracing::warn!(webhook.id = %row.id, why, "a webhook was switched off");
        Ok(())
    }
}

/// What the name leads to now, each address once.
async fn addresses(app: &App, name: &Hostname) -> Vec<IpAddr> {
    let seen = app.look.look(&ask::addresses(app, name)).await;
    let of_name = |kind| matches!(kind, Kind::A | Kind::Aaaa);
    let answers = seen.observations.iter().filter(|o| o.probe.name == name.as_str() && of_name(o.probe.kind));
    let mut all: Vec<IpAddr> = answers.flat_map(|o| o.answer.addresses()).collect();
    all.sort();
    all.dedup();
    all
}
