//! The feed's own row, the numbering of what changed, and the rows that feed messages are rendered from.

use super::{Row, Stmt, Store, StoreError, StoreResult, Tx, sql};
use crate::model::feed::{ChallengeEntry, HostAction, HostEntry, Position, TenantEntry};
use crate::model::hostname::Hostname;
use crate::model::id::CertificateId;
use crate::model::moment::Moment;

/// Version of a challenge that is answered.
const PUBLISHED: i64 = 1;
/// Version of a challenge that is over.
const OVER: i64 = 2;

/// Who the feed is: its epoch and its keys, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRow {
    /// The microsecond of the first start or of a restore.
    pub epoch: i64,
    /// The sealed signing key.
    pub signing_key: Vec<u8>,
    /// The sealed TLS key.
    pub tls_key: Vec<u8>,
    /// The TLS certificate, PEM.
    pub tls_cert: String,
}

/// Writes the row unless there is one; the first process wins.
pub fn create(row: &FeedRow) -> Stmt {
    sql("INSERT INTO feed (id, epoch, last_seq, last_position, signing_key, tls_key, tls_cert) \
         VALUES (1, $1, 0, 0, $2, $3, $4) ON CONFLICT (id) DO NOTHING")
    .bind(row.epoch)
    .bind(row.signing_key.as_slice())
    .bind(row.tls_key.as_slice())
    .bind(row.tls_cert.as_str())
}

/// The row, once there is one.
pub async fn load(store: &Store) -> StoreResult<Option<FeedRow>> {
    let rows = store.query(sql("SELECT epoch, signing_key, tls_key, tls_cert FROM feed WHERE id = 1")).await?;
    rows.into_iter()
        .next()
        .map(|r| {
            Ok(FeedRow {
                epoch: r.int("epoch")?,
                signing_key: r.blob("signing_key")?,
                tls_key: r.blob("tls_key")?,
                tls_cert: r.text("tls_cert")?,
            })
        })
        .transpose()
}

/// Where the feed is now.
pub async fn position(tx: &mut Tx) -> StoreResult<Position> {
    let row = tx.fetch_optional(sql("SELECT epoch, last_seq FROM feed WHERE id = 1")).await?;
    let row = row.ok_or_else(|| StoreError::not_found("the feed's own row"))?;
    Ok(Position { epoch: row.int("epoch")?, seq: row.int("last_seq")? })
}

/// What one turn of the relay numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbered {
    /// Rows of the outbox.
    pub changes: u64,
    /// Events.
    pub events: u64,
    /// The feed's last number.
    pub last_seq: i64,
}

/// Whether anything waits for a number.
pub async fn waits_for_a_number(store: &Store) -> StoreResult<bool> {
    let mut tx = store.read().await?;
    let found = tx
        .fetch_optional(sql("SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM outbox WHERE seq IS NULL) \
                             OR EXISTS (SELECT 1 FROM events WHERE position IS NULL)"))
        .await?;
    Ok(found.is_some())
}

/// Whether anything that edges must hear of waits for a number.
pub async fn changes_wait(store: &Store) -> StoreResult<bool> {
    let rows = store.query(sql("SELECT 1 AS found FROM outbox WHERE seq IS NULL LIMIT 1")).await?;
    Ok(!rows.is_empty())
}

/// Numbers up to `limit` committed rows of each kind. The lease row is locked until the caller commits, so two relays take
/// turns, and a number is visible only together with every smaller one.
pub async fn number(tx: &mut Tx, owner: &str, now: Moment, limit: i64) -> StoreResult<Numbered> {
    tx.execute(
        sql("INSERT INTO leases (name, owner, until, term) VALUES ('relay', $1, $2, 1) \
             ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until, term = leases.term + 1")
        .bind(owner)
        .bind(now),
    )
    .await?;
    let row = tx.fetch_optional(sql("SELECT last_seq, last_position FROM feed WHERE id = 1")).await?;
    let row = row.ok_or_else(|| StoreError::not_found("the feed's own row"))?;
    let (last_seq, last_position) = (row.int("last_seq")?, row.int("last_position")?);
    let counts = tx
        .batch(vec![
            sql(
                "UPDATE outbox SET seq = numbered.n FROM (SELECT id, $1 + ROW_NUMBER() OVER (ORDER BY id) AS n FROM outbox \
                 WHERE seq IS NULL ORDER BY id LIMIT $2) AS numbered WHERE outbox.id = numbered.id",
            )
            .bind(last_seq)
            .bind(limit),
            // Ids of one millisecond are in no order; what happened to one domain is, whatever the clocks of those who wrote it said.
            sql("UPDATE events SET position = numbered.n FROM (SELECT w.id, \
                   $1 + ROW_NUMBER() OVER (ORDER BY w.since, COALESCE(w.domain_seq, 0), w.id) AS n \
                 FROM (SELECT e.id, e.domain_seq, CASE WHEN e.domain_id IS NULL THEN e.at \
                     ELSE MAX(e.at) OVER (PARTITION BY e.domain_id ORDER BY e.domain_seq) END AS since \
                   FROM (SELECT id, at, domain_id, domain_seq FROM events WHERE position IS NULL ORDER BY id LIMIT $2) AS e) AS w) \
                 AS numbered \
                 WHERE events.id = numbered.id")
            .bind(last_position)
            .bind(limit),
        ])
        .await?;
    let [changes, events] = counts[..] else {
        return Err(StoreError::unavailable(format!("two statements answered with {} counts", counts.len())));
    };
    let up = |last: i64, by: u64| last.saturating_add(i64::try_from(by).unwrap_or(i64::MAX));
    let last_seq = up(last_seq, changes);
    tx.execute(
        sql("UPDATE feed SET last_seq = $1, last_position = $2 WHERE id = 1").bind(last_seq).bind(up(last_position, events)),
    )
    .await?;
    Ok(Numbered { changes, events, last_seq })
}

/// A certificate as it is stored, its key sealed in the vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCertificate {
    /// The certificate.
    pub id: CertificateId,
    /// The names it is good for.
    pub names: Vec<String>,
    /// Leaf first, PEM.
    pub chain: String,
    /// The sealed key; none once destroyed.
    pub sealed_key: Option<Vec<u8>>,
    /// The id its key was sealed for: the order it was drawn for, or its own when it came otherwise.
    pub sealed_for: String,
    /// Its serial number.
    pub serial: String,
    /// When it stops being valid.
    pub not_after: Moment,
    /// When it was destroyed.
    pub destroyed_at: Option<Moment>,
    /// Whether it was imported for the platform's own hosts.
    pub platform: bool,
}

/// Which rows to render: all, or those that a stretch of the outbox names.
///
/// A stretch is found by its numbers. That the statements write `kind || ''` keeps SQLite from another way, through the index by
/// kind and subject, which saves it a sort and leads through every change of that kind that the outbox keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that is not over.
    All,
    /// The subjects of changes after the first number up to the second.
    Changes(i64, i64),
}

/// Tenants.
pub async fn tenants(tx: &mut Tx, scope: Scope) -> StoreResult<Vec<TenantEntry>> {
    let stmt = match scope {
        Scope::All => sql("SELECT id, slug, region, stamp, shard, tier, status, version FROM tenants"),
        Scope::Changes(after, upto) => sql("SELECT t.id, t.slug, t.region, t.stamp, t.shard, t.tier, t.status, t.version \
             FROM (SELECT DISTINCT subject FROM outbox WHERE seq > $1 AND seq <= $2 AND kind || '' = 'tenant') o \
             JOIN tenants t ON t.id = o.subject")
        .bind(after)
        .bind(upto),
    };
    let rows = tx.fetch_all(stmt).await?;
    rows.iter()
        .map(|r| {
            Ok(TenantEntry {
                id: r.parse("id")?,
                slug: r.text("slug")?,
                region: r.text("region")?,
                stamp: r.text("stamp")?,
                shard: r.int("shard")?,
                tier: r.text("tier")?,
                status: r.text("status")?,
                version: r.int("version")?,
            })
        })
        .collect()
}

/// Hosts, each with the certificate it names, read by one statement: a host never travels without its certificate.
pub async fn hosts(tx: &mut Tx, scope: Scope) -> StoreResult<(Vec<HostEntry>, Vec<StoredCertificate>)> {
    let stmt = match scope {
        Scope::All => sql("SELECT r.hostname, r.tenant_id, t.slug, r.term, r.action, r.certificate_id, r.version, \
             r.redirect_to, \
             c.id AS c_id, c.chain, c.sealed_key, COALESCE(c.order_id, c.id) AS sealed_for, c.serial, c.not_after, \
             c.destroyed_at, c.source, n.name \
             FROM routes r JOIN tenants t ON t.id = r.tenant_id LEFT JOIN certificates c ON c.id = r.certificate_id \
             LEFT JOIN certificate_names n ON n.certificate_id = c.id ORDER BY r.hostname, n.name"),
        Scope::Changes(after, upto) => sql("SELECT r.hostname, r.tenant_id, t.slug, r.term, r.action, r.certificate_id, \
             r.version, r.redirect_to, c.id AS c_id, c.chain, c.sealed_key, COALESCE(c.order_id, c.id) AS sealed_for, c.serial, \
             c.not_after, c.destroyed_at, c.source, n.name \
             FROM (SELECT DISTINCT subject FROM outbox WHERE seq > $1 AND seq <= $2 AND kind || '' = 'host') o \
             JOIN routes r ON r.hostname = o.subject JOIN tenants t ON t.id = r.tenant_id \
             LEFT JOIN certificates c ON c.id = r.certificate_id \
             LEFT JOIN certificate_names n ON n.certificate_id = c.id ORDER BY r.hostname, n.name")
        .bind(after)
        .bind(upto),
    };
    let mut hosts: Vec<HostEntry> = Vec::new();
    let mut certificates: Vec<StoredCertificate> = Vec::new();
    for row in tx.fetch_all(stmt).await? {
        let hostname = Hostname::trusted(&row.text("hostname")?);
        if hosts.last().is_none_or(|h| h.hostname != hostname) {
            hosts.push(host(&row, hostname)?);
        }
        if let Some(id) = row.opt_parse("c_id")? {
            collect_certificate(&mut certificates, &row, id)?;
        }
    }
    Ok((hosts, certificates))
}

fn host(row: &Row, hostname: Hostname) -> StoreResult<HostEntry> {
    let action = match row.text("action")?.as_str() {
        "serve" => HostAction::Serve,
        "gone" => HostAction::Gone,
        seen => {
            let expected = "serve or gone";
            return Err(StoreError::Inconsistent { column: "action".to_owned(), seen: seen.to_owned(), expected });
        }
    };
    Ok(HostEntry {
        hostname,
        tenant_id: row.parse("tenant_id")?,
        slug: row.text("slug")?,
        term: row.int("term")?,
        action,
        certificate_id: row.opt_parse("certificate_id")?,
        redirect_to: row.opt_text("redirect_to")?.map(|name| Hostname::trusted(&name)),
        version: row.int("version")?,
    })
}

/// Rows come ordered, one a name, so the names of one certificate follow each other.
fn collect_certificate(into: &mut Vec<StoredCertificate>, row: &Row, id: CertificateId) -> StoreResult<()> {
    let name = row.opt_text("name")?;
    match into.last_mut() {
        Some(last) if last.id == id => last.names.extend(name),
        _ => into.push(StoredCertificate {
            id,
            names: name.into_iter().collect(),
            chain: row.text("chain")?,
            sealed_key: row.opt_blob("sealed_key")?,
            sealed_for: row.text("sealed_for")?,
            serial: row.text("serial")?,
            not_after: row.moment("not_after")?,
            destroyed_at: row.opt_moment("destroyed_at")?,
            platform: row.text("source")? == "import",
        }),
    }
    Ok(())
}

/// Certificates.
pub async fn certificates(tx: &mut Tx, scope: Scope) -> StoreResult<Vec<StoredCertificate>> {
    let stmt = match scope {
        Scope::All => sql("SELECT c.id AS c_id, c.chain, c.sealed_key, COALESCE(c.order_id, c.id) AS sealed_for, \
             c.serial, c.not_after, c.destroyed_at, c.source, n.name \
             FROM certificates c LEFT JOIN certificate_names n ON n.certificate_id = c.id \
             WHERE c.destroyed_at IS NULL ORDER BY c.id, n.name"),
        Scope::Changes(after, upto) => {
            sql("SELECT c.id AS c_id, c.chain, c.sealed_key, COALESCE(c.order_id, c.id) AS sealed_for, \
             c.serial, c.not_after, c.destroyed_at, c.source, n.name \
             FROM (SELECT DISTINCT subject FROM outbox WHERE seq > $1 AND seq <= $2 AND kind || '' = 'certificate') o \
             JOIN certificates c ON c.id = o.subject \
             LEFT JOIN certificate_names n ON n.certificate_id = c.id ORDER BY c.id, n.name")
            .bind(after)
            .bind(upto)
        }
    };
    let mut found = Vec::new();
    for row in tx.fetch_all(stmt).await? {
        let id = row.parse("c_id")?;
        collect_certificate(&mut found, &row, id)?;
    }
    Ok(found)
}

/// Challenges.
pub async fn challenges(tx: &mut Tx, scope: Scope) -> StoreResult<Vec<ChallengeEntry>> {
    let stmt = match scope {
        Scope::All => sql("SELECT token, hostname, key_authorization, removed_at FROM challenges WHERE removed_at IS NULL"),
        Scope::Changes(after, upto) => sql("SELECT c.token, c.hostname, c.key_authorization, c.removed_at \
             FROM (SELECT DISTINCT subject FROM outbox WHERE seq > $1 AND seq <= $2 AND kind || '' = 'challenge') o \
             JOIN challenges c ON c.id = o.subject")
        .bind(after)
        .bind(upto),
    };
    tx.fetch_all(stmt).await?.iter().map(challenge).collect()
}

/// A challenge by its token.
pub async fn challenge_by_token(tx: &mut Tx, token: &str) -> StoreResult<Option<ChallengeEntry>> {
    let stmt = sql("SELECT token, hostname, key_authorization, removed_at FROM challenges WHERE token = $1 \
         ORDER BY CASE WHEN removed_at IS NULL THEN 0 ELSE 1 END LIMIT 1")
    .bind(token);
    tx.fetch_optional(stmt).await?.as_ref().map(challenge).transpose()
}

fn challenge(row: &Row) -> StoreResult<ChallengeEntry> {
    let over = row.opt_moment("removed_at")?.is_some();
    let answer = row.text("key_authorization")?;
    Ok(ChallengeEntry {
        token: row.text("token")?,
        hostname: Hostname::trusted(&row.text("hostname")?),
        key_authorization: (!over).then_some(answer),
        version: if over { OVER } else { PUBLISHED },
    })
}
