//! The CA's bad days: one list of [`Fault`]s, each saying *where* ([`At`]), *when* ([`When`]) and *what* ([`What`]).
//!
//! A [`Script`] is asked at every request and answers with at most one of them: the first in the list whose turn it is. Some
//! happen on the wire ([`wire`]: refusals, pages, silence, broken and spoilt answers), some in the CA's books
//! ([`twist`]: orders that vanish, authorizations that are revoked, certificates for another key). Tests write them in Rust;
//! `nameplate sandbox` reads the same ones as JSON. What happened is kept ([`Script::happened`]), so that a test can
//! say what a run may have cost. Chance comes from the script's seed alone: one seed, one story.
//!
//! How to get it wrong: let a refusal act, or forget that a fresh nonce goes with every answer, refusals too (RFC 8555 §6.5).

mod limits;
mod place;
mod script;
mod what;

pub(super) mod twist;
pub(super) mod wire;

#[cfg(test)]
mod tests;

pub use limits::Limit;
pub use place::{At, When};
pub use script::{Entry, Happened, Script};
pub use twist::{Ended, Flaw, Twist};
pub use what::{Fault, RetryAfter, What};
