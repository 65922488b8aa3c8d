//! The seam through which a test makes the CA misbehave.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::response::Response;

use super::entry::Endpoint;
use super::problem::{Kind, Problem};
use crate::env::Env;

/// A request as faults see it.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked for.
    pub endpoint: Endpoint,
    /// The path of the URL.
    pub path: String,
}

/// What goes wrong.
#[derive(Debug, Default)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// This goes back instead of the CA's own answer (a fresh nonce is added all the same).
    Answer(Box<Response>),
    /// The answer, or the work, comes later.
    Delay(Duration),
    /// The connection breaks; no byte of an answer goes out.
    Drop,
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Fault::Answer(Box::new(axum::response::IntoResponse::into_response(problem)))
    }
}

/// Asked at every request: once before the CA acts, once after it acted.
pub trait Faults: Send + Sync + 'static {
    /// An answer or a drop here means that the CA does not act (and the nonce stays unused).
    fn before(&self, _call: &Call) -> Fault {
        Fault::None
    }

    /// An answer or a drop here hides what the CA did.
    fn after(&self, _call: &Call) -> Fault {
        Fault::None
    }
}

/// Nothing ever goes wrong.
pub struct Smooth;

impl Faults for Smooth {}

/// Refuses a share of good nonces, as CAs with many front ends do.
pub struct RefuseNonces {
    /// How many of 256.
    pub share: u8,
    /// Where chance comes from.
    pub env: Env,
}

impl Faults for RefuseNonces {
    fn before(&self, call: &Call) -> Fault {
        if call.endpoint.is_signed() && self.env.draw::<1>()[0] < self.share {
            return Problem::new(Kind::BadNonce, "this nonce is refused by the test's wish").into();
        }
        Fault::None
    }
}

/// Breaks the connection after the CA acted, the next few times something is asked.
pub struct DropAnswer {
    endpoint: Endpoint,
    left: AtomicU32,
}

impl DropAnswer {
    /// Hides the next `times` answers of `endpoint`.
    pub fn of(endpoint: Endpoint, times: u32) -> Self {
        DropAnswer { endpoint, left: AtomicU32::new(times) }
    }
}

impl Faults for DropAnswer {
    fn after(&self, call: &Call) -> Fault {
        let take = |left: u32| left.checked_sub(1);
        if call.endpoint == self.endpoint && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            return Fault::Drop;
        }
        Fault::None
    }
}
