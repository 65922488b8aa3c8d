//! Use cases: the only place that joins store, model and adapters.
//!
//! Each file is one thing somebody wants done. A use case opens its own transactions, decides by `model`, and answers with
//! its own error; nothing here knows HTTP or a terminal. May import everything from `store vault dns acme` down. To fake
//! it: an in-memory store and a hand-driven [`Env`](crate::env::Env). How to get it wrong: decide by what was read in one
//! transaction and write in another without a guard.

pub mod show;
pub mod tenants;
pub mod tokens;
