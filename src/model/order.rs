//! Orders at a CA as our rows know them.

use super::id::{CertificateId, ChallengeId, IssuerId, OrderId};
use super::moment::Moment;
use super::vocabulary::vocabulary;

vocabulary! {
    /// Why a certificate is ordered.
    Purpose {
        /// The first certificate of a claim.
        First = "first",
        /// Its successor in time.
        Renew = "renew",
        /// A replacement out of turn.
        Reissue = "reissue",
    }

    /// The lane an order waits in.
    Lane {
        /// Renewals near expiry.
        Renewal = "renewal",
        /// Claims made one by one.
        Single = "single",
        /// Imports, and replacements of certificates that are not due.
        Bulk = "bulk",
    }

    /// Where an order stands.
    OrderState {
        /// Waits for a grant.
        Waiting = "waiting",
        /// May be placed.
        Granted = "granted",
        /// The CA knows it; its URL is stored.
        Placed = "placed",
        /// The challenge is with the edges, or with the CA.
        Authorizing = "authorizing",
        /// The CA takes a CSR.
        Ready = "ready",
        /// The CSR was sent.
        Finalizing = "finalizing",
        /// The chain is stored.
        Issued = "issued",
        /// Ended without a certificate.
        Failed = "failed",
        /// The answer to newOrder never came.
        Lost = "lost",
    }
}

impl OrderState {
    /// Terminal rows stay as history; a retry is a new row.
    pub fn is_open(self) -> bool {
        !matches!(self, OrderState::Issued | OrderState::Failed | OrderState::Lost)
    }

    /// Whether a step may ask the CA about it.
    pub fn is_at_ca(self) -> bool {
        self.is_open() && self != OrderState::Waiting
    }
}

/// An open order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its id.
    pub id: OrderId,
    /// Why it exists.
    pub purpose: Purpose,
    /// Its lane.
    pub lane: Lane,
    /// The account it is for.
    pub issuer_id: IssuerId,
    /// Where it stands.
    pub state: OrderState,
    /// Since when.
    pub state_since: Moment,
    /// Not eligible before.
    pub not_before: Moment,
    /// The key of its certificate, sealed for this row, once it is drawn.
    pub sealed_key: Option<Vec<u8>>,
    /// Its URL at the CA.
    pub url: Option<String>,
    /// The URL of its HTTP-01 challenge.
    pub challenge_url: Option<String>,
    /// The challenge that edges answer for it.
    pub challenge_id: Option<ChallengeId>,
    /// When the CA was told that the challenge can be fetched.
    pub announced_at: Option<Moment>,
    /// The certificate it became.
    pub certificate_id: Option<CertificateId>,
}
