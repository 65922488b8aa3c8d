//! The relay: gives committed outbox rows and events their numbers.
//!
//! A sequence of the database commits out of order: a reader that has seen 8 could later meet 7. So rows are written without
//! a number, and one relay at a time, holding the lease row's lock, numbers what is committed. A process killed in the middle
//! leaves no trace; several processes take turns on the lock.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::identity::{Feed, FeedError};
use crate::store::feed::{self, Numbered};

/// How long an unheard ring waits at most.
const TICK: Duration = Duration::from_millis(500);
/// What is written within this after a turn is numbered by the next one together: under load one turn serves many.
const BREATH: Duration = Duration::from_millis(5);
/// How long to wait after the store said no.
const AFTER_ERROR: Duration = Duration::from_secs(2);
/// Rows of each kind a transaction numbers.
const BATCH: u16 = 1_000;

impl Feed {
    /// Numbers what waits, all of it.
    pub async fn number(&self) -> Result<Numbered, FeedError> {
        let owner = format!("pid {}", std::process::id());
        let mut sum = Numbered::default();
        while feed::waits_for_a_number(self.store()).await? {
            let mut tx = self.store().begin().await?;
            let turn = feed::number(&mut tx, &owner, self.env().now(), i64::from(BATCH)).await?;
            tx.commit().await?;
            self.bell().numbered(turn.last_seq);
            sum.changes += turn.changes;
            sum.events += turn.events;
            sum.last_seq = turn.last_seq;
            // Less than a whole batch: that was all.
            if turn.changes.max(turn.events) < u64::from(BATCH) {
                break;
            }
        }
        Ok(sum)
    }

    /// Numbers whenever the bell rings, and on a tick for what other processes wrote, until told to stop. Says each time that it
    /// did, whether there was something or not.
    pub async fn run_relay(&self, stop: CancellationToken, did: impl Fn() + Send + Sync) {
        loop {
            let numbered = self.number().await;
            if numbered.is_ok() {
                did();
            }
            let wait = match numbered {
                Ok(Numbered { changes: 0, events: 0, .. }) => TICK,
                Ok(_) => {
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = self.env().sleep(BREATH) => TICK,
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the relay could not number changes; trying again"
                    );
                    AFTER_ERROR
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.bell().rung() => {}
                () = self.env().sleep(wait) => {}
            }
        }
    }
}
