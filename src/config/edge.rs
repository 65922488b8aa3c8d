//! `edge`: a node that terminates TLS.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

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
    /// What signs its words to the origin.
    pub proof_secret: Option<Secret>,
    /// Where each request leaves a line.
    pub access_log: Option<PathBuf>,
    /// One request of so many leaves one.
    pub access_log_sample: u32,
    /// What a visitor and the origin may ask of it.
    pub limits: EdgeLimits,
}

/// What a visitor and the origin may ask of an edge.
#[derive(Clone, Debug)]
pub struct EdgeLimits {
    /// Connections of one listener.
    pub connections: u32,
    /// Requests and tunnels at the origin.
    pub requests: u32,
    /// Requests at a time on one HTTP/2 connection.
    pub streams: u32,
    /// A request's head.
    pub head_timeout: Duration,
    /// Bytes of a head.
    pub header_bytes: u32,
    /// Header lines.
    pub header_count: u32,
    /// Bytes of a body; 0 is none.
    pub body_bytes: u64,
    /// A body that stands still.
    pub idle_timeout: Duration,
    /// A tunnel that stands still.
    pub tunnel_idle_timeout: Duration,
    /// A connection to the origin.
    pub connect_timeout: Duration,
    /// The beginning of its answer.
    pub answer_timeout: Duration,
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
            proof_secret: r.secret(
                "edge.proof_secret",
                "Secret shared with the origin, at least 32 bytes: `X-Nameplate-Signature` proves to it what the edge says \
                 (see proxying.md).",
                "File that holds `edge.proof_secret`.",
            ),
            access_log: r.optional(
                "edge.access_log",
                "File that gets one JSON line a request, or `stdout`; without it there is no access log.",
            ),
            access_log_sample: r.value(
                "edge.access_log_sample",
                1,
                "One request of so many leaves a line; answers of 500 and above always do.",
            ),
            limits: EdgeLimits::read(r),
        };
        if edge.access_log_sample == 0 {
            r.problem("edge.access_log_sample", "", "0 is no sample; leave edge.access_log out for none".into());
        }
        if edge.proof_secret.as_ref().is_some_and(|secret| secret.expose().len() < 32) {
            r.problem("edge.proof_secret", "", "is shorter than 32 bytes; make one with `openssl rand -hex 32`".into());
        }
        if let Some(upstream) = edge.upstream.as_ref().filter(|u| !u.as_str().starts_with("http://")) {
            r.problem("edge.upstream", "", format!("{:?} is not a plain http:// origin", upstream.show()));
        }
        edge
    }
}

impl EdgeLimits {
    fn read(r: &mut Reader<'_>) -> Self {
        let limits = EdgeLimits {
            connections: r.value(
                "edge.connections",
                20_000,
                "Connections a listener serves at a time; requests on further ones are answered 503.",
            ),
            requests: r.value(
                "edge.requests",
                20_000,
                "Requests and tunnels at the origin at a time, each with a connection of its own; further ones are answered 503.",
            ),
            streams: r.value("edge.streams", 100, "Requests at a time on one HTTP/2 connection."),
            head_timeout: r.value(
                "edge.head_timeout",
                Duration::from_secs(30),
                "Time for a handshake and for a request's head (then 408), and how long HTTP/1.1 keeps an idle connection.",
            ),
            header_bytes: r.value(
                "edge.header_bytes",
                65_536,
                "Bytes of a request's target, header names and values together; more is answered 431.",
            ),
            header_count: r.value("edge.header_count", 128, "Header lines of a request; more are answered 431."),
            body_bytes: r.value(
                "edge.body_bytes",
                1 << 30,
                "Bytes of a request's body, 0 for no limit; more is answered 413. Tunnels are not limited.",
            ),
            idle_timeout: r.value(
                "edge.idle_timeout",
                Duration::from_secs(60),
                "How long a body may stand still, in either direction (an upload's end is 408), and an HTTP/2 connection be idle.",
            ),
            tunnel_idle_timeout: r.value(
                "edge.tunnel_idle_timeout",
                Duration::from_secs(300),
                "How long a WebSocket or another upgraded connection may stand still.",
            ),
            connect_timeout: r.value(
                "edge.connect_timeout",
                Duration::from_secs(5),
                "Time for a connection to the origin (then 504; refused is 502).",
            ),
            answer_timeout: r.value(
                "edge.answer_timeout",
                Duration::from_secs(60),
                "Time for the origin's answer to begin once it has the request (then 504).",
            ),
        };
        let times = [
            ("edge.head_timeout", limits.head_timeout),
            ("edge.idle_timeout", limits.idle_timeout),
            ("edge.tunnel_idle_timeout", limits.tunnel_idle_timeout),
            ("edge.connect_timeout", limits.connect_timeout),
            ("edge.answer_timeout", limits.answer_timeout),
        ];
        for (key, time) in times {
            if time.is_zero() {
                r.problem(key, "", "0 leaves no time for anything; expected at least 1ms".into());
            }
        }
        let counts = [
            ("edge.connections", limits.connections, 1, 1_000_000),
            ("edge.requests", limits.requests, 1, 1_000_000),
            ("edge.streams", limits.streams, 1, 10_000),
            ("edge.header_bytes", limits.header_bytes, 1_024, 1 << 20),
            ("edge.header_count", limits.header_count, 10, 1_000),
        ];
        for (key, count, least, most) in counts {
            if !(least..=most).contains(&count) {
                r.problem(key, "", format!("{count} is out of bounds; expected {least} to {most}"));
            }
        }
        limits
    }
}
