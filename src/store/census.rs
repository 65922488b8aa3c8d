//! Counting what there is, for those who watch: every statement reads an index, or a table that stays small.

use std::time::Duration;

use super::{Row, Store, StoreResult, Tx, sql};
use crate::model::feed::Position;
use crate::model::moment::Moment;
use crate::telemetry::metrics::Census;

/// Counts everything in one look. An edge counts while its heartbeat is younger than `fresh`.
pub async fn take(store: &Store, now: Moment, fresh: Duration) -> StoreResult<Census> {
    let mut tx = store.read().await?;
    let domains = tx.fetch_all(sql("SELECT claim AS word, COUNT(*) AS n FROM domains GROUP BY claim")).await?;
    let waiting = sql("SELECT lane AS word, COUNT(*) AS n FROM orders WHERE state = 'waiting' GROUP BY lane");
    let orders = tx.fetch_all(waiting).await?;
    let overdue = tx
        .fetch_optional(
            sql("SELECT due_at FROM domains WHERE due_at <= $1 AND lease_until <= $1 \
                 AND claim NOT IN ('released', 'withdrawn') ORDER BY due_at LIMIT 1")
            .bind(now),
        )
        .await?;
    let outbox = tx.fetch_all(sql("SELECT COUNT(*) AS n FROM outbox WHERE seq IS NULL")).await?;
    let events = tx.fetch_all(sql("SELECT COUNT(*) AS n FROM events WHERE position IS NULL")).await?;
    let mut census = Census {
        domains: words(&domains)?,
        orders_waiting: words(&orders)?,
        overdue_since: overdue.as_ref().map(|row| row.moment("due_at")).transpose()?,
        outbox: single(&outbox)?,
        events: single(&events)?,
        ..Census::default()
    };
    edges(&mut tx, &mut census, now - fresh).await?;
    Ok(census)
}

fn words(rows: &[Row]) -> StoreResult<Vec<(String, i64)>> {
    rows.iter().map(|row| Ok((row.text("word")?, row.int("n")?))).collect()
}

fn single(rows: &[Row]) -> StoreResult<i64> {
    rows.first().map_or(Ok(0), |row| row.int("n"))
}

async fn edges(tx: &mut Tx, census: &mut Census, heard_since: Moment) -> StoreResult<()> {
    let feed = tx.fetch_optional(sql("SELECT epoch, last_seq FROM feed WHERE id = 1")).await?;
    let last = match feed {
        Some(row) => Position { epoch: row.int("epoch")?, seq: row.int("last_seq")? },
        None => Position { epoch: 0, seq: 0 },
    };
    census.feed_position = last.seq;
    let all = sql("SELECT status, lost_at, heartbeat_at, cursor_epoch, cursor_seq FROM edges WHERE status <> 'revoked'");
    for row in tx.fetch_all(all).await? {
        if row.text("status")? == "drained" {
            census.edges_drained += 1;
        } else if row.opt_moment("lost_at")?.is_some() {
            census.edges_lost += 1;
        } else if row.moment("heartbeat_at")? <= heard_since {
            census.edges_silent += 1;
        } else {
            census.edges_counted += 1;
            let seq = if row.int("cursor_epoch")? == last.epoch { row.int("cursor_seq")? } else { 0 };
            let lag = (last.seq - seq).max(0);
            census.edges_behind += i64::from(lag > 0);
            census.edges_lag = census.edges_lag.max(lag);
        }
    }
    Ok(())
}
