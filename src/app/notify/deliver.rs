//! Webhooks: hands out the stream, and sends what is due, in order for each subject.

use std::net::IpAddr;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::json;

use super::{Notifier, payload};
use crate::app::{App, AppError, ask, webhooks as places};
use crate::mint;
use crate::model::alert::kinds::WEBHOOK_DISABLED;
use crate::model::hook_url::{HookHost, HookUrl};
use crate::model::hostname::Hostname;
use crate::model::id::{EventId, WebhookId};
use crate::model::look::Kind;
use crate::model::moment::Moment;
use crate::model::outcome::NewEvent;
use crate::model::retries::{self, OUT_OF_ORDER};
use crate::notify::webhook;
use crate::reach::hook::{HookReply, HookRequest};
use crate::store::alerts::{self, Tells};
use crate::store::deliveries::{self, DeliveryRow, Tried};
use crate::store::views;
use crate::store::webhooks::{self, WebhookRow};
use crate::telemetry::Chain;

/// Events handed out in one transaction.
const BATCH: i64 = 500;
/// How long a try is nobody else's: more than it can take.
const LEASE: Duration = Duration::from_secs(60);
/// What is gathered before a first message is written.
const GATHER: Duration = Duration::from_secs(30);
/// At one place at the same time.
const EACH: i64 = 8;
/// Places asked at the same time.
const PLACES: i64 = 32;
/// Rounds over all places before something else has its turn.
const PASSES: usize = 200;
/// The longest that a whole place is left alone because it asked for it.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);
/// What is kept of an error.
const SAID: usize = 200;

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Events handed out.
    pub handed_out: u64,
    /// Tries made.
    pub tried: usize,
    /// Of those, taken by the receiver.
    pub delivered: usize,
    /// Messages that a mail server took.
    pub mailed: usize,
}

/// How a try ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Nothing,
    Tried,
    Delivered,
}

impl Notifier {
    /// Hands out what is new and sends everything that is due, as long as something is taken.
    pub async fn round(&self) -> Result<Round, AppError> {
        let mut round = Round::default();
        for _ in 0..PASSES {
            let taken = self.pass(&mut round).await?;
            if taken == 0 {
                break;
            }
        }
        round.mailed = self.write_all().await?;
        Ok(round)
    }

    /// Asks every place that something is due for; how much was taken.
    async fn pass(&self, round: &mut Round) -> Result<usize, AppError> {
        round.handed_out += self.hand_out().await?;
        let before = round.delivered;
        let mut after = String::new();
        loop {
            let page = deliveries::places_due(&self.app.store, self.app.env.now(), &after, PLACES).await?;
            let Some((last, _)) = page.last() else { return Ok(round.delivered - before) };
            after = last.to_string();
            let mut tries = FuturesUnordered::new();
            for (place, failures) in page {
                let each = if failures > 0 { 1 } else { EACH };
                for (event, attempts) in deliveries::firsts_due(&self.app.store, &place, self.app.env.now(), each).await? {
                    tries.push(self.one(place.clone(), event, attempts));
                }
            }
            while let Some(end) = tries.next().await {
                match end? {
                    End::Nothing => {}
                    End::Tried => round.tried += 1,
                    End::Delivered => (round.tried, round.delivered) = (round.tried + 1, round.delivered + 1),
                }
            }
        }
    }

    async fn hand_out(&self) -> Result<u64, AppError> {
        let mut sum = 0;
        while deliveries::something_new(&self.app.store).await? {
            let now = self.app.env.now();
            let mut tx = self.app.store.begin().await?;
            let mail = self.mailer.is_some();
            let many = deliveries::hand_out(&mut tx, &self.settings.operators, mail, now, now + GATHER, BATCH).await?;
            if many == 0 {
                break;
            }
            self.app.boundary.cross("before handed out").await;
            tx.commit().await?;
            self.app.boundary.cross("handed out").await;
            sum += many;
        }
        Ok(sum)
    }

    /// One try.
    async fn one(&self, place: WebhookId, event: EventId, attempts: i64) -> Result<End, AppError> {
        let (app, now) = (&self.app, self.app.env.now());
        let mut tx = app.store.begin().await?;
        if tx.execute(deliveries::take(&place, &event, attempts, now, now + LEASE)).await? != 1 {
            return Ok(End::Nothing);
        }
        let Some((row, delivery)) = deliveries::taken(&mut tx, &place, &event).await? else { return Ok(End::Nothing) };
        let tried = Tried { endpoint: &place, event: &event, attempt: delivery.attempts, status: None, said: None };
        // An alert that is over by now is not told, nor is the end of one that was not.
        let late = alerts::told_by(&mut tx, &event).await? == Tells::Over
            || deliveries::beginning_was_dropped(&mut tx, &place, &event).await?;
        if late {
            tx.execute(deliveries::ended(&tried, "dropped", now)).await?;
            tx.commit().await?;
            return Ok(End::Nothing);
        }
        let Some((told, hostname)) = views::event_to_tell(&mut tx, &event).await? else { return Ok(End::Nothing) };
        tx.commit().await?;
        app.boundary.cross("delivery taken").await;
        let body = payload::body(told, hostname);
        let headers = webhook::headers(&places::secrets(app, &row, now)?, event.as_str(), now, &body);
        let answer = self.send(&row, HookRequest { headers, body }).await;
        app.boundary.cross("delivery sent").await;
        self.ended(&row, &delivery, answer).await
    }

    async fn send(&self, row: &WebhookRow, request: HookRequest) -> Result<HookReply, String> {
        // The rules may have become stricter since it was added.
        let hook = HookUrl::read(&row.url, &self.settings.rules).map_err(|e| e.to_string())?;
        let addresses = match &hook.host {
            HookHost::Address(address) => vec![*address],
            HookHost::Name(name) => addresses(&self.app, name).await,
        };
        if addresses.is_empty() {
            return Err(format!("{} has no address", hook.authority()));
        }
        self.hooks.post(&hook, &addresses, &request).await.map_err(|e| Chain(&e).to_string())
    }

    async fn ended(
        &self,
        row: &WebhookRow,
        delivery: &DeliveryRow,
        answer: Result<HookReply, String>,
    ) -> Result<End, AppError> {
        let (app, now) = (&self.app, self.app.env.now());
        let (status, asked, said) = match &answer {
            Ok(reply) => {
                (Some(reply.status), reply.retry_after, (!(200..300).contains(&reply.status)).then(|| worded(reply.status)))
            }
            Err(said) => (None, None, Some(said.chars().take(SAID).collect())),
        };
        let tried = Tried {
            endpoint: &row.id,
            event: &delivery.event_id,
            attempt: delivery.attempts,
            status,
            said: said.as_deref(),
        };
        let mut tx = app.store.begin().await?;
        if said.is_none() {
            // Who came late, after its lease, finds that another one wrote; the place took it all the same.
            tx.execute(deliveries::ended(&tried, "delivered", now)).await?;
            tx.execute(webhooks::took(&row.id)).await?;
            if row.failures >= OUT_OF_ORDER {
                tx.execute(webhooks::due(&row.id, now)).await?;
            }
            app.boundary.cross("before delivery told").await;
            tx.commit().await?;
            app.meters.delivered("webhook", "delivered");
            return Ok(End::Delivered);
        }
        // The place is out of order, or it will not have this one.
        let whole = retries::is_out_of_order(status) || deliveries::others_fail(&mut tx, row, &delivery.event_id).await?;
        let pause = retries::pause_after(row.failures + 1).max(asked.unwrap_or_default().min(LONGEST_ASKED));
        let why = match status {
            Some(410) => Some("gone"),
            _ if whole && row.failing_since.is_some_and(|since| now.since(since) >= self.settings.disable_after) => {
                Some("failing")
            }
            _ => None,
        };
        let stmt = match retries::next_try(delivery.attempts, asked, now) {
            // Nothing is given up for a place that takes nothing: it waits until that is back, or is switched off.
            _ if whole || why.is_some() => deliveries::again(&tried, now + pause),
            Some(at) => deliveries::again(&tried, at),
            None => deliveries::ended(&tried, "given_up", now),
        };
        tx.execute(stmt).await?;
        tx.execute(webhooks::failed(&row.id, now + pause, now)).await?;
        if let Some(why) = why {
            self.switch_off(&mut tx, row, why, now).await?;
        }
        app.boundary.cross("before delivery told").await;
        tx.commit().await?;
        app.meters.delivered("webhook", "failed");
        tracing::info!(webhook.id = %row.id, event.id = %delivery.event_id, attempt = delivery.attempts, said = said.as_deref(), "a webhook was not taken");
        Ok(End::Tried)
    }

    async fn switch_off(
        &self,
        tx: &mut crate::store::Tx,
        row: &WebhookRow,
        why: &'static str,
        now: Moment,
    ) -> Result<(), AppError> {
        if tx.execute(webhooks::disable(&row.id, why, now)).await? != 1 {
            return Ok(());
        }
        let said = match why {
            "gone" => "the receiver said that it is gone (410); nothing is sent to it any more",
            _ => "the receiver failed for days; nothing is sent to it until it is enabled again",
        };
        let told = NewEvent {
            kind: WEBHOOK_DISABLED,
            actor: "nameplate".to_owned(),
            cause: said.to_owned(),
            detail: json!({ "webhook": row.id, "url": row.url, "why": why }),
        };
        tx.execute(alerts::event(&mint!(self.app.env, EventId), row.tenant_id.as_ref(), &told, now)).await?;
        let bell = std::sync::Arc::clone(&self.app.bells.relay);
        tx.after_commit(move || bell.notify_one());
        tracing::warn!(webhook.id = %row.id, why, "a webhook was switched off");
        Ok(())
    }
}

fn worded(status: u16) -> String {
    match status {
        300..=399 => format!("it answered {status}; redirects are not followed"),
        _ => format!("it answered {status}"),
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
