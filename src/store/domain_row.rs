//! A claim's own row, as a step leaves it.
//!
//! Two statements: what moves with every step, and what lists and counts are ordered by, which few steps change. A database
//! writes every index anew that holds a column it is told to set, whatever the value, and on SQLite that was most of a step.

use super::record::{Keep, document};
use super::{Stmt, StoreResult, sql};
use crate::model::domain::Domain;
use crate::model::moment::Moment;
use crate::model::standing::Standing;

/// What moves with every step; changes no row when the generation is no longer the present one. `keep` takes the lease for
/// the next step, at the next generation.
pub(super) fn moved(d: &Domain, event_seq: i64, keep: Option<Keep<'_>>, now: Moment) -> StoreResult<Stmt> {
    Ok(sql("UPDATE domains SET evidence = $3, looked_at = $4, public_probe = $5, tie = $6, \
           due_at = CASE WHEN nudged >= $2 THEN $7 ELSE $8 END, lease_owner = $9, lease_until = $10, generation = $11, \
           settled = $2, failures = $12, event_seq = $13, active_since = $14, released_at = $15, lost_for_us = $16, \
           counted_until = $17, pace_from = CASE WHEN pace_from > $18 THEN pace_from ELSE $18 END \
         WHERE id = $1 AND generation = $2")
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

/// Where the claim stands; written after [`moved`], which holds the generation, and only where the row says otherwise: an
/// import that is paused writes it beside the steps.
pub(super) fn stands(d: &Domain, (stands, until): (Standing, Option<Moment>), now: Moment) -> Stmt {
    sql("UPDATE domains SET claim = $2, claim_since = $3, certificate_id = $4, certificate_until = $5, \
           standing_since = CASE WHEN standing = $6 THEN standing_since ELSE $8 END, standing = $6, acts = $7 \
         WHERE id = $1 AND (claim <> $2 OR claim_since <> $3 OR certificate_id IS DISTINCT FROM $4 \
           OR certificate_until IS DISTINCT FROM $5 OR standing <> $6 OR acts <> $7)")
    .bind(d.id.as_str())
    .bind(d.claim.as_str())
    .bind(d.claim_since)
    .bind(d.certificate_id.as_ref().map(|c| c.as_str()))
    .bind(until)
    .bind(stands.code())
    .bind(stands.acts().as_str())
    .bind(now)
}
