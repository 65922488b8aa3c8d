//! WebSockets and other upgrades of HTTP/1.1 (RFC 9110 section 7.8): once the origin agreed, bytes go through both ways.
//!
//! A side that ends its half is told to the other, whose half goes on. What would carry HTTP again is not offered to the
//! origin: behind `h2c` a visitor could say `X-Tenant-Id` to it, and nobody would take it off.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Version, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Shared;
use super::exchange::Exchange;

/// Bytes taken at a time.
const BUFFER: usize = 16 * 1024;
/// How often it is looked whether a tunnel's host is still its tenant's.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The upgrade that a request asks for, if the origin may hear of it.
pub(super) fn wanted(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    if version != Version::HTTP_11 || !says(headers, header::CONNECTION, "upgrade") {
        return None;
    }
    let mut given = headers.get_all(header::UPGRADE).iter();
    let (value, None) = (given.next()?, given.next()) else { return None };
    let tokens = value.to_str().ok()?;
    let carries_http = |token: &str| {
        let name = token.split('/').next().unwrap_or_default().trim().to_ascii_lowercase();
        name.is_empty() || name.starts_with("h2") || name.starts_with("h3") || name == "http" || name == "tls"
    };
    (!tokens.split(',').any(carries_http)).then(|| value.clone())
}

/// Whether a list header has an element.
pub(super) fn says(headers: &HeaderMap, name: header::HeaderName, element: &str) -> bool {
    let values = headers.get_all(name);
    let mut elements = values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    elements.any(|given| given.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(element))
}

/// Opens a tunnel between the two, in a task that the drain waits for.
pub(super) fn open(shared: &Arc<Shared>, exchange: Arc<Exchange>, visitor: OnUpgrade, origin: OnUpgrade) {
    let shared = Arc::clone(shared);
    let tasks = shared.tasks.clone();
    exchange.is_tunnel();
    tasks.spawn(async move {
        let both = async { tokio::try_join!(visitor, origin) };
        let both = tokio::select! {
            both = both => both,
            () = shared.env.sleep(shared.limits.head_timeout) => return,
            () = shared.cut.cancelled() => return,
        };
        let (visitor, origin) = match both {
            Ok(both) => both,
            Err(error) => {
                tracing::debug!(%error, "an upgrade was not carried out");
                return;
            }
        };
        shared.meters.tunnel(true);
        tokio::select! {
            ended = carry(TokioIo::new(visitor), TokioIo::new(origin), &exchange) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a tunnel broke off");
                }
            }
            () = stands_still(&shared, &exchange, shared.limits.tunnel_idle_timeout) => {}
            () = let_go(&shared, &exchange) => {
                tracing::debug!("the host of a tunnel is no longer its tenant's; it is ended");
            }
            () = shared.cut.cancelled() => {}
        }
        shared.meters.tunnel(false);
    });
}

async fn carry(
    visitor: impl AsyncRead + AsyncWrite + Unpin,
    origin: impl AsyncRead + AsyncWrite + Unpin,
    exchange: &Exchange,
) -> io::Result<()> {
    let (from_visitor, to_visitor) = tokio::io::split(visitor);
    let (from_origin, to_origin) = tokio::io::split(origin);
    tokio::try_join!(
        pump(from_visitor, to_origin, |bytes| exchange.came_in(bytes)),
        pump(from_origin, to_visitor, |bytes| exchange.went_out(bytes)),
    )?;
    Ok(())
}

/// Carries one direction until its end, and passes the end on.
async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, moved: impl Fn(usize)) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(buffer.get(..count).unwrap_or_default()).await?;
        to.flush().await?;
        moved(count);
    }
}

/// Returns once the tunnel's host is nobody's any more, or another tenant's.
async fn let_go(shared: &Shared, exchange: &Exchange) {
    while !exchange.is_let_go() {
        shared.env.sleep(LOOK_EVERY).await;
    }
}

/// Returns once nothing has moved for so long.
async fn stands_still(shared: &Shared, exchange: &Exchange, idle: Duration) {
    loop {
        let before = exchange.moved();
        shared.env.sleep(idle).await;
        if exchange.moved() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(connection: &str, upgrade: &[&str]) -> Option<HeaderValue> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, connection.parse().unwrap());
        for value in upgrade {
            headers.append(header::UPGRADE, value.parse().unwrap());
        }
        wanted(Version::HTTP_11, &headers)
    }

    #[test]
    fn only_what_is_no_http_is_offered_to_the_origin() {
        for good in ["websocket", "WebSocket", "my-protocol/2", "irc/6.9, rta/x11"] {
            assert_eq!(asked("keep-alive, Upgrade", &[good]).unwrap(), good);
        }
        for bad in ["h2c", "H2C", "h2", "h3", "HTTP/2.0", "http/1.1", "TLS/1.0", "websocket, h2c", "", " ,websocket"] {
            assert_eq!(asked("upgrade", &[bad]), None, "{bad}");
        }
        assert_eq!(asked("keep-alive", &["websocket"]), None);
        assert_eq!(asked("upgrade", &[]), None);
        assert_eq!(asked("upgrade", &["websocket", "h2c"]), None);
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        assert_eq!(wanted(Version::HTTP_2, &headers), None);
        assert_eq!(wanted(Version::HTTP_10, &headers), None);
    }
}
