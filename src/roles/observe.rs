//! The port for those who watch a process: whether it lives, whether it can work, and its numbers. The same for every role.
//!
//! It stays open while a role drains, says nothing about anybody's names, and is never in the way: few connections, short
//! requests, answers from memory or from a look at the database that is made at most every few seconds.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{StartError, bind};
use crate::app::App;
use crate::config::Config;
use crate::edge::EdgeView;
use crate::env::Env;
use crate::model::conclude::FRESH_EDGE;
use crate::model::moment::Moment;
use crate::store::{Schema, StoreResult, census, health};
use crate::telemetry::Chain;
use crate::telemetry::metrics::{CONTENT_TYPE as OPENMETRICS, Census};

/// Connections at a time; more wait.
const CONNECTIONS: usize = 32;
/// How long a request's head may take, and a kept connection be idle.
const HEAD: Duration = Duration::from_secs(30);
/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How old what was read from the database may be.
const READ_FOR: Duration = Duration::from_secs(5);
/// A sweep that has done nothing for so long has stopped: it is due every few seconds.
const SWEEP_LATE: Duration = Duration::from_secs(60);

/// A role, as those see it who watch.
#[async_trait]
pub trait Watched: Send + Sync + 'static {
    /// Why it cannot do its work; nothing when it can.
    async fn unready(&self) -> Vec<String>;

    /// What is scraped.
    async fn metrics(&self) -> String;
}

#[async_trait]
impl Watched for EdgeView {
    async fn unready(&self) -> Vec<String> {
        EdgeView::unready(self).into_iter().map(str::to_owned).collect()
    }

    async fn metrics(&self) -> String {
        EdgeView::metrics(self)
    }
}

/// A control plane: `serve` or `work`.
pub struct WatchedControl {
    app: App,
    stop: CancellationToken,
    read: Mutex<Option<(Moment, Option<Census>)>>,
}

impl WatchedControl {
    /// This application, until `stop` tells it to end.
    pub fn new(app: App, stop: CancellationToken) -> Self {
        WatchedControl { app, stop, read: Mutex::default() }
    }

    /// What is wrong with the database, if it says anything in time.
    async fn database(&self) -> Option<String> {
        let asked = async { Ok((self.app.store.schema().await?, health::takes_writes(&self.app.store).await?)) };
        let seen: StoreResult<(Schema, bool)> = tokio::select! {
            seen = asked => seen,
            () = self.app.env.sleep(PATIENCE) => return Some("the database does not answer".to_owned()),
        };
        match seen.map(|(schema, takes_writes)| takes_writes.then_some(schema)) {
            Ok(None) => Some(
                "the database is read-only: it is a standby, or default_transaction_read_only is on; nothing can be \
                 recorded, so nothing is ordered"
                    .to_owned(),
            ),
            Ok(Some(Schema::Current)) => None,
            Ok(Some(Schema::Older | Schema::Blank)) => {
                Some("the database's schema is older than this binary's: run `nameplate migrate`".to_owned())
            }
            Ok(Some(Schema::Newer)) => {
                Some("the database's schema is newer than this binary: install the newer release".to_owned())
            }
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "the database cannot be used");
                Some("the database cannot be used".to_owned())
            }
        }
    }

    async fn census(&self, now: Moment) -> Option<Census> {
        let counted = tokio::select! {
            counted = census::take(&self.app.store, now, FRESH_EDGE) => counted,
            () = self.app.env.sleep(PATIENCE) => return None,
        };
        counted.inspect_err(|error| tracing::warn!(error = %Chain(error), "the database could not be counted")).ok()
    }
}

#[async_trait]
impl Watched for WatchedControl {
    async fn unready(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.database().await.into_iter().collect();
        let now = self.app.env.now();
        match self.app.meters.swept_at() {
            None => reasons.push("the sweep has not done its work yet".to_owned()),
            Some(at) if now.since(at) > SWEEP_LATE => {
                reasons.push(format!("the sweep has done nothing for {} s", now.since(at).as_secs()));
            }
            Some(_) => {}
        }
        if self.stop.is_cancelled() {
            reasons.push("it was told to stop and finishes what runs".to_owned());
        }
        reasons
    }

    async fn metrics(&self) -> String {
        // One look at a time: whoever comes meanwhile gets the same numbers.
        let mut read = self.read.lock().await;
        let now = self.app.env.now();
        if read.as_ref().is_none_or(|(at, _)| now.since(*at) >= READ_FOR) {
            let census = self.census(now).await;
            *read = Some((now, census));
        }
        let census = read.as_ref().and_then(|(_, census)| census.as_ref());
        self.app.meters.set(census, now);
        self.app.meters.text()
    }
}

/// The port, open until this is dropped.
pub(super) struct Watching(#[expect(dead_code, reason = "it is held for what its end does")] AbortOnDropHandle<()>);

/// Opens the port of the configuration, if there is one.
pub(super) async fn start(config: &Config, role: Arc<dyn Watched>, env: &Env) -> Result<Option<Watching>, StartError> {
    let Some(address) = config.metrics.listen else { return Ok(None) };
    let listener = bind("metrics.listen", address).await?;
    Ok(Some(Watching(AbortOnDropHandle::new(tokio::spawn(serve(listener, role, env.clone()))))))
}

/// Answers until it is dropped.
pub async fn serve(listener: TcpListener, role: Arc<dyn Watched>, env: Env) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = tokio::task::JoinSet::new();
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        while open.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection to metrics.listen could not be accepted");
                env.sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let role = Arc::clone(&role);
        let service = service_fn(move |request| {
            let role = Arc::clone(&role);
            async move { Ok::<_, Infallible>(answer(&*role, &request).await) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD);
        let served = http.serve_connection(TokioIo::new(stream), service);
        open.spawn(async move {
            if let Err(error) = served.await {
                tracing::debug!(%error, "a connection to metrics.listen ended early");
            }
            drop(permit);
        });
    }
}

async fn answer<B>(role: &dyn Watched, request: &Request<B>) -> Response<Full<Bytes>> {
    const JSON: &str = "application/json";
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", "Only GET and HEAD.\n".into());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, JSON, "{\"status\":\"alive\"}\n".to_owned()),
        "/readyz" => {
            let reasons = role.unready().await;
            let (status, word) = match reasons.is_empty() {
                true => (StatusCode::OK, "ready"),
                false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
            };
            text(status, JSON, format!("{}\n", serde_json::json!({ "status": word, "reasons": reasons })))
        }
        "/metrics" => text(StatusCode::OK, OPENMETRICS, role.metrics().await),
        _ => text(
            StatusCode::NOT_FOUND,
            "text/plain; charset=utf-8",
            "There are /healthz, /readyz and /metrics.\n".to_owned(),
        ),
    }
}

fn text(status: StatusCode, content_type: &'static str, content: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(content.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
