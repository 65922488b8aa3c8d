//! Renewals: when a certificate is followed by the next one, and by what right.
//!
//! The CA says when it would like that (ARI, RFC 9773): a window, of which one moment is drawn and kept for as long as the
//! window stays the same ([`heard`]). Where it says nothing, or nothing that can be meant, the certificate's own life decides
//! ([`own_moment`]). A certificate is renewed beside the one in use, which is served until every edge has proven the new one.
//!
//! What always holds: asking the CA can bring a renewal forward to a bounded extent and put it off to a bounded extent, never
//! past the last tenth of the life; however often it changes its mind, one certificate is renewed once. All pure: the draw and
//! the moment are passed in. How to get it wrong: draw anew with each answer, or believe a window without bounds.

mod due;
mod schedule;
mod window;
mod words;

#[cfg(test)]
mod tests;

pub use due::{Claims, Refused, Renewal};
pub use schedule::{Advice, Schedule, ask_again_in, first, heard, unheard};
pub use window::{Validity, Window, is_meant, latest, own_moment};
pub use words::{Told, at_risk, planned};
