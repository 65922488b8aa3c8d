//! Revocation by the account that got the certificate (RFC 8555 §7.6).

use super::numbers::AccountNo;
use super::problem::{Kind, Problem};
use super::state::CaState;

impl CaState {
    /// Marks a certificate as revoked.
    pub fn revoke(&mut self, account: &AccountNo, certificate_der: &[u8], reason: Option<u64>) -> Result<(), Problem> {
        // RFC 5280 §5.3.1: 7 is not used; 2, 6, 8, 10 are not a subscriber's to give.
        if let Some(odd) = reason.filter(|r| ![0, 1, 3, 4, 5, 9].contains(r)) {
            let detail = format!("reason {odd} is not one of 0, 1, 3, 4, 5, 9");
            return Err(Problem::new(Kind::BadRevocationReason, detail));
        }
        self.open_account(account)?;
        let issued = self.orders.values_mut().filter_map(|o| o.issuance.as_mut()).find(|i| i.leaf == certificate_der);
        let issued = issued.ok_or_else(|| Problem::malformed("this CA did not issue that certificate").with_status(404))?;
        if issued.account != *account {
            return Err(Problem::new(Kind::Unauthorized, "the certificate was issued to another account"));
        }
        if issued.revoked {
            return Err(Problem::new(Kind::AlreadyRevoked, "the certificate is revoked already"));
        }
        issued.revoked = true;
        Ok(())
    }
}
