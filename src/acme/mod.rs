//! Certificate authorities: one adapter around `instant-acme` (RFC 8555), behind the [`Authority`] role.
//!
//! **Owns** the exchange with one CA account at one directory: account, order, challenge, finalize, download; the making of
//! keys and CSRs ([`csr`]); the check of what comes back ([`chain`]); and the judgement of everything that can go wrong
//! ([`AcmeError::class`]). **May import** `env` and `model`. It is the only home of `instant-acme`.
//!
//! **Always holds**: a call has at most one effect at the CA and never polls; the caller's row says when to look again, with
//! the CA's `Retry-After` as a hint. Whether an effect may have happened is known for every failure ([`AcmeError::acted_on`]).
//! Bodies are read by us from the wire, not through the client library, so that problem documents stay whole. Every request
//! has a deadline and a bounded answer, at a pace that CAs let through; plain HTTP goes to loopback only.
//!
//! **To fake it**: implement [`Authority`], or run a CA on loopback and hand its directory to [`InstantAcme`].
//!
//! **To get it wrong**: repeat `new_order` after [`Class::Lost`] without a new grant; loop on [`Class::StepAgain`] without the
//! row in between; announce a challenge before the edges have its token; store a chain that [`chain::check`] has not seen.

mod authority;
mod documents;
mod error;
mod excerpt;
mod exchange;
mod http;
mod instant;
mod limited;
mod nonces;
mod pace;
mod problem;
mod signed;

pub mod chain;
pub mod csr;
pub mod imported;
pub mod retry_after;

pub use authority::{
    AccountRef, AccountStatus, AccountUrl, Authority, Authorization, AuthorizationStatus, Binding, Challenge,
    ChallengeStatus, DirectoryFacts, OrderStatus, OrderView, PlacedOrder,
};
pub use error::{AcmeError, Call, Cause, Class, Kind};
pub use http::{HttpSettings, Roots};
pub use instant::InstantAcme;
pub use limited::limited;
pub use pace::Paces;
pub use problem::ProblemDoc;
