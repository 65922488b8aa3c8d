//! What the CA's limits make of an import, from the ledger as it stands.

use std::collections::HashMap;

use crate::app::{App, AppError};
use crate::model::bulk_plan::{Asked, Crowd, Plan, plan};
use crate::model::id::ImportId;
use crate::model::limits::LimitName;
use crate::store::{StoreResult, Tx, bulk_rows, issuers, ledger};

/// Rows read at once.
const PAGE: i64 = 1_000;

/// The plan of an import whose rows have their verdicts, at the issuer that is asked first; none while there is no issuer.
pub async fn of(app: &App, id: &ImportId) -> Result<Option<Plan>, AppError> {
    let mut tx = app.store.read().await?;
    let Some(issuer) = issuers::first(&mut tx).await? else { return Ok(None) };
    let now = app.env.now();
    let limit = |name: LimitName| issuer.limits.get(&name).copied();
    let per_domain = limit(LimitName::CertificatesPerDomain);
    let (orders, registered_domains) = bulk_rows::orders_needed(&mut tx, id).await?;
    let crowds = match per_domain {
        Some(per_domain) => {
            let counted = LimitName::CertificatesPerDomain.as_str();
            bulk_rows::crowds(&mut tx, id, (&issuer.id, counted), per_domain.burst, now).await?
        }
        None => Vec::new(),
    };
    let used = ledger::of_account(&mut tx, &issuer.id).await?;
    let ahead = bulk_rows::waiting(&mut tx, &issuer.id).await?;
    let crowds: Vec<Crowd> =
        crowds.into_iter().map(|(registered, names, bucket)| Crowd { registered, names, bucket }).collect();
    let order = in_order(&mut tx, id, orders, &crowds).await?;
    let account = limit(LimitName::OrdersPerAccount).map(|limit| (limit, used));
    let asked = Asked { order, registered_domains, crowds, ahead, account, per_domain };
    Ok(Some(plan(&asked, now)))
}

/// Which of the crowds each name is in, in the order of their rows. Nobody asks where there are none.
async fn in_order(tx: &mut Tx, id: &ImportId, orders: u64, crowds: &[Crowd]) -> StoreResult<Vec<Option<u32>>> {
    if crowds.is_empty() {
        return Ok(vec![None; usize::try_from(orders).unwrap_or(0)]);
    }
    let numbers: HashMap<&str, u32> = (0..).zip(crowds).map(|(n, crowd)| (crowd.registered.as_str(), n)).collect();
    let (mut order, mut after) = (Vec::new(), 0);
    loop {
        let page = bulk_rows::domains_in_order(tx, id, after, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(order) };
        after = *last;
        order.extend(page.iter().map(|(_, registered)| numbers.get(registered.as_str()).copied()));
    }
}
