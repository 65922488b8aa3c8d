//! Looking for real: a resolver handed in, then HTTP (RFC 8555 §8.3).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::header::{HOST, LOCATION, USER_AGENT};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::problem::{Kind, Problem};
use super::validation::Validation;
use crate::env::Env;

/// Where a host's port 80 is: real addresses, or the unprivileged ports that stand for them on loopback.
pub type Resolve = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Vec<SocketAddr>, String>> + Send + Sync>;

/// What CAA says for a host and an account URI.
pub type CaaLookup = Arc<dyn Fn(String, String) -> BoxFuture<'static, Result<(), Problem>> + Send + Sync>;

const REDIRECTS: usize = 10;
const BODY_LIMIT: usize = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// Validation by real DNS answers and real HTTP requests.
pub struct OverHttp {
    /// For the wait of a request.
    pub env: Env,
    /// Where hosts are.
    pub resolve: Resolve,
    /// What CAA says.
    pub caa: CaaLookup,
}

#[async_trait]
impl Validation for OverHttp {
    async fn fetch_http01(&self, host: &str, token: &str) -> Result<Vec<u8>, Problem> {
        tokio::select! {
            fetched = self.fetch(host, token) => fetched,
            () = self.env.sleep(PATIENCE) => {
                Err(connection(format!("http://{host} gave no whole answer within {} s", PATIENCE.as_secs())))
            }
        }
    }

    async fn caa_permits(&self, host: &str, account_uri: &str) -> Result<(), Problem> {
        (self.caa)(host.to_owned(), account_uri.to_owned()).await
    }
}

impl OverHttp {
    async fn fetch(&self, host: &str, token: &str) -> Result<Vec<u8>, Problem> {
        let mut host = host.to_owned();
        let mut path = format!("/.well-known/acme-challenge/{token}");
        for _ in 0..=REDIRECTS {
            // The connection must outlive the body that is read from it.
            let (response, _connection) = self.get(&host, &path).await?;
            let status = response.status();
            if status.is_redirection() {
                (host, path) = follow(&host, &response)?;
            } else if status.is_success() {
                let body = Limited::new(response.into_body(), BODY_LIMIT).collect().await;
                return Ok(body.map_err(|e| connection(format!("reading http://{host}{path}: {e}")))?.to_bytes().to_vec());
            } else {
                let detail = format!("http://{host}{path} answered {status}, expected 200");
                return Err(Problem::new(Kind::Unauthorized, detail));
            }
        }
        Err(connection(format!("more than {REDIRECTS} redirects, the last one to http://{host}{path}")))
    }

    async fn get(&self, host: &str, path: &str) -> Result<(Response<Incoming>, AbortOnDropHandle<()>), Problem> {
        let stream = self.connect(host).await?;
        let failed = |e: &dyn std::fmt::Display| connection(format!("asking http://{host}{path}: {e}"));
        let (mut sender, driver) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| failed(&e))?;
        let driver = AbortOnDropHandle::new(tokio::spawn(async move {
            // Its failure shows in the answer, which then does not come.
            let _ = driver.await;
        }));
        let request = Request::get(path).header(HOST, host).header(USER_AGENT, "nameplate-sandbox-ca");
        let request = request.body(Empty::<Bytes>::new()).map_err(|e| failed(&e))?;
        let response = sender.send_request(request).await.map_err(|e| failed(&e))?;
        Ok((response, driver))
    }

    async fn connect(&self, host: &str) -> Result<TcpStream, Problem> {
        let addresses = (self.resolve)(host.to_owned()).await;
        let addresses = addresses.map_err(|e| Problem::new(Kind::Dns, format!("looking up {host}: {e}")))?;
        let mut last = Problem::new(Kind::Dns, format!("{host} has no address"));
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(e) => last = connection(format!("connecting to {host} at {address}: {e}")),
            }
        }
        Err(last)
    }
}

/// Where a redirect leads: another path or host, over plain HTTP on port 80.
fn follow(host: &str, response: &Response<Incoming>) -> Result<(String, String), Problem> {
    let location = response.headers().get(LOCATION).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned());
    let location = location.unwrap_or_default();
    let refused = |why: &str| connection(format!("{host} redirects to {location:?}, {why}"));
    let uri: Uri = location.parse().map_err(|_| refused("which is not a URL"))?;
    let path = uri.path_and_query().map_or("/", |p| p.as_str()).to_owned();
    match (uri.scheme_str(), uri.host(), uri.port_u16()) {
        (None, None, None) if path.starts_with('/') => Ok((host.to_owned(), path)),
        (Some("http"), Some(to), None | Some(80)) => Ok((to.to_ascii_lowercase(), path)),
        _ => Err(refused("and this CA follows plain HTTP on port 80 alone")),
    }
}

fn connection(detail: String) -> Problem {
    Problem::new(Kind::Connection, detail)
}
