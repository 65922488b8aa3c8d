//! The names that accounts, orders and authorizations go by in the CA's URLs.

use std::fmt;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            pub(super) fn drawn(bytes: [u8; 8]) -> Self {
                Self(format!("{:016x}", u64::from_be_bytes(bytes)))
            }
        }

        /// The number as it stands in a URL; one the CA never gave out is simply not found.
        impl From<&str> for $name {
            fn from(s: &str) -> Self {
                Self(s.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

numbers! {
    /// An account at this CA.
    AccountNo;
    /// An order; its certificate goes by the same number.
    OrderNo;
    /// An authorization; its one challenge goes by the same number.
    AuthorizationNo;
}
