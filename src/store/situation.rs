//! Taking a domain's lease, and reading it with everything next to it in one query.

use std::time::Duration;

use super::{Row, Stmt, Store, StoreError, StoreResult, Tx, renewals, sql};
use crate::model::domain::{Attempt, Domain, Grant, Holding, InUse, Issuer, OpenIntent, Situation};
use crate::model::hostname::Hostname;
use crate::model::id::DomainId;
use crate::model::letting_go::LettingGo;
use crate::model::moment::Moment;
use crate::model::notice::Notice;
use crate::model::order::Order;
use crate::model::pace;
use crate::model::renewal::Renewal;
use crate::model::standing::Standing;
use crate::model::succession::Succession;

/// Takes the lease of a domain that is due, raising its generation; nothing when it is not due or somebody else has it.
pub async fn take(store: &Store, id: &DomainId, owner: &str, now: Moment, terms: LeaseTerms) -> StoreResult<Option<Taken>> {
    let stmt = sql("UPDATE domains SET lease_owner = $2, generation = generation + 1, lease_until = CASE WHEN EXISTS ( \
           SELECT 1 FROM orders o WHERE o.domain_id = domains.id \
           AND o.state NOT IN ('issued', 'failed', 'lost') AND o.state <> 'waiting') THEN $5 ELSE $3 END \
         WHERE id = $1 AND due_at <= $4 AND lease_until <= $4 RETURNING generation, lease_until")
    .bind(id.as_str())
    .bind(owner)
    .bind(now + terms.looking)
    .bind(now)
    .bind(now + terms.asking);
    store.fetch_optional(stmt).await?.as_ref().map(taken).transpose()
}

/// How long a lease lasts.
#[derive(Clone, Copy, Debug)]
pub struct LeaseTerms {
    /// Where no order can be at a CA.
    pub looking: Duration,
    /// Where one can be.
    pub asking: Duration,
}

/// A lease that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The domain's generation from then on.
    pub generation: i64,
    /// When it runs out.
    pub until: Moment,
}

/// Gives the lease back without an outcome; the domain is due again at `again`.
pub async fn give_back(store: &Store, id: &DomainId, generation: i64, again: Moment) -> StoreResult<()> {
    let stmt = sql("UPDATE domains SET lease_owner = NULL, lease_until = 0, due_at = $3 WHERE id = $1 AND generation = $2")
        .bind(id.as_str())
        .bind(generation)
        .bind(again);
    store.execute(stmt).await.map(|_| ())
}

/// Raises the generation whoever has the lease, so that no step in flight can record anything any more.
pub async fn fence(tx: &mut Tx, id: &DomainId) -> StoreResult<Domain> {
    let stmt = sql("UPDATE domains SET lease_owner = NULL, lease_until = 0, generation = generation + 1 \
         WHERE id = $1 RETURNING *")
    .bind(id.as_str());
    let row = tx.fetch_optional(stmt).await?.ok_or_else(|| StoreError::not_found(format!("domain {id}")))?;
    domain(&row)
}

/// The lease that the record of a generation kept for the next step, where it was written and kept one.
pub async fn kept(store: &Store, id: &DomainId, generation: i64, owner: &str) -> StoreResult<Option<Taken>> {
    let stmt = sql("SELECT generation, lease_until FROM domains WHERE id = $1 AND settled = $2 AND generation = $3 \
         AND lease_owner = $4 AND lease_until > 0")
    .bind(id.as_str())
    .bind(generation)
    .bind(generation + 1)
    .bind(owner);
    store.query(stmt).await?.first().map(taken).transpose()
}

fn taken(row: &Row) -> StoreResult<Taken> {
    Ok(Taken { generation: row.int("generation")?, until: row.moment("lease_until")? })
}

/// The present generation.
pub async fn generation(store: &Store, id: &DomainId) -> StoreResult<i64> {
    let stmt = sql("SELECT generation FROM domains WHERE id = $1").bind(id.as_str());
    let rows = store.query(stmt).await?;
    rows.first().ok_or_else(|| StoreError::not_found(format!("domain {id}")))?.int("generation")
}

/// The domain and everything next to it.
pub async fn around(store: &Store, id: &DomainId, edges: CountedEdges) -> StoreResult<Situation> {
    let rows = store.query(next_to(id, edges)).await?;
    situation(rows.first(), id, edges)
}

/// The domain and everything next to it, inside a transaction.
pub async fn around_in(tx: &mut Tx, id: &DomainId, edges: CountedEdges) -> StoreResult<Situation> {
    let row = tx.fetch_optional(next_to(id, edges)).await?;
    situation(row.as_ref(), id, edges)
}

/// Which edges count, and how many must.
#[derive(Clone, Copy, Debug)]
pub struct CountedEdges {
    /// Heard of since then.
    pub heard_since: Moment,
    /// At least so many.
    pub min: usize,
}

/// One row for one domain: order and grant are chosen by their keys, for a sort would carry every column of the row along.
fn next_to(id: &DomainId, edges: CountedEdges) -> Stmt {
    sql("SELECT d.*, t.slug, t.status AS t_status, a.value, a.opened_at, a.deadline, a.proven_at, \
           h.domain_id AS h_domain, h.tenant_id AS h_tenant, h.state AS h_state, h.term AS h_term, h.since AS h_since, \
           h.successor_id AS h_successor, h.successor_at AS h_successor_at, h.successor_counted AS h_counted, \
           h.successor_seen_at AS h_seen_at, x.id AS x_id, x.kind AS x_kind, x.actor AS x_actor, x.hostname AS x_hostname, \
           ha.value AS h_value, \
           i.id AS i_id, i.name AS i_name, i.directory AS i_directory, i.caa_identities AS i_caa, i.account_url AS i_account, \
           o.id AS o_id, o.purpose AS o_purpose, o.lane AS o_lane, o.issuer_id AS o_issuer, o.state AS o_state, \
           o.state_since AS o_since, o.not_before AS o_not_before, o.url AS o_url, o.challenge_url AS o_challenge_url, \
           o.challenge_id AS o_challenge, o.announced_at AS o_announced, \
           o.sealed_key AS o_key, i.account_key AS i_key, \
           g.id AS g_id, g.state AS g_state, g.expires_at AS g_expires, g.free AS g_free, \
           c.id AS c_id, c.serial AS c_serial, c.not_before AS c_not_before, c.not_after AS c_not_after, \
           c.stored_at AS c_stored, c.issuer_id AS c_issuer, c.ari_id AS c_ari, i.honours_replaces AS i_honours, \
           w.domain_id AS w_id, w.renew_at, w.window_start, w.window_end, w.explanation, w.poll_at, w.failures AS w_failures, \
           w.said AS w_said, w.refused, w.former_id, w.switch_at, w.reissue_id, \
           COALESCE((SELECT q.hurries FROM reissues q WHERE q.id = w.reissue_id), 0) AS w_hurries, \
           (SELECT count(*) FROM edges e WHERE e.status = 'active' AND e.lost_at IS NULL AND e.heartbeat_at > $2) AS edges, \
           (SELECT recovering_since FROM feed WHERE id = 1) AS f_recovering, \
           (SELECT rc.not_after FROM recollections rc WHERE rc.hostname = d.hostname AND rc.tenant_id = d.tenant_id \
             AND (rc.outcome = 'newer' OR rc.settled_at IS NULL)) AS f_remembered, \
           CAST(CASE WHEN (SELECT recovering_since FROM feed WHERE id = 1) IS NULL THEN 0 \
             WHEN EXISTS (SELECT 1 FROM recollections ru WHERE ru.hostname = d.hostname AND ru.settled_at IS NULL) THEN 1 \
             WHEN EXISTS (SELECT 1 FROM edges e WHERE e.status = 'active' AND e.lost_at IS NULL AND e.heartbeat_at > $2 \
               AND e.cursor_epoch <> (SELECT epoch FROM feed WHERE id = 1)) THEN 1 \
             WHEN EXISTS (SELECT 1 FROM edges e WHERE e.status = 'active' \
               AND e.cursor_epoch = (SELECT epoch FROM feed WHERE id = 1)) THEN 0 ELSE 1 END AS BIGINT) AS f_unreminded, \
           m.hold, i.limits AS i_limits, i.roots AS i_roots, i.profile AS i_profile, COALESCE(ih.failures + ih.halts, 0) AS i_failures, n.effect AS n_effect, n.object_id AS n_object, n.generation AS n_generation \
         FROM domains d \
         JOIN tenants t ON t.id = d.tenant_id \
         JOIN attempts a ON a.id = d.attempt_id \
         LEFT JOIN orders o ON o.id = (SELECT min(p.id) FROM orders p WHERE p.domain_id = d.id \
           AND p.state NOT IN ('issued', 'failed', 'lost')) \
         JOIN issuers i ON i.id = COALESCE(o.issuer_id, (SELECT id FROM issuers ORDER BY \
           CASE WHEN preference < 1000000000 AND account_url IS NOT NULL THEN 0 ELSE 1 END, preference, name LIMIT 1)) \
         LEFT JOIN issuer_health ih ON ih.issuer_id = i.id \
         LEFT JOIN grants g ON g.id = COALESCE((SELECT q.id FROM grants q WHERE q.order_id = o.id AND q.state = 'open'), \
           (SELECT max(q.id) FROM grants q WHERE q.order_id = o.id AND q.state = 'used')) \
         LEFT JOIN holdings h ON h.hostname = d.hostname \
         LEFT JOIN domains hd ON hd.id = h.domain_id \
         LEFT JOIN attempts ha ON ha.id = hd.attempt_id \
         LEFT JOIN certificates c ON c.id = d.certificate_id \
         LEFT JOIN renewals w ON w.domain_id = d.id AND w.certificate_id = d.certificate_id \
         LEFT JOIN notices x ON x.id = (SELECT min(u.id) FROM notices u WHERE u.domain_id = d.id AND u.heard_at IS NULL) \
         LEFT JOIN intents n ON n.subject_kind = 'domain' AND n.subject_id = d.id \
         LEFT JOIN imports m ON m.id = d.import_id AND d.lane = 'bulk' \
         WHERE d.id = $1")
    .bind(id.as_str())
    .bind(edges.heard_since)
}

/// The row of a claim.
pub fn domain(row: &Row) -> StoreResult<Domain> {
    Ok(Domain {
        id: row.parse("id")?,
        tenant_id: row.parse("tenant_id")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
        lane: row.parse("lane")?,
        claim: row.parse("claim")?,
        claim_since: row.moment("claim_since")?,
        routing_mode: row.parse("routing_mode")?,
        target: row.text("target")?,
        attempt_id: row.parse("attempt_id")?,
        evidence: row.json("evidence")?,
        looked_at: row.opt_moment("looked_at")?,
        pace_from: row.moment("pace_from")?,
        check_asked_at: row.opt_moment("check_asked_at")?,
        check_asked_by: row.opt_text("check_asked_by")?,
        public_probe: row.opt_json("public_probe")?,
        tie: row.parse("tie")?,
        lost_for_us: row.int("lost_for_us")?,
        counted_until: row.opt_moment("counted_until")?,
        due_at: row.moment("due_at")?,
        generation: row.int("generation")?,
        settled: row.int("settled")?,
        failures: row.int("failures")?,
        event_seq: row.int("event_seq")?,
        edits: row.int("edits")?,
        certificate_id: row.opt_parse("certificate_id")?,
        active_since: row.opt_moment("active_since")?,
        released_at: row.opt_moment("released_at")?,
        created_at: row.moment("created_at")?,
    })
}

fn situation(row: Option<&Row>, id: &DomainId, edges: CountedEdges) -> StoreResult<Situation> {
    let row = row.ok_or_else(|| StoreError::not_found(format!("domain {id} and an issuer for it")))?;
    let domain = domain(row)?;
    let intent = match row.opt_int("n_generation")? {
        Some(generation) if generation > domain.settled => {
            Some(OpenIntent { effect: row.parse("n_effect")?, object_id: row.text("n_object")? })
        }
        _ => None,
    };
    Ok(Situation {
        tenant_slug: row.text("slug")?,
        tenant_status: row.parse("t_status")?,
        attempt: Attempt {
            value: row.text("value")?,
            opened_at: row.moment("opened_at")?,
            deadline: row.moment("deadline")?,
            proven_at: row.opt_moment("proven_at")?,
        },
        holding: holding(row)?,
        issuer: Issuer {
            id: row.parse("i_id")?,
            name: row.text("i_name")?,
            directory: row.text("i_directory")?,
            caa_identities: row.json("i_caa")?,
            account_url: row.opt_text("i_account")?,
            sealed_account_key: row.opt_blob("i_key")?,
            limits: row.json("i_limits")?,
            roots: row.opt_text("i_roots")?,
            profile: row.opt_text("i_profile")?,
            clouded: row.int("i_failures")? > 0,
            honours_replaces: row.int("i_honours")? != 0,
        },
        order: order(row)?,
        grant: grant(row)?,
        certificate: certificate(row)?,
        renewal: renewal(row)?,
        intent,
        notice: notice(row)?,
        held: row.opt_parse("hold")?,
        counted_edges: usize::try_from(row.int("edges")?).unwrap_or(0),
        min_edges: edges.min,
        lap: pace::SHORTEST_LAP,
        letting_go: LettingGo::default(),
        recovering_since: row.opt_moment("f_recovering")?,
        remembered_until: row.opt_moment("f_remembered")?,
        unreminded: row.int("f_unreminded")? != 0,
        stood: stood(row)?,
        domain,
    })
}

/// Nothing for a word of another release, or one that it took for another's move.
fn stood(row: &Row) -> StoreResult<Option<(Standing, Option<Moment>)>> {
    let (acts, until) = (row.text("acts")?, row.opt_moment("certificate_until")?);
    let standing = Standing::from_code(&row.text("standing")?).filter(|s| s.acts().as_str() == acts);
    Ok(standing.map(|standing| (standing, until)))
}

fn holding(row: &Row) -> StoreResult<Option<Holding>> {
    let Some(state) = row.opt_parse("h_state")? else { return Ok(None) };
    Ok(Some(Holding {
        state,
        domain_id: row.opt_parse("h_domain")?,
        tenant_id: row.opt_parse("h_tenant")?,
        term: row.int("h_term")?,
        since: row.moment("h_since")?,
        value: row.opt_text("h_value")?,
        successor: succession(row)?,
    }))
}

fn succession(row: &Row) -> StoreResult<Option<Succession>> {
    let Some(domain_id) = row.opt_parse("h_successor")? else { return Ok(None) };
    Ok(Some(Succession {
        domain_id,
        since: row.moment("h_successor_at")?,
        counted: Duration::from_micros(u64::try_from(row.int("h_counted")?).unwrap_or(0)),
        seen_at: row.opt_moment("h_seen_at")?,
    }))
}

fn notice(row: &Row) -> StoreResult<Option<Notice>> {
    let Some(id) = row.opt_text("x_id")? else { return Ok(None) };
    Ok(Some(Notice {
        id,
        kind: row.parse("x_kind")?,
        actor: row.text("x_actor")?,
        hostname: Hostname::trusted(&row.text("x_hostname")?),
    }))
}

fn order(row: &Row) -> StoreResult<Option<Order>> {
    let Some(id) = row.opt_parse("o_id")? else { return Ok(None) };
    Ok(Some(Order {
        id,
        purpose: row.parse("o_purpose")?,
        lane: row.parse("o_lane")?,
        issuer_id: row.parse("o_issuer")?,
        state: row.parse("o_state")?,
        state_since: row.moment("o_since")?,
        not_before: row.moment("o_not_before")?,
        sealed_key: row.opt_blob("o_key")?,
        url: row.opt_text("o_url")?,
        challenge_url: row.opt_text("o_challenge_url")?,
        challenge_id: row.opt_parse("o_challenge")?,
        announced_at: row.opt_moment("o_announced")?,
        certificate_id: None,
    }))
}

fn grant(row: &Row) -> StoreResult<Option<Grant>> {
    let Some(id) = row.opt_parse("g_id")? else { return Ok(None) };
    Ok(Some(Grant { id, state: row.parse("g_state")?, expires_at: row.moment("g_expires")?, free: row.int("g_free")? != 0 }))
}

fn certificate(row: &Row) -> StoreResult<Option<InUse>> {
    let Some(id) = row.opt_parse("c_id")? else { return Ok(None) };
    Ok(Some(InUse {
        id,
        serial: row.text("c_serial")?,
        not_before: row.moment("c_not_before")?,
        not_after: row.moment("c_not_after")?,
        stored_at: row.moment("c_stored")?,
        issuer_id: row.opt_parse("c_issuer")?,
        ari_id: row.opt_text("c_ari")?,
    }))
}

fn renewal(row: &Row) -> StoreResult<Option<Renewal>> {
    if row.opt_text("w_id")?.is_none() {
        return Ok(None);
    }
    Ok(Some(Renewal {
        schedule: renewals::schedule(row, "w_failures", "w_said")?,
        refused: row.int("refused")? != 0,
        former: row.opt_parse("former_id")?,
        switch_at: row.opt_moment("switch_at")?,
        reissue: row.opt_text("reissue_id")?,
        hurries: row.int("w_hurries")? == 1,
    }))
}
