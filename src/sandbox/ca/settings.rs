//! What can be set about the CA.

use std::collections::BTreeMap;
use std::time::Duration;

/// How the CA behaves when nothing goes wrong.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The names by which the CA knows itself in CAA records, as its directory tells (RFC 8555 §9.7.6).
    pub caa_identities: Vec<String>,
    /// The profiles offered, with what the directory says of each; none: orders name none.
    pub profiles: BTreeMap<String, String>,
    /// How long an order may stay open.
    pub order_lifetime: Duration,
    /// How long an authorization may stay pending, and how long a proven one counts.
    pub authorization_lifetime: Duration,
    /// From issuance to `notAfter`.
    pub certificate_lifetime: Duration,
    /// How long before its issuance a certificate is valid already, for clients whose clocks are slow.
    pub backdated: Duration,
    /// How long an order stays `processing` between finalize and certificate.
    pub issuance_takes: Duration,
    /// How many unspent nonces are remembered; the oldest is forgotten first.
    pub nonces_kept: usize,
    /// The most names one order may hold.
    pub names_per_order: usize,
}

impl Default for Settings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(86_400);
        Settings {
            caa_identities: vec!["ca.test".to_owned()],
            profiles: BTreeMap::new(),
            order_lifetime: 7 * DAY,
            authorization_lifetime: 7 * DAY,
            certificate_lifetime: 90 * DAY,
            backdated: Duration::from_secs(3600),
            issuance_takes: Duration::ZERO,
            nonces_kept: 4096,
            names_per_order: 100,
        }
    }
}
