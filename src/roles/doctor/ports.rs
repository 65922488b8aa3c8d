//! Ports on this machine: free to be taken, or ours already.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use tokio::net::TcpListener;

use super::Report;
use crate::config::{Config, Role};

const PART: &str = "ports";
/// How long a listener may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// How one of ours is known by its answer.
enum Ours {
    Api,
    Feed,
    Edge,
    /// A TLS port without a name to ask for: that somebody listens is all there is to learn.
    EdgeTls,
}

pub(super) async fn examine(config: &Config, roles: &[Role], report: &mut Report) {
    if roles.contains(&Role::Serve) {
        port("server.listen", config.server.listen, &Ours::Api, report).await;
        port("feed.listen", config.feed.listen, &Ours::Feed, report).await;
    }
    if roles.contains(&Role::Edge) {
        port("edge.plain_listen", config.edge.plain_listen, &Ours::Edge, report).await;
        port("edge.tls_listen", config.edge.tls_listen, &Ours::EdgeTls, report).await;
    }
}

async fn port(key: &str, at: SocketAddr, who: &Ours, report: &mut Report) {
    let what = format!("{key} {at}");
    match TcpListener::bind(at).await {
        Ok(_) => report.ok(PART, what, "free"),
        Err(e) if e.kind() == ErrorKind::AddrInUse => match is_ours(reachable(at), who).await {
            Ok(seen) => report.ok(PART, what, seen),
            Err(seen) => {
                let advice = format!("stop what listens there, or set {key} to another address");
                report.broken(PART, what, seen, advice);
            }
        },
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            let advice =
                "give the service CAP_NET_BIND_SERVICE (AmbientCapabilities= in its unit), or set a port above 1023";
            report.broken(PART, what, format!("nothing may listen there: {e}"), advice);
        }
        Err(e) => report.broken(
            PART,
            what,
            format!("nothing can listen there: {e}"),
            format!("set {key} to an address of this machine"),
        ),
    }
}

/// Whether one of ours listens; what was seen either way.
async fn is_ours(at: SocketAddr, who: &Ours) -> Result<String, String> {
    // The feed's certificate is its own; what is asked for is no secret.
    let client = Client::builder().no_proxy().timeout(PATIENCE).danger_accept_invalid_certs(true).build();
    let client = client.map_err(|e| e.to_string())?;
    let (request, status, mark): (RequestBuilder, u16, &str) = match who {
        Ours::Api => (client.get(format!("http://{at}/healthz")), 200, "\"ok\""),
        Ours::Feed => (client.get(format!("https://{at}/feed/v1/keys")), 401, "no edge has this credential"),
        Ours::Edge => {
            (client.get(format!("http://{at}/")).header("host", "nameplate-doctor.invalid"), 404, "There is no site")
        }
        Ours::EdgeTls => return Ok("taken; by an edge, if the plain port is".to_owned()),
    };
    let foreign = || "taken by something that is not Nameplate".to_owned();
    let response = request.send().await.map_err(|_| foreign())?;
    let answered = response.status().as_u16();
    let body = response.text().await.unwrap_or_default();
    // An edge without a book says so instead.
    let waiting = matches!(who, Ours::Edge) && answered == 503 && body.contains("not ready yet");
    if (answered == status && body.contains(mark)) || waiting {
        Ok("taken by Nameplate already".to_owned())
    } else {
        Err(foreign())
    }
}

fn reachable(mut at: SocketAddr) -> SocketAddr {
    match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => at.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => at.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    at
}
