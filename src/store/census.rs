//! Counting what there is, for those who watch: every statement reads an index, or a table that stays small.

use std::time::Duration;

use super::{Row, Store, StoreResult, Tx, pulse, sql};
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
    told(&mut tx, &mut census, now).await?;
    Ok(census)
}

/// What somebody should know of, and what waits to be told.
async fn told(tx: &mut Tx, census: &mut Census, now: Moment) -> StoreResult<()> {
    let day = |n: u64| now + Duration::from_secs(n * 86_400);
    let ending = sql("SELECT CASE WHEN certificate_until < $1 THEN 'ended' WHEN certificate_until < $2 THEN '1d' \
           WHEN certificate_until < $3 THEN '7d' WHEN certificate_until < $4 THEN '14d' \
           WHEN certificate_until < $5 THEN '30d' ELSE 'later' END AS word, COUNT(*) AS n \
         FROM domains WHERE certificate_until IS NOT NULL GROUP BY 1");
    let ending = ending.bind(now).bind(day(1)).bind(day(7)).bind(day(14)).bind(day(30));
    census.ending = words(&tx.fetch_all(ending).await?)?;
    let open = sql("SELECT kind AS word, COUNT(*) AS n FROM alerts WHERE resolved_at IS NULL GROUP BY kind");
    census.alerts = words(&tx.fetch_all(open).await?)?;
    let waiting = [
        (
            "webhook",
            sql("SELECT COUNT(*) AS n, MIN(d.created_at) AS since FROM deliveries d \
            JOIN webhook_endpoints w ON w.id = d.endpoint_id WHERE d.state = 'pending' AND w.disabled_at IS NULL"),
        ),
        ("mail", sql("SELECT COUNT(*) AS n, MIN(created_at) AS since FROM mail_items WHERE state = 'pending'")),
    ];
    for (channel, stmt) in waiting {
        if let Some(row) = tx.fetch_optional(stmt).await? {
            census.pending.push((channel.to_owned(), row.int("n")?));
            census.oldest.push((channel.to_owned(), row.opt_moment("since")?));
        }
    }
    let off = sql("SELECT COUNT(*) AS n FROM webhook_endpoints WHERE disabled_at IS NOT NULL AND disabled_why <> 'asked'");
    census.webhooks_off = single(&tx.fetch_all(off).await?)?;
    census.pulses = tx.fetch_all(pulse::every()).await?.iter().map(pulse::named).collect::<StoreResult<_>>()?;
    Ok(())
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
