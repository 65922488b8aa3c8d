//! Serving on a listener that somebody else bound.

use std::io;
use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;

/// Serves until `stop` resolves; then takes no new connections and returns when the running requests are answered.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(stop).await
}
