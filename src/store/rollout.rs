//! Rollout is computed, never stored: which counted edges have what the feed said last of a subject.

use std::time::Duration;

use super::resting::Many;
use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::conclude::Rollout;
use crate::model::id::EdgeId;
use crate::model::moment::Moment;

/// How far the counted edges are with serving a name: with what the feed said last of the name, and with the certificate it is
/// to be served with.
pub async fn served_now(
    store: &Store,
    hostname: &str,
    certificate: &str,
    now: Moment,
    fresh: Duration,
) -> StoreResult<Rollout> {
    read(store.query(statement("host", hostname, certificate, now - fresh)).await?)
}

/// The rollout of a subject of the feed, in one query. An edge counts while its heartbeat is younger than `fresh`.
pub async fn rollout(tx: &mut Tx, kind: &str, subject: &str, now: Moment, fresh: Duration) -> StoreResult<Rollout> {
    read(tx.fetch_all(statement(kind, subject, subject, now - fresh)).await?)
}

/// The same, outside a transaction.
pub async fn rollout_now(store: &Store, kind: &str, subject: &str, now: Moment, fresh: Duration) -> StoreResult<Rollout> {
    read(store.query(statement(kind, subject, subject, now - fresh)).await?)
}

/// Edges that do not serve what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instead {
    /// Which.
    pub edges: Many,
    /// How many certificates they do not serve, each counted once.
    pub certificates: i64,
}

/// Counted edges that have not served what they hold since then at least; some of them by name.
pub async fn instead(store: &Store, since: Moment, heard_since: Moment, named: i64) -> StoreResult<Option<Instead>> {
    // From the few exceptions to their edges.
    let counted = sql("SELECT COUNT(DISTINCT x.edge_id) AS edges, COUNT(DISTINCT x.certificate_id) AS n \
         FROM rollout_exceptions x CROSS JOIN edges e WHERE x.at <= $1 AND e.id = x.edge_id \
           AND e.status = 'active' AND e.lost_at IS NULL AND e.heartbeat_at > $2");
    let rows = store.query(counted.bind(since).bind(heard_since)).await?;
    let Some((many, certificates)) = rows.first().map(|r| StoreResult::Ok((r.int("edges")?, r.int("n")?))).transpose()?
    else {
        return Ok(None);
    };
    if many == 0 {
        return Ok(None);
    }
    let some =
        sql("SELECT DISTINCT e.name FROM rollout_exceptions x CROSS JOIN edges e WHERE x.at <= $1 AND e.id = x.edge_id \
           AND e.status = 'active' AND e.lost_at IS NULL AND e.heartbeat_at > $2 ORDER BY e.name LIMIT $3");
    let some = store.query(some.bind(since).bind(heard_since).bind(named)).await?;
    let some = some.iter().map(|row| row.text("name")).collect::<StoreResult<_>>()?;
    Ok(Some(Instead { edges: Many { many, some }, certificates }))
}

fn statement(kind: &str, subject: &str, certificate: &str, heard_since: Moment) -> Stmt {
    sql("SELECT f.epoch, s.seq, s.pending, e.id, e.name, e.cursor_epoch, e.cursor_seq, x.observed FROM feed f \
         CROSS JOIN (SELECT MAX(seq) AS seq, COUNT(*) - COUNT(seq) AS pending FROM outbox \
           WHERE kind = $1 AND subject = $2) s \
         LEFT JOIN edges e ON e.status = 'active' AND e.lost_at IS NULL AND e.heartbeat_at > $3 \
         LEFT JOIN rollout_exceptions x ON x.edge_id = e.id AND x.certificate_id = $4 \
         WHERE f.id = 1 ORDER BY e.id")
    .bind(kind)
    .bind(subject)
    .bind(heard_since)
    .bind(certificate)
}

fn read(rows: Vec<Row>) -> StoreResult<Rollout> {
    let mut out = Rollout::default();
    for row in rows {
        let seq = row.opt_int("seq")?;
        out.numbered = seq.is_some() && row.int("pending")? == 0;
        let Some(id) = row.opt_parse::<EdgeId>("id")? else { continue };
        let name = row.text("name")?;
        out.counted += 1;
        let same_epoch = row.int("cursor_epoch")? == row.int("epoch")?;
        if !out.numbered || !same_epoch || seq > row.opt_int("cursor_seq")? {
            out.behind.push((id, name));
        } else if let Some(observed) = row.opt_text("observed")? {
            out.exceptions.push((id, observed));
        }
    }
    Ok(out)
}
