//! Webhooks: hands out the stream, and keeps as much under way as there is room for. Whoever is slow, and whoever has much to be told,
//! holds up nobody else: as soon as one try ends, its room goes to the place that waits longest, and every second all are looked at.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Notifier;
use super::pace::{Flights, Line};
use super::send::End;
use crate::app::AppError;
use crate::model::id::WebhookId;
use crate::store::deliveries::{self, First, Operators};
use crate::telemetry::Chain;

/// Events handed out in one transaction.
const BATCH: i64 = 500;
/// Batches handed out before what is due is looked at.
const BATCHES: usize = 8;
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

/// How a try ended: to which place it was, and how long it took.
type Landed = (WebhookId, End, Duration);

/// What is under way and who is next.
#[derive(Default)]
struct Pump {
    round: Round,
    /// Each is a task of its own: what one of them holds of the store must not wait for whoever looks for the next. Dropped, they
    /// end where they are.
    flying: JoinSet<Landed>,
    flights: Flights,
    line: Line,
}

impl Notifier {
    /// Hands out what is new and sends everything that is due, as long as something is; then writes.
    pub async fn round(&self) -> Result<Round, AppError> {
        let mut round = self.pump(&CancellationToken::new(), true, &|| ()).await?;
        round.mailed = self.write_round().await?;
        Ok(round)
    }

    /// Sends to webhooks until it is told to stop, and finishes then what is under way. Says each time that it looked for what is due.
    pub async fn run_webhooks(&self, stop: CancellationToken, looked: impl Fn() + Send + Sync) {
        if let Err(error) = self.pump(&stop, false, &looked).await {
            tracing::warn!(error = %Chain(&error), "what is to be told could not be sent; trying again");
        }
    }

    /// `once`: ends when nothing is due any more, or nothing that is due can be taken.
    async fn pump(&self, stop: &CancellationToken, once: bool, looked: &(dyn Fn() + Sync)) -> Result<Round, AppError> {
        let mut pump = Pump::default();
        loop {
            let (before, mut more) = (pump.round, false);
            if !stop.is_cancelled() {
                match self.look(&mut pump).await {
                    Ok(left) => {
                        more = left;
                        looked();
                    }
                    Err(error) if once => return Err(error),
                    Err(error) => {
                        tracing::warn!(error = %Chain(&error), "what is to be told could not be looked for; trying again");
                    }
                }
            }
            if more {
                // What is new is handed out between tries that end, and keeps none of them waiting.
                while let Some(Ok(landed)) = pump.flying.try_join_next() {
                    self.landed(landed, &mut pump, stop).await;
                }
                continue;
            }
            let ends = || once || stop.is_cancelled();
            if pump.flying.is_empty() && ends() {
                return Ok(pump.round);
            }
            let pause = self.app.env.sleep(LOOK);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    biased;
                    Some(Ok(landed)) = pump.flying.join_next(), if !pump.flying.is_empty() => {
                        self.landed(landed, &mut pump, stop).await;
                        if pump.flying.is_empty() && ends() {
                            break;
                        }
                    }
                    () = stop.cancelled(), if !stop.is_cancelled() => break,
                    () = &mut pause => break,
                }
            }
            if once && pump.round.faults > before.faults && pump.round.ended == before.ended {
                return Ok(pump.round);
            }
        }
    }

    /// A try ended: what it left room for goes to whoever waits longest, and only then to the same place again.
    async fn landed(&self, (place, end, took): Landed, pump: &mut Pump, stop: &CancellationToken) {
        pump.round.count(end);
        pump.flights.end(&place, took, matches!(end, End::Delivered | End::Nothing));
        if stop.is_cancelled() {
            return;
        }
        while let Some(next) = pump.line.next(&pump.flights) {
            self.fill_or_say(&next, pump).await;
        }
        // What went wrong on our side is looked at again with everything else, not at once.
        if end == End::Fault {
            return;
        }
        if pump.flights.is_crowded_out(&place) {
            pump.line.join(&place);
        } else {
            self.fill_or_say(&place, pump).await;
        }
    }

    async fn fill_or_say(&self, place: &WebhookId, pump: &mut Pump) {
        if let Err(error) = self.fill(place, pump).await {
            tracing::warn!(error = %Chain(&error), webhook.id = %place, "what waits for a webhook could not be read");
        }
    }

    /// Hands out a part of what is new and fills what room there is; whether there is more to be handed out.
    async fn look(&self, pump: &mut Pump) -> Result<bool, AppError> {
        let more = self.hand_out(&mut pump.round).await?;
        self.fill_all(pump).await?;
        Ok(more)
    }

    /// Looks at all places from where the last look ended, each once, until there is neither room nor anybody to be remembered.
    async fn fill_all(&self, pump: &mut Pump) -> Result<(), AppError> {
        while let Some(next) = pump.line.next(&pump.flights) {
            self.fill(&next, pump).await?;
        }
        let (began, mut left_out) = (pump.line.after.clone(), None);
        let mut round = began.is_empty();
        while !(pump.flights.full() && pump.line.is_full()) {
            let mut before = pump.line.after.clone();
            let page = deliveries::places_due(&self.app.store, self.app.env.now(), &before, PLACES).await?;
            match page.last() {
                Some(last) => pump.line.after = last.to_string(),
                None => pump.line.after.clear(),
            }
            if page.is_empty() {
                if round {
                    break;
                }
                round = true;
            }
            for place in page {
                if !pump.flights.is_crowded_out(&place) {
                    self.fill(&place, pump).await?;
                } else if !pump.line.join(&place) {
                    left_out.get_or_insert(before);
                }
                before = place.to_string();
            }
            if round && !began.is_empty() && pump.line.after > began {
                break;
            }
        }
        if let Some(before) = left_out {
            pump.line.after = before;
        }
        Ok(())
    }

    /// Sends to one place what there is room for.
    async fn fill(&self, place: &WebhookId, pump: &mut Pump) -> Result<(), AppError> {
        let room = pump.flights.room(place);
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
            pump.flights.begin(place);
            pump.flying.spawn(self.clone().timed(place.clone(), first));
        }
        Ok(())
    }

    async fn timed(self, place: WebhookId, first: First) -> Landed {
        let began = self.app.env.now();
        let one = AssertUnwindSafe(self.one(&place, &first.event, first.attempts)).catch_unwind().await;
        let end = one.unwrap_or_else(|_| {
            tracing::error!(webhook.id = %place, event.id = %first.event, "sending a webhook panicked; it is tried again");
            End::Fault
        });
        let took = self.app.env.now().since(began);
        (place, end, took)
    }

    /// Whether there is more.
    async fn hand_out(&self, round: &mut Round) -> Result<bool, AppError> {
        for _ in 0..BATCHES {
            if !deliveries::something_new(&self.app.store).await? {
                return Ok(false);
            }
            let now = self.app.env.now();
            let mut tx = self.app.store.begin().await?;
            let mail = self.mailer.is_some();
            let operators = Operators { addresses: &self.settings.operators, unwanted: &self.settings.unwanted };
            let many = deliveries::hand_out(&mut tx, operators, mail, now, now + GATHER, BATCH).await?;
            if many == 0 {
                return Ok(false);
            }
            self.app.boundary.cross("before handed out").await;
            tx.commit().await?;
            self.app.boundary.cross("handed out").await;
            round.handed_out += many;
        }
        Ok(true)
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
