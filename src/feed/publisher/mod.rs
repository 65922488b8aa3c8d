//! The publisher: what edges ask, answered over TLS 1.3 from the store.
//!
//! **Owns** the listener ([`Feed::serve`]), the paths and who may use them ([`handlers`]), and what is said ([`answers`]): rows
//! rendered when sent, certificate keys sealed under the distribution key in use, every message signed. **May import** the rest
//! of `feed`, `store vault env model`; axum lives here.
//!
//! **Always holds**: it keeps no state of its own, so any number of processes may publish beside each other; a host never
//! travels without the certificate it names; a position is read before the rows are, so what is newer comes again. **To fake
//! it**: do not, start one. **To get it wrong**: seal under a retired key, or read hosts and certificates by two statements.

mod answers;
mod handlers;

use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::identity::Feed;

/// Connections at a time: two for each of a thousand edges, and some to spare.
const CONNECTIONS: usize = 4_096;
/// How long a peer may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long it may take for a request's head, and be idle between two.
const HEAD: Duration = Duration::from_secs(60);
/// How long running answers may take once told to stop. Waiting readers are answered at once.
const DRAIN: Duration = Duration::from_secs(5);

impl Feed {
    /// Answers edges on a bound listener until told to stop.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        let open = Arc::new(Semaphore::new(CONNECTIONS));
        let acceptor = TlsAcceptor::from(self.tls());
        let router = handlers::router(self.clone(), stop.clone());
        let drain = GracefulShutdown::new();
        loop {
            let accepted = async {
                let permit = Arc::clone(&open).acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, stream) = tokio::select! {
                () = stop.cancelled() => break,
                (permit, accepted) = accepted => match accepted {
                    Ok((stream, _)) => (permit, stream),
                    Err(error) => {
                        // Out of file descriptors, most likely: let some go before trying again.
                        tracing::warn!(%error, "the feed could not accept a connection");
                        self.env().sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let served = connection(acceptor.clone(), stream, router.clone(), drain.watcher());
            tokio::spawn(async move {
                served.await;
                drop(permit);
            });
        }
        drop(listener);
        tokio::select! {
            () = drain.shutdown() => {}
            () = self.env().sleep(DRAIN) => {}
        }
    }
}

async fn connection(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    router: axum::Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    // Answers are small and waited for: do not let them sit for a full packet.
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else {
        tracing::debug!("a peer of the feed did not complete its TLS handshake");
        return;
    };
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = watcher.watch(served).await {
        tracing::debug!(%error, "a connection of the feed ended early");
    }
}
