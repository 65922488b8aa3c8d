//! Webhooks: hands out the stream, and keeps as much under way as there is room for. Whoever is slow holds up nobody else: as soon
//! as one try ends, its place is looked at again, and every second all of them are.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Notifier;
use super::pace::Flights;
use super::send::End;
use crate::app::AppError;
use crate::model::id::WebhookId;
use crate::store::deliveries::{self, First};
use crate::telemetry::Chain;

/// Events handed out in one transaction.
const BATCH: i64 = 500;
/// What is gathered before a first message is written.
const GATHER: Duration = Duration::from_secs(30);
/// Places read at once.
const PLACES: i64 = 100;
/// How often the stream and all places are looked at: other processes write to both.
const LOOK: Duration = Duration::from_secs(1);

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Events handed out.
    pub handed_out: u64,
    /// Tries made.
    pub tried: usize,
    /// Of those, taken by the receiver.
    pub delivered: usize,
    /// Tries that ended in an error of ours.
    pub faults: usize,
    /// All others that ended: tried, or found to be over.
    pub ended: usize,
    /// Messages that a mail server took.
    pub mailed: usize,
}

/// Tries under way: to which place, how each ended, how long it took. Each is a task of its own: what one of them holds of the
/// store must not wait for whoever looks for the next. Dropped, they end where they are.
type Flying = JoinSet<(WebhookId, End, Duration)>;

impl Notifier {
    /// Hands out what is new and sends everything that is due, as long as something is; then writes.
    pub async fn round(&self) -> Result<Round, AppError> {
        let mut round = self.pump(&CancellationToken::new(), true).await?;
        round.mailed = self.write_round().await?;
        Ok(round)
    }

    /// Sends to webhooks until it is told to stop, and finishes then what is under way.
    pub async fn run_webhooks(&self, stop: CancellationToken) {
        if let Err(error) = self.pump(&stop, false).await {
            tracing::warn!(error = %Chain(&error), "what is to be told could not be sent; trying again");
        }
    }

    /// `once`: ends when nothing is due any more, or nothing that is due can be taken.
    async fn pump(&self, stop: &CancellationToken, once: bool) -> Result<Round, AppError> {
        let mut round = Round::default();
        let (mut flying, mut flights) = (Flying::new(), Flights::default());
        loop {
            let before = round;
            if !stop.is_cancelled() {
                match self.look(&mut flying, &mut flights).await {
                    Ok(many) => round.handed_out += many,
                    Err(error) if once => return Err(error),
                    Err(error) => {
                        tracing::warn!(error = %Chain(&error), "what is to be told could not be looked for; trying again");
                    }
                }
            }
            let ends = || once || stop.is_cancelled();
            if flying.is_empty() && ends() {
                return Ok(round);
            }
            let pause = self.app.env.sleep(LOOK);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    biased;
                    Some(Ok((place, end, took))) = flying.join_next(), if !flying.is_empty() => {
                        round.count(end);
                        flights.end(&place, took, matches!(end, End::Delivered | End::Nothing));
                        // What went wrong on our side is looked at again with everything else, not at once.
                        if end != End::Fault
                            && !stop.is_cancelled()
                            && let Err(error) = self.fill(&place, &mut flying, &mut flights).await
                        {
                            tracing::warn!(error = %Chain(&error), webhook.id = %place, "what waits for a webhook could not be read");
                        }
                        if flying.is_empty() && ends() {
                            break;
                        }
                    }
                    () = stop.cancelled(), if !stop.is_cancelled() => break,
                    () = &mut pause => break,
                }
            }
            if once && round.faults > before.faults && round.ended == before.ended {
                return Ok(round);
            }
        }
    }

    async fn look(&self, flying: &mut Flying, flights: &mut Flights) -> Result<u64, AppError> {
        let many = self.hand_out().await?;
        self.fill_all(flying, flights).await?;
        Ok(many)
    }

    async fn fill_all(&self, flying: &mut Flying, flights: &mut Flights) -> Result<(), AppError> {
        let mut after = String::new();
        while !flights.full() {
            let page = deliveries::places_due(&self.app.store, self.app.env.now(), &after, PLACES).await?;
            let Some(last) = page.last() else { break };
            after = last.to_string();
            for place in page {
                self.fill(&place, flying, flights).await?;
            }
        }
        Ok(())
    }

    /// Sends to one place what there is room for.
    async fn fill(&self, place: &WebhookId, flying: &mut Flying, flights: &mut Flights) -> Result<(), AppError> {
        let room = flights.room(place);
        if room == 0 {
            return Ok(());
        }
        let limit = i64::try_from(room).unwrap_or(1);
        let due = deliveries::firsts_due(&self.app.store, place, self.app.env.now(), limit).await?;
        for (n, first) in due.into_iter().enumerate() {
            // Of a place that fails one thing is tried.
            if first.failures > 0 && n > 0 {
                break;
            }
            flights.begin(place);
            flying.spawn(self.clone().timed(place.clone(), first));
        }
        Ok(())
    }

    async fn timed(self, place: WebhookId, first: First) -> (WebhookId, End, Duration) {
        let began = self.app.env.now();
        let one = AssertUnwindSafe(self.one(&place, &first.event, first.attempts)).catch_unwind().await;
        let end = one.unwrap_or_else(|_| {
            tracing::error!(webhook.id = %place, event.id = %first.event, "sending a webhook panicked; it is tried again");
            End::Fault
        });
        let took = self.app.env.now().since(began);
        (place, end, took)
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
}

impl Round {
    fn count(&mut self, end: End) {
        self.tried += usize::from(matches!(end, End::Tried | End::Delivered));
        self.delivered += usize::from(end == End::Delivered);
        self.faults += usize::from(end == End::Fault);
        self.ended += usize::from(end != End::Fault);
    }
}
