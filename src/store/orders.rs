//! Open orders, for those who watch the queue.

use super::{Store, StoreResult, sql};
use crate::model::hostname::Hostname;
use crate::model::id::{DomainId, OrderId, TenantId};
use crate::model::moment::Moment;
use crate::model::order::OrderState;

/// An order that is not over.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "columns of the schema, described there")]
pub struct OpenOrder {
    pub id: OrderId,
    pub domain_id: DomainId,
    pub tenant_id: TenantId,
    pub hostname: Hostname,
    pub issuer: String,
    pub purpose: String,
    pub lane: String,
    pub state: OrderState,
    pub state_since: Moment,
    pub not_before: Moment,
    pub problem: Option<String>,
    pub created_at: Moment,
}

/// Orders that are not over, after an id, in order of their ids, that is of their age.
pub async fn open(store: &Store, after: &str, limit: i64) -> StoreResult<Vec<OpenOrder>> {
    let query = sql("SELECT o.id, o.domain_id, d.tenant_id, d.hostname, i.name AS issuer, o.purpose, o.lane, o.state, \
           o.state_since, o.not_before, o.problem, o.created_at \
         FROM orders o JOIN domains d ON d.id = o.domain_id JOIN issuers i ON i.id = o.issuer_id \
         WHERE o.state NOT IN ('issued', 'failed', 'lost') AND o.id > $1 ORDER BY o.id LIMIT $2");
    let rows = store.query(query.bind(after).bind(limit)).await?;
    rows.iter()
        .map(|row| {
            Ok(OpenOrder {
                id: row.parse("id")?,
                domain_id: row.parse("domain_id")?,
                tenant_id: row.parse("tenant_id")?,
                hostname: Hostname::trusted(&row.text("hostname")?),
                issuer: row.text("issuer")?,
                purpose: row.text("purpose")?,
                lane: row.text("lane")?,
                state: row.parse("state")?,
                state_since: row.moment("state_since")?,
                not_before: row.moment("not_before")?,
                problem: row.opt_text("problem")?,
                created_at: row.moment("created_at")?,
            })
        })
        .collect()
}
