//! Certificates in use of which little may be left, or that may not be renewed: looked at when something changed or a threshold is
//! crossed, and not before. Whoever stores, switches or lets go of a certificate, or sees something new of its name, makes the name due
//! in the same transaction ([`touch`]).

use super::alerts::{AlertRow, alert};
use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::alert::kinds::CERTIFICATE_ENDING;
use crate::model::alert::risk::LastSeen;
use crate::model::alert::threshold::Life;
use crate::model::claim::Claim;
use crate::model::domain::{RoutingMode, TieState};
use crate::model::evidence::Evidence;
use crate::model::hostname::Hostname;
use crate::model::id::{CertificateId, DomainId, TenantId};
use crate::model::moment::Moment;
use crate::model::order::OrderState;

/// A certificate that visitors get.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The domain.
    pub domain_id: DomainId,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// Its name.
    pub hostname: String,
    /// The certificate.
    pub certificate_id: CertificateId,
    /// From when to when it is good.
    pub life: Life,
    /// Where the domain stands.
    pub standing: String,
    /// The state of its last order, and the issuer of that.
    pub order: Option<(OrderState, String)>,
    /// Whether the certificate is not the one the domain has, but one that an edge was seen to serve.
    pub served_another: bool,
}

fn ending(row: &Row, served_another: bool) -> StoreResult<Ending> {
    let order: Option<OrderState> = row.opt_parse("order_state")?;
    Ok(Ending {
        domain_id: row.parse("domain_id")?,
        tenant_id: row.parse("tenant_id")?,
        hostname: row.text("hostname")?,
        certificate_id: row.parse("certificate_id")?,
        life: Life { not_before: row.moment("not_before")?, not_after: row.moment("not_after")? },
        standing: row.text("standing")?,
        order: order.zip(row.opt_text("issuer")?),
        served_another,
    })
}

/// What the renewal of a certificate in use depends on.
#[derive(Clone, Debug)]
pub struct Renewing {
    /// Whose the name is.
    pub tenant_id: TenantId,
    /// The name.
    pub hostname: Hostname,
    /// What its tenant was told to point it at.
    pub mode: RoutingMode,
    /// What ties it.
    pub tie: TieState,
    /// The last look from everywhere.
    pub evidence: Vec<Evidence>,
    /// When its renewal is due.
    pub renew_at: Moment,
    /// The end of the certificate.
    pub not_after: Moment,
}

impl Renewing {
    /// As the judgement takes it.
    pub fn last_seen(&self) -> LastSeen<'_> {
        LastSeen { hostname: &self.hostname, mode: self.mode, tie: self.tie, evidence: &self.evidence }
    }
}

fn renewing(row: &Row) -> StoreResult<Option<Renewing>> {
    let Some(renew_at) = row.opt_moment("renew_at")? else { return Ok(None) };
    Ok(Some(Renewing {
        tenant_id: row.parse("tenant_id")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
        mode: row.parse("routing_mode")?,
        tie: row.parse("tie")?,
        // What cannot be read says nothing, and keeps no other name from its look: the name's own next step tells of it.
        evidence: row.json("evidence").unwrap_or_default(),
        renew_at,
        not_after: row.moment("not_after")?,
    }))
}

/// A name that is to be looked at.
#[derive(Clone, Debug)]
pub struct Due {
    /// The domain.
    pub domain_id: DomainId,
    /// Where its claim stands.
    pub claim: Claim,
    /// How often it was touched before this look.
    pub touched: i64,
    /// Whether an alert of it is open.
    pub open: bool,
    /// Its certificate, where one is in use.
    pub in_use: Option<Ending>,
    /// What its renewal depends on, where that is planned.
    pub renewing: Option<Renewing>,
}

/// Makes a name due: its certificate, or its claim, is another one now.
pub fn touch(domain: &DomainId) -> Stmt {
    sql("INSERT INTO expiry_looks (domain_id, due_at, touched) VALUES ($1, 0, 1) \
         ON CONFLICT (domain_id) DO UPDATE SET due_at = 0, touched = expiry_looks.touched + 1")
    .bind(domain.as_str())
}

/// Names that are due, the longest waiting first.
pub async fn due(store: &Store, now: Moment, limit: i64) -> StoreResult<Vec<Due>> {
    let stmt = sql("SELECT l.domain_id, l.touched, d.claim, d.tenant_id, d.hostname, d.standing, c.id AS certificate_id, \
           c.not_before, c.not_after, o.state AS order_state, i.name AS issuer, d.routing_mode, d.tie, d.evidence, w.renew_at, \
           CAST(CASE WHEN EXISTS (SELECT 1 FROM alerts a WHERE a.domain_id = l.domain_id AND a.resolved_at IS NULL) \
             THEN 1 ELSE 0 END AS BIGINT) AS alarmed \
         FROM (SELECT domain_id, touched, due_at FROM expiry_looks WHERE due_at <= $1 ORDER BY due_at, domain_id LIMIT $2) l \
         JOIN domains d ON d.id = l.domain_id LEFT JOIN certificates c ON c.id = d.certificate_id \
         LEFT JOIN renewals w ON w.domain_id = d.id AND w.certificate_id = d.certificate_id LEFT JOIN orders o ON o.id = (SELECT p.id FROM orders p WHERE p.domain_id = d.id \
           ORDER BY p.created_at DESC, p.id DESC LIMIT 1) \
         LEFT JOIN issuers i ON i.id = o.issuer_id ORDER BY l.due_at, l.domain_id");
    let rows = store.query(stmt.bind(now).bind(limit)).await?;
    let read = |row: &Row| {
        let claim: Claim = row.parse("claim")?;
        let has = claim == Claim::Live && row.opt_text("certificate_id")?.is_some();
        Ok(Due {
            domain_id: row.parse("domain_id")?,
            claim,
            touched: row.int("touched")?,
            open: row.int("alarmed")? == 1,
            in_use: if has { Some(ending(row, false)?) } else { None },
            renewing: if has { renewing(row)? } else { None },
        })
    };
    rows.iter().map(read).collect()
}

/// Keeps the name as it was read, to the end of the transaction; nothing changes where somebody touched it meanwhile, which makes it
/// due once more.
pub fn hold(due: &Due) -> Stmt {
    sql("UPDATE expiry_looks SET due_at = due_at WHERE domain_id = $1 AND touched = $2")
        .bind(due.domain_id.as_str())
        .bind(due.touched)
}

/// When it is looked at next, unless somebody touched it meanwhile.
pub fn again(due: &Due, at: Moment) -> Stmt {
    sql("UPDATE expiry_looks SET due_at = $3 WHERE domain_id = $1 AND touched = $2")
        .bind(due.domain_id.as_str())
        .bind(due.touched)
        .bind(at)
}

/// A name that nobody needs to look at any more.
pub fn done(due: &Due) -> Stmt {
    sql("DELETE FROM expiry_looks WHERE domain_id = $1 AND touched = $2").bind(due.domain_id.as_str()).bind(due.touched)
}

/// Certificates that edges were seen to serve instead of the one that the domain has, with at most `percent` hundredths of their
/// lifetime left, and of which no alert tells as tightly as it should by now: whatever is stored, this is what visitors get.
pub async fn served_instead(store: &Store, percent: i64, now: Moment, limit: i64) -> StoreResult<Vec<Ending>> {
    // From the few exceptions to their names, never from all live names.
    let stmt = sql("SELECT DISTINCT d.id AS domain_id, d.tenant_id, d.hostname, d.standing, c.id AS certificate_id, \
           c.not_before, c.not_after, NULL AS order_state, NULL AS issuer \
         FROM rollout_exceptions x CROSS JOIN domains d CROSS JOIN certificates c \
         WHERE d.certificate_id = x.certificate_id AND d.claim = 'live' \
           AND c.domain_id = d.id AND c.id <> d.certificate_id AND x.serial = c.serial \
           AND c.not_after - (c.not_after - c.not_before) / 100 * $1 <= $2 \
           AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.domain_id = d.id AND a.certificate_id = c.id \
             AND (a.next_at IS NULL OR a.next_at > $2)) \
         ORDER BY d.id LIMIT $3")
    .bind(percent)
    .bind(now)
    .bind(limit);
    store.query(stmt).await?.iter().map(|row| ending(row, true)).collect()
}

/// An open alert about a certificate that its name does not have, or about a name that is not live.
#[derive(Clone, Debug)]
pub struct Stale {
    /// The alert.
    pub alert: AlertRow,
    /// Whether the name is live: then the certificate was replaced.
    pub live: bool,
    /// Whether an edge serves that certificate all the same, and visitors meet it.
    pub served: bool,
}

/// Those of one name.
pub async fn stale(tx: &mut Tx, name: &DomainId) -> StoreResult<Vec<Stale>> {
    let stmt = sql("SELECT a.*, d.hostname, CAST(CASE WHEN d.claim = 'live' THEN 1 ELSE 0 END AS BIGINT) AS live, \
           CAST(CASE WHEN d.claim = 'live' AND EXISTS (SELECT 1 FROM rollout_exceptions x JOIN certificates c \
             ON c.id = a.certificate_id WHERE x.certificate_id = d.certificate_id AND x.serial = c.serial) \
             THEN 1 ELSE 0 END AS BIGINT) AS served \
         FROM alerts a JOIN domains d ON d.id = a.domain_id \
         WHERE a.domain_id = $1 AND a.resolved_at IS NULL \
           AND (d.claim <> 'live' OR COALESCE(d.certificate_id, '') <> a.certificate_id) ORDER BY a.id");
    let rows = tx.fetch_all(stmt.bind(name.as_str())).await?;
    let mut stale = Vec::new();
    for row in &rows {
        let alert = alert(row)?;
        if alert.kind == CERTIFICATE_ENDING {
            stale.push(Stale { alert, live: row.int("live")? == 1, served: row.int("served")? == 1 });
        }
    }
    Ok(stale)
}

/// Open alerts of the certificate that a name has.
pub async fn open_of(tx: &mut Tx, of: &Ending) -> StoreResult<Vec<AlertRow>> {
    let stmt = sql("SELECT a.*, d.hostname FROM alerts a JOIN domains d ON d.id = a.domain_id \
         WHERE a.domain_id = $1 AND a.certificate_id = $2 AND a.resolved_at IS NULL ORDER BY a.id");
    tx.fetch_all(stmt.bind(of.domain_id.as_str()).bind(of.certificate_id.as_str())).await?.iter().map(alert).collect()
}

/// Makes every name due where the thresholds are others than those that its moment was found by.
pub async fn rethink(tx: &mut Tx, thresholds: &str) -> StoreResult<bool> {
    let changed = sql("UPDATE notify_cursor SET thresholds = $1 WHERE id = 1 AND thresholds <> $1").bind(thresholds);
    let changed = tx.execute(changed).await? == 1;
    if changed {
        tx.execute(sql("UPDATE expiry_looks SET due_at = 0, touched = touched + 1")).await?;
    }
    Ok(changed)
}
