//! A certificate authority that speaks ACME (RFC 8555) in this process, over HTTPS on a listener handed in.
//!
//! **Owns** accounts, orders, authorizations, nonces and a root of its own; nothing survives a restart. Two layers:
//! [`CaState`] is the protocol without sockets, clock or system randomness (each method is told `now`), so a deterministic
//! test drives it directly, or plays it as the application's own CA ([`DirectCa`]); [`TestCa`] puts JWS, nonces, HTTP and the
//! validation of challenges around it.
//! **May import** `env` and `model`. **Always holds:** every POST is signed, its nonce is used once, its `url` is the one asked for;
//! a certificate covers exactly its order's names, each proven by its own authorization; each newOrder makes a new order
//! (some CAs give back an open one; a client that relies on it loses orders elsewhere) and is counted.
//! **To script it:** a [`Validation`] decides what the CA sees when it looks, a [`Script`] what goes wrong on the way.
//! **To get it wrong:** fill an order's `error` when only a challenge failed (Let's Encrypt does not), accept what a
//! strict CA refuses, or answer from a fault before the nonce is handed out.

mod account;
mod allowance;
mod authority;
pub mod csr;
mod direct;
mod entry;
mod faults;
mod http01;
mod issue;
mod jwk;
mod jws;
mod nonces;
mod numbers;
mod order;
mod problem;
mod render;
mod renewal;
mod revoke;
mod routes;
mod server;
mod settings;
mod state;
mod tls;
mod validation;
mod views;

#[cfg(test)]
mod tests;

pub use account::AccountStatus;
pub use allowance::Rate;
pub use authority::{Authority, AuthorityError};
pub use direct::{DirectCa, Fetch, Windows};
pub use entry::Endpoint;
pub use faults::{At, Ended, Entry, Fault, Flaw, Happened, Limit, RetryAfter, Script, Twist, What, When};
pub use http01::{CaaLookup, OverHttp, Resolve};
pub use jwk::{Algorithm, Jwk};
pub use jws::{Jws, Signer};
pub use nonces::Nonces;
pub use numbers::{AccountNo, AuthorizationNo, OrderNo};
pub use order::Wishes;
pub use problem::{Kind, Problem, Subproblem};
pub use server::{RunningCa, TestCa};
pub use settings::Settings;
pub use state::{CaState, Counters};
pub use validation::{ToValidate, Validation};
pub use views::{AuthorizationStatus, AuthorizationView, ChallengeStatus, OrderStatus, OrderView};
