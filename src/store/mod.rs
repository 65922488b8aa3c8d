//! The store: repositories by aggregate, on SQLite and on PostgreSQL, with one set of statements.
//!
//! - [`Store`] opens a database and hands out transactions ([`Tx`]); [`mod@sql`] is the seam that hides which database it is;
//!   [`sqlite`] runs statements on the one inside.
//! - Every other file is one aggregate: free functions that take `&mut Tx` (or `&Store` for a single statement).
//! - A statement is portable text with `$n` placeholders; ids are text, times whole microseconds, documents JSON text.
//! - What must hold is held by constraints in the schema: one open claim a tenant and name, one holder a name, one open
//!   order a domain and purpose.
//!
//! A write transaction on SQLite begins immediate and waits for its turn, so it never fails half-way for a lock; on
//! PostgreSQL it runs at READ COMMITTED, and whatever two writers could fight over is a guarded UPDATE (`… AND generation =
//! $n`) or a unique index. May import `config telemetry env model`; sqlx and rusqlite live here. To fake it: open `sqlite::memory:`.
//! How to get it wrong: read first and write by what was read, without a guard; or use now() in SQL.

pub mod ahead;
pub mod alerts;
pub mod attempts;
pub mod bulk;
pub mod bulk_checks;
pub mod bulk_orders;
pub mod bulk_rows;
pub mod census;
pub mod certificates;
pub mod claims;
pub mod contacts;
pub mod deliveries;
pub mod dispatching;
pub mod domain_connect;
mod domain_row;
pub mod dump;
pub mod edges;
mod error;
pub mod expiry;
pub mod feed;
pub mod fleet;
pub mod heads;
pub mod health;
mod holdings;
pub mod imports;
pub mod issuer_health;
pub mod issuers;
pub mod kept_answers;
pub mod lap;
pub mod ledger;
pub mod links;
pub mod mail_items;
pub mod offboarding;
mod open;
pub mod orders;
pub mod outbox;
pub mod pairs;
pub mod portal;
pub mod pulse;
pub mod record;
pub mod reissues;
pub mod renewals;
pub mod resting;
pub mod restore;
pub mod retention;
pub mod revocations;
pub mod risks;
pub mod rollout;
pub mod routine;
mod row;
pub mod sessions;
pub mod situation;
pub mod sql;
mod sqlite;
mod standing;
pub mod telling;
pub mod tenants;
pub mod tokens;
pub mod vault_keys;
pub mod views;
mod wake;
pub mod webhooks;

pub use error::{StoreError, StoreResult};
pub use open::{OpenSettings, Schema, Store};
pub use row::Row;
pub use sql::{Stmt, Tx, Value, of_sqlite, sql};
pub use wake::Wake;
