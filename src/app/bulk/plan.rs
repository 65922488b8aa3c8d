//! What the CA's limits make of an import, from the ledger as it stands.

use crate::app::{App, AppError};
use crate::model::bulk_plan::{Asked, Crowd, Plan, plan};
use crate::model::id::ImportId;
use crate::model::ledger::{Limit, ORDERS_PER_ACCOUNT};
use crate::store::issuers::IssuerRow;
use crate::store::{bulk_rows, dispatching, issuers};

/// The name and the key of the limits that a plan reads.
const PER_DOMAIN: &str = "certificates_per_domain";
const ACCOUNT: &str = "account";

/// What an issuer allows: orders of the account, and certificates under one registered domain. Where it is not configured the
/// second is Let's Encrypt's: CAs that have none are rare, and a plan should not promise what is not to be had.
fn limits(issuer: &IssuerRow) -> (Option<Limit>, Limit) {
    let weekly = Limit { burst: 50, per_secs: 7 * 86_400 };
    (issuer.limits.get(ORDERS_PER_ACCOUNT).copied(), issuer.limits.get(PER_DOMAIN).copied().unwrap_or(weekly))
}

/// The plan of an import whose rows have their verdicts, at the issuer that is asked first; none while there is no issuer.
pub async fn of(app: &App, id: &ImportId) -> Result<Option<Plan>, AppError> {
    let Some(issuer) = issuers::list(&app.store).await?.into_iter().next() else { return Ok(None) };
    let now = app.env.now();
    let (account, per_domain) = limits(&issuer);
    let mut tx = app.store.read().await?;
    let (orders, registered_domains) = bulk_rows::orders_needed(&mut tx, id).await?;
    let crowds = bulk_rows::crowds(&mut tx, id, (&issuer.id, PER_DOMAIN), per_domain.burst, now).await?;
    let bucket = dispatching::bucket(&mut tx, &issuer.id, ORDERS_PER_ACCOUNT, ACCOUNT, now).await?;
    let ahead = bulk_rows::waiting(&mut tx, &issuer.id).await?;
    let crowds = crowds.into_iter().map(|(registered, names, bucket)| Crowd { registered, names, bucket }).collect();
    let account = account.map(|limit| (limit, bucket));
    let asked = Asked { orders, registered_domains, crowds, ahead, account, per_domain: Some(per_domain) };
    Ok(Some(plan(&asked, now)))
}
