//! `server`: the API and the pages.

use std::net::{Ipv4Addr, SocketAddr};

use super::network::Network;
use super::reader::Reader;
use super::setting::Origin;

/// The section.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where API and pages listen.
    pub listen: SocketAddr,
    /// What every link is built from.
    pub public_url: Option<Origin>,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Network>,
}

impl ServerConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let config = ServerConfig {
            listen: r.value(
                "server.listen",
                SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
                "Address and port of the API and the pages, in plain HTTP: put TLS in front of it.",
            ),
            public_url: r.optional(
                "server.public_url",
                "Origin under which people reach the API and the pages, https unless it is on loopback; every link is built from it. `serve` needs it.",
            ),
            trusted_proxies: r.value(
                "server.trusted_proxies",
                vec![],
                "Networks of the proxies in front; `X-Forwarded-For` is believed from them alone.",
            ),
        };
        if let Some(url) = config.public_url.as_ref().filter(|url| !url.is_private()) {
            let told = format!(
                "{:?} would send sessions and tokens in the clear; give an https:// origin (http:// is for loopback only)",
                url.as_str()
            );
            r.problem("server.public_url", "", told);
        }
        config
    }
}
