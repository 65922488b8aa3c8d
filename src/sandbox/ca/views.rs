//! What the CA tells about orders and authorizations at one moment (RFC 8555 §7.1.3, §7.1.4, §7.1.6).

use std::time::Duration;

use super::numbers::{AuthorizationNo, OrderNo};
use super::problem::Problem;
use crate::model::moment::Moment;

macro_rules! statuses {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant),* }

        impl $name {
            /// The word of RFC 8555 §7.1.6.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
    };
}

statuses! {
    /// Where an order stands.
    OrderStatus {
        /// Some name is not proven yet.
        Pending = "pending",
        /// All names are proven; a CSR is awaited.
        Ready = "ready",
        /// The certificate is being made.
        Processing = "processing",
        /// The certificate is there.
        Valid = "valid",
        /// It failed or expired.
        Invalid = "invalid",
    }
}

statuses! {
    /// Where an authorization stands.
    AuthorizationStatus {
        /// The challenge is not decided.
        Pending = "pending",
        /// The name is proven.
        Valid = "valid",
        /// The challenge failed.
        Invalid = "invalid",
        /// The client gave it up.
        Deactivated = "deactivated",
        /// Its time is over.
        Expired = "expired",
        /// The CA took it back.
        Revoked = "revoked",
    }
}

statuses! {
    /// Where a challenge stands.
    ChallengeStatus {
        /// The client has not said it is ready.
        Pending = "pending",
        /// The CA is looking.
        Processing = "processing",
        /// The CA saw the answer.
        Valid = "valid",
        /// The CA saw something else.
        Invalid = "invalid",
    }
}

/// An order as it stands.
#[derive(Clone, Debug)]
pub struct OrderView {
    /// Its number.
    pub no: OrderNo,
    /// Where it stands.
    pub status: OrderStatus,
    /// When it ends if nothing more happens.
    pub expires: Moment,
    /// The names ordered.
    pub names: Vec<String>,
    /// One authorization per name, in the order of `names`.
    pub authorizations: Vec<AuthorizationNo>,
    /// Why issuance failed. A failed challenge keeps its problem to itself, as at Let's Encrypt.
    pub error: Option<Problem>,
    /// While processing: how long it still takes.
    pub ready_in: Option<Duration>,
    /// The profile it was made under.
    pub profile: Option<String>,
    /// The certificate it replaces (RFC 9773 §5).
    pub replaces: Option<String>,
}

/// An authorization and its one challenge (http-01) as they stand.
#[derive(Clone, Debug)]
pub struct AuthorizationView {
    /// Its number.
    pub no: AuthorizationNo,
    /// The name it is for.
    pub name: String,
    /// Where it stands.
    pub status: AuthorizationStatus,
    /// When it ends.
    pub expires: Moment,
    /// The types of challenge it offers.
    pub offers: Vec<String>,
    /// The challenges' token.
    pub token: String,
    /// Where the challenge stands.
    pub challenge: ChallengeStatus,
    /// When the challenge was met.
    pub validated: Option<Moment>,
    /// Why the challenge failed.
    pub error: Option<Problem>,
}
