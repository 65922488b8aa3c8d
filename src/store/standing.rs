//! Rows of an earlier release get what this one counts and searches by: where the domain stands, and the words it is found by.

use super::situation::domain;
use super::{Stmt, Store, StoreResult, sql};
use crate::model::hostname::Hostname;
use crate::model::id::DomainId;
use crate::model::search::words_of;
use crate::model::standing;

/// So many rows are read at once, and so many written in one round trip.
const READ: i64 = 500;
const WRITTEN: usize = 50;

/// The words a hostname is found by.
pub(super) fn words(id: &DomainId, hostname: &Hostname) -> Vec<Stmt> {
    let word = |word: String| {
        sql("INSERT INTO domain_words (word, domain_id) VALUES ($1, $2) ON CONFLICT (word, domain_id) DO NOTHING")
            .bind(word)
            .bind(id.as_str())
    };
    words_of(hostname).into_iter().map(word).collect()
}

/// Judges every row that no step of this release has written yet. A step that comes first wins.
pub(super) async fn judge_unjudged(store: &Store) -> StoreResult<()> {
    let mut after = String::new();
    loop {
        let rows = store
            .query(
                sql("SELECT d.*, m.hold, (SELECT o.state FROM orders o WHERE o.domain_id = d.id \
                       ORDER BY CASE WHEN o.state IN ('issued', 'failed', 'lost') THEN 1 ELSE 0 END, \
                         o.created_at DESC, o.id DESC LIMIT 1) AS order_state \
                     FROM domains d LEFT JOIN imports m ON m.id = d.import_id AND d.lane = 'bulk' \
                     WHERE d.standing = '' AND d.id > $1 ORDER BY d.id LIMIT $2")
                .bind(after.as_str())
                .bind(READ),
            )
            .await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.text("id")?;
        let mut tx = store.begin().await?;
        for chunk in rows.chunks(WRITTEN) {
            let mut stmts = Vec::with_capacity(chunk.len() * 4);
            for row in chunk {
                let d = domain(row)?;
                let stands = standing::of_row(&d, row.opt_parse("order_state")?, row.opt_parse("hold")?);
                stmts.push(
                    sql("UPDATE domains SET standing = $2, acts = $3 WHERE id = $1 AND standing = ''")
                        .bind(d.id.as_str())
                        .bind(stands.code())
                        .bind(stands.acts().as_str()),
                );
                stmts.extend(words(&d.id, &d.hostname));
            }
            tx.batch(stmts).await?;
        }
        tx.commit().await?;
    }
}
