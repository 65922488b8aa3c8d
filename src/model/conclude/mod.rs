//! What follows from what was seen or done: each function takes the situation and one result and gives the outcome to record.
//!
//! The counterpart of [`plan`](super::plan): `plan` says what to find out or do, a function here says what it means. All pure;
//! whoever calls them drew the ids and read the clock. How to get it wrong: decide here by anything but the arguments, or move
//! a claim without [`Claim::after`](super::claim::Claim::after).

mod ca;
mod change;
mod holding;
mod look;
mod preflight;
mod remove;
mod rollout;
mod successor;
mod trouble;
mod undo;

#[cfg(test)]
mod tests;

pub use ca::{
    AuthorizationSeen, CaStatus, Challenge, announced, answered, authorization, chain, finalized, order_status, placed,
};
pub use change::change;
pub use holding::{Former, Presence};
pub use look::{Looked, look};
pub use preflight::preflight;
pub use remove::{remembered_elsewhere, remembered_gone, remove};
pub use rollout::{FRESH_EDGE, Rollout, certificate_rollout, challenge_rollout, public_name, token_fetched};
pub use trouble::{Limited, Trouble, Verdict as CaVerdict, trouble};
pub use undo::{RefusedForce, RefusedUndo, force_release, may_undo, nobody, undo};

use super::domain::Effect;
use super::outcome::Outcome;
use super::plan::Observe;

/// What a conclusion leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Record this.
    Record(Box<Outcome>),
    /// Look at one more thing first.
    Observe(Observe),
    /// Go on to this effect.
    Act(Effect),
}

impl From<Outcome> for Conclusion {
    fn from(o: Outcome) -> Self {
        Conclusion::Record(Box::new(o))
    }
}

/// Ten drawn bytes for a new id.
pub type Draw<'a> = &'a mut (dyn FnMut() -> [u8; 10] + Send);
