//! Bulk imports: thousands of names handed over in one file, and an honest word on each.
//!
//! - [`Receiving`] takes a file as it arrives and stages its rows, some hundreds a transaction. Until the file is whole they
//!   count for nothing; what breaks off is thrown away.
//! - [`round`] judges staged rows behind the request: a batch is one transaction that claims its names, writes its verdicts and
//!   moves the import's cursor. A process that dies in between leaves a whole number of batches, and the next goes on there.
//! - [`plan`](plan::of) says what the CA's limits make of it, and [`turn`](turn::pause) holds an import, lets it go on, gives it
//!   up, or makes a dry run come true.
//! - [`check`] has all names of an import that wait for their records looked at.
//! - [`files`] is what people take away: verdicts row by row, and the DNS records of all claims.
//!
//! What always holds: a row that cannot be taken never stops another; whoever may not know a tenant hears of it what would be
//! said of one that is not there; a claim of an import waits in the lane of imports, and moves to the other when somebody claims
//! the same name by hand. May import what `app` may. How to get it wrong: hold a file, or its verdicts, in memory; or ring an
//! alarm for each of a hundred thousand claims at once.

pub mod check;
pub mod files;
mod judge;
pub mod plan;
mod receive;
pub mod turn;
mod work;

pub use receive::{Begun, NewImport, ReceiveError, Receiving, begin};
pub use work::round;

use super::App;
use super::tokens::Principal;
use crate::model::id::{ImportId, TenantId};
use crate::store::bulk::{self, Import, ImportFilter};
use crate::store::{StoreResult, Tx};

/// An import, if this principal may know of it: an operator all, a tenant those that were sent in its name.
pub async fn find(tx: &mut Tx, principal: &Principal, id: &ImportId) -> StoreResult<Option<Import>> {
    Ok(bulk::lookup(tx, id).await?.filter(|import| may_touch(principal, import)))
}

fn may_touch(principal: &Principal, import: &Import) -> bool {
    match principal {
        Principal::Operator => true,
        Principal::Tenant(own) => import.tenant_id.as_ref() == Some(own),
    }
}

/// Imports that this principal may know of, the newest first.
pub async fn list(app: &App, principal: &Principal, filter: ImportFilter, limit: i64) -> StoreResult<Vec<Import>> {
    let tenant: Option<TenantId> = match principal {
        Principal::Operator => filter.tenant,
        Principal::Tenant(own) => Some(own.clone()),
    };
    bulk::list(&app.store, &ImportFilter { tenant, ..filter }, limit).await
}
