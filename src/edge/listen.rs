//! Listeners, connections and their bounds, and the drain: stop accepting, say so on kept connections, finish what runs.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{Shared, plain as plain_port, proxy};

/// Connections of one listener at a time; more wait in the kernel's queue.
const CONNECTIONS: usize = 20_000;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a request's head may take, and a kept connection be idle.
const HEAD: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 64 * 1024;
/// Headers of a message.
pub(super) const HEADERS: usize = 128;

/// Serves the plain port until told to stop, then drains.
pub(super) async fn plain(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let drain = GracefulShutdown::new();
    let open = Arc::new(Semaphore::new(CONNECTIONS));
    while let Some((stream, _, permit)) = accept(&listener, &shared, &open, &stop).await {
        tokio::spawn(plain_connection(stream, Arc::clone(&shared), drain.watcher(), permit));
    }
    finish(listener, drain, &shared).await;
}

/// Serves the TLS port until told to stop, then drains.
pub(super) async fn tls(listener: TcpListener, config: Arc<ServerConfig>, shared: Arc<Shared>, stop: CancellationToken) {
    let acceptor = TlsAcceptor::from(config);
    let drain = GracefulShutdown::new();
    let open = Arc::new(Semaphore::new(CONNECTIONS));
    while let Some((stream, peer, permit)) = accept(&listener, &shared, &open, &stop).await {
        tokio::spawn(tls_connection(acceptor.clone(), stream, peer, Arc::clone(&shared), drain.watcher(), permit));
    }
    finish(listener, drain, &shared).await;
}

/// The next connection; none once told to stop.
async fn accept(
    listener: &TcpListener,
    shared: &Shared,
    open: &Arc<Semaphore>,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let next = async {
        let permit = Arc::clone(open).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Answers go out as they come; a socket that cannot be told so still works.
                    let _ = stream.set_nodelay(true);
                    return Some((stream, peer, permit));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: let some go before trying again.
                    tracing::warn!(%error, "the edge could not accept a connection");
                    shared.env.sleep(Duration::from_millis(50)).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => None,
        next = next => next,
    }
}

async fn finish(listener: TcpListener, drain: GracefulShutdown, shared: &Shared) {
    drop(listener);
    tokio::select! {
        () = drain.shutdown() => {}
        () = shared.env.sleep(shared.drain) => tracing::warn!("some requests did not finish in time; they are cut off"),
    }
}

fn http() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES).max_headers(HEADERS);
    builder
}

async fn plain_connection(stream: TcpStream, shared: Arc<Shared>, watcher: Watcher, _permit: OwnedSemaphorePermit) {
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(plain_port::respond(&shared, request).await) }
    });
    if let Err(error) = watcher.watch(http().serve_connection(TokioIo::new(stream), service)).await {
        tracing::debug!(%error, "a plain connection ended early");
    }
}

async fn tls_connection(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared>,
    watcher: Watcher,
    _permit: OwnedSemaphorePermit,
) {
    let stream = tokio::select! {
        stream = acceptor.accept(stream) => match stream {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, "a TLS handshake failed");
                return;
            }
        },
        () = shared.env.sleep(HANDSHAKE) => return,
    };
    // Without a server name no certificate is chosen, so no handshake gets here.
    let Some(name) = stream.get_ref().1.server_name().map(|n| n.trim_end_matches('.').to_ascii_lowercase()) else { return };
    let name: Arc<str> = name.into();
    let service = service_fn(move |request| {
        let (shared, name) = (Arc::clone(&shared), Arc::clone(&name));
        async move { Ok::<_, Infallible>(proxy::respond(&shared, &name, peer.ip(), request).await) }
    });
    if let Err(error) = watcher.watch(http().serve_connection(TokioIo::new(stream), service)).await {
        tracing::debug!(%error, "a TLS connection ended early");
    }
}
