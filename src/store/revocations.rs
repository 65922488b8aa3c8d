//! Certificates that are to be revoked at their CA.

use super::{Stmt, Store, StoreResult, sql};
use crate::model::id::{CertificateId, DomainId, IssuerId};
use crate::model::moment::Moment;

/// A revocation that is due.
#[derive(Clone, Debug)]
pub struct DueRevocation {
    /// The certificate.
    pub certificate_id: CertificateId,
    /// Whose account got it.
    pub issuer_id: IssuerId,
    /// The claim it was for.
    pub domain_id: DomainId,
    /// Leaf first, PEM.
    pub chain: String,
    /// How often it was tried, this time included.
    pub attempts: i64,
    /// After this nothing is left to be revoked.
    pub not_after: Moment,
}

/// Asks for it: all certificates of a claim that are still good and were ordered.
pub(super) fn ask(of: &DomainId, now: Moment) -> Stmt {
    sql("INSERT INTO revocations (certificate_id, issuer_id, domain_id, asked_at, due_at, attempts) \
         SELECT c.id, c.issuer_id, c.domain_id, $2, $2, 0 FROM certificates c \
         WHERE c.domain_id = $1 AND c.source = 'order' AND c.issuer_id IS NOT NULL AND c.not_after > $2 \
         ON CONFLICT (certificate_id) DO NOTHING")
    .bind(of.as_str())
    .bind(now)
}

/// Takes what is due, which is nobody else's until `until`: the intent, before a CA is asked.
pub async fn take(store: &Store, now: Moment, until: Moment, limit: i64) -> StoreResult<Vec<DueRevocation>> {
    let due = sql("SELECT r.certificate_id, r.issuer_id, r.domain_id, c.chain, c.not_after FROM revocations r \
         JOIN certificates c ON c.id = r.certificate_id WHERE r.due_at <= $1 ORDER BY r.due_at LIMIT $2")
    .bind(now)
    .bind(limit);
    let mut taken = Vec::new();
    for row in store.query(due).await? {
        let mark = sql("UPDATE revocations SET due_at = $3, attempts = attempts + 1 \
             WHERE certificate_id = $1 AND due_at <= $2 RETURNING attempts")
        .bind(row.text("certificate_id")?)
        .bind(now)
        .bind(until);
        if let Some(marked) = store.fetch_optional(mark).await? {
            taken.push(DueRevocation {
                certificate_id: row.parse("certificate_id")?,
                issuer_id: row.parse("issuer_id")?,
                domain_id: row.parse("domain_id")?,
                chain: row.text("chain")?,
                attempts: marked.int("attempts")?,
                not_after: row.moment("not_after")?,
            });
        }
    }
    Ok(taken)
}

/// It is over: revoked, or given up for good.
pub fn over(r: &DueRevocation, revoked_at: Option<Moment>, said: Option<&str>) -> Stmt {
    sql("UPDATE revocations SET due_at = NULL, revoked_at = $2, said = $3 WHERE certificate_id = $1 AND due_at IS NOT NULL")
        .bind(r.certificate_id.as_str())
        .bind(revoked_at)
        .bind(said)
}

/// It is tried again then.
pub fn again(r: &DueRevocation, at: Moment, said: &str) -> Stmt {
    sql("UPDATE revocations SET due_at = $2, said = $3 WHERE certificate_id = $1 AND due_at IS NOT NULL")
        .bind(r.certificate_id.as_str())
        .bind(at)
        .bind(said)
}
