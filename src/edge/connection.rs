//! One connection of a visitor, in the protocol that was agreed on, until it ends, stands still, or the edge drains.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ProtocolVersion;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::body::Body;
use super::exchange::{Exchange, Visit};
use super::framing::Wire;
use super::listen::Place;
use super::{Shared, answer, plain as plain_port, proxy};
use crate::telemetry::metrics::{Handshake, Protocol};

/// How often a visitor's side of an HTTP/2 connection is asked whether it is there, and how long it may take to say so.
const PING: Duration = Duration::from_secs(20);
/// What an HTTP/2 visitor may send ahead: on one request, and on all of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What waits for a slow visitor on one request of HTTP/2.
const SEND_BUFFER: usize = 64 * 1024;
/// Requests that a visitor may take back before they were looked at, and those ended for errors of its own, before the
/// connection is ended as a flood.
const PENDING_RESETS: usize = 20;
const ERROR_RESETS: usize = 100;
/// How long saying that a head took too long may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// A connection of the plain port.
pub(super) async fn plain(stream: TcpStream, peer: SocketAddr, place: Place, shared: Arc<Shared>) {
    let visit = Visit::new(peer.ip(), Protocol::Plain, None, place, shared.env.now());
    h1(stream, Arc::new(visit), shared).await;
}

/// A connection of the TLS port.
pub(super) async fn tls(acceptor: TlsAcceptor, stream: TcpStream, peer: SocketAddr, place: Place, shared: Arc<Shared>) {
    let accepted = tokio::select! {
        accepted = acceptor.accept(stream) => accepted,
        () = shared.env.sleep(shared.limits.head_timeout) => return shared.meters.handshake(Handshake::TimedOut),
        () = shared.cut.cancelled() => return shared.meters.handshake(Handshake::Gone),
    };
    let stream = match accepted {
        Ok(stream) => stream,
        Err(error) => {
            shared.meters.handshake(outcome_of(&error));
            tracing::debug!(%error, "a TLS handshake failed");
            return;
        }
    };
    shared.meters.handshake(Handshake::Done);
    let session = stream.get_ref().1;
    // Without a server name no certificate is chosen, so no handshake gets here.
    let Some(name) = session.server_name().map(|n| n.trim_end_matches('.').to_ascii_lowercase()) else { return };
    let version = if session.protocol_version() == Some(ProtocolVersion::TLSv1_3) { "1.3" } else { "1.2" };
    let protocol = if session.alpn_protocol() == Some(b"h2") { Protocol::H2 } else { Protocol::H1 };
    let visit = Arc::new(Visit::new(peer.ip(), protocol, Some((version, name.into())), place, shared.env.now()));
    match protocol {
        Protocol::H2 => h2(stream, visit, shared).await,
        Protocol::H1 | Protocol::Plain => h1(stream, visit, shared).await,
    }
}

fn outcome_of(error: &std::io::Error) -> Handshake {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        // What rustls says when the book has no certificate for the name.
        Some(rustls::Error::General(_)) => Handshake::NoCertificate,
        Some(_) => Handshake::Failed,
        None => Handshake::Gone,
    }
}

/// Answers one request.
async fn respond(shared: Arc<Shared>, visit: Arc<Visit>, request: Request<Incoming>) -> Response<Body> {
    let exchange = Exchange::begin(&shared, &visit, request.method(), request.uri());
    let answer = match &visit.tls {
        None => plain_port::respond(&shared, &exchange, &request).await,
        Some((_, name)) => proxy::respond(&shared, &exchange, name, request).await,
    };
    answer::finish(&shared, exchange, answer)
}

async fn h1<S>(stream: S, visit: Arc<Visit>, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &shared.limits;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        // Hard bounds; what is beyond the configured ones and within these gets an answer with a page.
        .max_buf_size(2 * whole(limits.header_bytes) + 8 * 1024)
        .max_headers(2 * whole(limits.header_count));
    let wire = Wire::new(stream, Arc::clone(&visit.notes));
    let after = wire.again();
    let connection = http
        .serve_connection(TokioIo::new(wire), {
            let (shared, visit) = (Arc::clone(&shared), Arc::clone(&visit));
            service_fn(move |request| {
                let (shared, visit) = (Arc::clone(&shared), Arc::clone(&visit));
                async move { Ok::<_, Infallible>(respond(shared, visit, request).await) }
            })
        })
        .with_upgrades();
    let ended = drive(connection, |c| c.graceful_shutdown(), &visit, &shared).await;
    if let Some(Err(error)) = ended
        && error.is_timeout()
        && visit.notes.in_head()
    {
        farewell(after, &shared).await;
    }
}

async fn h2<S>(stream: S, visit: Arc<Visit>, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &shared.limits;
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.header_bytes.saturating_mul(2).saturating_add(limits.header_count.saturating_mul(32)))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(ERROR_RESETS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    let connection = http.serve_connection(TokioIo::new(stream), {
        let (shared, visit) = (Arc::clone(&shared), Arc::clone(&visit));
        service_fn(move |request| {
            let (shared, visit) = (Arc::clone(&shared), Arc::clone(&visit));
            async move { Ok::<_, Infallible>(respond(shared, visit, request).await) }
        })
    });
    let _ended = drive(connection, |c| c.graceful_shutdown(), &visit, &shared).await;
}

/// Runs a connection to its end; none when it was cut off. Told to stop, it finishes what runs.
async fn drive<C>(connection: C, graceful: impl Fn(Pin<&mut C>), visit: &Visit, shared: &Shared) -> Option<hyper::Result<()>>
where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = pin!(connection);
    let idle = shared.limits.idle_timeout;
    let mut ending = false;
    loop {
        let tick = tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = &ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return Some(ended);
            }
            () = shared.cut.cancelled() => return None,
            () = shared.stop.cancelled(), if !ending => false,
            () = shared.env.sleep(idle) => true,
        };
        if tick {
            if visit.is_stuck() {
                tracing::debug!("a visitor takes nothing more of an answer; its connection is ended");
                return None;
            }
            if visit.is_let_go() {
                tracing::debug!("the host of a running request is no longer its tenant's; its connection is ended");
                return None;
            }
            // HTTP/1.1 sees to its own idle connections.
            let quiet = visit.quiet_since().is_some_and(|since| shared.env.now().since(since) >= idle);
            if visit.protocol != Protocol::H2 || !quiet {
                continue;
            }
            if ending {
                // It was asked to go and stays.
                return None;
            }
        }
        ending = true;
        graceful(connection.as_mut());
    }
}

/// Tells a visitor whose request does not end that it took too long.
async fn farewell(mut stream: impl AsyncWrite + Unpin, shared: &Shared) {
    let status = http::StatusCode::REQUEST_TIMEOUT;
    shared.meters.own_answer(status.as_u16());
    let page = answer::html(status, "The request took too long.");
    let text = format!(
        "HTTP/1.1 408 Request Timeout\r\ncontent-type: text/html; charset=utf-8\r\ncache-control: no-store\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    let said = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    };
    tokio::select! {
        // Whoever is that slow may be gone.
        _ = said => {}
        () = shared.env.sleep(FAREWELL) => {}
    }
}

fn whole(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
