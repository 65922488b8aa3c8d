//! `feed`: the numbered stream that edges follow.

use std::net::{Ipv4Addr, SocketAddr};

use super::reader::Reader;
use super::setting::Origin;

/// The section.
#[derive(Clone, Debug)]
pub struct FeedConfig {
    /// Where edges connect.
    pub listen: SocketAddr,
    /// The address that join tokens carry.
    pub url: Option<Origin>,
    /// How many edges must have a challenge before the CA is told.
    pub min_edges: u32,
}

impl FeedConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        FeedConfig {
            listen: r.value(
                "feed.listen",
                SocketAddr::from((Ipv4Addr::LOCALHOST, 8443)),
                "Address and port to which edges connect, in TLS 1.3.",
            ),
            url: r
                .optional("feed.url", "Origin at which edges reach `feed.listen`; join tokens carry it. `serve` needs it."),
            min_edges: r.value("feed.min_edges", 1, "Edges that must answer a challenge before the CA is told of it."),
        }
    }
}
