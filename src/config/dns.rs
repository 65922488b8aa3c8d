//! `dns`: how DNS is looked at.

use std::net::SocketAddr;
use std::time::Duration;

use super::reader::Reader;

/// The section.
#[derive(Clone, Debug)]
pub struct DnsConfig {
    /// Recursive resolvers; none means those of `/etc/resolv.conf`.
    pub resolvers: Vec<SocketAddr>,
    /// How long one query may take.
    pub timeout: Duration,
}

impl DnsConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        DnsConfig {
            resolvers: r.value(
                "dns.resolvers",
                vec![],
                "Validating recursive resolvers, with ports; three in different networks see most. None: those of `/etc/resolv.conf`.",
            ),
            timeout: r.value("dns.timeout", Duration::from_secs(3), "How long one query may take."),
        }
    }
}
