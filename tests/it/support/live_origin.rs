//! An origin that streams, upgrades, hangs and breaks off as the path says, and tells what became of its requests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};

type Out = UnsyncBoxBody<Bytes, std::io::Error>;

/// The origin.
pub struct LiveOrigin {
    pub at: SocketAddr,
    /// A request for `/hang`, `/stall` or `/sse` has begun.
    pub began: Arc<Notify>,
    /// Lets `/sse` send its next event.
    pub go: Arc<Notify>,
    /// A request or its body was given up by the edge.
    pub dropped: Arc<Notify>,
    /// Requests so far.
    pub requests: Arc<AtomicUsize>,
}

/// Rings when it is dropped.
struct Alarm(Arc<Notify>);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A body that rings when it is dropped.
struct Watched<B>(B, #[expect(dead_code, reason = "it is held for its end")] Alarm);

impl<B: Body + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }
    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

fn never(impossible: Infallible) -> std::io::Error {
    match impossible {}
}

fn text(text: impl Into<Bytes>) -> Out {
    Full::new(text.into()).map_err(never).boxed_unsync()
}

/// Sends what comes through a channel.
fn channel() -> (mpsc::Sender<Frame<Bytes>>, Out) {
    let (sender, receiver) = mpsc::channel(4);
    let frames = futures::stream::unfold(receiver, |mut receiver| async move {
        let frame: Frame<Bytes> = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(frame), receiver))
    });
    (sender, StreamBody::new(frames).boxed_unsync())
}

impl LiveOrigin {
    pub async fn start() -> LiveOrigin {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = LiveOrigin {
            at: listener.local_addr().unwrap(),
            began: Arc::default(),
            go: Arc::default(),
            dropped: Arc::default(),
            requests: Arc::default(),
        };
        let hands = Arc::new(Hands {
            began: Arc::clone(&origin.began),
            go: Arc::clone(&origin.go),
            dropped: Arc::clone(&origin.dropped),
            requests: Arc::clone(&origin.requests),
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let hands = Arc::clone(&hands);
                let service = service_fn(move |request| {
                    let hands = Arc::clone(&hands);
                    async move { Ok::<_, Infallible>(hands.answer(request).await) }
                });
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
            }
        });
        origin
    }
}

struct Hands {
    began: Arc<Notify>,
    go: Arc<Notify>,
    dropped: Arc<Notify>,
    requests: Arc<AtomicUsize>,
}

impl Hands {
    async fn answer(&self, mut request: Request<Incoming>) -> Response<Out> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let path = request.uri().path().to_owned();
        match path.as_str() {
            "/hang" => {
                let _alarm = Alarm(Arc::clone(&self.dropped));
                self.began.notify_one();
                std::future::pending().await
            }
            "/stall" => {
                let (sender, body) = channel();
                sender.send(Frame::data("first".into())).await.unwrap();
                // Held open for ever, unless the body is dropped.
                tokio::spawn(async move { sender.closed().await });
                self.began.notify_one();
                Response::new(Watched(body, Alarm(Arc::clone(&self.dropped))).boxed_unsync())
            }
            "/endless" => {
                let chunk = Bytes::from(vec![b'x'; 64 * 1024]);
                let frames = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(Frame::data(chunk.clone())));
                self.began.notify_one();
                let body = StreamBody::new(frames).boxed_unsync();
                Response::new(Watched(body, Alarm(Arc::clone(&self.dropped))).boxed_unsync())
            }
            "/breaks" => {
                let frames = futures::stream::iter([
                    Ok(Frame::data(Bytes::from("first"))),
                    Err(std::io::Error::other("the origin breaks off")),
                ]);
                Response::new(StreamBody::new(frames).boxed_unsync())
            }
            "/sse" => {
                let (sender, body) = channel();
                let go = Arc::clone(&self.go);
                tokio::spawn(async move {
                    for n in 0.. {
                        go.notified().await;
                        if sender.send(Frame::data(format!("data: {n}\n\n").into())).await.is_err() {
                            return;
                        }
                    }
                });
                let mut response = Response::new(body);
                response.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
                response
            }
            "/echo" => Response::new(request.into_body().map_err(std::io::Error::other).boxed_unsync()),
            "/trailers" => {
                let te = request.headers().get("te").cloned();
                let collected = request.into_body().collect().await.unwrap();
                let got = format!("{:?}", collected.trailers().cloned().unwrap_or_default());
                let (sender, body) = channel();
                sender.send(Frame::data(format!("got {got}\n").into())).await.unwrap();
                let mut trailers = HeaderMap::new();
                trailers.insert("x-checksum", HeaderValue::from_static("of-the-origin"));
                sender.send(Frame::trailers(trailers)).await.unwrap();
                let mut response = Response::new(body);
                response.headers_mut().insert("trailer", HeaderValue::from_static("x-checksum"));
                response.headers_mut().insert("x-te", te.unwrap_or(HeaderValue::from_static("none")));
                response
            }
            "/204" => Response::builder().status(204).body(Empty::new().map_err(never).boxed_unsync()).unwrap(),
            "/304" => {
                let response = Response::builder().status(304).header("etag", "\"1\"");
                response.body(Empty::new().map_err(never).boxed_unsync()).unwrap()
            }
            "/101" => Response::builder()
                .status(101)
                .header("upgrade", "surprise")
                .header("connection", "upgrade")
                .body(Empty::new().map_err(never).boxed_unsync())
                .unwrap(),
            "/ws" | "/raw" if request.headers().contains_key("upgrade") => upgrade(&mut request, path == "/raw"),
            _ => {
                let mut out = format!("{} {}\n", request.method(), request.uri());
                for (name, value) in request.headers() {
                    out.push_str(&format!("{name}={}\n", String::from_utf8_lossy(value.as_bytes())));
                }
                let body = request.into_body().collect().await.map(|b| b.to_bytes()).unwrap_or_default();
                out.push_str(&format!("body={}\n", body.len()));
                Response::new(text(out))
            }
        }
    }
}

/// Accepts an upgrade. `raw` repeats what comes until the other half ends, and then still says goodbye; otherwise it is a
/// WebSocket that repeats messages.
fn upgrade(request: &mut Request<Incoming>, raw: bool) -> Response<Out> {
    use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
    let key = request.headers().get("sec-websocket-key").map(|key| derive_accept_key(key.as_bytes()));
    let protocol = request.headers()["upgrade"].clone();
    let upgraded = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let mut stream = TokioIo::new(upgraded.await.unwrap());
        if raw {
            let mut buffer = [0; 1024];
            loop {
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(n) => stream.write_all(&buffer[..n]).await.unwrap(),
                }
            }
            let _ = stream.write_all(b"goodbye").await;
            let _ = stream.shutdown().await;
        } else {
            use futures::{SinkExt as _, StreamExt as _};
            let role = tokio_tungstenite::tungstenite::protocol::Role::Server;
            let mut socket = tokio_tungstenite::WebSocketStream::from_raw_socket(stream, role, None).await;
            while let Some(Ok(message)) = socket.next().await {
                if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
                    return;
                }
            }
        }
    });
    let mut response = Response::builder().status(101).header("connection", "upgrade").header("upgrade", protocol);
    if let Some(key) = key {
        response = response.header("sec-websocket-accept", key);
    }
    response.body(Empty::new().map_err(never).boxed_unsync()).unwrap()
}
