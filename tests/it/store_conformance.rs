//! One story for both databases: the same tables, the same answers, the same refusals.

mod constraints;
mod schema;
pub mod statements;
mod transactions;
