//! Two linked claims of one tenant, `www` and the bare name: the link, and a redirect from one to the other.
//!
//! A link is mutual or it is none: each row names the other, and both are the same tenant's. A redirect travels with the host's
//! own route, so an edge that knows one knows where it leads. Whoever writes two claims of a pair locks both before, by their ids:
//! how to get it wrong is to lock one's own first, and to wait for somebody who waits for that. Or to give a route a new version
//! while a restored system recovers: edges may know better whose the name is, and would take it for the newer word.

use super::{Row, Stmt, StoreResult, Tx, sql};
use crate::model::claim::Claim;
use crate::model::domain::Domain;
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, TenantId};
use crate::model::moment::Moment;
use crate::model::notice::NoticeKind;

/// A claim as its link sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct Half {
    pub id: DomainId,
    pub tenant_id: TenantId,
    pub hostname: Hostname,
    pub claim: Claim,
    pub version: i64,
    pub linked: Option<DomainId>,
    pub redirects: bool,
}

fn half(row: &Row) -> StoreResult<Half> {
    Ok(Half {
        id: row.parse("id")?,
        tenant_id: row.parse("tenant_id")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
        claim: row.parse("claim")?,
        version: row.int("version")?,
        linked: row.opt_parse("linked_domain_id")?,
        redirects: row.int("redirects")? != 0,
    })
}

/// The claim with this id; nothing is locked.
pub async fn one(tx: &mut Tx, id: &DomainId) -> StoreResult<Option<Half>> {
    let stmt = sql("SELECT id, tenant_id, hostname, claim, event_seq + edits AS version, linked_domain_id, redirects \
         FROM domains WHERE id = $1");
    tx.fetch_optional(stmt.bind(id.as_str())).await?.as_ref().map(half).transpose()
}

/// Locks the open claims that a tenant has on a name and on its other half.
pub async fn hold_open(tx: &mut Tx, tenant: &TenantId, names: [&Hostname; 2]) -> StoreResult<Vec<Half>> {
    let found = sql("SELECT id FROM domains WHERE tenant_id = $1 AND hostname IN ($2, $3) \
         AND claim IN ('awaiting_dns', 'queued', 'live', 'expired') ORDER BY id")
    .bind(tenant.as_str())
    .bind(names[0].as_str())
    .bind(names[1].as_str());
    let mut held = hold_in_order(tx, found).await?;
    // One that ended while it was waited for is open no more.
    held.retain(|half| half.claim.is_open());
    Ok(held)
}

/// Locks a claim and whatever names it as its other half; false when it got another half meanwhile, which is not locked.
pub async fn hold_linked(tx: &mut Tx, id: &DomainId) -> StoreResult<bool> {
    let found = sql("SELECT id FROM domains WHERE id = $1 OR linked_domain_id = $1 ORDER BY id").bind(id.as_str());
    let held = hold_in_order(tx, found).await?;
    let linked = held.iter().find(|half| half.id == *id).and_then(|own| own.linked.as_ref());
    // Half a link, which nobody but a hand in the database makes, is none.
    Ok(linked.is_none_or(|other| held.iter().any(|half| half.id == *other)) || !is_mutual(tx, id).await?)
}

/// Locks the claims that a query finds, in the order in which it finds them: by their ids.
async fn hold_in_order(tx: &mut Tx, found: Stmt) -> StoreResult<Vec<Half>> {
    let mut held = Vec::new();
    for row in tx.fetch_all(found).await? {
        let lock = sql("UPDATE domains SET redirects = redirects WHERE id = $1 \
             RETURNING id, tenant_id, hostname, claim, event_seq + edits AS version, linked_domain_id, redirects");
        if let Some(row) = tx.fetch_optional(lock.bind(row.text("id")?)).await? {
            held.push(half(&row)?);
        }
    }
    Ok(held)
}

async fn is_mutual(tx: &mut Tx, id: &DomainId) -> StoreResult<bool> {
    let stmt =
        sql("SELECT 1 AS n FROM domains a JOIN domains b ON b.id = a.linked_domain_id AND b.linked_domain_id = a.id \
         WHERE a.id = $1");
    Ok(tx.fetch_optional(stmt.bind(id.as_str())).await?.is_some())
}

/// Links two claims of a tenant, each to the other, which are held; false when one of them is another tenant's.
pub async fn link(tx: &mut Tx, tenant: &TenantId, a: &DomainId, b: &DomainId) -> StoreResult<bool> {
    let mut linked = 0;
    for (one, other) in [(a, b), (b, a)] {
        let stmt = sql("UPDATE domains SET linked_domain_id = $2, edits = edits + 1 WHERE id = $1 AND tenant_id = $3");
        linked += tx.execute(stmt.bind(one.as_str()).bind(other.as_str()).bind(tenant.as_str())).await?;
    }
    Ok(linked == 2)
}

/// Sends a half's visitors to the other, or keeps them; a route that is served is told.
pub async fn redirect(tx: &mut Tx, half: &DomainId, on: bool, outbox_id: &str, now: Moment) -> StoreResult<()> {
    tx.execute(sql("UPDATE domains SET redirects = $2, edits = edits + 1 WHERE id = $1").bind(half.as_str()).bind(on))
        .await?;
    tx.execute(
        sql("INSERT INTO outbox (id, kind, subject, version, at) SELECT $1, 'host', r.hostname, $3, $3 FROM routes r \
             WHERE r.domain_id = $2 AND r.action = 'serve'")
        .bind(outbox_id)
        .bind(half.as_str())
        .bind(now),
    )
    .await?;
    tx.execute(
        sql("UPDATE routes SET version = CASE WHEN version >= $2 OR (SELECT recovering_since FROM feed WHERE id = 1) IS NOT NULL \
                 THEN version + 1 ELSE $2 END, redirect_to = ( \
               SELECT p.hostname FROM domains d JOIN domains p ON p.id = d.linked_domain_id AND p.linked_domain_id = d.id \
                 AND p.tenant_id = d.tenant_id WHERE d.id = $1 AND d.redirects = 1) \
             WHERE domain_id = $1 AND action = 'serve'")
        .bind(half.as_str())
        .bind(now),
    )
    .await?;
    Ok(())
}

/// Leaves a notice for one domain and wakes it.
pub async fn notice(
    tx: &mut Tx,
    (id, about): (&str, &str),
    to: &DomainId,
    kind: NoticeKind,
    hostname: &Hostname,
    actor: &str,
    now: Moment,
) -> StoreResult<()> {
    tx.execute(
        sql("INSERT INTO notices (id, domain_id, kind, about, actor, hostname, at) VALUES ($1, $2, $3, $4, $5, $6, $7) \
             ON CONFLICT (domain_id, kind, about) DO NOTHING")
        .bind(id)
        .bind(to.as_str())
        .bind(kind.as_str())
        .bind(about)
        .bind(actor)
        .bind(hostname.as_str())
        .bind(now),
    )
    .await?;
    tx.execute(super::record::nudge(to.as_str(), now)).await.map(|_| ())
}

/// The link of a claim that ends: its other half stays, is told, and sends nobody there any more. What reads the link comes
/// before what ends it. Halves that ended before may still name it; nobody is left to be told.
pub(super) fn unlink(d: &Domain, now: Moment, id: &mut dyn FnMut() -> String) -> Vec<Stmt> {
    let told = sql("INSERT INTO notices (id, domain_id, kind, about, actor, hostname, at) \
         SELECT $1, p.id, 'partner_gone', $2, 'nameplate', $3, $4 FROM domains p \
         WHERE p.linked_domain_id = $2 AND p.tenant_id = $5 AND p.claim IN ('awaiting_dns', 'queued', 'live', 'expired') \
         ON CONFLICT (domain_id, kind, about) DO NOTHING")
    .bind(id())
    .bind(d.id.as_str())
    .bind(d.hostname.as_str())
    .bind(now)
    .bind(d.tenant_id.as_str());
    let feed = sql("INSERT INTO outbox (id, kind, subject, version, at) \
         SELECT $1, 'host', r.hostname, $3, $3 FROM routes r JOIN domains p ON p.id = r.domain_id \
         WHERE p.linked_domain_id = $2 AND r.redirect_to IS NOT NULL")
    .bind(id())
    .bind(d.id.as_str())
    .bind(now);
    let route = sql("UPDATE routes SET redirect_to = NULL, version = CASE WHEN version >= $2 \
           OR (SELECT recovering_since FROM feed WHERE id = 1) IS NOT NULL THEN version + 1 ELSE $2 END \
         WHERE redirect_to IS NOT NULL AND domain_id IN (SELECT p.id FROM domains p WHERE p.linked_domain_id = $1)")
    .bind(d.id.as_str())
    .bind(now);
    let link = sql("UPDATE domains SET linked_domain_id = NULL, redirects = 0, edits = edits + 1, nudged = generation, \
           due_at = CASE WHEN due_at > $2 THEN $2 ELSE due_at END WHERE linked_domain_id = $1")
    .bind(d.id.as_str())
    .bind(now);
    vec![told, feed, route, link]
}
