//! The outbox: what edges must hear of, written in the transaction that made it so and numbered later by the relay.

use super::{Stmt, sql};
use crate::model::moment::Moment;

/// A row of the outbox: something of `kind` named `subject` changed, and `version` is the newest.
pub fn insert(id: &str, kind: &str, subject: &str, version: i64, at: Moment) -> Stmt {
    sql("INSERT INTO outbox (id, kind, subject, version, at) VALUES ($1, $2, $3, $4, $5)")
        .bind(id)
        .bind(kind)
        .bind(subject)
        .bind(version)
        .bind(at)
}
