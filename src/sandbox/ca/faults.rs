//! The seam through which a test makes the CA misbehave.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

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
        Fault::Answer(Box::new(problem.into_response()))
    }
}

/// Asked at every request: once before the CA acts, once after it acted.
pub trait Faults: Send + Sync + 'static {
    /// An answer or a drop here means that the CA does not act (and the nonce stays unused).
    fn before(&self, _call: &Call) -> Fault {
        Fault::None
    }

    /// An answer or a drop here hides what the CA did; `status` is that of its own answer.
    fn after(&self, _call: &Call, _status: StatusCode) -> Fault {
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
    fn after(&self, call: &Call, _: StatusCode) -> Fault {
        let take = |left: u32| left.checked_sub(1);
        if call.endpoint == self.endpoint && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
            return Fault::Drop;
        }
        Fault::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::manual::Hand;

    fn refused(faults: &impl Faults, endpoint: Endpoint, of: usize) -> usize {
        let call = Call { endpoint, path: String::new() };
        (0..of).filter(|_| matches!(faults.before(&call), Fault::Answer(_))).count()
    }

    #[test]
    fn about_the_share_asked_for_is_refused_and_only_where_there_are_nonces() {
        let faults = RefuseNonces { share: 13, env: Hand::new(Default::default(), 1).env() };
        let seen = refused(&faults, Endpoint::NewOrder, 2560);
        assert!((80..180).contains(&seen), "{seen} of 2560 refused, expected about 130");
        assert_eq!(refused(&faults, Endpoint::NewNonce, 500) + refused(&faults, Endpoint::Directory, 500), 0);
    }

    #[test]
    fn answers_are_dropped_as_often_as_asked() {
        let faults = DropAnswer::of(Endpoint::Finalize, 2);
        let after = |endpoint| faults.after(&Call { endpoint, path: String::new() }, StatusCode::OK);
        assert!(matches!(after(Endpoint::Order), Fault::None));
        let drops = (0..4).filter(|_| matches!(after(Endpoint::Finalize), Fault::Drop)).count();
        assert_eq!(drops, 2);
    }
}
