//! Why an address did not answer.

use std::time::Duration;

use super::address::Refusal;

/// Why an address did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// The address is not one that a public name may lead to.
    #[error("the address was not asked")]
    Refused(#[source] Refusal),
    /// No connection.
    #[error("no connection could be made")]
    Connect(#[source] std::io::Error),
    /// No TLS.
    #[error("TLS could not be agreed on")]
    Tls(#[source] std::io::Error),
    /// The TLS settings themselves do not work.
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
    /// A certificate that cannot be read.
    #[error("the certificate it served cannot be read")]
    Certificate,
    /// Not HTTP.
    #[error("it did not answer in HTTP")]
    Http(#[source] hyper::Error),
    /// A request that cannot be written.
    #[error("a request for it cannot be written")]
    Request(#[source] http::Error),
    /// Too slow.
    #[error("it did not answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
}

impl ReachError {
    /// Whether the request may have reached whoever was asked: it was sent, or being sent.
    pub fn may_have_arrived(&self) -> bool {
        matches!(self, ReachError::Http(_) | ReachError::TimedOut(_))
    }
}
