//! Listeners and the drain: stop accepting, say so on kept connections, finish what runs, cut off what does not end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use super::{Shared, connection};
use crate::telemetry::metrics::Listener;

/// Connections over the limit that are told so at a time; more wait in the kernel's queue.
const OVER: usize = 256;
/// How long what was cut off may take to be gone.
const CUT: Duration = Duration::from_secs(1);

/// Room for a connection, for as long as it or the tunnel that it became lasts.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    /// One over the limit: every request is answered 503.
    pub(super) over: bool,
    listener: Listener,
    shared: Arc<Shared>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.meters.connection(self.listener, false);
    }
}

/// A listener and the connections it has room for.
struct Door {
    listener: TcpListener,
    kind: Listener,
    room: Arc<Semaphore>,
    over: Arc<Semaphore>,
    shared: Arc<Shared>,
}

impl Door {
    fn new(listener: TcpListener, kind: Listener, shared: &Arc<Shared>) -> Door {
        let room = usize::try_from(shared.limits.connections).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Door {
            listener,
            kind,
            room: Arc::new(Semaphore::new(room)),
            over: Arc::new(Semaphore::new(OVER)),
            shared: Arc::clone(shared),
        }
    }

    /// The next connection; none once told to stop.
    async fn next(&self) -> Option<(TcpStream, SocketAddr, Place)> {
        let next = async {
            loop {
                // Room to say no is needed before anybody is let in.
                let spare = Arc::clone(&self.over).acquire_owned().await.ok()?;
                let (stream, peer) = match self.listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of file descriptors, most likely: let some go before trying again.
                        tracing::warn!(%error, "the edge could not accept a connection");
                        self.shared.env.sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                // Answers go out as they come; a socket that cannot be told so still works.
                let _ = stream.set_nodelay(true);
                let (permit, over) = match Arc::clone(&self.room).try_acquire_owned() {
                    Ok(permit) => (permit, false),
                    Err(_) => {
                        self.shared.meters.connection_refused(self.kind);
                        (spare, true)
                    }
                };
                self.shared.meters.connection(self.kind, true);
                let shared = Arc::clone(&self.shared);
                return Some((stream, peer, Place { _permit: permit, over, listener: self.kind, shared }));
            }
        };
        tokio::select! {
            () = self.shared.stop.cancelled() => None,
            next = next => next,
        }
    }
}

/// Serves the plain port until told to stop.
pub(super) async fn plain(listener: TcpListener, shared: Arc<Shared>) {
    let door = Door::new(listener, Listener::Plain, &shared);
    while let Some((stream, peer, place)) = door.next().await {
        shared.tasks.spawn(connection::plain(stream, peer, place, Arc::clone(&shared)));
    }
}

/// Serves the TLS port until told to stop.
pub(super) async fn tls(listener: TcpListener, config: Arc<ServerConfig>, shared: Arc<Shared>) {
    let acceptor = TlsAcceptor::from(config);
    let door = Door::new(listener, Listener::Tls, &shared);
    while let Some((stream, peer, place)) = door.next().await {
        shared.tasks.spawn(connection::tls(acceptor.clone(), stream, peer, place, Arc::clone(&shared)));
    }
}

/// Waits for what runs, and cuts off what does not end in time.
pub(super) async fn drain(shared: &Shared) {
    shared.tasks.close();
    tokio::select! {
        () = shared.tasks.wait() => return,
        () = shared.env.sleep(shared.drain) => {}
    }
    tracing::warn!(left = shared.tasks.len(), "some requests did not finish in time; they are cut off");
    shared.cut.cancel();
    tokio::select! {
        () = shared.tasks.wait() => {}
        () = shared.env.sleep(CUT) => {}
    }
}
