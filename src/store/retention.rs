//! What was done with is kept for a while and then removed, a batch at a time, so that no pass holds the store up for long.

use super::{Store, StoreResult, sql};
use crate::model::moment::Moment;

/// Rows of one batch.
const BATCH: i64 = 500;
/// Batches of one kind in one pass: the rest is there in the next.
const BATCHES: usize = 200;

/// From when on things are kept.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// What was sent, dropped or given up; and what waits for a place that is switched off.
    pub deliveries: Moment,
    /// Alerts that are over.
    pub alerts: Moment,
}

/// How much was removed or ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Deliveries and mail that were done with.
    pub done: u64,
    /// Deliveries and mail that waited for nobody and ended.
    pub ended: u64,
    /// Alerts that were over.
    pub alerts: u64,
    /// Places of tenants that are gone.
    pub places: u64,
    /// Contacts of tenants that are gone.
    pub contacts: u64,
}

/// One pass.
pub async fn prune(store: &Store, keep: Keep, now: Moment) -> StoreResult<Pruned> {
    let mut pruned = Pruned::default();
    for step in [Step::SwitchedOff, Step::OldMail] {
        pruned.ended += all_of(store, step, keep, now).await?;
    }
    for step in [Step::Deliveries, Step::Mail, Step::OfTheGone] {
        pruned.done += all_of(store, step, keep, now).await?;
    }
    pruned.alerts = alerts(store, keep.alerts).await?;
    pruned.places = all_of(store, Step::Places, keep, now).await?;
    pruned.contacts = all_of(store, Step::Contacts, keep, now).await?;
    all_of(store, Step::Told, keep, now).await?;
    Ok(pruned)
}

#[derive(Clone, Copy)]
enum Step {
    SwitchedOff,
    OldMail,
    Deliveries,
    Mail,
    OfTheGone,
    Places,
    Contacts,
    Told,
}

async fn all_of(store: &Store, step: Step, keep: Keep, now: Moment) -> StoreResult<u64> {
    let mut sum = 0;
    for _ in 0..BATCHES {
        let stmt = match step {
            Step::SwitchedOff => {
                sql("UPDATE deliveries SET state = 'dropped', said = 'it was switched off for too long', done_at = $1, \
                       leased_until = 0 \
                     WHERE state = 'pending' AND (endpoint_id, event_id) IN (SELECT d.endpoint_id, d.event_id FROM deliveries d \
                       JOIN webhook_endpoints w ON w.id = d.endpoint_id AND w.disabled_at IS NOT NULL \
                       WHERE d.state = 'pending' AND d.created_at < $2 LIMIT $3)")
                .bind(now)
                .bind(keep.deliveries)
                .bind(BATCH)
            }
            // Nobody takes mail any more, or the server is away for longer than anybody waits.
            Step::OldMail => {
                sql("UPDATE mail_items SET state = 'given_up', said = COALESCE(said, 'no server took it'), done_at = $1, \
                       leased_until = 0 \
                     WHERE state = 'pending' AND (address, whose, event_id) IN (SELECT m.address, m.whose, m.event_id \
                       FROM mail_items m WHERE m.state = 'pending' AND m.due_at <= $1 AND m.created_at < $2 LIMIT $3)")
                .bind(now)
                .bind(keep.deliveries)
                .bind(BATCH)
            }
            Step::Deliveries => {
                sql("DELETE FROM deliveries WHERE (endpoint_id, event_id) IN (SELECT d.endpoint_id, d.event_id \
                       FROM deliveries d WHERE d.done_at < $1 ORDER BY d.done_at LIMIT $2)")
                .bind(keep.deliveries)
                .bind(BATCH)
            }
            Step::Mail => sql("DELETE FROM mail_items WHERE (address, whose, event_id) IN (SELECT m.address, m.whose, m.event_id \
                       FROM mail_items m WHERE m.done_at < $1 ORDER BY m.done_at LIMIT $2)")
            .bind(keep.deliveries)
            .bind(BATCH),
            // A tenant is gone when it was let go of, and so were all its names: until then it hears of them.
            Step::OfTheGone => {
                sql("DELETE FROM deliveries WHERE (endpoint_id, event_id) IN (SELECT d.endpoint_id, d.event_id \
                       FROM offboardings o CROSS JOIN webhook_endpoints w CROSS JOIN deliveries d \
                       WHERE o.finished_at IS NOT NULL AND w.tenant_id = o.tenant_id AND d.endpoint_id = w.id AND NOT EXISTS \
                         (SELECT 1 FROM holdings h WHERE h.tenant_id = o.tenant_id AND h.state = 'quarantined') LIMIT $1)")
                .bind(BATCH)
            }
            // Their secrets and URLs go with them.
            Step::Places => sql("DELETE FROM webhook_endpoints WHERE id IN (SELECT w.id FROM offboardings o \
                       CROSS JOIN webhook_endpoints w WHERE o.finished_at IS NOT NULL AND w.tenant_id = o.tenant_id \
                       AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.endpoint_id = w.id) AND NOT EXISTS \
                         (SELECT 1 FROM holdings h WHERE h.tenant_id = o.tenant_id AND h.state = 'quarantined') LIMIT $1)")
            .bind(BATCH),
            Step::Contacts => sql("DELETE FROM contacts WHERE id IN (SELECT c.id FROM offboardings o CROSS JOIN contacts c \
                       WHERE o.finished_at IS NOT NULL AND c.tenant_id = o.tenant_id AND NOT EXISTS \
                         (SELECT 1 FROM holdings h WHERE h.tenant_id = o.tenant_id AND h.state = 'quarantined') LIMIT $1)")
            .bind(BATCH),
            Step::Told => sql("DELETE FROM told WHERE (place, topic) IN (SELECT t.place, t.topic FROM told t WHERE t.at < $1 \
                       AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.topic = t.topic AND a.resolved_at IS NULL) LIMIT $2)")
            .bind(keep.alerts)
            .bind(BATCH),
        };
        let many = store.execute(stmt).await?;
        sum += many;
        if i64::try_from(many).unwrap_or(0) < BATCH {
            break;
        }
    }
    Ok(sum)
}

/// Alerts with what told of them. One of a certificate in use stays: its row is why nothing is told twice.
async fn alerts(store: &Store, before: Moment) -> StoreResult<u64> {
    let mut sum = 0;
    for _ in 0..BATCHES {
        let mut tx = store.begin().await?;
        let old = sql("SELECT a.id FROM alerts a WHERE a.resolved_at < $1 AND NOT EXISTS (SELECT 1 FROM domains d \
             WHERE d.id = a.domain_id AND d.certificate_id = a.certificate_id) ORDER BY a.resolved_at LIMIT $2");
        let rows = tx.fetch_all(old.bind(before).bind(BATCH)).await?;
        for row in &rows {
            let id = row.text("id")?;
            tx.execute(sql("DELETE FROM alert_events WHERE alert_id = $1").bind(id.as_str())).await?;
            tx.execute(sql("DELETE FROM alerts WHERE id = $1").bind(id.as_str())).await?;
        }
        tx.commit().await?;
        sum += u64::try_from(rows.len()).unwrap_or(0);
        if i64::try_from(rows.len()).unwrap_or(0) < BATCH {
            break;
        }
    }
    Ok(sum)
}
