//! Rollout is computed, never stored: which counted edges have what the feed said last of a subject.

use std::time::Duration;

use super::{StoreResult, Tx, sql};
use crate::model::id::EdgeId;
use crate::model::moment::Moment;

/// How far one subject has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Edges that count: active, heard of lately, not left behind.
    pub counted: usize,
    /// Counted edges that do not have it yet.
    pub behind: Vec<(EdgeId, String)>,
    /// Counted edges that have it and do not serve it, with what their own probe saw.
    pub exceptions: Vec<(EdgeId, String)>,
    /// Whether the subject has its number: before that no edge can have it.
    pub numbered: bool,
}

impl Rollout {
    /// Whether at least `min_edges` edges count and every one of them has it and serves it.
    pub fn complete(&self, min_edges: usize) -> bool {
        self.numbered && self.counted >= min_edges && self.behind.is_empty() && self.exceptions.is_empty()
    }
}

/// The rollout of a subject of the feed, in one query. An edge counts while its heartbeat is younger than `fresh`.
pub async fn rollout(tx: &mut Tx, kind: &str, subject: &str, now: Moment, fresh: Duration) -> StoreResult<Rollout> {
    let rows = tx
        .fetch_all(
            sql("SELECT f.epoch, s.seq, s.pending, e.id, e.name, e.cursor_epoch, e.cursor_seq, x.observed FROM feed f \
                 CROSS JOIN (SELECT MAX(seq) AS seq, COUNT(*) - COUNT(seq) AS pending FROM outbox \
                   WHERE kind = $1 AND subject = $2) s \
                 LEFT JOIN edges e ON e.status = 'active' AND e.lost_at IS NULL AND e.heartbeat_at > $3 \
                 LEFT JOIN rollout_exceptions x ON x.edge_id = e.id AND x.certificate_id = $2 \
                 WHERE f.id = 1 ORDER BY e.id")
            .bind(kind)
            .bind(subject)
            .bind(now - fresh),
        )
        .await?;
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
