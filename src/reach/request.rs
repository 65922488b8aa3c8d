//! One GET over a connection that stands, with a bounded answer.

use http::header::{CONNECTION, HOST, USER_AGENT};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::ReachError;
use crate::model::hostname::Hostname;

/// More than any key authorization.
pub(super) const TOKEN_LIMIT: usize = 1024;

/// Asks for `path` at `host`; the status, and the body if it is wanted at all (`limit` above zero).
pub(super) async fn get<S>(stream: S, host: &Hostname, path: &str, limit: usize) -> Result<(u16, Vec<u8>), ReachError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let request = http::Request::get(path)
        .header(HOST, host.as_str())
        .header(USER_AGENT, concat!("nameplate/", env!("CARGO_PKG_VERSION")))
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(ReachError::Request)?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(ReachError::Http)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(ReachError::Http)?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        let mut read = Vec::new();
        while limit > 0
            && let Some(frame) = body.frame().await
        {
            read.extend_from_slice(frame.map_err(ReachError::Http)?.data_ref().map_or(&[][..], |data| &data[..]));
            if read.len() > limit {
                return Err(ReachError::TooLong(limit));
            }
        }
        Ok((status, read))
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
