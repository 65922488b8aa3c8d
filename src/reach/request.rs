//! One request over a connection that stands, with a bounded answer.

use std::convert::Infallible;

use http::header::{CONNECTION, HOST, HeaderName, LOCATION, RETRY_AFTER, SERVER, USER_AGENT};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::ReachError;
use crate::model::hostname::Hostname;

/// More than any key authorization.
pub(super) const TOKEN_LIMIT: usize = 1024;

/// What came.
pub(super) struct Got {
    pub(super) status: u16,
    pub(super) server: Option<String>,
    pub(super) location: Option<String>,
    pub(super) retry_after: Option<String>,
    /// The beginning of the body; more than the limit shows that it was longer.
    pub(super) body: Vec<u8>,
}

/// Asks for `path` at `host`; the body is read up to a little over `limit`, and not at all where that is zero.
pub(super) async fn get<S>(stream: S, host: &Hostname, path: &str, limit: usize) -> Result<Got, ReachError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = http::Request::get(path)
        .header(HOST, host.as_str())
        .header(USER_AGENT, concat!("nameplate/", env!("CARGO_PKG_VERSION")))
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(ReachError::Request)?;
    send(stream, request, limit).await
}

/// Sends a request and reads the beginning of its answer.
pub(super) async fn send<S, B>(stream: S, request: http::Request<B>, limit: usize) -> Result<Got, ReachError>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: hyper::body::Body<Data = Bytes, Error = Infallible> + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(ReachError::Http)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(ReachError::Http)?;
        let text = |name: HeaderName| -> Option<String> {
            response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let (status, server, location) = (response.status().as_u16(), text(SERVER), text(LOCATION));
        let retry_after = text(RETRY_AFTER);
        let mut body = response.into_body();
        let mut read = Vec::new();
        while limit > 0
            && read.len() <= limit
            && let Some(frame) = body.frame().await
        {
            let frame = frame.map_err(ReachError::Http)?;
            let data = frame.data_ref().map_or(&[][..], |data| &data[..]);
            read.extend_from_slice(&data[..data.len().min(limit + 1 - read.len())]);
        }
        Ok(Got { status, server, location, retry_after, body: read })
    };
    // The connection is driven here and dropped with the answer; its own end says nothing that the exchange does not.
    tokio::pin!(connection, exchange);
    let mut connected = true;
    loop {
        tokio::select! {
            biased;
            answer = &mut exchange => return answer,
            _ = &mut connection, if connected => connected = false,
        }
    }
}
