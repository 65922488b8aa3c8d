//! A visitor who writes requests by hand, and an origin that repeats what it was asked.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A TLS connection that trusts one root only; no server name is sent for an address.
pub async fn connect(at: SocketAddr, name: &str, root: &CertificateDer<'static>) -> io::Result<TlsStream<TcpStream>> {
    connect_alpn(at, name, root, &[]).await
}

/// The same, offering protocols.
pub async fn connect_alpn(
    at: SocketAddr,
    name: &str,
    root: &CertificateDer<'static>,
    alpn: &[&[u8]],
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(at).await?).await
}

/// An HTTP/2 connection: what sends requests, and the connection's end.
pub async fn h2<B>(
    at: SocketAddr,
    name: &str,
    root: &CertificateDer<'static>,
) -> (hyper::client::conn::http2::SendRequest<B>, tokio::task::JoinHandle<hyper::Result<()>>)
where
    B: hyper::body::Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = connect_alpn(at, name, root, &[b"h2"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let made = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (sender, connection) = made.unwrap();
    (sender, tokio::spawn(connection))
}

/// Writes a request and reads until the other side is done.
pub async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // Servers may close without close_notify after `Connection: close`; what came is what counts.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

/// A GET with more header lines, over TLS to a name.
pub async fn get(at: SocketAddr, name: &str, root: &CertificateDer<'static>, path: &str, lines: &str) -> String {
    let stream = connect(at, name, root).await.unwrap();
    exchange(stream, &format!("GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n{lines}\r\n")).await
}

/// A request over the plain port, as it is.
pub async fn plain(at: SocketAddr, request: &str) -> String {
    exchange(TcpStream::connect(at).await.unwrap(), request).await
}

/// An origin that repeats request line, headers and body. A request for `/slow` says that it began and waits to be let go.
pub struct Origin {
    pub at: SocketAddr,
    pub began: Arc<Notify>,
    pub go: Arc<Notify>,
}

impl Origin {
    pub async fn start() -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = Origin { at: listener.local_addr().unwrap(), began: Arc::default(), go: Arc::default() };
        let (began, go) = (Arc::clone(&origin.began), Arc::clone(&origin.go));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (began, go) = (Arc::clone(&began), Arc::clone(&go));
                let service = service_fn(move |request| repeat(request, Arc::clone(&began), Arc::clone(&go)));
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        origin
    }
}

async fn repeat(
    request: Request<Incoming>,
    began: Arc<Notify>,
    go: Arc<Notify>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() == "/slow" {
        began.notify_one();
        go.notified().await;
    }
    let mut text = format!("origin: {} {}\n", request.method(), request.uri());
    for (name, value) in request.headers() {
        text.push_str(&format!("origin: {name}={}\n", value.to_str().unwrap()));
    }
    let status = if request.uri().path() == "/421" { 421 } else { 200 };
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    text.push_str(&format!("origin: body={}\n", String::from_utf8_lossy(&body)));
    Ok(Response::builder().status(status).header("keep-alive", "timeout=5").body(Full::new(text.into())).unwrap())
}
