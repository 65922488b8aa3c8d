//! A look at DNS as pure data: what to ask ([`Ask`]), and what was seen ([`Seen`]).
//!
//! Nothing here talks to the network. `dns` (or its scripted twin) fills a [`Seen`]; `checks` reads it. A look never fails:
//! a time-out, a refusal, a broken packet are observations like any other, kept with the rcode and the extended error they
//! came with, because the difference between "absent" and "could not look" decides whether a name may ever be released.
//!
//! Names are text in master-file form, lower case, without the trailing dot; the root is the empty text. How to get it wrong:
//! compare a name that did not pass [`name::canonical`], or read [`Answer::records`] without looking at [`Answer::outcome`].

mod ask;
pub mod extended_error;
pub mod name;
mod record;
mod seen;
mod turn;

pub use ask::{Ask, CaaAsk, DelegationAsk, Depth, OwnershipAsk, Platform, RoutingAsk};
pub use record::{Caa, Data, Kind, Rr, Soa, quoted};
pub use seen::{Answer, Observation, Observer, Outcome, Probe, Seen};
pub use turn::{Lane, Turn};
