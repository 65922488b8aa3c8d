//! A claim's own row, as a step leaves it.
//!
//! Most steps leave the columns alone by which lists and counts are ordered. A database writes every index anew that holds a column
//! which it is told to set, whatever the value, and on SQLite that was most of a step: so a step that changes none of them does
//! not set them. It is one statement either way, since a batch may touch a row once.

use super::record::{Keep, document};
use super::{Stmt, StoreResult, sql};
use crate::model::domain::{Domain, Situation};
use crate::model::moment::Moment;
use crate::model::standing::Standing;

/// The row after a step; changes none when the generation is no longer the present one. `keep` takes the lease for the next step,
/// at the next generation. Where the claim stood is told by the situation, as it was read.
pub(super) fn after(
    s: &Situation,
    d: &Domain,
    event_seq: i64,
    stands: (Standing, Option<Moment>),
    keep: Option<Keep<'_>>,
    now: Moment,
) -> StoreResult<Stmt> {
    let place = |d: &Domain| (d.claim, d.claim_since, d.certificate_id.clone());
    if s.stood == Some(stands) && place(&s.domain) == place(d) {
        return moved(
            sql("UPDATE domains SET evidence = $3, looked_at = $4, public_probe = $5, tie = $6, \
               due_at = CASE WHEN nudged >= $2 THEN $7 ELSE $8 END, lease_owner = $9, lease_until = $10, generation = $11, \
               settled = $2, failures = $12, event_seq = $13, active_since = $14, released_at = $15, lost_for_us = $16, \
               counted_until = $17, pace_from = CASE WHEN pace_from > $18 THEN pace_from ELSE $18 END \
             WHERE id = $1 AND generation = $2"),
            d,
            event_seq,
            keep,
            now,
        );
    }
    let (standing, until) = stands;
    let stmt = moved(
        sql("UPDATE domains SET evidence = $3, looked_at = $4, public_probe = $5, tie = $6, \
           due_at = CASE WHEN nudged >= $2 THEN $7 ELSE $8 END, lease_owner = $9, lease_until = $10, generation = $11, \
           settled = $2, failures = $12, event_seq = $13, active_since = $14, released_at = $15, lost_for_us = $16, \
           counted_until = $17, pace_from = CASE WHEN pace_from > $18 THEN pace_from ELSE $18 END, \
           claim = $19, claim_since = $20, certificate_id = $21, certificate_until = $22, \
           standing_since = CASE WHEN standing = $23 THEN standing_since ELSE $7 END, standing = $23, acts = $24 \
         WHERE id = $1 AND generation = $2"),
        d,
        event_seq,
        keep,
        now,
    )?;
    Ok(stmt
        .bind(d.claim.as_str())
        .bind(d.claim_since)
        .bind(d.certificate_id.as_ref().map(|c| c.as_str()))
        .bind(until)
        .bind(standing.code())
        .bind(standing.acts().as_str()))
}

/// What moves with every step: the first eighteen values of both.
fn moved(stmt: Stmt, d: &Domain, event_seq: i64, keep: Option<Keep<'_>>, now: Moment) -> StoreResult<Stmt> {
    Ok(stmt
        .bind(d.id.as_str())
        .bind(d.generation)
        .bind(document(&d.evidence)?)
        .bind(d.looked_at)
        .bind(d.public_probe.as_ref().map(document).transpose()?)
        .bind(d.tie.as_str())
        .bind(now)
        .bind(d.due_at)
        .bind(keep.map(|k| k.owner))
        .bind(keep.map_or(Moment::from_micros(0), |k| k.until))
        .bind(d.generation + i64::from(keep.is_some()))
        .bind(d.failures)
        .bind(event_seq)
        .bind(d.active_since)
        .bind(d.released_at)
        .bind(d.lost_for_us)
        .bind(d.counted_until)
        // Somebody may have asked for a look meanwhile, from which the pace begins anew.
        .bind(d.pace_from))
}
