//! What the edge refuses, each with its status: too slow, too large, too many, and heads that do not say where they end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::edge_http2::served;
use crate::support::feed_world::{World, until};
use crate::support::visitor::{connect, exchange, get, plain};

const HOST: &str = "support.acme.test";
const SHORT: Duration = Duration::from_millis(200);

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("no answer")
}

#[track_caller]
fn page(answer: &str, expected: &str) {
    assert_eq!(status(answer), expected, "{answer}");
    assert!(answer.contains("<!doctype html>") && answer.contains("cache-control: no-store"), "{answer}");
    for inside in ["127.0.0.1", "nameplate", "acme", "hyper"] {
        assert!(!answer.contains(inside), "{inside} in {answer}");
    }
}

#[tokio::test]
async fn a_head_that_does_not_end_is_a_408_and_silence_is_just_closed() {
    let (world, origin, edge) = served(|settings| settings.limits.head_timeout = SHORT).await;
    for begun in ["G", "GET / HTTP/1.1\r\nHost: support.acme.test\r\n", "\r\nPOST / HTTP/1.1\r\nX-Slow: a"] {
        page(&exchange(connect(edge.tls, HOST, &world.ca.root).await.unwrap(), begun).await, "408");
        page(&plain(edge.plain, begun).await, "408");
    }
    // One byte at a time does not help.
    let mut slow = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let env = nameplate::env::Env::real();
    for byte in "GET / HTTP/1.1\r\nHost: support.acme.test\r\nX-Long: ".bytes().chain(std::iter::repeat_n(b'x', 500)) {
        if slow.write_all(&[byte]).await.is_err() {
            break;
        }
        env.sleep(Duration::from_millis(10)).await;
    }
    let mut answer = String::new();
    let _ = slow.read_to_string(&mut answer).await;
    assert!(answer.is_empty() || status(&answer) == "408", "{answer}");
    for silent in ["", "\r\n"] {
        assert_eq!(exchange(connect(edge.tls, HOST, &world.ca.root).await.unwrap(), silent).await, "");
        assert_eq!(plain(edge.plain, silent).await, "");
    }
    let kept = "GET / HTTP/1.1\r\nHost: support.acme.test\r\n\r\n";
    let answer = exchange(connect(edge.tls, HOST, &world.ca.root).await.unwrap(), kept).await;
    assert!(status(&answer) == "200" && answer.matches("HTTP/1.1").count() == 1, "{answer}");
    // A handshake that does not end is no better.
    let mut raw = TcpStream::connect(edge.tls).await.unwrap();
    raw.write_all(b"\x16\x03\x01").await.unwrap();
    assert_eq!(raw.read_to_end(&mut Vec::new()).await.unwrap_or(0), 0);
    assert!(edge.view.metrics().contains("nameplate_edge_handshakes_total{outcome=\"timed_out\"} 1\n"));
    assert_eq!(origin.requests.load(Ordering::SeqCst), 1);
    edge.stop().await;
}

/// One connection of HTTP/2 may ask for a hundred things: what bounds connections does not bound what the origin gets.
#[tokio::test]
async fn more_than_the_origin_is_to_get_at_a_time_is_a_503() {
    let (world, _origin, edge) = served(|settings| settings.limits.requests = 1).await;
    let ask = async || get(edge.tls, HOST, &world.ca.root, "/", "").await;
    let mut tunnel = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let upgrade = "GET /raw HTTP/1.1\r\nHost: support.acme.test\r\nConnection: Upgrade\r\nUpgrade: my-protocol/1\r\n\r\n";
    tunnel.write_all(upgrade.as_bytes()).await.unwrap();
    tunnel.read_exact(&mut [0; 12]).await.unwrap();
    let busy = ask().await;
    page(&busy, "503");
    assert!(busy.contains("retry-after: 1"), "{busy}");
    // What the edge answers by itself takes none of it.
    let stranger = "GET / HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n";
    page(&exchange(connect(edge.tls, HOST, &world.ca.root).await.unwrap(), stranger).await, "421");
    drop(tunnel);
    until("room", || async { status(&ask().await) == "200" }).await;
    edge.stop().await;
}

#[tokio::test]
async fn a_body_that_stands_still_is_a_408_and_an_origin_that_does_a_504() {
    let (world, origin, edge) = served(|settings| {
        settings.limits.idle_timeout = SHORT;
        settings.limits.answer_timeout = SHORT;
    })
    .await;
    for framing in ["Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"] {
        let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
        page(&exchange(stream, &format!("POST / HTTP/1.1\r\nHost: {HOST}\r\n{framing}")).await, "408");
    }
    page(&get(edge.tls, HOST, &world.ca.root, "/hang", "").await, "504");
    origin.dropped.notified().await;
    // Once it has begun there is no status left to give: it ends without an end.
    let cut = get(edge.tls, HOST, &world.ca.root, "/stall", "").await;
    assert!(status(&cut) == "200" && cut.contains("first") && !cut.ends_with("0\r\n\r\n"), "{cut}");
    origin.dropped.notified().await;
    let text = edge.view.metrics();
    assert!(text.contains("nameplate_edge_upstream_errors_total{kind=\"timeout\"} 1\n"), "{text}");
    edge.stop().await;
}

#[tokio::test]
async fn a_visitor_s_own_pause_is_measured_by_the_visitor_s_own_limit() {
    // The origin may take a minute to answer; the visitor may not take it to go on.
    let (world, _origin, edge) = served(|settings| settings.limits.idle_timeout = SHORT).await;
    for framing in
        ["Content-Length: 10\r\n\r\nabc", "Content-Length: 10\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"]
    {
        let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
        let request = format!("POST / HTTP/1.1\r\nHost: {HOST}\r\n{framing}");
        let answer = tokio::time::timeout(SHORT * 20, exchange(stream, &request)).await;
        page(&answer.expect("an answer long before the origin's time is over"), "408");
    }
    edge.stop().await;
}

#[tokio::test]
async fn a_visitor_who_takes_nothing_of_an_answer_is_let_go_of() {
    let (world, origin, edge) = served(|settings| settings.limits.idle_timeout = SHORT).await;
    let mut greedy = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    greedy.write_all(b"GET /endless HTTP/1.1\r\nHost: support.acme.test\r\n\r\n").await.unwrap();
    origin.began.notified().await;
    // It reads nothing; the edge does not hold the origin's answer for it.
    origin.dropped.notified().await;
    until("the connection is gone", || async { edge.view.metrics().contains("nameplate_edge_requests_running 0") }).await;
    drop(greedy);
    edge.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_a_413_however_it_comes() {
    let (world, _origin, edge) = served(|settings| settings.limits.body_bytes = 1_000).await;
    let post = async |rest: String| {
        let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
        exchange(stream, &format!("POST / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n{rest}")).await
    };
    let body = "x".repeat(1_001);
    page(&post(format!("Content-Length: 1001\r\n\r\n{body}")).await, "413");
    page(&post("Content-Length: 18446744073709551613\r\n\r\n".to_owned()).await, "413");
    page(&post(format!("Transfer-Encoding: chunked\r\n\r\n3e9\r\n{body}\r\n0\r\n\r\n")).await, "413");
    // Endless, in small pieces.
    let mut endless = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    endless
        .write_all(format!("POST / HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let piece = format!("64\r\n{}\r\n", "y".repeat(100));
    let mut pieces = 0;
    while pieces < 100_000 && endless.write_all(piece.as_bytes()).await.is_ok() {
        pieces += 1;
    }
    assert!(pieces < 100_000, "it was taken without an end");
    let fits = post(format!("Transfer-Encoding: chunked\r\n\r\n3e8\r\n{}\r\n0\r\n\r\n", &body[1..])).await;
    assert!(status(&fits) == "200" && fits.contains("body=1000"), "{fits}");
    edge.stop().await;
}

#[tokio::test]
async fn headers_over_the_limits_are_a_431() {
    let (world, origin, edge) = served(|settings| {
        settings.limits.header_bytes = 2_048;
        settings.limits.header_count = 20;
    })
    .await;
    let ask = async |target: &str, lines: &str| get(edge.tls, HOST, &world.ca.root, target, lines).await;
    page(&ask("/", &format!("X-Wide: {}\r\n", "y".repeat(2_100))).await, "431");
    let many = |n: usize| (0..n).map(|i| format!("X-{i}: y\r\n")).collect::<String>();
    page(&ask("/", &many(21)).await, "431");
    assert_eq!(status(&ask("/", &many(18)).await), "200");
    page(&ask(&format!("/{}", "p".repeat(2_100)), "").await, "431");
    // Beyond the hard bounds the parser itself says so, without a page.
    assert_eq!(status(&ask("/", &many(500)).await), "431");
    assert_eq!(status(&ask("/", &format!("X-Wide: {}\r\n", "y".repeat(60_000))).await), "431");
    let wide = format!("GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nX: {}\r\n\r\n", "y".repeat(2_100));
    page(&plain(edge.plain, &wide).await, "431");
    assert_eq!(origin.requests.load(Ordering::SeqCst), 1);
    edge.stop().await;
}

#[tokio::test]
async fn connections_over_the_limit_are_told_503_and_a_ca_is_answered_all_the_same() {
    let (world, _origin, edge) = served(|settings| settings.limits.connections = 2).await;
    let challenge = world.challenge("tok-1", true).await;
    world.rolled_out("challenge", challenge.as_str()).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push((connect(edge.tls, HOST, &world.ca.root).await.unwrap(), TcpStream::connect(edge.plain).await.unwrap()));
    }
    until("both are in", || async {
        let text = edge.view.metrics();
        // The probe of the edge's own listener comes and goes.
        text.contains("nameplate_edge_connections{listener=\"plain\"} 2")
    })
    .await;
    let busy = get(edge.tls, HOST, &world.ca.root, "/", "").await;
    page(&busy, "503");
    assert!(busy.contains("retry-after: 1") && busy.contains("connection: close"), "{busy}");
    page(&plain(edge.plain, &format!("GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n")).await, "503");
    let ca = "GET /.well-known/acme-challenge/tok-1 HTTP/1.1\r\nHost: support.acme.test\r\nConnection: close\r\n\r\n";
    assert!(plain(edge.plain, ca).await.ends_with("tok-1.thumbprint"));
    drop(held);
    until("there is room again", || async { status(&get(edge.tls, HOST, &world.ca.root, "/", "").await) == "200" }).await;
    edge.stop().await;
}

#[tokio::test]
async fn a_head_that_gives_its_length_twice_is_refused_and_nothing_after_it_is_answered() {
    let (world, origin, edge) = served(|_| {}).await;
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: support.acme.test\r\n\r\n";
    for lines in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG",
        "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
        "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        "Content-Length: 4, 4\r\n\r\nabcd",
        "Content-Length: +4\r\n\r\nabcd",
        "Content-Length: 0x4\r\n\r\nabcd",
        "Content-Length : 4\r\n\r\nabcd",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "X-Folded: a\r\n b\r\n\r\n",
        "X-Folded: a\r\n\tContent-Length: 4\r\n\r\n",
        "X-Null: a\0b\r\n\r\n",
        "X-Return: a\rContent-Length: 4\r\n\r\n",
    ] {
        let request = format!("POST / HTTP/1.1\r\nHost: {HOST}\r\n{lines}{smuggled}");
        for answer in [
            exchange(connect(edge.tls, HOST, &world.ca.root).await.unwrap(), &request).await,
            plain(edge.plain, &request).await,
        ] {
            assert_eq!(status(&answer), "400", "{lines:?}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{lines:?}: {answer}");
        }
    }
    for line in
        ["POST / HTTP/1.0\r\nHost: support.acme.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "GET / HTTP/3\r\n\r\n"]
    {
        let answer = exchange(connect(edge.tls, HOST, &world.ca.root).await.unwrap(), line).await;
        assert_eq!(status(&answer), "400", "{line:?}: {answer}");
    }
    assert_eq!(origin.requests.load(Ordering::SeqCst), 0, "none of it reached the origin");
    edge.stop().await;
}

#[tokio::test]
async fn an_origin_that_does_not_accept_in_time_is_a_504() {
    let world = World::new().await;
    let certificate = world.serve(HOST).await;
    // Nobody accepts, and the kernel's queue has room for few.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = socket.listen(1).unwrap();
    let at = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    let env = nameplate::env::Env::real();
    loop {
        tokio::select! {
            stream = TcpStream::connect(at) => waiting.push(stream.unwrap()),
            () = env.sleep(SHORT) => break,
        }
    }
    let edge = world.edge_with("edge-1", at, |settings| settings.limits.connect_timeout = SHORT).await;
    world.rolled_out("certificate", certificate.as_str()).await;
    world.rolled_out("host", HOST).await;
    page(&get(edge.tls, HOST, &world.ca.root, "/", "").await, "504");
    drop(waiting);
    edge.stop().await;
}

#[tokio::test]
async fn an_origin_that_talks_nonsense_or_hangs_up_is_a_502() {
    let world = World::new().await;
    let certificate = world.serve(HOST).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let says = [
        "",
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
    ];
    let origin = tokio::spawn(async move {
        for text in says {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 16];
            stream.read_exact(&mut head).await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    });
    let edge = world.edge("edge-1", at).await;
    world.rolled_out("certificate", certificate.as_str()).await;
    world.rolled_out("host", HOST).await;
    for text in says {
        let answer = get(edge.tls, HOST, &world.ca.root, "/", "").await;
        assert_eq!(status(&answer), "502", "{text:?}: {answer}");
    }
    origin.await.unwrap();
    assert_eq!(status(&get(edge.tls, HOST, &world.ca.root, "/", "").await), "502", "nobody listens any more");
    edge.stop().await;
}
