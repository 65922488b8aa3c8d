//! When the workers last went round, whichever process they run in: what tells of their silence.

use super::{Store, StoreResult, sql};
use crate::model::moment::Moment;

/// The sweep's.
pub const SWEEP: &str = "sweep";

/// The workers behind `name` went round.
pub async fn beat(store: &Store, name: &str, now: Moment) -> StoreResult<()> {
    let stmt = sql("INSERT INTO pulses (name, at) VALUES ($1, $2) \
         ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE pulses.at < excluded.at");
    store.execute(stmt.bind(name).bind(now)).await.map(|_| ())
}

/// When they last did; none before the first time.
pub async fn last(store: &Store, name: &str) -> StoreResult<Option<Moment>> {
    let rows = store.query(sql("SELECT at FROM pulses WHERE name = $1").bind(name)).await?;
    rows.first().map(|row| row.moment("at")).transpose()
}
