//! Renewals: when each certificate in use is to be followed, what the CA said of it, and grants that cost nothing.

use std::time::Duration;

use super::{Row, Stmt, Store, StoreResult, sql};
use crate::model::domain::{Domain, Situation};
use crate::model::id::{CertificateId, DomainId, GrantId, IssuerId, OrderId};
use crate::model::ledger::{Limit, UNANSWERED};
use crate::model::limits::{Counted, LimitName, spends};
use crate::model::moment::Moment;
use crate::model::renewal::{Schedule, Validity, Window};

/// The schedule of a row that has its columns, two of them by these names.
pub(super) fn schedule(row: &Row, failures: &'static str, said: &'static str) -> StoreResult<Schedule> {
    let window = row.opt_moment("window_start")?.zip(row.opt_moment("window_end")?);
    Ok(Schedule {
        at: row.moment("renew_at")?,
        window: window.map(|(start, end)| Window { start, end }),
        explanation: row.opt_text("explanation")?,
        poll_at: row.moment("poll_at")?,
        failures: row.int(failures)?,
        said: row.opt_text(said)?,
    })
}

/// The certificate is in use from now on. Who asked for a replacement has it, unless the order had been placed before that.
pub(super) fn upsert(
    d: &Domain,
    of: &CertificateId,
    s: &Schedule,
    former: Option<&CertificateId>,
    switch_at: Option<Moment>,
    order: Option<&OrderId>,
) -> Stmt {
    sql("INSERT INTO renewals (domain_id, certificate_id, renew_at, window_start, window_end, explanation, poll_at, failures, \
           said, refused, former_id, switch_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11) \
         ON CONFLICT (domain_id) DO UPDATE SET certificate_id = excluded.certificate_id, renew_at = excluded.renew_at, \
           window_start = excluded.window_start, window_end = excluded.window_end, explanation = excluded.explanation, \
           poll_at = excluded.poll_at, failures = excluded.failures, said = excluded.said, refused = 0, \
           former_id = excluded.former_id, switch_at = excluded.switch_at, \
           reissue_id = CASE WHEN renewals.reissue_past = $12 THEN renewals.reissue_id ELSE NULL END, reissue_past = NULL")
    .bind(d.id.as_str())
    .bind(of.as_str())
    .bind(s.at)
    .bind(s.window.map(|w| w.start))
    .bind(s.window.map(|w| w.end))
    .bind(s.explanation.as_deref())
    .bind(s.poll_at)
    .bind(s.failures)
    .bind(s.said.as_deref())
    .bind(former.map(|c| c.as_str()))
    .bind(switch_at)
    .bind(order.map_or("", |o| o.as_str()))
}

/// Edges were told to serve the certificate.
pub(super) fn switched(d: &Domain) -> Stmt {
    sql("UPDATE renewals SET switch_at = NULL WHERE domain_id = $1").bind(d.id.as_str())
}

/// Every counted edge has proven the certificate; of those before it nothing is left.
pub(super) fn retired(d: &Domain, all_but: &CertificateId) -> [Stmt; 2] {
    [
        sql("UPDATE renewals SET former_id = NULL WHERE domain_id = $1").bind(d.id.as_str()),
        sql("UPDATE orders SET sealed_key = NULL WHERE domain_id = $1 AND state IN ('issued', 'failed', 'lost') \
             AND sealed_key IS NOT NULL AND id <> (SELECT c.order_id FROM certificates c WHERE c.id = $2)")
        .bind(d.id.as_str())
        .bind(all_but.as_str()),
    ]
}

/// Nothing of the domain is renewed any more.
pub(super) fn over(d: &Domain) -> Stmt {
    sql("DELETE FROM renewals WHERE domain_id = $1").bind(d.id.as_str())
}

/// The CA does not take the certificate in use as one to be replaced.
pub(super) fn refused(d: &Domain) -> Stmt {
    sql("UPDATE renewals SET refused = 1 WHERE domain_id = $1").bind(d.id.as_str())
}

/// Whether the CA takes orders as replacements of what they name.
pub(super) fn honours(issuer: &IssuerId, yes: bool) -> Stmt {
    sql("UPDATE issuers SET honours_replaces = $2 WHERE id = $1").bind(issuer.as_str()).bind(i64::from(yes))
}

/// A grant beside the dispatcher's.
pub(super) fn take_grant(s: &Situation, id: &GrantId, order: &OrderId, expires_at: Moment, now: Moment) -> Stmt {
    sql("INSERT INTO grants (id, issuer_id, order_id, granted_at, expires_at, state, free) VALUES ($1, $2, $3, $4, $5, 'open', 1)")
        .bind(id.as_str())
        .bind(s.issuer.id.as_str())
        .bind(order.as_str())
        .bind(now)
        .bind(expires_at)
}

/// What such a grant may cost: the order itself, until the CA was heard to take it as a replacement, and a validation that fails,
/// whatever the order is for. Whoever never hears an answer finds the order counted at the deadline, as all others are.
pub(super) fn may_cost(s: &Situation, grant: &GrantId, expires_at: Moment, now: Moment) -> Vec<Stmt> {
    let may = |counted| matches!(counted, Counted::Order | Counted::Failure);
    spends_of(s, may)
        .map(|(limit, numbers, key)| spend(s, grant, (limit, numbers, key), expires_at + UNANSWERED, now))
        .collect()
}

/// The grant took nothing: the CA counts neither the order nor its certificate.
pub(super) fn exempt(grant: &GrantId) -> [Stmt; 2] {
    [
        sql("UPDATE grants SET state = 'used' WHERE id = $1").bind(grant.as_str()),
        sql("DELETE FROM spends WHERE grant_id = $1 AND counts <> 'failure'").bind(grant.as_str()),
    ]
}

/// The order is no replacement to the CA: its certificate will cost what every certificate costs.
pub(super) fn certificate_may_count(s: &Situation, grant: &GrantId, now: Moment) -> Vec<Stmt> {
    spends_of(s, |counted| counted == Counted::Certificate).map(|of| spend(s, grant, of, Moment::NEVER, now)).collect()
}

fn spends_of(s: &Situation, which: impl Fn(Counted) -> bool) -> impl Iterator<Item = (LimitName, Limit, &str)> {
    spends(&s.issuer.limits, &s.domain.hostname).filter(move |(limit, ..)| which(limit.counts()))
}

/// An open spend. What the order's outcome decides has no deadline: every order ends, and settles it.
fn spend(
    s: &Situation,
    grant: &GrantId,
    (limit, numbers, key): (LimitName, Limit, &str),
    answered_by: Moment,
    now: Moment,
) -> Stmt {
    let deadline = if limit.counts() == Counted::Order { answered_by } else { Moment::NEVER };
    sql("INSERT INTO spends (grant_id, issuer_id, limit_name, key, counts, interval_us, opened_at, deadline) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")
    .bind(grant.as_str())
    .bind(s.issuer.id.as_str())
    .bind(limit.as_str())
    .bind(key)
    .bind(limit.counts().as_str())
    .bind(i64::try_from(numbers.interval().as_micros()).unwrap_or(i64::MAX))
    .bind(now)
    .bind(deadline)
}

/// A certificate in use about which its CA is to be asked.
#[derive(Clone, Debug)]
pub struct ToAsk {
    /// Whose.
    pub domain_id: DomainId,
    /// The certificate.
    pub certificate_id: CertificateId,
    /// What the CA knows it by; none for one without.
    pub ari_id: Option<String>,
    /// Who issued it.
    pub issuer_id: Option<IssuerId>,
    /// How long it is good.
    pub validity: Validity,
    /// What is known.
    pub schedule: Schedule,
    /// Whether the name is live and served with it: about any other nobody is asked.
    pub in_use: bool,
}

/// No CA is asked later than this: what stands further ahead was written by a clock that ran ahead, and counts as due.
const FARTHEST: Duration = Duration::from_secs(2 * 86_400);

/// Takes what is due to be asked, at most so many, the longest due first: nobody else asks about it before `until`.
pub async fn take_to_ask(store: &Store, now: Moment, until: Moment, limit: usize) -> StoreResult<Vec<ToAsk>> {
    let stmt = sql("SELECT r.*, c.ari_id, c.issuer_id, c.not_before, c.not_after, \
           CAST(CASE WHEN d.claim = 'live' AND d.certificate_id = r.certificate_id THEN 1 ELSE 0 END AS BIGINT) AS in_use \
         FROM renewals r JOIN domains d ON d.id = r.domain_id JOIN certificates c ON c.id = r.certificate_id \
         WHERE r.domain_id IN (SELECT domain_id FROM (SELECT domain_id FROM renewals WHERE poll_at <= $1 ORDER BY poll_at LIMIT $2) due \
           UNION ALL SELECT domain_id FROM (SELECT domain_id FROM renewals WHERE poll_at > $3 ORDER BY poll_at LIMIT $2) far)")
    .bind(now)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .bind(now + FARTHEST);
    let mut all = Vec::new();
    for row in store.query(stmt).await? {
        all.push(ToAsk {
            domain_id: row.parse("domain_id")?,
            certificate_id: row.parse("certificate_id")?,
            ari_id: row.opt_text("ari_id")?,
            issuer_id: row.opt_parse("issuer_id")?,
            validity: Validity { not_before: row.moment("not_before")?, not_after: row.moment("not_after")? },
            schedule: schedule(&row, "failures", "said")?,
            in_use: row.int("in_use")? != 0,
        });
    }
    // As whoever else writes to several rows has them.
    all.sort_by(|a: &ToAsk, b| a.domain_id.cmp(&b.domain_id));
    let take = |ask: &ToAsk| {
        sql("UPDATE renewals SET poll_at = $3 WHERE domain_id = $1 AND poll_at = $2")
            .bind(ask.domain_id.as_str())
            .bind(ask.schedule.poll_at)
            .bind(until)
    };
    let taken = in_chunks(store, all.iter().map(take).collect()).await?;
    Ok(all.into_iter().zip(taken).filter(|(_, n)| *n == 1).map(|(ask, _)| ask).collect())
}

/// Writes what was learnt, some at a time. Whose moment is earlier than before is due then, and is looked at in its next step. Rows are
/// locked as steps lock them, the domain first, and by everybody in the order of the domains.
pub async fn learnt(store: &Store, of: &[(ToAsk, Schedule)]) -> StoreResult<()> {
    let mut of: Vec<&(ToAsk, Schedule)> = of.iter().collect();
    of.sort_by(|(a, _), (b, _)| a.domain_id.cmp(&b.domain_id));
    for chunk in of.chunks(CHUNK) {
        let mut tx = store.begin().await?;
        let sooner = chunk.iter().filter(|(ask, s)| s.at < ask.schedule.at);
        tx.batch(sooner.map(|(ask, s)| due_sooner(ask, s.at)).collect()).await?;
        tx.batch(chunk.iter().map(|(ask, s)| rescheduled(ask, s)).collect()).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// A step in flight may write a later moment over this: it keeps the domain due, and the next one knows better.
fn due_sooner(ask: &ToAsk, at: Moment) -> Stmt {
    sql("UPDATE domains SET due_at = CASE WHEN due_at > $3 THEN $3 ELSE due_at END, nudged = generation \
         WHERE id = $1 AND certificate_id = $2 AND claim = 'live'")
    .bind(ask.domain_id.as_str())
    .bind(ask.certificate_id.as_str())
    .bind(at)
}

fn rescheduled(ask: &ToAsk, s: &Schedule) -> Stmt {
    sql("UPDATE renewals SET renew_at = $3, window_start = $4, window_end = $5, explanation = $6, poll_at = $7, \
           failures = $8, said = $9 WHERE domain_id = $1 AND certificate_id = $2")
    .bind(ask.domain_id.as_str())
    .bind(ask.certificate_id.as_str())
    .bind(s.at)
    .bind(s.window.map(|w| w.start))
    .bind(s.window.map(|w| w.end))
    .bind(s.explanation.as_deref())
    .bind(s.poll_at)
    .bind(s.failures)
    .bind(s.said.as_deref())
}

/// When somebody is to be asked next.
pub async fn next_to_ask(store: &Store) -> StoreResult<Option<Moment>> {
    let rows = store.query(sql("SELECT min(poll_at) AS at FROM renewals")).await?;
    rows.first().map_or(Ok(None), |row| row.opt_moment("at"))
}

/// How many statements go into one round trip.
const CHUNK: usize = 20;

async fn in_chunks(store: &Store, stmts: Vec<Stmt>) -> StoreResult<Vec<u64>> {
    let mut changed = Vec::with_capacity(stmts.len());
    let mut rest = stmts.into_iter().peekable();
    if rest.peek().is_none() {
        return Ok(changed);
    }
    let mut tx = store.begin().await?;
    while rest.peek().is_some() {
        changed.extend(tx.batch(rest.by_ref().take(CHUNK).collect()).await?);
    }
    tx.commit().await?;
    Ok(changed)
}
