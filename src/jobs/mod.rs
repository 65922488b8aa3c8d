//! What runs by itself: the alarm clock and its workers, the sweep behind it, and the loops of one process.
//!
//! - [`queue::Queue`] is the alarm clock: apalis, on the store's own database. An alarm carries a domain's id and nothing
//!   else; it is set in the transaction that makes it needed and is removed once it rang.
//! - [`hand::HandQueue`] is its twin for tests: alarms ring when the test pops them, and can be lost or doubled.
//! - [`door::Door`] is what an alarm calls: the use case that moves a domain on.
//! - [`sweep::Sweep`] gives a new alarm to every domain that is due and has none, and removes what the queue leaves behind.
//! - [`schedule::Schedule`] runs the loops of a process until it is told to stop, and then lets them finish.
//! - [`pulses`] writes down which of them went round and did their work, so that one that hangs or always fails is missed.
//!
//! What always holds: the `domains` row is the truth and the queue may lose, double or delay any alarm. Whoever is rung
//! looks at the row, and does nothing when nothing is due. Backoff, retries and giving up live in the row; a handler never
//! tells the queue that it failed. May import `app` and everything below it; apalis has its home in `queue` alone.
//! How to get it wrong: put a second fact into an alarm, read an alarm's state as a domain's, or count on one ringing.

pub mod door;
pub mod hand;
pub mod pulses;
pub mod queue;
pub mod schedule;
pub mod sweep;

use async_trait::async_trait;

use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::store::{StoreResult, Wake};

/// The one door, as the workers see it.
#[async_trait]
pub trait Step: Send + Sync + 'static {
    /// Moves a domain on by what is due now. Errors end here, in a log; the row says when to look again.
    async fn advance(&self, id: &DomainId);
}

/// An alarm clock that the sweep looks after.
#[async_trait]
pub trait Alarms: Wake {
    /// How many alarms are set and have not rung; the sweep adds no more than there is room for.
    async fn waiting(&self) -> StoreResult<u64>;

    /// Removes rows that nobody needs any more; how many.
    async fn tidy(&self, now: Moment) -> StoreResult<u64>;
}
