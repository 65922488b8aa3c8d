//! What a clock that ran ahead left behind.
//!
//! Moments that say *since* cannot lie ahead, and those that say *until* or *next* only as far as their own rules let them. What does
//! all the same was written by a process whose clock was wrong; nobody would look at it before that moment has come. It is put back to
//! now, which at worst means that something is looked at, or waited for, once more.

use std::time::Duration;

use super::{Store, StoreResult, sql};
use crate::model::id::{DomainId, IssuerId};
use crate::model::issuer::LONGEST_TOLD;
use crate::model::ledger::Limit;
use crate::model::limits::LimitName;
use crate::model::moment::Moment;

/// Clocks of one fleet differ by less than this.
pub const AHEAD: Duration = Duration::from_secs(3600);
/// No name that waits for something is looked at more seldom than daily; with what an import may take on top.
const WAITS: Duration = Duration::from_secs(3 * 86_400);
/// A name at rest is looked at every day.
const RESTS: Duration = Duration::from_secs(86_400 + 3600);
/// No CA was heard to ask for a longer wait, but for names that it paused.
const TOLD: Duration = Duration::from_secs(31 * 86_400);
/// So many rows are put back at once.
const PAGE: i64 = 500;
const CHUNK: usize = 20;

/// Puts a page of domains back; how many there were.
pub async fn domains(store: &Store, now: Moment) -> StoreResult<usize> {
    let stmt = sql("SELECT d.id FROM domains d LEFT JOIN renewals r ON r.domain_id = d.id \
         WHERE d.lease_until > $1 OR d.looked_at > $1 OR d.check_asked_at > $1 OR d.claim_since > $1 OR d.pace_from > $1 \
           OR d.standing_since > $1 OR d.active_since > $1 \
           OR d.counted_until > $1 OR (d.claim IN ('awaiting_dns', 'queued') AND d.due_at > $2 AND d.due_at < $3) \
           OR (d.claim = 'live' AND d.due_at > $2 AND d.due_at < $3 \
             AND (d.due_at > r.renew_at + $5 OR r.switch_at IS NOT NULL)) \
         ORDER BY d.id LIMIT $4")
    .bind(now + AHEAD)
    .bind(now + WAITS)
    .bind(Moment::NEVER)
    .bind(PAGE)
    .bind(i64::try_from(WAITS.as_micros()).unwrap_or(i64::MAX));
    let ids: Vec<DomainId> = store.query(stmt).await?.iter().map(|row| row.parse("id")).collect::<StoreResult<_>>()?;
    for chunk in ids.chunks(CHUNK) {
        // Whoever is in a step decided by the wrong time: the generation goes on without him.
        let one = |id: &DomainId| {
            sql("UPDATE domains SET generation = generation + 1, lease_owner = NULL, lease_until = 0, due_at = $3, \
                   evidence = CASE WHEN looked_at > $2 THEN '[]' ELSE evidence END, \
                   looked_at = CASE WHEN looked_at > $2 THEN NULL ELSE looked_at END, \
                   check_asked_at = CASE WHEN check_asked_at > $2 THEN $3 ELSE check_asked_at END, \
                   claim_since = CASE WHEN claim_since > $2 THEN $3 ELSE claim_since END, \
                   pace_from = CASE WHEN pace_from > $2 THEN $3 ELSE pace_from END, \
                   standing_since = CASE WHEN standing_since > $2 THEN $3 ELSE standing_since END, \
                   active_since = CASE WHEN active_since > $2 THEN $3 ELSE active_since END, \
                   counted_until = CASE WHEN counted_until > $2 THEN NULL ELSE counted_until END WHERE id = $1")
            .bind(id.as_str())
            .bind(now + AHEAD)
            .bind(now)
        };
        let mut tx = store.begin().await?;
        tx.batch(chunk.iter().map(one).collect()).await?;
        tx.commit().await?;
    }
    Ok(ids.len())
}

/// Puts back orders, grants, what they may cost, names at rest, revocations, and what else is kept of the work; how many rows.
pub async fn work(store: &Store, now: Moment) -> StoreResult<u64> {
    let mut back = 0;
    for stmt in [
        sql("UPDATE orders SET state_since = $2, held_by = NULL, \
               announced_at = CASE WHEN announced_at > $1 THEN $2 ELSE announced_at END, \
               not_before = CASE WHEN state = 'waiting' AND not_before < $4 AND not_before > $2 THEN $2 ELSE not_before END \
             WHERE state NOT IN ('issued', 'failed', 'lost') \
               AND (state_since > $1 OR state = 'waiting' AND not_before > $3 AND not_before < $4)")
        .bind(now + AHEAD)
        .bind(now)
        .bind(now + TOLD)
        .bind(Moment::NEVER),
        sql("UPDATE grants SET expires_at = $2 WHERE state = 'open' AND expires_at > $1").bind(now + AHEAD).bind(now),
        sql("UPDATE spends SET deadline = $2 WHERE counts = 'order' AND deadline > $1 AND deadline < $3")
            .bind(now + AHEAD)
            .bind(now)
            .bind(Moment::NEVER),
        sql("UPDATE issuer_health SET open_until = CASE WHEN open_until > $1 THEN $2 ELSE open_until END, \
               check_at = CASE WHEN check_at > $3 THEN $2 ELSE check_at END WHERE open_until > $1 OR check_at > $3")
        .bind(now + LONGEST_TOLD + AHEAD)
        .bind(now)
        .bind(now + WAITS),
        sql("UPDATE issuer_oddities SET at = $2 WHERE at > $1").bind(now + AHEAD).bind(now),
        sql("UPDATE issuers SET lease_until = 0, lease_owner = NULL, term = term + 1 WHERE lease_until > $1")
            .bind(now + TOLD),
        sql("UPDATE renewals SET switch_at = $2 WHERE switch_at > $1").bind(now + AHEAD * 2).bind(now),
        sql("UPDATE edges SET heartbeat_at = $2 WHERE heartbeat_at > $1").bind(now + AHEAD).bind(now),
        sql("UPDATE routine_cursors SET leased_until = CASE WHEN leased_until > $1 THEN 0 ELSE leased_until END, \
               unheard_since = CASE WHEN unheard_since > $1 THEN $2 ELSE unheard_since END \
             WHERE leased_until > $1 OR unheard_since > $1")
        .bind(now + AHEAD)
        .bind(now),
        // A look that set the next one so far off had a wrong clock, and what it counted is not believed.
        sql("UPDATE holdings SET watch_at = CASE WHEN watch_at > $3 THEN $2 ELSE watch_at END, \
               since = CASE WHEN since > $1 THEN $2 ELSE since END, \
               looks_off = CASE WHEN watch_at > $3 OR first_off_at > $1 THEN 0 ELSE looks_off END, \
               first_off_at = CASE WHEN watch_at > $3 OR first_off_at > $1 THEN NULL ELSE first_off_at END, \
               dangles_since = CASE WHEN dangles_since > $1 THEN $2 ELSE dangles_since END, \
               reminded_at = CASE WHEN reminded_at > $1 THEN $2 ELSE reminded_at END \
             WHERE watch_at IS NOT NULL \
               AND (watch_at > $3 OR since > $1 OR first_off_at > $1 OR dangles_since > $1 OR reminded_at > $1)")
        .bind(now + AHEAD)
        .bind(now)
        .bind(now + RESTS),
        sql("UPDATE revocations SET due_at = $2 WHERE due_at > $1").bind(now + WAITS).bind(now),
        sql("UPDATE pulses SET at = $2 WHERE at > $1").bind(now + AHEAD).bind(now),
    ] {
        back += store.execute(stmt).await?;
    }
    Ok(back)
}

/// No try of a delivery or a message, and no rest of an address, is put off for longer.
const PUT_OFF: Duration = Duration::from_secs(2 * 86_400);

/// Puts back what is to be told, and when places may be asked; makes names due whose alerts were raised at a time that has not come.
/// How many rows.
pub async fn telling(store: &Store, now: Moment) -> StoreResult<u64> {
    let mut back = 0;
    for stmt in [
        sql("UPDATE webhook_endpoints SET not_before = $2 WHERE not_before > $1").bind(now + AHEAD * 2).bind(now),
        sql("UPDATE alerts SET clear_since = NULL WHERE resolved_at IS NULL AND domain_id IS NULL AND clear_since > $1")
            .bind(now + AHEAD),
    ] {
        back += store.execute(stmt).await?;
    }
    let waiting = [
        (
            sql("SELECT 1 AS found FROM deliveries WHERE state = 'pending' \
                 AND (leased_until > $1 OR due_at > $2 OR attempts = 0 AND due_at > $1) LIMIT 1"),
            sql("UPDATE deliveries SET due_at = CASE WHEN due_at > $3 THEN $3 ELSE due_at END, leased_until = 0 \
                 WHERE state = 'pending' AND (endpoint_id, event_id) IN (SELECT d.endpoint_id, d.event_id FROM deliveries d \
                   WHERE d.state = 'pending' AND (d.leased_until > $1 OR d.due_at > $2 OR d.attempts = 0 AND d.due_at > $1) LIMIT $4)"),
        ),
        (
            sql("SELECT 1 AS found FROM mail_items WHERE state = 'pending' AND (leased_until > $1 OR due_at > $2) LIMIT 1"),
            sql("UPDATE mail_items SET due_at = CASE WHEN due_at > $3 THEN $3 ELSE due_at END, leased_until = 0 \
                 WHERE state = 'pending' AND (address, whose, event_id) IN (SELECT m.address, m.whose, m.event_id FROM mail_items m \
                   WHERE m.state = 'pending' AND (m.leased_until > $1 OR m.due_at > $2) LIMIT $4)"),
        ),
    ];
    for (any, put_back) in waiting {
        // Looked for without a lock first: there is something once in years.
        while !store.query(any.clone().bind(now + AHEAD).bind(now + PUT_OFF)).await?.is_empty() {
            let page = put_back.clone().bind(now + AHEAD).bind(now + PUT_OFF).bind(now).bind(PAGE);
            match store.execute(page).await? {
                0 => break,
                many => back += many,
            }
        }
    }
    let mut tx = store.begin().await?;
    let names =
        sql("INSERT INTO expiry_looks (domain_id, due_at, touched) SELECT DISTINCT a.domain_id, 0, 1 FROM alerts a \
           WHERE a.resolved_at IS NULL AND a.domain_id IS NOT NULL AND a.raised_at > $1 \
         ON CONFLICT (domain_id) DO UPDATE SET due_at = 0, touched = expiry_looks.touched + 1");
    tx.execute(names.bind(now + AHEAD)).await?;
    let raised =
        sql("UPDATE alerts SET raised_at = $2 WHERE resolved_at IS NULL AND domain_id IS NOT NULL AND raised_at > $1");
    back += tx.execute(raised.bind(now + AHEAD).bind(now)).await?;
    tx.commit().await?;
    Ok(back)
}

/// What was spent of an issuer's limits at a time that has not come counts as spent now: all of it. How many rows.
pub async fn ledger(store: &Store, issuer: &IssuerId, limit: LimitName, numbers: Limit, now: Moment) -> StoreResult<u64> {
    let whole = Duration::from_secs(numbers.per_secs);
    let stmt = sql("UPDATE ledger SET tat = $4, closed_at = CASE WHEN closed_at > $5 THEN $6 ELSE closed_at END, \
           closed_until = CASE WHEN closed_at > $5 THEN NULL ELSE closed_until END WHERE issuer_id = $1 AND limit_name = $2 \
         AND (closed IS NULL AND tat > $3 OR closed_at > $5)")
    .bind(issuer.as_str())
    .bind(limit.as_str())
    .bind(now + whole * 2 + AHEAD)
    .bind(now + whole)
    .bind(now + AHEAD)
    .bind(now);
    let back = store.execute(stmt).await?;
    if back > 0 {
        let held = sql("UPDATE orders SET not_before = $2, held_by = NULL \
             WHERE issuer_id = $1 AND state = 'waiting' AND held_by IS NOT NULL AND not_before > $2");
        store.execute(held.bind(issuer.as_str()).bind(now)).await?;
    }
    Ok(back)
}
