//! What events tell of alerts, and what each place was told last. A place is a webhook's id, or an address.

use super::{Stmt, StoreResult, Tx, sql};
use crate::model::alert::kinds::is_of_alert;
use crate::model::alert::telling::Says;
use crate::model::id::EventId;
use crate::model::moment::Moment;

/// What an event says, as things stand now, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// What it says.
    pub says: Says,
    /// Of which topic; empty where it is of no alert.
    pub topic: String,
}

/// What an event of this kind tells.
pub async fn of(tx: &mut Tx, event: &EventId, kind: &str) -> StoreResult<Telling> {
    if !is_of_alert(kind) {
        return Ok(Telling { says: Says::Else, topic: String::new() });
    }
    let stmt = sql("SELECT v.topic, v.says, (SELECT MAX(a.raised_event) FROM alerts a WHERE a.topic = v.topic \
           AND a.resolved_at IS NULL) AS latest FROM alert_events v WHERE v.event_id = $1");
    let Some(row) = tx.fetch_optional(stmt.bind(event.as_str())).await? else {
        return Ok(Telling { says: Says::Forgotten, topic: String::new() });
    };
    let latest = row.opt_text("latest")?;
    let says = if row.text("says")? == "begins" {
        Says::Begins { latest: latest.as_deref() == Some(event.as_str()) }
    } else {
        Says::Ends { open: latest.is_some() }
    };
    Ok(Telling { says, topic: row.text("topic")? })
}

/// Whether the place was told, or may have been, that this is open.
pub async fn is_told(tx: &mut Tx, place: &str, topic: &str) -> StoreResult<bool> {
    let stmt = sql("SELECT 1 AS found FROM told WHERE place = $1 AND topic = $2").bind(place).bind(topic);
    Ok(tx.fetch_optional(stmt).await?.is_some())
}

/// The place is about to be told; written before, so that a process that dies meanwhile does not forget it. One row changes where
/// it was not told before.
pub fn about_to(place: &str, topic: &str, event: &EventId, now: Moment) -> Stmt {
    sql("INSERT INTO told (place, topic, event_id, sure, at) VALUES ($1, $2, $3, 0, $4) ON CONFLICT DO NOTHING")
        .bind(place)
        .bind(topic)
        .bind(event.as_str())
        .bind(now)
}

/// It was told.
pub fn told(place: &str, topic: &str, event: &EventId, now: Moment) -> Stmt {
    sql("INSERT INTO told (place, topic, event_id, sure, at) VALUES ($1, $2, $3, 1, $4) \
         ON CONFLICT (place, topic) DO UPDATE SET event_id = excluded.event_id, sure = 1, at = excluded.at")
    .bind(place)
    .bind(topic)
    .bind(event.as_str())
    .bind(now)
}

/// Nothing of this event reached it, and nothing of the topic had before.
pub fn was_not(place: &str, topic: &str, event: &EventId) -> Stmt {
    sql("DELETE FROM told WHERE place = $1 AND topic = $2 AND event_id = $3 AND sure = 0")
        .bind(place)
        .bind(topic)
        .bind(event.as_str())
}

/// It was told that this is over.
pub fn over(place: &str, topic: &str) -> Stmt {
    sql("DELETE FROM told WHERE place = $1 AND topic = $2").bind(place).bind(topic)
}
