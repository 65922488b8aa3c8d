//! The bell between a transaction that wrote to the outbox, the relay that numbers it, and the readers that wait for it.

use std::sync::Arc;

use tokio::sync::{Notify, watch};

/// Use cases ring `written` after a commit that wrote outbox rows or events; a lost ring costs one tick of the relay.
pub(super) struct Bell {
    written: Arc<Notify>,
    numbered: watch::Sender<i64>,
}

impl Bell {
    /// With the bell that use cases ring.
    pub(super) fn new(written: Arc<Notify>) -> Self {
        Bell { written, numbered: watch::Sender::new(0) }
    }

    /// Waits until something was written.
    pub(super) async fn rung(&self) {
        self.written.notified().await;
    }

    /// Says that numbers up to `seq` are out.
    pub(super) fn numbered(&self, seq: i64) {
        self.numbered.send_if_modified(|last| {
            let newer = seq > *last;
            *last = seq.max(*last);
            newer
        });
    }

    /// Hears of numbers.
    pub(super) fn listen(&self) -> watch::Receiver<i64> {
        self.numbered.subscribe()
    }
}
