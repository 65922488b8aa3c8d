//! Open alerts of names whose renewal would be refused by what was last seen of them.

use super::alerts::{AlertRow, alert};
use super::{Stmt, StoreResult, Tx, sql};
use crate::model::alert::kinds::RENEWAL_AT_RISK;
use crate::model::id::{DomainId, EventId};

/// Those of one name.
pub async fn open_of(tx: &mut Tx, name: &DomainId) -> StoreResult<Vec<AlertRow>> {
    // By the name and not by the kind: of that there may be thousands, and a database that was never analysed cannot know.
    let stmt = sql("SELECT a.*, d.hostname FROM alerts a JOIN domains d ON d.id = a.domain_id \
         WHERE a.domain_id = $1 AND a.resolved_at IS NULL ORDER BY a.id");
    let mut open = Vec::new();
    for row in &tx.fetch_all(stmt.bind(name.as_str())).await? {
        let alert = alert(row)?;
        if alert.kind == RENEWAL_AT_RISK {
            open.push(alert);
        }
    }
    Ok(open)
}

/// Its words, where its day or what to do is another one by now; nobody is told of that.
pub fn reword(a: &AlertRow, said: &str) -> Stmt {
    sql("UPDATE alerts SET said = $2 WHERE id = $1 AND resolved_at IS NULL").bind(a.id.as_str()).bind(said)
}

/// It is told again, as something else stands in the way by now; one row changes, for whoever was first.
pub fn tell_again(a: &AlertRow, cause: &str, said: &str, event: &EventId) -> Stmt {
    sql("UPDATE alerts SET cause = $2, said = $3, raised_event = $4 \
         WHERE id = $1 AND resolved_at IS NULL AND raised_event = $5")
    .bind(a.id.as_str())
    .bind(cause)
    .bind(said)
    .bind(event.as_str())
    .bind(a.raised_event.as_str())
}
