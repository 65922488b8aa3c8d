//! Recording: the intent before an effect, the outcome after a step. A stale generation can write neither.

use super::{
    Stmt, Store, StoreError, StoreResult, Tx, domain_row, expiry, holdings, issuer_health, ledger, outbox, pairs, renewals,
    resting, revocations, sql,
};
use crate::model::claim::Claim;
use crate::model::domain::{Domain, Effect, Role, Situation};
use crate::model::id::{CertificateId, EventId, GrantId, OrderId};
use crate::model::ledger::UNANSWERED;
use crate::model::limits::{Counted, Ending, Fate, LimitName};
use crate::model::moment::Moment;
use crate::model::order::Order;
use crate::model::outcome::{NewCertificate, NewEvent, Outcome, Write};
use crate::model::standing;

/// What became of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Written.
    Yes,
    /// The generation or a state it was decided by is no longer the present one: nothing was written.
    Superseded,
    /// The name is held by somebody else by now: nothing was written.
    NotHolder,
}

/// The lease goes on with the record.
#[derive(Clone, Copy, Debug)]
pub struct Keep<'a> {
    /// Who has it.
    pub owner: &'a str,
    /// Until then.
    pub until: Moment,
}

/// Records that `effect` is about to be done; durable when this returns [`Recorded::Yes`].
pub async fn intent(store: &Store, s: &Situation, effect: Effect, object_id: &str, now: Moment) -> StoreResult<Recorded> {
    let intent = sql("INSERT INTO intents (subject_kind, subject_id, effect, object_id, generation, recorded_at) \
         SELECT 'domain', d.id, $3, $4, d.generation, $5 FROM domains d JOIN tenants t ON t.id = d.tenant_id \
         WHERE d.id = $1 AND d.generation = $2 AND t.status <> 'deleted' \
         ON CONFLICT (subject_kind, subject_id) DO UPDATE SET effect = excluded.effect, \
           object_id = excluded.object_id, generation = excluded.generation, recorded_at = excluded.recorded_at")
    .bind(s.domain.id.as_str())
    .bind(s.domain.generation)
    .bind(effect.as_str())
    .bind(object_id)
    .bind(now);
    if effect != Effect::NewOrder {
        return Ok(if store.execute(intent).await? == 1 { Recorded::Yes } else { Recorded::Superseded });
    }
    // The grant is used with the same stroke: the dispatcher can take it back before, and never after.
    let grant = sql("UPDATE grants SET state = 'used' WHERE id = $1 AND state = 'open' AND expires_at > $2")
        .bind(s.grant.as_ref().map_or("", |g| g.id.as_str()))
        .bind(now);
    let mut tx = store.begin().await?;
    if tx.batch(vec![intent, grant]).await?.iter().any(|n| *n != 1) {
        return Ok(Recorded::Superseded);
    }
    tx.commit().await?;
    Ok(Recorded::Yes)
}

/// Records an outcome decided at the situation's generation. The caller commits when it is [`Recorded::Yes`] and drops `tx`
/// when not. `keep` takes the lease for the next step, at the next generation; `event_id` mints ids for the events.
pub async fn outcome(
    tx: &mut Tx,
    s: &Situation,
    out: &Outcome,
    keep: Option<Keep<'_>>,
    now: Moment,
    mut event_id: impl FnMut() -> EventId,
) -> StoreResult<Recorded> {
    if out.writes.iter().any(|w| matches!(w, Write::Unlink)) && !pairs::hold_linked(tx, &s.domain.id).await? {
        return Ok(Recorded::Superseded);
    }
    let returned = out.writes.iter().any(|w| matches!(w, Write::GrantReturned(..)));
    let mut batch = Batch { stmts: Vec::new(), guards: Vec::new(), holding: None, returned };
    let seq = s.domain.event_seq + i64::try_from(out.events.len()).unwrap_or(i64::MAX);
    batch.guarded(domain_row::after(s, &out.domain, seq, standing::after(s, out), keep, now)?);
    for write in &out.writes {
        batch.write(s, write, now, &mut || event_id().to_string())?;
    }
    for (event, n) in out.events.iter().zip(1..) {
        batch.free(event_row(&s.domain, event, s.domain.event_seq + n, &event_id(), now));
    }
    let live = |d: &Domain| d.claim == Claim::Live;
    let another = s.domain.certificate_id != out.domain.certificate_id || live(&s.domain) != live(&out.domain);
    if another || live(&out.domain) && out.saw_something_new() {
        batch.free(expiry::touch(&s.domain.id));
    }
    let changed = tx.batch(batch.stmts).await?;
    if batch.guards.iter().any(|i| changed.get(*i) != Some(&1)) {
        return Ok(Recorded::Superseded);
    }
    if batch.holding.is_some_and(|i| changed.get(i) != Some(&1)) {
        return Ok(Recorded::NotHolder);
    }
    Ok(Recorded::Yes)
}

/// An event's row.
pub fn event_row(domain: &Domain, event: &NewEvent, seq: i64, id: &EventId, now: Moment) -> Stmt {
    sql("INSERT INTO events (id, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)")
    .bind(id.as_str())
    .bind(domain.tenant_id.as_str())
    .bind(domain.id.as_str())
    .bind(seq)
    .bind(event.kind)
    .bind(event.actor.as_str())
    .bind(event.cause.as_str())
    .bind(event.detail.to_string())
    .bind(now)
}

/// A document as JSON text.
pub fn document<T: serde::Serialize>(value: &T) -> StoreResult<String> {
    serde_json::to_string(value).map_err(StoreError::unavailable)
}

struct Batch {
    stmts: Vec<Stmt>,
    /// Statements that must change exactly one row.
    guards: Vec<usize>,
    /// The statement that takes the holding.
    holding: Option<usize>,
    /// A grant goes back, and with it all that it was to spend.
    returned: bool,
}

impl Batch {
    fn free(&mut self, stmt: Stmt) {
        self.stmts.push(stmt);
    }

    fn guarded(&mut self, stmt: Stmt) {
        self.guards.push(self.stmts.len());
        self.stmts.push(stmt);
    }

    fn write(&mut self, s: &Situation, write: &Write, now: Moment, id: &mut dyn FnMut() -> String) -> StoreResult<()> {
        let d = &s.domain;
        match write {
            Write::TakeHolding { ends_quarantine_of } => {
                self.holding = Some(self.stmts.len());
                self.free(holdings::take(d, ends_quarantine_of.as_ref().map(|f| f.as_str()), now));
                self.free(holdings::others_queued(d, now));
                self.free(holdings::tell_of_beneath(d, now, &id()));
                if let Some(former) = ends_quarantine_of {
                    self.destroy_certificate_keys(former.as_str(), now, id);
                    self.free(nudge(former.as_str(), now));
                }
            }
            Write::Succeed { holder, clock } => {
                self.holding = Some(self.stmts.len());
                self.free(holdings::succeed(d, holder, clock));
            }
            Write::EndSuccession { of } => {
                self.free(holdings::end_succession(d, of));
                self.free(holdings::others_look(d, now));
            }
            Write::TakeOver { from } => {
                self.holding = Some(self.stmts.len());
                self.free(holdings::take_over(d, from, now));
                self.free(holdings::tell_of_beneath(d, now, &id()));
                for stmt in holdings::hand_over(from, &id(), now) {
                    self.free(stmt);
                }
            }
            Write::Leave(notices) => holdings::leave(d, notices, now, id).into_iter().for_each(|stmt| self.free(stmt)),
            Write::Heard(notice) => self.free(holdings::heard(notice, now)),
            Write::Unlink => pairs::unlink(d, now, id).into_iter().for_each(|stmt| self.free(stmt)),
            Write::FreeHolding => self.let_go(d, "free", now),
            Write::Quarantine => self.let_go(d, "quarantined", now),
            Write::ProveAttempt => self.free(
                sql("UPDATE attempts SET proven_at = $2 WHERE id = $1").bind(d.attempt_id.as_str()).bind(now),
            ),
            Write::CloseAttempt => self.free(
                sql("UPDATE attempts SET closed_at = $2 WHERE id = $1").bind(d.attempt_id.as_str()).bind(now),
            ),
            Write::OpenOrder { id, purpose, lane, issuer_id, not_before } => self.free(
                sql("INSERT INTO orders (id, domain_id, tenant_id, purpose, lane, issuer_id, state, state_since, not_before, \
                       created_at, ends_at) VALUES ($1, $2, $8, $3, $4, $5, 'waiting', $6, $7, $6, \
                       COALESCE((SELECT certificate_until FROM domains WHERE id = $2 AND $4 = 'renewal'), 9223372036854775807))")
                .bind(id.as_str())
                .bind(d.id.as_str())
                .bind(purpose.as_str())
                .bind(lane.as_str())
                .bind(issuer_id.as_str())
                .bind(now)
                .bind(*not_before)
                .bind(d.tenant_id.as_str()),
            ),
            Write::Order { order, was, problem } => self.guarded(order_row(order, was.as_str(), problem.as_deref())),
            Write::OrderLane(id, lane) => self.free(
                sql("UPDATE orders SET lane = $2, ends_at = COALESCE((SELECT d.certificate_until FROM domains d \
                       WHERE d.id = orders.domain_id AND $2 = 'renewal'), 9223372036854775807) WHERE id = $1 AND state = 'waiting'")
                .bind(id.as_str())
                .bind(lane.as_str()),
            ),
            Write::OrderKey { id, sealed } => self.guarded(
                sql("UPDATE orders SET sealed_key = $2 WHERE id = $1 AND state = 'granted'")
                    .bind(id.as_str())
                    .bind(sealed.clone()),
            ),
            Write::GrantCounted(grant) => self.counted(grant, now),
            Write::GrantReturned(grant, was) => {
                self.guarded(
                    sql("UPDATE grants SET state = 'returned' WHERE id = $1 AND state = $2")
                        .bind(grant.as_str())
                        .bind(was.as_str()),
                );
                self.free(sql("DELETE FROM spends WHERE grant_id = $1").bind(grant.as_str()));
            }
            Write::TakeGrant { id, order_id, expires_at } => {
                self.free(renewals::take_grant(s, id, order_id, *expires_at, now));
                renewals::may_cost(s, id, *expires_at, now).into_iter().for_each(|stmt| self.free(stmt));
            }
            Write::GrantExempt(grant) => renewals::exempt(grant).into_iter().for_each(|stmt| self.free(stmt)),
            Write::GrantCharged(grant) => {
                self.counted(grant, now);
                renewals::certificate_may_count(s, grant, now).into_iter().for_each(|stmt| self.free(stmt));
            }
            Write::HonoursReplaces(issuer, yes) => self.free(renewals::honours(issuer, *yes)),
            Write::ReplacesRefused => self.free(renewals::refused(d)),
            Write::Renewal { of, schedule, former, switch_at } => {
                let order = s.order.as_ref().map(|o| &o.id);
                self.free(renewals::upsert(d, of, schedule, former.as_ref(), *switch_at, order));
            }
            Write::Switched => self.free(renewals::switched(d)),
            Write::Retire { all_but } => {
                self.destroy_keys(d.id.as_str(), Some(all_but), now, id);
                renewals::retired(d, all_but).into_iter().for_each(|stmt| self.free(stmt));
            }
            Write::GrantAgain(grant, until) => {
                self.free(
                    sql("UPDATE grants SET state = 'open', expires_at = $2 WHERE id = $1").bind(grant.as_str()).bind(*until),
                );
                self.free(
                    sql("UPDATE spends SET deadline = $2 WHERE grant_id = $1 AND counts = 'order'")
                        .bind(grant.as_str())
                        .bind(*until + UNANSWERED),
                );
            }
            Write::Issuer(issuer, news) => self.free(issuer_health::news(issuer, news, s.issuer.sealed_account_key.as_deref(), now)),
            Write::SpendsClosed(order, ending) => self.spends_closed(s, order, *ending, now),
            Write::Refused(refusal) => self.free(ledger::refused(refusal, now)),
            Write::PublishChallenge { id: challenge, order_id, token, key_authorization } => {
                self.free(
                    sql("INSERT INTO challenges (id, order_id, hostname, token, key_authorization, published_at) \
                         VALUES ($1, $2, $3, $4, $5, $6)")
                    .bind(challenge.as_str())
                    .bind(order_id.as_str())
                    .bind(d.hostname.as_str())
                    .bind(token.as_str())
                    .bind(key_authorization.as_str())
                    .bind(now),
                );
                self.free(outbox::insert(&id(), "challenge", challenge.as_str(), now.micros(), now));
            }
            Write::RemoveChallenge(challenge) => {
                self.free(
                    sql("UPDATE challenges SET removed_at = $2 WHERE id = $1 AND removed_at IS NULL")
                        .bind(challenge.as_str())
                        .bind(now),
                );
                self.free(outbox::insert(&id(), "challenge", challenge.as_str(), now.micros(), now));
            }
            Write::StoreCertificate { order_id, certificate } => self.store_certificate(s, order_id, certificate, now, id),
            Write::RouteServe(certificate) => {
                self.free(
                    sql("INSERT INTO routes (hostname, tenant_id, domain_id, term, action, certificate_id, version, redirect_to) \
                         VALUES ($1, $2, $3, $4, 'serve', $5, $6, (SELECT p.hostname FROM domains m JOIN domains p \
                           ON p.id = m.linked_domain_id AND p.linked_domain_id = m.id AND p.tenant_id = m.tenant_id \
                           WHERE m.id = $3 AND m.redirects = 1)) \
                         ON CONFLICT (hostname) DO UPDATE SET tenant_id = excluded.tenant_id, \
                           domain_id = excluded.domain_id, term = excluded.term, action = 'serve', \
                           certificate_id = excluded.certificate_id, redirect_to = excluded.redirect_to, \
                           version = CASE WHEN routes.version >= $6 THEN routes.version + 1 ELSE $6 END")
                    .bind(d.hostname.as_str())
                    .bind(d.tenant_id.as_str())
                    .bind(d.id.as_str())
                    .bind(s.holding.as_ref().map_or(1, |h| h.term + i64::from(s.role() != Role::Holder)))
                    .bind(certificate.as_str())
                    .bind(now),
                );
                self.free(outbox::insert(&id(), "host", d.hostname.as_str(), now.micros(), now));
            }
            Write::RouteGone => {
                self.free(
                    // After a restore edges may serve what no row here says, and what they are told is what they remind the next one of.
                    sql("INSERT INTO routes (hostname, tenant_id, domain_id, term, action, certificate_id, version) \
                         VALUES ($1, $4, $2, COALESCE((SELECT rc.term FROM recollections rc WHERE rc.hostname = $1 AND rc.term > $5), $5), \
                           'gone', NULL, $3) \
                         ON CONFLICT (hostname) DO UPDATE SET tenant_id = excluded.tenant_id, domain_id = excluded.domain_id, \
                           term = CASE WHEN routes.term > excluded.term THEN routes.term ELSE excluded.term END, \
                           action = 'gone', certificate_id = NULL, redirect_to = NULL, \
                           version = CASE WHEN routes.version >= $3 THEN routes.version + 1 ELSE $3 END \
                         WHERE routes.domain_id = excluded.domain_id OR routes.action = 'gone'")
                    .bind(d.hostname.as_str())
                    .bind(d.id.as_str())
                    .bind(now)
                    .bind(d.tenant_id.as_str())
                    .bind(s.holding.as_ref().map_or(1, |h| h.term)),
                );
                self.free(outbox::insert(&id(), "host", d.hostname.as_str(), now.micros(), now));
            }
            Write::DestroyKeys => {
                self.destroy_certificate_keys(d.id.as_str(), now, id);
                self.free(sql("UPDATE orders SET sealed_key = NULL WHERE domain_id = $1").bind(d.id.as_str()));
                self.free(renewals::over(d));
            }
            Write::Revoke { of } => self.free(revocations::ask(of, now)),
            Write::EdgesLost(edges) => {
                for edge in edges {
                    self.free(
                        sql("UPDATE edges SET lost_at = $2 WHERE id = $1 AND lost_at IS NULL").bind(edge.as_str()).bind(now),
                    );
                }
            }
        }
        Ok(())
    }

    /// Nobody holds the name now; who waits for it looks at once.
    fn let_go(&mut self, d: &Domain, state: &'static str, now: Moment) {
        self.free(resting::let_go(d, state, now));
        self.free(holdings::others_look(d, now));
    }

    /// Destroys the keys of a domain's certificates here and, by the feed, on the edges.
    fn destroy_certificate_keys(&mut self, domain: &str, now: Moment, id: &mut dyn FnMut() -> String) {
        self.destroy_keys(domain, None, now, id);
    }

    /// The same, for all but one of them.
    fn destroy_keys(&mut self, domain: &str, but: Option<&CertificateId>, now: Moment, id: &mut dyn FnMut() -> String) {
        let but = but.map_or("", |c| c.as_str());
        self.free(
            sql("INSERT INTO outbox (id, kind, subject, version, at) \
                 SELECT $1 || c.id, 'certificate', c.id, 2, $3 FROM certificates c \
                 WHERE c.domain_id = $2 AND c.destroyed_at IS NULL AND c.id <> $4")
            .bind(id())
            .bind(domain)
            .bind(now)
            .bind(but),
        );
        self.free(
            sql("UPDATE certificates SET sealed_key = NULL, destroyed_at = $2 \
                 WHERE domain_id = $1 AND destroyed_at IS NULL AND id <> $3")
            .bind(domain)
            .bind(now)
            .bind(but),
        );
    }

    fn counted(&mut self, grant: &GrantId, now: Moment) {
        self.free(sql("UPDATE grants SET state = 'used' WHERE id = $1").bind(grant.as_str()));
        // A row that the CA had closed is open again: it took one.
        self.free(
            sql("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals) \
                 SELECT p.issuer_id, p.limit_name, p.key, $2 + p.interval_us, 0 FROM spends p \
                 WHERE p.grant_id = $1 AND p.counts = 'order' \
                 ON CONFLICT (issuer_id, limit_name, key) DO UPDATE SET refusals = 0, closed = NULL, said = NULL, link = NULL, \
                   tat = CASE WHEN ledger.tat > $2 THEN ledger.tat ELSE $2 END + excluded.tat - $2")
            .bind(grant.as_str())
            .bind(now),
        );
        self.free(sql("DELETE FROM spends WHERE grant_id = $1 AND counts = 'order'").bind(grant.as_str()));
    }

    /// Settles what the order's end decides. A name that was validated has no failures in a row any more.
    fn spends_closed(&mut self, s: &Situation, order: &OrderId, ending: Ending, now: Moment) {
        if self.returned {
            return;
        }
        for (counts, fate) in [(Counted::Failure, ending.failure), (Counted::Certificate, ending.certificate)] {
            if fate == Fate::Counted {
                self.free(
                    sql("INSERT INTO ledger (issuer_id, limit_name, key, tat, refusals) \
                         SELECT p.issuer_id, p.limit_name, p.key, $2 + p.interval_us, 0 FROM spends p \
                         WHERE p.grant_id IN (SELECT id FROM grants WHERE order_id = $1) AND p.counts = $3 \
                         ON CONFLICT (issuer_id, limit_name, key) DO UPDATE SET refusals = 0, closed = NULL, said = NULL, \
                           link = NULL, tat = CASE WHEN ledger.tat > $2 THEN ledger.tat ELSE $2 END + excluded.tat - $2")
                    .bind(order.as_str())
                    .bind(now)
                    .bind(counts.as_str()),
                );
            }
            self.free(
                sql("DELETE FROM spends WHERE counts = $2 AND grant_id IN (SELECT id FROM grants WHERE order_id = $1)")
                    .bind(order.as_str())
                    .bind(counts.as_str()),
            );
        }
        if ending.validated {
            self.free(
                sql("DELETE FROM ledger WHERE issuer_id = $1 AND limit_name = $2 AND key = $3")
                    .bind(s.issuer.id.as_str())
                    .bind(LimitName::FailuresInARow.as_str())
                    .bind(LimitName::FailuresInARow.key(&s.domain.hostname)),
            );
        }
    }

    /// Key and chain as one unit: the sealed key comes from the order's row, under whose id it was sealed.
    fn store_certificate(
        &mut self,
        s: &Situation,
        order_id: &OrderId,
        c: &NewCertificate,
        now: Moment,
        id: &mut dyn FnMut() -> String,
    ) {
        self.guarded(
            sql("INSERT INTO certificates (id, domain_id, tenant_id, source, issuer_id, order_id, serial, fingerprint, \
                   chain, sealed_key, not_before, not_after, ari_id, stored_at) \
                 SELECT $1, o.domain_id, $2, 'order', o.issuer_id, o.id, $4, $5, $6, o.sealed_key, $7, $8, $9, $10 \
                 FROM orders o WHERE o.id = $3 AND o.sealed_key IS NOT NULL")
            .bind(c.id.as_str())
            .bind(s.domain.tenant_id.as_str())
            .bind(order_id.as_str())
            .bind(c.serial.as_str())
            .bind(c.fingerprint.as_str())
            .bind(c.chain.as_str())
            .bind(c.not_before)
            .bind(c.not_after)
            .bind(c.ari_id.as_deref())
            .bind(now),
        );
        self.free(
            sql("INSERT INTO certificate_names (certificate_id, name) VALUES ($1, $2)")
                .bind(c.id.as_str())
                .bind(s.domain.hostname.as_str()),
        );
        self.free(outbox::insert(&id(), "certificate", c.id.as_str(), 1, now));
    }
}

fn order_row(o: &Order, was: &str, problem: Option<&str>) -> Stmt {
    sql("UPDATE orders SET state = $3, state_since = $4, not_before = $5, url = $6, challenge_url = $7, challenge_id = $8, \
           announced_at = $9, problem = COALESCE($10, problem), certificate_id = $11, issuer_id = $12, \
           held_by = CASE WHEN not_before = $5 THEN held_by ELSE NULL END WHERE id = $1 AND state = $2")
    .bind(o.id.as_str())
    .bind(was)
    .bind(o.state.as_str())
    .bind(o.state_since)
    .bind(o.not_before)
    .bind(o.url.as_deref())
    .bind(o.challenge_url.as_deref())
    .bind(o.challenge_id.as_ref().map(|c| c.as_str()))
    .bind(o.announced_at)
    .bind(problem)
    .bind(o.certificate_id.as_ref().map(|c| c.as_str()))
    .bind(o.issuer_id.as_str())
}

/// Something happened that the domain should look at; a step in flight keeps it due.
pub fn nudge(domain: &str, now: Moment) -> Stmt {
    sql("UPDATE domains SET due_at = CASE WHEN due_at > $2 THEN $2 ELSE due_at END, nudged = generation WHERE id = $1")
        .bind(domain)
        .bind(now)
}
