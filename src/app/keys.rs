//! Keys of certificates: drawn once for an order, sealed for its row, opened for a request or a check.

use super::{App, AppError};
use crate::acme::csr;
use crate::model::domain::Situation;
use crate::model::order::Order;
use crate::model::plan::Change;
use crate::model::secret::Secret;
use crate::store::StoreError;
use crate::vault::{Context, Sealed};

/// The key of the certificate that an order is for, sealed for that order.
pub(super) fn sealed_key(app: &App, s: &Situation, change: Change) -> Result<Option<Vec<u8>>, AppError> {
    let (Change::PrepareKey, Some(order)) = (change, &s.order) else { return Ok(None) };
    let key = csr::new_key(&app.env)?;
    Ok(Some(app.vault.seal(&app.env, &key_context(order), &key)?.as_bytes().to_vec()))
}

/// What binds a certificate's sealed key to its row: the order it was drawn for.
fn key_context(order: &Order) -> Context {
    Context::new("certificate-key", order.id.as_str())
}

/// The key of an order's certificate.
pub(super) fn order_key(app: &App, order: &Order) -> Result<Secret, AppError> {
    let sealed = order.sealed_key.clone().ok_or_else(|| StoreError::not_found(format!("the key of order {}", order.id)))?;
    Ok(app.vault.open(&key_context(order), &Sealed::try_from(sealed)?)?)
}
