//! Who holds a name, who is next, and what they are told of each other: statements that go into an outcome's batch.

use super::{Stmt, expiry, sql};
use crate::model::domain::Domain;
use crate::model::id::DomainId;
use crate::model::moment::Moment;
use crate::model::notice::{NewNotice, NoticeKind};
use crate::model::succession::Succession;

/// Takes a name that nobody holds, or whose quarantine the claim may end.
pub(super) fn take(d: &Domain, ends_quarantine_of: Option<&str>, now: Moment) -> Stmt {
    sql("INSERT INTO holdings (hostname, domain_id, tenant_id, state, term, since, looks_off) \
         VALUES ($1, $2, $3, 'held', 1, $4, 0) \
         ON CONFLICT (hostname) DO UPDATE SET domain_id = excluded.domain_id, tenant_id = excluded.tenant_id, \
           state = 'held', term = holdings.term + 1, since = excluded.since, looks_off = 0, first_off_at = NULL, \
           watch_at = NULL, dangles_since = NULL, reminded_at = NULL, \
           successor_id = NULL, successor_at = NULL, successor_counted = 0, successor_seen_at = NULL \
         WHERE holdings.state = 'free' OR holdings.domain_id = excluded.domain_id \
           OR (holdings.state = 'quarantined' AND holdings.domain_id = $5)")
    .bind(d.hostname.as_str())
    .bind(d.id.as_str())
    .bind(d.tenant_id.as_str())
    .bind(now)
    .bind(ends_quarantine_of)
}

/// The claim is next after `holder`, unless another one is.
pub(super) fn succeed(d: &Domain, holder: &DomainId, clock: &Succession) -> Stmt {
    sql("UPDATE holdings SET successor_id = $2, successor_at = $3, successor_counted = $4, successor_seen_at = $5 \
         WHERE hostname = $1 AND domain_id = $6 AND state <> 'free' AND (successor_id IS NULL OR successor_id = $2)")
    .bind(d.hostname.as_str())
    .bind(d.id.as_str())
    .bind(clock.since)
    .bind(i64::try_from(clock.counted.as_micros()).unwrap_or(i64::MAX))
    .bind(clock.seen_at)
    .bind(holder.as_str())
}

/// The claim is not next any more.
pub(super) fn end_succession(d: &Domain, of: &DomainId) -> Stmt {
    sql("UPDATE holdings SET successor_id = NULL, successor_at = NULL, successor_counted = 0, successor_seen_at = NULL \
         WHERE hostname = $1 AND successor_id = $2")
    .bind(d.hostname.as_str())
    .bind(of.as_str())
}

/// The claim that is next takes the name.
pub(super) fn take_over(d: &Domain, from: &DomainId, now: Moment) -> Stmt {
    sql("UPDATE holdings SET domain_id = $2, tenant_id = $3, state = 'held', term = term + 1, since = $4, looks_off = 0, \
           first_off_at = NULL, watch_at = NULL, dangles_since = NULL, reminded_at = NULL, successor_id = NULL, successor_at = NULL, successor_counted = 0, successor_seen_at = NULL \
         WHERE hostname = $1 AND domain_id = $5 AND successor_id = $2 AND state <> 'free'")
    .bind(d.hostname.as_str())
    .bind(d.id.as_str())
    .bind(d.tenant_id.as_str())
    .bind(now)
    .bind(from.as_str())
}

/// What the holder that loses a name is told of it, and its claim, which is on its way out from this moment. The event comes
/// first: its number is the one after the row's.
pub(super) fn hand_over(from: &DomainId, event_id: &str, now: Moment) -> [Stmt; 4] {
    let told = sql("INSERT INTO events (id, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
         SELECT $1, d.tenant_id, d.id, d.event_seq + 1, 'handed_over', 'nameplate', $3, $4, $5 \
         FROM domains d WHERE d.id = $2 AND d.claim = 'live'")
    .bind(event_id)
    .bind(from.as_str())
    .bind("the ownership record was gone for 72 hours while somebody else's was there; the name went to them")
    .bind("{}")
    .bind(now);
    // Fenced: a step in flight decided for a holder.
    let goes =
        sql("UPDATE domains SET claim = 'releasing', claim_since = $2, active_since = NULL, certificate_until = NULL, \
           evidence = '[]', due_at = $2, generation = generation + 1, settled = generation + 1, lease_owner = NULL, \
           lease_until = 0, event_seq = event_seq + 1, standing = 'releasing', acts = 'nobody', standing_since = $2 \
         WHERE id = $1 AND claim = 'live'")
        .bind(from.as_str())
        .bind(now);
    // One that was removed before has nothing to come back to any more.
    let ends = sql("UPDATE domains SET due_at = CASE WHEN due_at > $2 THEN $2 ELSE due_at END, nudged = generation \
         WHERE id = $1 AND claim = 'releasing'")
    .bind(from.as_str())
    .bind(now);
    [told, goes, ends, expiry::touch(from)]
}

/// A claim that was to be next looks after itself.
pub(super) fn others_queued(d: &Domain, now: Moment) -> Stmt {
    sql("UPDATE domains SET due_at = CASE WHEN due_at > $3 THEN $3 ELSE due_at END, nudged = generation \
         WHERE hostname = $1 AND id <> $2 AND claim = 'queued'")
    .bind(d.hostname.as_str())
    .bind(d.id.as_str())
    .bind(now)
}

/// Others who wait for the name, or are next, look at once.
pub(super) fn others_look(d: &Domain, now: Moment) -> Stmt {
    sql("UPDATE domains SET check_asked_at = $3, check_asked_by = 'nameplate', due_at = $3, nudged = generation \
         WHERE hostname = $1 AND id <> $2 AND claim IN ('awaiting_dns', 'queued')")
    .bind(d.hostname.as_str())
    .bind(d.id.as_str())
    .bind(now)
}

/// Leaves notices for whoever holds those names, unless it is the same tenant, and wakes them.
pub(super) fn leave(d: &Domain, notices: &[NewNotice], now: Moment, id: &mut dyn FnMut() -> String) -> Vec<Stmt> {
    let mut all: Vec<Stmt> = notices
        .iter()
        .map(|n| {
            sql("INSERT INTO notices (id, domain_id, kind, about, actor, hostname, at) \
                 SELECT $1, h.domain_id, $3, $4, 'nameplate', $5, $6 FROM holdings h \
                 WHERE h.hostname = $2 AND h.state = 'held' AND h.tenant_id <> $7 \
                 ON CONFLICT (domain_id, kind, about) DO NOTHING")
            .bind(id())
            .bind(n.to_holder_of.as_str())
            .bind(n.kind.as_str())
            .bind(n.about.as_str())
            .bind(n.hostname.as_str())
            .bind(now)
            .bind(d.tenant_id.as_str())
        })
        .collect();
    let mut woken: Vec<&str> = notices.iter().map(|n| n.to_holder_of.as_str()).collect();
    woken.sort_unstable();
    woken.dedup();
    for name in woken {
        // Whose record is said to be gone looks for itself.
        let looks = notices.iter().any(|n| n.to_holder_of.as_str() == name && n.kind == NoticeKind::HandoverBegan);
        let wakes = sql("UPDATE domains SET due_at = CASE WHEN due_at > $3 THEN $3 ELSE due_at END, nudged = generation, \
               check_asked_at = CASE WHEN $4 = 1 THEN $3 ELSE check_asked_at END, \
               check_asked_by = CASE WHEN $4 = 1 THEN 'nameplate' ELSE check_asked_by END \
             WHERE id IN (SELECT h.domain_id FROM holdings h \
               WHERE h.hostname = $1 AND h.state = 'held' AND h.tenant_id <> $2)");
        all.push(wakes.bind(name).bind(d.tenant_id.as_str()).bind(now).bind(looks));
    }
    all
}

/// The new holder of a name hears of names beneath it that others hold: those had nobody to be told to before. The oldest ones,
/// where they are very many.
pub(super) fn tell_of_beneath(d: &Domain, now: Moment, id: &str) -> Stmt {
    sql("INSERT INTO notices (id, domain_id, kind, about, actor, hostname, at) \
         SELECT $1 || c.id, $2, 'claim_beneath', c.id, 'nameplate', c.hostname, $5 FROM domain_words w \
         JOIN domains c ON c.id = w.domain_id \
         JOIN holdings h ON h.hostname = c.hostname AND h.domain_id = c.id AND h.state = 'held' \
         WHERE w.word = $3 AND c.tenant_id <> $4 AND c.hostname <> $3 ORDER BY c.id LIMIT 100 \
         ON CONFLICT (domain_id, kind, about) DO NOTHING")
    .bind(id)
    .bind(d.id.as_str())
    .bind(d.hostname.as_str())
    .bind(d.tenant_id.as_str())
    .bind(now)
}

/// A notice was put into the history.
pub(super) fn heard(id: &str, now: Moment) -> Stmt {
    sql("UPDATE notices SET heard_at = $2 WHERE id = $1 AND heard_at IS NULL").bind(id).bind(now)
}
