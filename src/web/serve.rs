//! Serving on a listener that somebody else bound.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::env::Env;

/// How long a request's head may take, and a kept connection be idle.
const HEAD: Duration = Duration::from_secs(60);
/// How long running requests may take once told to stop: nobody who keeps a connection open keeps the process.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until `stop` resolves; then takes no new connections and returns when the running requests are answered, or when
/// they had their time, and cuts off those that are left.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    env: Env,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let drain = GracefulShutdown::new();
    // Whatever still runs when this is dropped ends with it.
    let mut open = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = open.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: let some go before trying again.
                tracing::warn!(%error, "a connection to the API and the pages could not be accepted");
                env.sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Answers go out as they come; a socket that cannot be told so still works.
        let _ = stream.set_nodelay(true);
        let routes = TowerToHyperService::new(router.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            routes.call(request)
        });
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD);
        let served = drain.watch(http.serve_connection(TokioIo::new(stream), service));
        open.spawn(async move {
            if let Err(error) = served.await {
                tracing::debug!(%error, "a connection to the API and the pages ended early");
            }
        });
    }
    drop(listener);
    tokio::select! {
        () = drain.shutdown() => {}
        () = env.sleep(DRAIN) => tracing::warn!("some requests did not finish in time; they are cut off"),
    }
    Ok(())
}
