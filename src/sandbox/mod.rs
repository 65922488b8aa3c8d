//! The whole world on loopback: what a newcomer and every test use in place of the internet.
//!
//! **Owns** the stand-ins for the parties Nameplate talks to: a certificate authority ([`ca`]) and, as a referee that shares
//! none of our mistakes, Debian's `pebble` as a child process ([`pebble`]); DNS ([`dns`]) with the pretend provider's page
//! ([`provider`]), beside which the CA can be told to misbehave ([`misbehave`]); the application behind the edge ([`origin`]); a visitor who trusts the CA's root alone ([`visitor`]). Two
//! of them together are [`outside::Outside`]; with a control plane and an edge beside it they are a [`world::World`], in
//! which [`run`] lets a newcomer play and [`check`] walks the whole way by itself; [`mod@bench`] measures on the same parts. **May import** everything below it and,
//! as their second home, hickory and axum. **Always holds:** real packets, real signatures, real chains, on loopback and on
//! listeners handed in; time and chance from `env`; the control plane and the edge are the real ones, started from a
//! configuration like any other ([`config`]). **To fake it:** there is nothing to fake, these are the fakes; scripted parts
//! go in through the seams ([`ca::Validation`], [`ca::Script`]). **To get it wrong:** be kinder than the real party, and the
//! product learns habits that the real one punishes; or let the walk reach into the store, where a customer cannot.

pub mod api;
pub mod bench;
pub mod ca;
pub mod check;
pub mod config;
pub mod dns;
pub mod home;
pub mod issuer;
pub mod mailbox;
pub mod misbehave;
pub mod origin;
pub mod outside;
pub mod pebble;
pub mod ports;
pub mod provider;
pub mod run;
pub mod visitor;
pub mod walk;
pub mod world;
