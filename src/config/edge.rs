//! `edge`: a node that terminates TLS.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::reader::Reader;
use super::setting::{Origin, Setting as _};
use crate::model::secret::Secret;

/// The section.
#[derive(Clone, Debug)]
pub struct EdgeConfig {
    /// Its name among the edges.
    pub name: Option<String>,
    /// Where its key and last good copy are kept.
    pub state_dir: PathBuf,
    /// Plain HTTP.
    pub plain_listen: SocketAddr,
    /// HTTPS.
    pub tls_listen: SocketAddr,
    /// Where requests go.
    pub upstream: Option<Origin>,
    /// The port that redirects name.
    pub external_port: u16,
    /// What it enrols with, once.
    pub join_token: Option<Secret>,
}

impl EdgeConfig {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let any = Ipv4Addr::UNSPECIFIED;
        let edge = EdgeConfig {
            name: r.optional("edge.name", "Name of this edge among the edges. `edge` needs it."),
            state_dir: r.value(
                "edge.state_dir",
                PathBuf::from("edge-state"),
                "Directory of this edge's own key and its sealed copy of the feed.",
            ),
            plain_listen: r.value("edge.plain_listen", SocketAddr::from((any, 80)), "Address and port of plain HTTP."),
            tls_listen: r.value("edge.tls_listen", SocketAddr::from((any, 443)), "Address and port of HTTPS."),
            upstream: r.optional("edge.upstream", "Origin of the application that requests go to. `edge` needs it."),
            external_port: r.value("edge.external_port", 443, "Port of HTTPS as visitors see it; redirects name it."),
            join_token: r.secret(
                "edge.join_token",
                "Single-use token from `nameplate token create --edge`; needed at the first start only.",
                "File that holds `edge.join_token`.",
            ),
        };
        if let Some(upstream) = edge.upstream.as_ref().filter(|u| !u.as_str().starts_with("http://")) {
            r.problem("edge.upstream", "", format!("{:?} is not a plain http:// origin", upstream.show()));
        }
        edge
    }
}
