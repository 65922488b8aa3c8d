//! The whole world on loopback: what a newcomer plays with, and the rig that tests use.
//!
//! Owns the parts that stand in for the outside: so far the DNS. May import everything below it; nothing imports it but `cli`
//! and tests. Everything listens on sockets that are handed in, on loopback only. How to get it wrong: let a part read the
//! clock or draw numbers by itself, so that a failing run cannot be replayed.

pub mod dns;
