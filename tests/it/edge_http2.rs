//! HTTP/2 at the edge: what a browser speaks, and what somebody does who reads the standard for its gaps.

use std::time::Duration;

use http::{Request, StatusCode, Version};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::client::TlsStream;

use crate::support::feed_world::{RunningEdge, World, until};
use crate::support::live_origin::LiveOrigin;
use crate::support::visitor::{connect_alpn, h2};

const HOST: &str = "support.acme.test";

pub async fn served(change: impl FnOnce(&mut nameplate::edge::EdgeSettings)) -> (World, LiveOrigin, RunningEdge) {
    let world = World::new().await;
    let origin = LiveOrigin::start().await;
    let certificate = world.serve(HOST).await;
    let edge = world.edge_with("edge-1", origin.at, change).await;
    world.rolled_out("certificate", certificate.as_str()).await;
    world.rolled_out("host", HOST).await;
    (world, origin, edge)
}

fn request(path: &str) -> http::request::Builder {
    Request::builder().uri(format!("https://{HOST}{path}"))
}

async fn text(response: hyper::Response<hyper::body::Incoming>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_browser_chooses_http2_and_the_origin_hears_http1_with_the_authority_as_its_host() {
    let (world, _origin, edge) = served(|_| {}).await;
    let both = connect_alpn(edge.tls, HOST, &world.ca.root, &[b"h2", b"http/1.1"]).await.unwrap();
    assert_eq!(both.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let old = connect_alpn(edge.tls, HOST, &world.ca.root, &[b"http/1.1"]).await.unwrap();
    assert_eq!(old.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    let (mut h2, _connection) = h2::<Full<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    let post = request("/path?q=1")
        .method("POST")
        .header("x-tenant-id", "forged")
        .header("x-request-id", "chosen")
        .header("cookie", "a=b")
        .header("cookie", "c=d");
    let response = h2.send_request(post.body(Full::new("hello".into())).unwrap()).await.unwrap();
    assert_eq!((response.status(), response.version()), (StatusCode::OK, Version::HTTP_2));
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    let told = text(response).await;
    for line in [
        "POST /path?q=1",
        "host=support.acme.test",
        "cookie=a=b; c=d",
        "x-forwarded-proto=https",
        "body=5",
        &format!("x-tenant-id={}", world.tenant),
        &format!("x-request-id={id}"),
    ] {
        assert!(told.lines().any(|l| l == line), "{line} in {told}");
    }
    assert!(!told.contains("forged") && !told.contains("chosen"), "{told}");
    edge.stop().await;
}

/// Field case B70.
#[tokio::test]
async fn b70_an_authority_that_is_not_the_connections_is_misdirected_request_by_request() {
    let (world, _origin, edge) = served(|_| {}).await;
    world.serve("shop.acme.test").await;
    world.rolled_out("host", "shop.acme.test").await;
    let (mut h2, _connection) = h2::<Empty<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    let mut ask = async |uri: &str, host: Option<&str>| {
        let mut request = Request::builder().uri(uri);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        h2.send_request(request.body(Empty::new()).unwrap()).await.unwrap()
    };
    for (uri, host, expected) in [
        ("https://support.acme.test/", None, 200),
        ("https://support.acme.test:8443/", None, 200),
        ("https://SUPPORT.acme.TEST./", None, 200),
        ("https://support.acme.test/", Some("Support.Acme.Test:443"), 200),
        // A browser that reuses this connection for another of our hosts is told to make its own.
        ("https://shop.acme.test/", None, 421),
        ("https://nobody.example/", None, 421),
        ("https://support.acme.test/", Some("shop.acme.test"), 400),
        ("https://shop.acme.test/", Some("support.acme.test"), 400),
        ("https://127.0.0.1/", None, 421),
        // And it may go on using this one.
        ("https://support.acme.test/", None, 200),
    ] {
        let response = ask(uri, host).await;
        assert_eq!(response.status(), expected, "{uri} {host:?}");
        let body = text(response).await;
        assert!(expected == 200 || !body.contains("GET /") && !body.contains("shop") && !body.contains("nobody"), "{body}");
    }
    edge.stop().await;
}

#[tokio::test]
async fn a_length_that_is_said_twice_does_not_reach_the_origin() {
    let (world, _origin, edge) = served(|_| {}).await;
    let (mut h2, _connection) = h2::<Full<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    let twice = request("/").method("POST").header("content-length", "5").header("content-length", "5");
    let response = h2.send_request(twice.body(Full::new("hello".into())).unwrap()).await.unwrap();
    assert_eq!(response.status(), 400);
    let once = request("/").method("POST").header("content-length", "5");
    assert_eq!(h2.send_request(once.body(Full::new("hello".into())).unwrap()).await.unwrap().status(), 200);
    edge.stop().await;
}

#[tokio::test]
async fn limits_answer_in_http2_as_well() {
    let (world, origin, edge) = served(|settings| {
        settings.limits.body_bytes = 1_000;
        settings.limits.header_bytes = 2_048;
        settings.limits.header_count = 20;
        settings.limits.answer_timeout = Duration::from_millis(200);
    })
    .await;
    let (mut h2, _connection) = h2::<Full<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    let large = request("/").method("POST").body(Full::new(Bytes::from(vec![0; 1_001]))).unwrap();
    assert_eq!(h2.send_request(large).await.unwrap().status(), 413);
    let fits = request("/").method("POST").body(Full::new(Bytes::from(vec![0; 1_000]))).unwrap();
    assert_eq!(h2.send_request(fits).await.unwrap().status(), 200);
    let wide = request("/").header("x", "y".repeat(2_100)).body(Full::default()).unwrap();
    assert_eq!(h2.send_request(wide).await.unwrap().status(), 431);
    let mut many = request("/");
    for n in 0..21 {
        many = many.header(format!("x-{n}"), "y");
    }
    assert_eq!(h2.send_request(many.body(Full::default()).unwrap()).await.unwrap().status(), 431);
    let far_too_wide = request("/").header("x", "y".repeat(20_000)).body(Full::default()).unwrap();
    if let Ok(answer) = h2.send_request(far_too_wide).await {
        assert_eq!(answer.status(), 431);
    }
    let (mut h2, _connection) = self::h2::<Full<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    let answer = h2.send_request(request("/hang").body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 504);
    origin.dropped.notified().await;
    edge.stop().await;
}

#[tokio::test]
async fn a_drain_says_goaway_finishes_what_runs_and_takes_nothing_new() {
    let (world, origin, edge) = served(|_| {}).await;
    let (mut h2, connection) = h2::<Empty<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    let mut events = h2.send_request(request("/sse").body(Empty::new()).unwrap()).await.unwrap().into_body();
    origin.go.notify_one();
    assert_eq!(events.frame().await.unwrap().unwrap().into_data().unwrap(), "data: 0\n\n");
    edge.stop.cancel();
    until("the closed door", || async { tokio::net::TcpStream::connect(edge.tls).await.is_err() }).await;
    // The goodbye needs a round trip; until it came, requests are still answered.
    let mut others = h2.clone();
    until("the goodbye", async || others.send_request(request("/").body(Empty::new()).unwrap()).await.is_err()).await;
    origin.go.notify_one();
    assert_eq!(events.frame().await.unwrap().unwrap().into_data().unwrap(), "data: 1\n\n");
    drop(events);
    drop((h2, others));
    edge.stop().await;
    let _ = connection.await;
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

async fn read_frame(stream: &mut TlsStream<tokio::net::TcpStream>) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let mut payload = vec![0; usize::try_from(u32::from_be_bytes([0, head[0], head[1], head[2]])).unwrap()];
    stream.read_exact(&mut payload).await.ok()?;
    Some((head[3], payload))
}

/// HEADERS of a GET for our host.
fn get(stream: u32) -> Vec<u8> {
    let mut block = vec![0x82, 0x87, 0x84, 0x41, u8::try_from(HOST.len()).unwrap()];
    block.extend_from_slice(HOST.as_bytes());
    frame(1, 0x5, stream, &block)
}

#[tokio::test]
async fn the_settings_bound_a_visitor_and_offer_no_extended_connect() {
    let (world, _origin, edge) = served(|settings| settings.limits.streams = 7).await;
    let mut stream = connect_alpn(edge.tls, HOST, &world.ca.root, &[b"h2"]).await.unwrap();
    stream.write_all(&[PREFACE, &frame(4, 0, 0, &[])].concat()).await.unwrap();
    let (kind, payload) = read_frame(&mut stream).await.unwrap();
    assert_eq!(kind, 4, "SETTINGS come first");
    let settings: Vec<(u16, u32)> = payload
        .chunks_exact(6)
        .map(|s| (u16::from_be_bytes([s[0], s[1]]), u32::from_be_bytes([s[2], s[3], s[4], s[5]])))
        .collect();
    assert!(settings.contains(&(3, 7)), "{settings:?}");
    assert!(settings.iter().any(|(id, size)| *id == 6 && *size <= 256 * 1024), "{settings:?}");
    assert!(settings.iter().all(|(id, _)| *id != 8), "RFC 8441 is not offered: {settings:?}");
    edge.stop().await;
}

#[tokio::test]
async fn requests_taken_back_in_a_flood_end_the_connection_and_not_the_edge() {
    let (world, origin, edge) = served(|_| {}).await;
    let mut stream = connect_alpn(edge.tls, HOST, &world.ca.root, &[b"h2"]).await.unwrap();
    let mut flood = [PREFACE, &frame(4, 0, 0, &[])].concat();
    for n in 0..2_000_u32 {
        flood.extend(get(2 * n + 1));
        flood.extend(frame(3, 0, 2 * n + 1, &8_u32.to_be_bytes()));
    }
    // The edge may hang up in the middle of it.
    let _ = stream.write_all(&flood).await;
    let mut goaway = None;
    while let Some((kind, payload)) = read_frame(&mut stream).await {
        if kind == 7 {
            goaway = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
            break;
        }
    }
    assert_eq!(goaway, Some(11), "ENHANCE_YOUR_CALM");
    let heard = origin.requests.load(std::sync::atomic::Ordering::SeqCst);
    assert!(heard < 2_000, "the flood reached the origin: {heard}");
    let (mut h2, _connection) = h2::<Empty<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    assert_eq!(h2.send_request(request("/").body(Empty::new()).unwrap()).await.unwrap().status(), 200);
    edge.stop().await;
}

#[tokio::test]
async fn a_connection_that_never_says_anything_is_let_go_of() {
    let (world, _origin, edge) = served(|settings| settings.limits.idle_timeout = Duration::from_millis(200)).await;
    let mut silent = connect_alpn(edge.tls, HOST, &world.ca.root, &[b"h2"]).await.unwrap();
    let mut rest = Vec::new();
    // Closed or reset: either way it is over.
    let _ = silent.read_to_end(&mut rest).await;
    let mut polite = connect_alpn(edge.tls, HOST, &world.ca.root, &[b"h2"]).await.unwrap();
    polite.write_all(&[PREFACE, &frame(4, 0, 0, &[]), &get(1)].concat()).await.unwrap();
    let mut kinds = Vec::new();
    while let Some((kind, _)) = read_frame(&mut polite).await {
        kinds.push(kind);
    }
    assert!(kinds.contains(&1) && kinds.contains(&7), "an answer, and later a goodbye: {kinds:?}");
    edge.stop().await;
}
