//! `dns`: how DNS is looked at.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::reader::Reader;
use super::setting::{DnsName, Setting};

/// The section.
#[derive(Clone, Debug)]
pub struct DnsConfig {
    /// Recursive resolvers; none means those of `/etc/resolv.conf`.
    pub resolvers: Vec<SocketAddr>,
    /// Where zones' own servers are; none means at their own addresses, port 53.
    pub servers: Vec<ServerPlace>,
    /// Names that always resolve, by which an outage of the resolvers is told; none means those of `routing`.
    pub control_names: Vec<DnsName>,
    /// How long one query may take.
    pub timeout: Duration,
}

/// Where the server of a zone is really asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPlace {
    /// The address that DNS gives it.
    pub address: IpAddr,
    /// Where it is.
    pub place: SocketAddr,
}

impl Setting for ServerPlace {
    const EXPECTED: &'static str = "an address and where it is asked, like 192.0.2.53=127.0.0.1:5353";
    fn read(text: &str) -> Option<Self> {
        let (address, place) = text.split_once('=')?;
        Some(ServerPlace { address: address.trim().parse().ok()?, place: place.trim().parse().ok()? })
    }
    fn show(&self) -> String {
        format!("{}={}", self.address, self.place)
    }
}

impl DnsConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        DnsConfig {
            resolvers: r.value(
                "dns.resolvers",
                vec![],
                "Validating recursive resolvers, with ports; three in different networks see most. None: those of `/etc/resolv.conf`.",
            ),
            servers: r.value(
                "dns.servers",
                vec![],
                "Where zones' own servers are asked, as `ADDRESS=PLACE`; then no others are. For trials on one machine only.",
            ),
            control_names: r.value(
                "dns.control_names",
                vec![],
                "Names that always resolve: when no resolver answers for them either, the outage is ours and no tenant is told to act. \
                 None: `routing.canonical_suffix` and `routing.shared_target`.",
            ),
            timeout: r.value("dns.timeout", Duration::from_secs(3), "How long one query may take."),
        }
    }
}
