//! The feed: how what the control plane decides reaches every edge, in order, signed, and provably arrived.
//!
//! **Owns** both sides of the numbered stream. The control plane's: [`Feed`] opens its identity (epoch, signing and TLS keys,
//! sealed in the store), mints join tokens, revokes edges; [`relay`] gives committed outbox rows their numbers; [`publisher`]
//! answers edges over TLS 1.3. The reader's: [`member`] is an edge's own key and credential, [`client`] speaks to the
//! publisher, [`copy`] is the last good copy on disk, [`replica`] is the book in memory, [`follow`] keeps it in step. [`wire`]
//! is what both read. **May import** `store vault env model`; the reader's side uses no store and no vault, only
//! `vault::distribution` and `vault::signing`: it runs where there is neither.
//!
//! **Always holds**: a number becomes visible only with every smaller one; an entry carries its subject's present state, so
//! repeating or merging entries is harmless; nothing is applied that the pinned key did not sign; a position is acknowledged
//! only once it is in memory, on disk, and the certificates it brought were seen on the reader's own listener.
//!
//! **To fake it**: do not; a publisher on loopback over a SQLite store starts in milliseconds. **To get it wrong**: write an
//! outbox row outside the transaction that made it true; number rows by a database sequence; forget to ring the bell.

pub mod client;
pub mod copy;
pub mod follow;
pub mod join;
pub mod member;
mod pin;
pub mod publisher;
pub mod relay;
pub mod replica;
pub mod wire;

mod bell;
mod distribution;
mod identity;

pub use identity::{Feed, FeedError};
