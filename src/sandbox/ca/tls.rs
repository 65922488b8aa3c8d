//! A TLS listener for axum: handshakes run beside each other, so that a silent client holds nobody up.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::task::AbortOnDropHandle;

use crate::env::Env;

const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);

/// Hands out connections whose handshake is done.
pub(super) struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    _accepting: AbortOnDropHandle<()>,
}

impl TlsListener {
    pub fn new(plain: TcpListener, config: rustls::ServerConfig, env: Env) -> io::Result<Self> {
        let address = plain.local_addr()?;
        let (sender, ready) = mpsc::channel(16);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let _accepting = AbortOnDropHandle::new(tokio::spawn(accept_all(plain, acceptor, env, sender)));
        Ok(TlsListener { address, ready, _accepting })
    }
}

async fn accept_all(
    plain: TcpListener,
    acceptor: TlsAcceptor,
    env: Env,
    ready: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    loop {
        let (stream, from) = match plain.accept().await {
            Ok(accepted) => accepted,
            Err(e) => {
                // Out of file handles, most likely; asking again at once would only spin.
                tracing::warn!(error = %e, "test CA cannot accept a connection");
                env.sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (acceptor, env, ready) = (acceptor.clone(), env.clone(), ready.clone());
        tokio::spawn(async move {
            tokio::select! {
                done = acceptor.accept(stream) => match done {
                    // The receiver is gone only when the server is; then nobody wants the connection.
                    Ok(tls) => drop(ready.send((tls, from)).await),
                    Err(e) => tracing::debug!(error = %e, %from, "TLS handshake with the test CA failed"),
                },
                () = env.sleep(HANDSHAKE_PATIENCE) => tracing::debug!(%from, "TLS handshake with the test CA took too long"),
            }
        });
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The accepting task lives as long as this listener does.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
