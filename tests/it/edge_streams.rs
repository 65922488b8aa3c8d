//! What flows through the edge without stopping: WebSockets, event streams, uploads, trailers; and what happens when one side
//! goes away.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use http::Request;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use nameplate::model::feed::HostAction;
use nameplate::store::sql;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::edge_http2::served;
use crate::support::feed_world::until;
use crate::support::visitor::{connect, exchange, get, h2};

const HOST: &str = "support.acme.test";

/// Reads until `end` was read.
async fn read_until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut seen = Vec::new();
    while !seen.ends_with(end.as_bytes()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap_or_else(|e| panic!("{e} after {}", String::from_utf8_lossy(&seen)));
        seen.push(byte[0]);
    }
    String::from_utf8(seen).unwrap()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("no answer")
}

#[tokio::test]
async fn a_websocket_goes_through_both_ways() {
    let (world, _origin, edge) = served(|_| {}).await;
    let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let (mut socket, response) = tokio_tungstenite::client_async(format!("wss://{HOST}/ws"), stream).await.unwrap();
    assert!(response.status() == 101 && response.headers()["upgrade"] == "websocket", "{response:?}");
    for text in ["hello", "wörld", &"x".repeat(100_000)] {
        socket.send(Message::text(text)).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(text));
    }
    until("the tunnel is counted", || async { edge.view.metrics().contains("nameplate_edge_tunnels 1") }).await;
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
    drop(socket);
    until("the tunnel is gone", || async { edge.view.metrics().contains("nameplate_edge_tunnels 0") }).await;
    edge.stop().await;
}

const UPGRADE: &str =
    "GET /raw HTTP/1.1\r\nHost: support.acme.test\r\nConnection: Upgrade\r\nUpgrade: my-protocol/1\r\n\r\n";

#[tokio::test]
async fn a_half_that_ends_is_told_to_the_other_side_whose_half_goes_on() {
    let (world, _origin, edge) = served(|_| {}).await;
    let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    stream.write_all(UPGRADE.as_bytes()).await.unwrap();
    let head = read_until(&mut stream, "\r\n\r\n").await.to_lowercase();
    assert!(
        status(&head) == "101" && head.contains("upgrade: my-protocol/1") && head.contains("connection: upgrade"),
        "{head}"
    );
    stream.write_all(b"GET / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
    read_until(&mut stream, "chunked\r\n\r\n").await;
    stream.shutdown().await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "goodbye");
    edge.stop().await;
}

#[tokio::test]
async fn a_tunnel_that_stands_still_is_closed_and_one_that_moves_is_not() {
    let (world, _origin, edge) = served(|settings| settings.limits.tunnel_idle_timeout = Duration::from_millis(400)).await;
    let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    stream.write_all(UPGRADE.as_bytes()).await.unwrap();
    read_until(&mut stream, "\r\n\r\n").await;
    let env = nameplate::env::Env::real();
    let began = env.now();
    while env.now().since(began) < Duration::from_millis(1_200) {
        stream.write_all(b"x").await.unwrap();
        read_until(&mut stream, "x").await;
        env.sleep(Duration::from_millis(20)).await;
    }
    let mut rest = Vec::new();
    // Closed or reset: either way it is over.
    let _ = stream.read_to_end(&mut rest).await;
    edge.stop().await;
}

/// What was begun for one tenant must not go on once the name is not its own.
#[tokio::test]
async fn what_takes_long_ends_when_its_host_is_taken_away() {
    let (world, _origin, edge) = served(|settings| settings.limits.idle_timeout = Duration::from_millis(300)).await;
    let mut tunnel = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    tunnel.write_all(UPGRADE.as_bytes()).await.unwrap();
    read_until(&mut tunnel, "\r\n\r\n").await;
    let mut upload = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let head = "POST /echo HTTP/1.1\r\nHost: support.acme.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    upload.write_all(head.as_bytes()).await.unwrap();
    let env = nameplate::env::Env::real();
    let began = env.now();
    let mut ended = (false, false);
    while ended != (true, true) {
        let since = env.now().since(began);
        assert!(since < Duration::from_secs(20), "{ended:?}");
        if since > Duration::from_millis(700)
            && world.store.query(sql("SELECT 1 AS n FROM routes WHERE action = 'gone'")).await.unwrap().is_empty()
        {
            assert_eq!(ended, (false, false), "while it is served both go on");
            world.route(HOST, HostAction::Gone, None, world.env.now().micros()).await;
        }
        ended.0 = ended.0 || tunnel.write_all(b"x").await.is_err() || tunnel.read_exact(&mut [0]).await.is_err();
        ended.1 = ended.1 || upload.write_all(b"1\r\nx\r\n").await.is_err();
        env.sleep(Duration::from_millis(20)).await;
    }
    edge.stop().await;
}

#[tokio::test]
async fn a_drain_waits_for_a_tunnel_and_not_for_ever() {
    let (world, _origin, edge) = served(|settings| settings.drain = Duration::from_millis(500)).await;
    let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    stream.write_all(UPGRADE.as_bytes()).await.unwrap();
    read_until(&mut stream, "\r\n\r\n").await;
    edge.stop.cancel();
    until("the closed door", || async { TcpStream::connect(edge.tls).await.is_err() }).await;
    stream.write_all(b"still there").await.unwrap();
    read_until(&mut stream, "still there").await;
    edge.stop().await;
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
}

#[tokio::test]
async fn what_would_carry_http_again_is_not_offered_to_the_origin_and_a_101_unasked_for_is_refused() {
    let (world, _origin, edge) = served(|_| {}).await;
    for upgrade in ["h2c", "HTTP/2.0", "TLS/1.0", "websocket, h2c"] {
        let lines = format!("Upgrade: {upgrade}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n");
        let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
        let request =
            format!("GET /raw HTTP/1.1\r\nHost: {HOST}\r\nConnection: close, Upgrade, HTTP2-Settings\r\n{lines}\r\n");
        let answer = exchange(stream, &request).await;
        assert!(status(&answer) == "200" && !answer.to_lowercase().contains("upgrade="), "{upgrade}: {answer}");
    }
    let answer = get(edge.tls, HOST, &world.ca.root, "/101", "").await;
    assert_eq!(status(&answer), "502", "{answer}");
    edge.stop().await;
}

#[tokio::test]
async fn each_event_arrives_before_the_next_is_sent() {
    let (world, origin, edge) = served(|_| {}).await;
    let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    stream.write_all(b"GET /sse HTTP/1.1\r\nHost: support.acme.test\r\n\r\n").await.unwrap();
    let head = read_until(&mut stream, "\r\n\r\n").await;
    assert!(head.contains("text/event-stream") && !head.contains("content-length"), "{head}");
    for n in 0..3 {
        origin.go.notify_one();
        read_until(&mut stream, &format!("data: {n}\n\n\r\n")).await;
    }
    drop(stream);
    let (mut h2, _connection) = h2::<http_body_util::Empty<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    let request = Request::get(format!("https://{HOST}/sse")).body(http_body_util::Empty::new()).unwrap();
    let mut body = h2.send_request(request).await.unwrap().into_body();
    let env = nameplate::env::Env::real();
    let deadline = env.now() + Duration::from_secs(20);
    let mut seen = String::new();
    while !seen.contains("data: 1\n\n") {
        assert!(env.now() < deadline, "no event came within 20 s: {seen:?}");
        // The first stream's task may take one of the notices before it finds its reader gone.
        origin.go.notify_one();
        tokio::select! {
            frame = body.frame() => {
                let frame = frame.unwrap().unwrap();
                seen.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
            }
            () = env.sleep(Duration::from_millis(50)) => {}
        }
    }
    drop(body);
    edge.stop().await;
}

#[tokio::test]
async fn an_upload_comes_back_while_it_is_still_being_sent() {
    let (world, _origin, edge) = served(|_| {}).await;
    let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    stream.write_all(b"POST /echo HTTP/1.1\r\nHost: support.acme.test\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
    for part in ["abc", "defgh", "ij"] {
        stream.write_all(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes()).await.unwrap();
        read_until(&mut stream, &format!("{part}\r\n")).await;
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    read_until(&mut stream, "0\r\n\r\n").await;

    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let frames = futures::stream::unfold(receiver, |mut receiver| async move {
        let part = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(Frame::data(part)), receiver))
    });
    let (mut h2, _connection) = h2(edge.tls, HOST, &world.ca.root).await;
    let request = Request::post(format!("https://{HOST}/echo")).body(StreamBody::new(Box::pin(frames))).unwrap();
    let answer = tokio::spawn(async move { h2.send_request(request).await.unwrap() });
    sender.send("first".into()).await.unwrap();
    let mut body = answer.await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "first");
    sender.send("second".into()).await.unwrap();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "second");
    drop(sender);
    assert!(body.collect().await.unwrap().to_bytes().is_empty());
    edge.stop().await;
}

#[tokio::test]
async fn trailers_go_through_both_ways_and_cannot_speak_for_the_edge() {
    let (world, _origin, edge) = served(|_| {}).await;
    let request = "POST /trailers HTTP/1.1\r\nHost: support.acme.test\r\nTE: trailers\r\nConnection: close, TE\r\n\
                   Trailer: x-sum, x-tenant-id\r\nTransfer-Encoding: chunked\r\n\r\n\
                   1\r\na\r\n0\r\nX-Sum: of-the-visitor\r\nX-Tenant-Id: forged\r\nX_Forwarded_For: forged\r\n\r\n";
    let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let answer = exchange(stream, request).await;
    assert!(answer.contains("of-the-visitor") && !answer.contains("forged"), "{answer}");
    assert!(answer.contains("x-te: trailers") && answer.ends_with("x-checksum: of-the-origin\r\n\r\n"), "{answer}");
    let (mut h2, _connection) = h2::<http_body_util::Empty<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    let request = Request::get(format!("https://{HOST}/trailers")).header("te", "trailers");
    let response = h2.send_request(request.body(http_body_util::Empty::new()).unwrap()).await.unwrap();
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["x-checksum"], "of-the-origin");
    edge.stop().await;
}

#[tokio::test]
async fn a_visitor_who_goes_away_is_not_worked_for_any_longer() {
    let (world, origin, edge) = served(|_| {}).await;
    for path in ["/hang", "/stall", "/endless"] {
        let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes()).await.unwrap();
        origin.began.notified().await;
        drop(stream);
        origin.dropped.notified().await;
        let (mut h2, _connection) = h2::<http_body_util::Empty<Bytes>>(edge.tls, HOST, &world.ca.root).await;
        let request = Request::get(format!("https://{HOST}{path}")).body(http_body_util::Empty::new()).unwrap();
        let answer = tokio::spawn(h2.send_request(request));
        origin.began.notified().await;
        if path == "/hang" {
            answer.abort();
        } else {
            drop(answer.await.unwrap().unwrap());
        }
        origin.dropped.notified().await;
    }
    edge.stop().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_made_to_look_whole() {
    let (world, _origin, edge) = served(|_| {}).await;
    let answer = get(edge.tls, HOST, &world.ca.root, "/breaks", "").await;
    assert!(status(&answer) != "200" || !answer.ends_with("0\r\n\r\n"), "{answer}");
    let (mut h2, _connection) = h2::<http_body_util::Empty<Bytes>>(edge.tls, HOST, &world.ca.root).await;
    let request = Request::get(format!("https://{HOST}/breaks")).body(http_body_util::Empty::new()).unwrap();
    let response = h2.send_request(request).await.unwrap();
    assert!(response.status() != 200 || response.into_body().collect().await.is_err());
    edge.stop().await;
}

#[tokio::test]
async fn continue_is_said_only_when_the_body_is_wanted() {
    let (world, origin, edge) = served(|settings| settings.limits.body_bytes = 10).await;
    let ask = async |length: u32, expect: &str| {
        let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {length}\r\nExpect: {expect}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let said = read_until(&mut stream, "\r\n\r\n").await;
        (said, stream)
    };
    let (said, mut stream) = ask(5, "100-Continue").await;
    assert_eq!(status(&said), "100");
    stream.write_all(b"hello").await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(status(&answer) == "200" && answer.contains("body=5") && !answer.contains("expect="), "{answer}");
    assert_eq!(status(&ask(11, "100-continue").await.0), "413");
    assert_eq!(status(&ask(5, "a-miracle").await.0), "417");
    assert_eq!(origin.requests.load(std::sync::atomic::Ordering::SeqCst), 1);
    edge.stop().await;
}

#[tokio::test]
async fn answers_without_a_body_leave_the_connection_in_step() {
    let (world, _origin, edge) = served(|_| {}).await;
    let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    for (request, expected) in
        [("HEAD /", "200"), ("GET /204", "204"), ("GET /304", "304"), ("HEAD /204", "204"), ("HEAD /sse", "200")]
    {
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: {HOST}\r\n\r\n").as_bytes()).await.unwrap();
        let head = read_until(&mut stream, "\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 ") && status(&head) == expected, "{request}: {head}");
        assert!(expected != "204" || !head.contains("content-length"), "{head}");
    }
    stream.write_all(b"HEAD / HTTP/1.1\r\nHost: support.acme.test\r\n\r\n").await.unwrap();
    let head = read_until(&mut stream, "\r\n\r\n").await;
    assert!(head.contains("content-length: ") && !head.contains("content-length: 0"), "{head}");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: support.acme.test\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut rest = String::new();
    let _ = stream.read_to_string(&mut rest).await;
    assert!(rest.starts_with("HTTP/1.1 200") && rest.contains("GET /\n"), "{rest}");
    edge.stop().await;
}

/// What comes right after an upgrade belongs to the tunnel, not to another request.
#[tokio::test]
async fn bytes_sent_ahead_of_the_upgrade_are_not_lost_and_not_read_as_a_request() {
    let (world, _origin, edge) = served(|_| {}).await;
    let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    stream.write_all(format!("{UPGRADE}GET /ahead HTTP/1.1\r\nHost: evil\r\n\r\n").as_bytes()).await.unwrap();
    read_until(&mut stream, "\r\n\r\n").await;
    assert_eq!(read_until(&mut stream, "\r\n\r\n").await, "GET /ahead HTTP/1.1\r\nHost: evil\r\n\r\n");
    edge.stop().await;
}

/// An origin that answers before it has read the request's body is heard.
#[tokio::test]
async fn an_early_answer_is_passed_on() {
    let (world, _origin, edge) = served(|_| {}).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let early = listener.local_addr().unwrap();
    let hasty = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_until(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    edge.stop().await;
    let edge = world.edge_with("edge-2", early, |_| {}).await;
    world.rolled_out("host", HOST).await;
    until("the book", || async { edge.view.status().serving == 1 }).await;
    let mut stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let head = format!("POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 1000\r\n\r\npart");
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, "\r\n\r\nno").await;
    assert_eq!(status(&answer), "403", "{answer}");
    drop(stream);
    hasty.await.unwrap();
    edge.stop().await;
}
