//! Issuing: a CSR that fits a ready order becomes a chain (RFC 8555 §7.4).

use std::time::Duration;

use rcgen::{KeyPair, PublicKey};

use super::authority::{Authority, AuthorityError};
use super::csr;
use super::faults::Flaw;
use super::numbers::{AccountNo, OrderNo};
use super::order::Issuance;
use super::problem::{Kind, Problem};
use super::state::CaState;
use super::views::{OrderStatus, OrderView};
use crate::acme::chain::ari_id;
use crate::model::moment::Moment;

const DAY: Duration = Duration::from_secs(86_400);

/// A certificate as it was signed.
struct Signed {
    leaf: Vec<u8>,
    chain_pem: String,
    good: (Moment, Moment),
}

impl CaState {
    /// Issues by a CSR when the order is ready. A refused CSR leaves the order ready.
    pub fn finalize(
        &mut self,
        account: &AccountNo,
        no: &OrderNo,
        csr_der: &[u8],
        now: Moment,
    ) -> Result<OrderView, Problem> {
        let thumbprint = self.open_account(account)?.thumbprint.clone();
        let order = self.own_order(account, no)?;
        let status = self.order_status(order, now);
        if status != OrderStatus::Ready {
            return Err(Problem::new(Kind::OrderNotReady, format!("order {no} is {}, not ready", status.as_str())));
        }
        let (names, flaw, renews) = (order.names().to_vec(), order.flaw, order.renews());
        let ready_at = now + order.issuance_takes.unwrap_or(self.settings.issuance_takes);
        let key = csr::accept(csr_der, &names, &thumbprint)?;
        let issued = self.sign(&names, &key, flaw, now);
        if issued.is_ok() && !renews {
            self.count_certificate(&names, now);
        }
        if let Some(order) = self.orders.get_mut(no) {
            match issued {
                Ok(Signed { leaf, chain_pem, good }) => {
                    for name in names {
                        *self.counters.certificates_by_name.entry(name).or_default() += 1;
                    }
                    if let Some(id) = ari_id(&leaf) {
                        self.issued_for.insert(id, no.clone());
                    }
                    let account = account.clone();
                    order.issuance = Some(Issuance { leaf, revoked: false, account, good, chain_pem, ready_at });
                }
                Err(e) => order.error = Some(Problem::new(Kind::ServerInternal, e.to_string())),
            }
        }
        self.order(account, no, now)
    }

    /// Signs, with what the script wants to be wrong with it.
    fn sign(
        &mut self,
        names: &[String],
        key: &PublicKey,
        flaw: Option<Flaw>,
        now: Moment,
    ) -> Result<Signed, AuthorityError> {
        let mut serial: [u8; 16] = self.draw();
        // Positive and of full length in DER, whatever was drawn.
        serial[0] = serial[0] & 0x7f | 0x40;
        let (from, until) = match flaw {
            Some(Flaw::Expired) => (now - 2 * DAY, now - DAY),
            Some(Flaw::NotYetValid) => (now + DAY, now + DAY + self.settings.certificate_lifetime),
            _ => (now - self.settings.backdated, now + self.settings.certificate_lifetime),
        };
        let others: Vec<String> = names.iter().map(|name| format!("other.{name}")).collect();
        let names = if flaw == Some(Flaw::OtherNames) { &others } else { names };
        let leaf = if flaw == Some(Flaw::OtherKey) {
            let other =
                KeyPair::generate().map_err(|source| AuthorityError::Certificate { what: names.join(", "), source })?;
            self.authority.sign(names, &other, serial, from, until)?
        } else {
            self.authority.sign(names, key, serial, from, until)?
        };
        let chain_pem = match flaw {
            Some(Flaw::OtherChain) => Authority::generate("Somebody else")?.chain_pem(&leaf),
            _ => self.authority.chain_pem(&leaf),
        };
        Ok(Signed { leaf: leaf.der().to_vec(), chain_pem, good: (from, until) })
    }
}
