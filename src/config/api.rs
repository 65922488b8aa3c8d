//! `api`: how much of the API one caller gets.

use std::time::Duration;

use super::reader::Reader;

/// The section.
#[derive(Clone, Copy, Debug)]
pub struct ApiConfig {
    /// Requests that one token may make within a minute.
    pub requests_per_minute: u32,
    /// Requests without a valid token that one address may make within a minute.
    pub failures_per_minute: u32,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
}

impl ApiConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        ApiConfig {
            requests_per_minute: r.value(
                "api.requests_per_minute",
                600,
                "Requests that one token may make within a minute, all at once if it likes; 0 is as good as 1.",
            ),
            failures_per_minute: r.value(
                "api.failures_per_minute",
                30,
                "Requests and sign-ins without a valid token that one address may make within a minute before it is told to wait.",
            ),
            body_timeout: r.value(
                "api.body_timeout",
                Duration::from_secs(10),
                "How long the body of a request may take to arrive.",
            ),
        }
    }
}
