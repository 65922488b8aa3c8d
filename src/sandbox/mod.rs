//! The whole world on loopback: what a newcomer and every test use in place of the internet.
//!
//! **Owns** the stand-ins for the parties Nameplate talks to: a certificate authority ([`ca`]) and, as a referee that shares
//! none of our mistakes, Debian's `pebble` as a child process ([`pebble`]). **May import** everything below it and, as their
//! second home, hickory and axum. **Always holds:** real packets, real signatures, real chains, on loopback and on listeners
//! handed in; time and chance from `env`, so that a seed repeats a run. **To fake it:** there is nothing to fake, these are the
//! fakes; scripted parts go in through the seams ([`ca::Validation`], [`ca::Faults`]). **To get it wrong:** be kinder
//! than the real party, and the product learns habits that the real one punishes.

pub mod ca;
pub mod pebble;

pub mod dns;
