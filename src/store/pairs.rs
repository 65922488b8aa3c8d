//! Two linked claims of one tenant, `www` and the bare name: the link, and a redirect from one to the other.
//!
//! A link is mutual or it is none: each row names the other, and both are the same tenant's. A redirect travels with the host's
//! own route, so an edge that knows one knows where it leads.

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
    pub event_seq: i64,
    pub redirects: bool,
}

fn half(row: &Row) -> StoreResult<Half> {
    Ok(Half {
        id: row.parse("id")?,
        tenant_id: row.parse("tenant_id")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
        claim: row.parse("claim")?,
        event_seq: row.int("event_seq")?,
        redirects: row.int("redirects")? != 0,
    })
}

/// The claim with this id.
pub async fn one(tx: &mut Tx, id: &DomainId) -> StoreResult<Option<Half>> {
    let stmt = sql("SELECT id, tenant_id, hostname, claim, event_seq, redirects FROM domains WHERE id = $1");
    tx.fetch_optional(stmt.bind(id.as_str())).await?.as_ref().map(half).transpose()
}

/// Locks both halves, always in the same order; none where `id` has no other half.
pub async fn lock(tx: &mut Tx, id: &DomainId) -> StoreResult<Option<(Half, Half)>> {
    let both = sql("SELECT d.id FROM domains d WHERE d.id = $1 OR d.linked_domain_id = $1 ORDER BY d.id").bind(id.as_str());
    let mut halves = Vec::new();
    for row in tx.fetch_all(both).await? {
        let each = row.text("id")?;
        let locked = sql("UPDATE domains SET redirects = redirects WHERE id = $1 AND (id = $2 OR linked_domain_id = $2) \
             AND EXISTS (SELECT 1 FROM domains p WHERE p.id = domains.linked_domain_id AND p.linked_domain_id = domains.id \
               AND p.tenant_id = domains.tenant_id) RETURNING id, tenant_id, hostname, event_seq, claim, redirects");
        if let Some(row) = tx.fetch_optional(locked.bind(each).bind(id.as_str())).await? {
            halves.push(half(&row)?);
        }
    }
    let own = halves.iter().position(|half| half.id == *id);
    Ok(match (own, halves.len()) {
        (Some(own), 2) => {
            let other = halves.remove(1 - own);
            halves.pop().map(|own| (own, other))
        }
        _ => None,
    })
}

/// Links two claims of a tenant, each to the other; false when one of them is another tenant's.
pub async fn link(tx: &mut Tx, tenant: &TenantId, a: &DomainId, b: &DomainId) -> StoreResult<bool> {
    let mut linked = 0;
    let mut each = [(a, b), (b, a)];
    each.sort_by_key(|(one, _)| one.as_str().to_owned());
    for (one, other) in each {
        let stmt = sql("UPDATE domains SET linked_domain_id = $2 WHERE id = $1 AND tenant_id = $3");
        linked += tx.execute(stmt.bind(one.as_str()).bind(other.as_str()).bind(tenant.as_str())).await?;
    }
    Ok(linked == 2)
}

/// Whether two claims are linked.
pub async fn are_linked(tx: &mut Tx, a: &DomainId, b: &DomainId) -> StoreResult<bool> {
    let stmt =
        sql("SELECT 1 AS n FROM domains a JOIN domains b ON b.id = a.linked_domain_id AND b.linked_domain_id = a.id \
         WHERE a.id = $1 AND b.id = $2");
    Ok(tx.fetch_optional(stmt.bind(a.as_str()).bind(b.as_str())).await?.is_some())
}

/// Sends a half's visitors to the other, or keeps them; a route that is served is told.
pub async fn redirect(tx: &mut Tx, half: &DomainId, on: bool, outbox_id: &str, now: Moment) -> StoreResult<()> {
    tx.execute(sql("UPDATE domains SET redirects = $2 WHERE id = $1").bind(half.as_str()).bind(on)).await?;
    tx.execute(
        sql("INSERT INTO outbox (id, kind, subject, version, at) SELECT $1, 'host', r.hostname, $3, $3 FROM routes r \
             WHERE r.domain_id = $2 AND r.action = 'serve'")
        .bind(outbox_id)
        .bind(half.as_str())
        .bind(now),
    )
    .await?;
    tx.execute(
        sql("UPDATE routes SET version = CASE WHEN version >= $2 THEN version + 1 ELSE $2 END, redirect_to = ( \
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
/// before what ends it.
pub(super) fn unlink(d: &Domain, now: Moment, id: &mut dyn FnMut() -> String) -> Vec<Stmt> {
    let told = sql("INSERT INTO notices (id, domain_id, kind, about, actor, hostname, at) \
         SELECT $1, p.id, 'partner_gone', $2, 'nameplate', $3, $4 FROM domains p \
         WHERE p.linked_domain_id = $2 AND p.tenant_id = $5 ON CONFLICT (domain_id, kind, about) DO NOTHING")
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
    let route = sql("UPDATE routes SET redirect_to = NULL, version = CASE WHEN version >= $2 THEN version + 1 ELSE $2 END \
         WHERE redirect_to IS NOT NULL AND domain_id IN (SELECT p.id FROM domains p WHERE p.linked_domain_id = $1)")
    .bind(d.id.as_str())
    .bind(now);
    let link = sql("UPDATE domains SET linked_domain_id = NULL, redirects = 0, nudged = generation, \
           due_at = CASE WHEN due_at > $2 THEN $2 ELSE due_at END WHERE linked_domain_id = $1")
    .bind(d.id.as_str())
    .bind(now);
    vec![told, feed, route, link]
}
