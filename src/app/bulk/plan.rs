//! What the CA's limits make of an import, from the ledger as it stands.

use crate::app::{App, AppError};
use crate::model::bulk_plan::{Asked, Crowd, Plan, plan};
use crate::model::id::ImportId;
use crate::model::limits::LimitName;
use crate::store::{bulk_rows, issuers, ledger};

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
    let crowds = crowds.into_iter().map(|(registered, names, bucket)| Crowd { registered, names, bucket }).collect();
    let account = limit(LimitName::OrdersPerAccount).map(|limit| (limit, used));
    let asked = Asked { orders, registered_domains, crowds, ahead, account, per_domain };
    Ok(Some(plan(&asked, now)))
}
