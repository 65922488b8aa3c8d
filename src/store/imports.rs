//! Certificates that the operator imported for the platform's own hosts.

use super::{Row, Stmt, Store, StoreResult, Tx, sql};
use crate::model::id::CertificateId;
use crate::model::moment::Moment;

/// An imported certificate that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns are explained in the schema")]
pub struct ImportRow {
    pub id: CertificateId,
    pub names: Vec<String>,
    pub serial: String,
    pub fingerprint: String,
    pub not_before: Moment,
    pub not_after: Moment,
    pub stored_at: Moment,
}

/// A certificate to store, its key sealed for its own id.
pub fn insert(c: &ImportRow, chain: &str, sealed_key: &[u8]) -> Vec<Stmt> {
    let row =
        sql("INSERT INTO certificates (id, domain_id, tenant_id, source, issuer_id, order_id, serial, fingerprint, chain, \
           sealed_key, not_before, not_after, ari_id, stored_at) \
         VALUES ($1, NULL, NULL, 'import', NULL, NULL, $2, $3, $4, $5, $6, $7, NULL, $8)")
        .bind(c.id.as_str())
        .bind(c.serial.as_str())
        .bind(c.fingerprint.as_str())
        .bind(chain)
        .bind(sealed_key)
        .bind(c.not_before)
        .bind(c.not_after)
        .bind(c.stored_at);
    let name = |name: &String| {
        sql("INSERT INTO certificate_names (certificate_id, name) VALUES ($1, $2)").bind(c.id.as_str()).bind(name.as_str())
    };
    std::iter::once(row).chain(c.names.iter().map(name)).collect()
}

/// Destroys the key of an imported certificate; counts none when that was done before.
pub fn destroy(id: &CertificateId, now: Moment) -> Stmt {
    sql("UPDATE certificates SET sealed_key = NULL, destroyed_at = $2 WHERE id = $1 AND source = 'import' \
         AND destroyed_at IS NULL")
    .bind(id.as_str())
    .bind(now)
}

const IN_USE: &str = "SELECT c.id, c.serial, c.fingerprint, c.not_before, c.not_after, c.stored_at, n.name \
     FROM certificates c JOIN certificate_names n ON n.certificate_id = c.id \
     WHERE c.source = 'import' AND c.destroyed_at IS NULL ORDER BY c.id, n.name";

/// Those in use, oldest first.
pub async fn in_use(tx: &mut Tx) -> StoreResult<Vec<ImportRow>> {
    collect(tx.fetch_all(sql(IN_USE)).await?)
}

/// The same, outside a transaction.
pub async fn list(store: &Store) -> StoreResult<Vec<ImportRow>> {
    collect(store.query(sql(IN_USE)).await?)
}

/// Rows come ordered, one a name, so the names of one certificate follow each other.
fn collect(rows: Vec<Row>) -> StoreResult<Vec<ImportRow>> {
    let mut out: Vec<ImportRow> = Vec::new();
    for row in rows {
        let (id, name) = (row.parse("id")?, row.text("name")?);
        match out.last_mut() {
            Some(last) if last.id == id => last.names.push(name),
            _ => out.push(ImportRow {
                id,
                names: vec![name],
                serial: row.text("serial")?,
                fingerprint: row.text("fingerprint")?,
                not_before: row.moment("not_before")?,
                not_after: row.moment("not_after")?,
                stored_at: row.moment("stored_at")?,
            }),
        }
    }
    Ok(out)
}

/// The canonical hosts that are served, in the order of their names.
pub async fn canonical_hosts(tx: &mut Tx) -> StoreResult<Vec<String>> {
    let stmt = sql("SELECT hostname FROM routes WHERE domain_id IS NULL AND action = 'serve' AND certificate_id IS NULL \
         ORDER BY hostname");
    tx.fetch_all(stmt).await?.iter().map(|row| row.text("hostname")).collect()
}

/// The event that a certificate was imported.
pub fn event(id: &str, detail: &serde_json::Value, actor: &str, now: Moment) -> Stmt {
    sql("INSERT INTO events (id, position, tenant_id, domain_id, domain_seq, kind, actor, cause, detail, at) \
         VALUES ($1, NULL, NULL, NULL, NULL, 'certificate_imported', $2, 'asked for', $3, $4)")
    .bind(id)
    .bind(actor)
    .bind(detail.to_string())
    .bind(now)
}
