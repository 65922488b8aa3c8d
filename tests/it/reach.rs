//! Requests through the public name, against servers on loopback.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use nameplate::env::Env;
use nameplate::model::hostname::Hostname;
use nameplate::reach::{Place, PublicName, Reach as _, ReachError, ReachSettings, Reply, Sent};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const LOOPBACK: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)];

fn host() -> Hostname {
    Hostname::trusted("support.acme.test")
}

/// Answers one request on a connection with `answer`, after reading its head; what the head was.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: &[u8]) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    let _ = stream.write_all(answer).await;
    let _ = stream.shutdown().await;
    String::from_utf8(head).unwrap()
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A plain HTTP server for one request; the port and the request's head.
async fn plain(response: &'static [u8]) -> (u16, tokio::task::JoinHandle<String>) {
    let (listener, address) = listener().await;
    let served = tokio::spawn(async move { answer(listener.accept().await.unwrap().0, response).await });
    (address.port(), served)
}

struct Tls {
    port: u16,
    leaf: CertificateDer<'static>,
    served: tokio::task::JoinHandle<String>,
}

/// A TLS server for one request with a self-signed certificate of serial 0x00a1b2.
async fn tls(name: &str) -> Tls {
    tls_answering(name, Some(b"HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n")).await
}

/// The same with another answer, or none at all.
async fn tls_answering(name: &str, response: Option<&'static [u8]>) -> Tls {
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    params.serial_number = Some(rcgen::SerialNumber::from(vec![0xa1, 0x0b, 0x02]));
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf = params.self_signed(&key).unwrap().der().clone();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
        .unwrap();
    let (listener, address) = listener().await;
    let served = tokio::spawn(async move {
        let stream = TlsAcceptor::from(Arc::new(config)).accept(listener.accept().await.unwrap().0).await.unwrap();
        match response {
            Some(response) => answer(stream, response).await,
            None => std::future::pending().await,
        }
    });
    Tls { port: address.port(), leaf, served }
}

fn reach(http_port: u16, https_port: u16, roots: RootCertStore) -> PublicName {
    let settings = ReachSettings { http_port, https_port, loopback: true, timeout: Duration::from_secs(5) };
    PublicName::new(&Env::real(), settings, roots).unwrap()
}

#[tokio::test]
async fn a_request_tells_serial_status_and_that_nobody_trusts_the_chain() {
    let server = tls("support.acme.test").await;
    let answers = reach(1, server.port, RootCertStore::empty()).served(&host(), &LOOPBACK).await;
    let served = answers[0].outcome.as_ref().unwrap();
    let (_, parsed) = x509_parser::parse_x509_certificate(&server.leaf).unwrap();
    let expected: String = parsed.raw_serial().iter().map(|b| format!("{b:02x}")).collect();
    assert!(expected.ends_with("a10b02"));
    assert_eq!((served.serial.as_str(), served.trusted, served.status), (expected.as_str(), false, Some(302)));
    let head = server.served.await.unwrap();
    assert!(head.starts_with("GET / HTTP/1.1\r\n") && head.contains("host: support.acme.test\r\n"), "{head}");
}

#[tokio::test]
async fn an_origin_that_hangs_does_not_hide_the_certificate() {
    let server = tls_answering("support.acme.test", None).await;
    let timeout = Duration::from_millis(600);
    let settings = ReachSettings { http_port: 1, https_port: server.port, loopback: true, timeout };
    let reach = PublicName::new(&Env::real(), settings, RootCertStore::empty()).unwrap();
    let answers = reach.served(&host(), &LOOPBACK).await;
    let served = answers[0].outcome.as_ref().unwrap();
    assert!(served.serial.ends_with("a10b02"));
    assert_eq!(served.status, None);
    server.served.abort();
}

#[tokio::test]
async fn a_chain_is_trusted_for_its_own_name_only() {
    for (name, trusted) in [("support.acme.test", true), ("other.acme.test", false)] {
        let server = tls(name).await;
        let mut roots = RootCertStore::empty();
        roots.add(server.leaf.clone()).unwrap();
        let answers = reach(1, server.port, roots).served(&host(), &LOOPBACK).await;
        assert_eq!(answers[0].outcome.as_ref().unwrap().trusted, trusted, "{name}");
    }
}

fn token() -> Place {
    Place { tls: false, host: host(), path: "/.well-known/acme-challenge/tok".to_owned() }
}

#[tokio::test]
async fn a_token_is_asked_for_by_name_at_the_address_itself() {
    let (port, served) = plain(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ntok.thumb").await;
    let answers = reach(port, 1, RootCertStore::empty()).ask(&token(), &LOOPBACK).await;
    let reply = answers[0].outcome.as_ref().unwrap();
    assert_eq!((reply.status, reply.body.as_slice(), &reply.sent, &reply.shown), (200, &b"tok.thumb"[..], &None, &None));
    let head = served.await.unwrap();
    assert!(head.starts_with("GET /.well-known/acme-challenge/tok HTTP/1.1\r\n"), "{head}");
}

#[tokio::test]
async fn an_answer_that_is_no_token_is_told_as_it_is() {
    let (port, _served) =
        plain(b"HTTP/1.1 404 Not Found\r\nserver: nginx/1.2\r\nlocation: https://x.test/\r\ncontent-length: 2\r\n\r\nno")
            .await;
    let answers = reach(port, 1, RootCertStore::empty()).ask(&token(), &LOOPBACK).await;
    let expected = Reply {
        status: 404,
        server: Some("nginx/1.2".to_owned()),
        // Only a redirect sends anybody anywhere.
        sent: None,
        body: b"no".to_vec(),
        shown: None,
    };
    assert_eq!(answers[0].outcome.as_ref().unwrap(), &expected);
    for noise in [&b"SSH-2.0-OpenSSH_9\r\n"[..], b""] {
        let (port, _served) = plain(noise).await;
        let answers = reach(port, 1, RootCertStore::empty()).ask(&token(), &LOOPBACK).await;
        assert!(matches!(answers[0].outcome, Err(ReachError::Http(_))), "{:?}", answers[0].outcome);
    }
    let long: &'static [u8] = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(100_000)).leak().as_bytes();
    let (port, _served) = plain(long).await;
    let answers = reach(port, 1, RootCertStore::empty()).ask(&token(), &LOOPBACK).await;
    assert_eq!(answers[0].outcome.as_ref().unwrap().body.len(), 1025, "what is longer than a token is not read");
}

#[tokio::test]
async fn a_redirect_is_told_and_not_followed() {
    let cases: [(&'static [u8], &str); 3] = [
        (b"HTTP/1.1 301 Moved\r\nlocation: https://www.acme.test/t\r\ncontent-length: 0\r\n\r\n", "https://www.acme.test/t"),
        (b"HTTP/1.1 308 Moved\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n", "http://support.acme.test/login"),
        (b"HTTP/1.1 302 Moved\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n", "astray"),
    ];
    for (response, expected) in cases {
        let (port, _served) = plain(response).await;
        let answers = reach(port, 1, RootCertStore::empty()).ask(&token(), &LOOPBACK).await;
        let told = match answers[0].outcome.as_ref().unwrap().sent.as_ref().unwrap() {
            Sent::To(place) => place.to_string(),
            Sent::Astray { .. } => "astray".to_owned(),
        };
        assert_eq!(told, expected);
    }
}

#[tokio::test]
async fn over_tls_any_certificate_is_taken_and_a_foreign_one_is_named() {
    let place = Place { tls: true, ..token() };
    for (name, shown) in
        [("support.acme.test", None), ("*.acme.test", None), ("other.test", Some(vec!["other.test".to_owned()]))]
    {
        let server = tls_answering(name, Some(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx")).await;
        let answers = reach(1, server.port, RootCertStore::empty()).ask(&place, &LOOPBACK).await;
        let reply = answers[0].outcome.as_ref().unwrap();
        assert_eq!((reply.status, &reply.shown), (200, &shown), "{name}");
        assert!(server.served.await.unwrap().starts_with("GET /.well-known/acme-challenge/tok "));
    }
}

#[tokio::test]
async fn an_address_that_is_not_public_is_never_asked() {
    let (listener, address) = listener().await;
    let settings = ReachSettings { http_port: address.port(), https_port: address.port(), ..ReachSettings::default() };
    let reach = PublicName::new(&Env::real(), settings, RootCertStore::empty()).unwrap();
    let spellings: Vec<IpAddr> = ["127.0.0.1", "::ffff:127.0.0.1", "::1", "0.0.0.0"].map(|a| a.parse().unwrap()).to_vec();
    for answer in reach.served(&host(), &spellings).await {
        assert!(matches!(answer.outcome, Err(ReachError::Refused(_))), "{:?}", answer.outcome);
    }
    for answer in reach.ask(&token(), &spellings).await {
        assert!(matches!(answer.outcome, Err(ReachError::Refused(_))), "{:?}", answer.outcome);
    }
    // Nobody came: the next to be accepted is our own.
    let ours = tokio::net::TcpStream::connect(address).await.unwrap();
    let (_, peer) = listener.accept().await.unwrap();
    assert_eq!(peer, ours.local_addr().unwrap());
}

#[tokio::test]
async fn silence_and_refusal_are_told_apart_and_end_in_time() {
    let (listener, address) = listener().await;
    let settings = ReachSettings {
        http_port: address.port(),
        https_port: address.port(),
        loopback: true,
        timeout: Duration::from_millis(200),
    };
    let silent = PublicName::new(&Env::real(), settings, RootCertStore::empty()).unwrap();
    assert!(matches!(silent.served(&host(), &LOOPBACK).await[0].outcome, Err(ReachError::TimedOut(_))));
    assert!(matches!(silent.ask(&token(), &LOOPBACK).await[0].outcome, Err(ReachError::TimedOut(_))));
    drop(listener);
    assert!(matches!(silent.served(&host(), &LOOPBACK).await[0].outcome, Err(ReachError::Connect(_))));
}
