//! Replacements out of turn: what was selected is marked in one transaction each, and each mark goes with its certificate.

use super::{Row, Stmt, Store, StoreResult, sql};
use crate::model::id::{CertificateId, DomainId};
use crate::model::moment::Moment;

/// Which certificates in use are to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All of an issuer, by its name.
    Issuer(String),
    /// Those with these serial numbers: lower-case hex, whole octets.
    Serials(Vec<String>),
    /// Those that became valid before this.
    Before(Moment),
}

/// A certificate in use of a live name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct Selected {
    pub domain_id: DomainId,
    pub certificate_id: CertificateId,
}

/// So many are read or marked at once.
const PAGE: usize = 500;
/// So many serial numbers are asked for at once: as many as the statement has places.
const SERIALS: usize = 8;
/// How many statements go into one round trip.
const CHUNK: usize = 20;

/// What is selected and not on its way already.
pub async fn select(store: &Store, selection: &Selection) -> StoreResult<Vec<Selected>> {
    let mut all = Vec::new();
    match selection {
        Selection::Issuer(name) => {
            paged(store, &mut all, |after| {
                sql("SELECT d.id AS domain_id, c.id AS certificate_id FROM renewals r JOIN domains d ON d.id = r.domain_id \
                       JOIN certificates c ON c.id = r.certificate_id JOIN issuers i ON i.id = c.issuer_id \
                     WHERE d.claim = 'live' AND d.certificate_id = r.certificate_id AND r.reissue_id IS NULL \
                       AND i.name = $1 AND r.domain_id > $2 ORDER BY r.domain_id LIMIT $3")
                .bind(name.as_str())
                .bind(after)
                .bind(limit())
            })
            .await?;
        }
        Selection::Before(at) => {
            paged(store, &mut all, |after| {
                sql("SELECT d.id AS domain_id, c.id AS certificate_id FROM renewals r JOIN domains d ON d.id = r.domain_id \
                       JOIN certificates c ON c.id = r.certificate_id \
                     WHERE d.claim = 'live' AND d.certificate_id = r.certificate_id AND r.reissue_id IS NULL \
                       AND c.source = 'order' AND c.not_before < $1 AND r.domain_id > $2 ORDER BY r.domain_id LIMIT $3")
                .bind(*at)
                .bind(after)
                .bind(limit())
            })
            .await?;
        }
        Selection::Serials(serials) => {
            for chunk in serials.chunks(SERIALS) {
                let some = sql("SELECT d.id AS domain_id, c.id AS certificate_id FROM certificates c \
                       JOIN renewals r ON r.certificate_id = c.id AND r.domain_id = c.domain_id JOIN domains d ON d.id = r.domain_id \
                     WHERE c.serial IN ($1, $2, $3, $4, $5, $6, $7, $8) AND c.destroyed_at IS NULL \
                       AND d.claim = 'live' AND d.certificate_id = r.certificate_id AND r.reissue_id IS NULL");
                // The places that are left ask for the last one again.
                let stmt = (0..SERIALS).fold(some, |stmt, n| stmt.bind(chunk[n.min(chunk.len() - 1)].as_str()));
                for row in store.query(stmt).await? {
                    all.push(selected(&row)?);
                }
            }
            all.sort_by(|a, b| a.domain_id.cmp(&b.domain_id));
            all.dedup();
        }
    }
    Ok(all)
}

fn limit() -> i64 {
    i64::try_from(PAGE).unwrap_or(i64::MAX)
}

async fn paged(store: &Store, all: &mut Vec<Selected>, page: impl Fn(&str) -> Stmt) -> StoreResult<()> {
    let mut after = String::new();
    loop {
        let rows = store.query(page(&after)).await?;
        for row in &rows {
            all.push(selected(row)?);
        }
        match all.last().filter(|_| rows.len() == PAGE) {
            Some(last) => after = last.domain_id.to_string(),
            None => return Ok(()),
        }
    }
}

fn selected(row: &Row) -> StoreResult<Selected> {
    Ok(Selected { domain_id: row.parse("domain_id")?, certificate_id: row.parse("certificate_id")? })
}

/// Writes down that these are to be replaced, and makes each due at its moment. A process that dies in between leaves fewer marked than
/// it wanted: the same again marks the rest.
pub async fn mark(
    store: &Store,
    id: &str,
    selection: &str,
    actor: &str,
    these: &[(Selected, Moment)],
    now: Moment,
) -> StoreResult<u64> {
    let mut marked = 0;
    for (n, page) in these.chunks(PAGE).enumerate() {
        let mut tx = store.begin().await?;
        let mut of_page = 0;
        for chunk in page.chunks(CHUNK) {
            let mark = |(s, _): &(Selected, Moment)| {
                sql("UPDATE renewals SET reissue_id = $3 WHERE domain_id = $1 AND certificate_id = $2 AND reissue_id IS NULL")
                    .bind(s.domain_id.as_str())
                    .bind(s.certificate_id.as_str())
                    .bind(id)
            };
            of_page += tx.batch(chunk.iter().map(mark).collect()).await?.iter().sum::<u64>();
            let due = |(s, at): &(Selected, Moment)| {
                sql("UPDATE domains SET due_at = CASE WHEN due_at > $2 THEN $2 ELSE due_at END, nudged = generation \
                     WHERE id = $1 AND claim = 'live'")
                .bind(s.domain_id.as_str())
                .bind(*at)
            };
            tx.batch(chunk.iter().map(due).collect()).await?;
        }
        let count = i64::try_from(of_page).unwrap_or(i64::MAX);
        let row = if n == 0 {
            sql("INSERT INTO reissues (id, selection, actor, certificates, created_at) VALUES ($1, $2, $3, $4, $5)")
                .bind(id)
                .bind(selection)
                .bind(actor)
                .bind(count)
                .bind(now)
        } else {
            sql("UPDATE reissues SET certificates = certificates + $2 WHERE id = $1").bind(id).bind(count)
        };
        tx.execute(row).await?;
        tx.commit().await?;
        marked += of_page;
    }
    Ok(marked)
}

/// One replacement out of turn, and how far it is.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct ReissueRow {
    pub id: String,
    pub selection: String,
    pub actor: String,
    pub certificates: i64,
    pub created_at: Moment,
    pub cancelled_at: Option<Moment>,
    /// Those that are not replaced yet.
    pub left: i64,
}

/// All of them, the latest first.
pub async fn list(store: &Store) -> StoreResult<Vec<ReissueRow>> {
    let query = sql("SELECT x.*, (SELECT count(*) FROM renewals r JOIN domains d ON d.id = r.domain_id \
           WHERE r.reissue_id = x.id AND d.claim = 'live') AS left_over FROM reissues x ORDER BY x.created_at DESC, x.id DESC");
    store
        .query(query)
        .await?
        .iter()
        .map(|row| {
            Ok(ReissueRow {
                id: row.text("id")?,
                selection: row.text("selection")?,
                actor: row.text("actor")?,
                certificates: row.int("certificates")?,
                created_at: row.moment("created_at")?,
                cancelled_at: row.opt_moment("cancelled_at")?,
                left: row.int("left_over")?,
            })
        })
        .collect()
}

/// Gives up what is left of it; orders that only wait end, what is at the CA goes on. `false`: there is none of this id, or it was
/// given up before.
pub async fn cancel(store: &Store, id: &str, now: Moment) -> StoreResult<bool> {
    let mut tx = store.begin().await?;
    let stmt = sql("UPDATE reissues SET cancelled_at = $2 WHERE id = $1 AND cancelled_at IS NULL").bind(id).bind(now);
    if tx.execute(stmt).await? == 0 {
        return Ok(false);
    }
    // Their domains first, as steps lock them: whoever is in a step looks again.
    tx.execute(
        sql("UPDATE domains SET due_at = CASE WHEN due_at > $2 THEN $2 ELSE due_at END, nudged = generation \
             WHERE id IN (SELECT domain_id FROM renewals WHERE reissue_id = $1)")
        .bind(id)
        .bind(now),
    )
    .await?;
    tx.execute(
        sql("UPDATE orders SET state = 'failed', state_since = $2 WHERE state = 'waiting' AND purpose = 'reissue' \
             AND domain_id IN (SELECT domain_id FROM renewals WHERE reissue_id = $1)")
        .bind(id)
        .bind(now),
    )
    .await?;
    tx.execute(sql("UPDATE renewals SET reissue_id = NULL WHERE reissue_id = $1").bind(id)).await?;
    tx.commit().await?;
    Ok(true)
}
