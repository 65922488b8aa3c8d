//! The edge on loopback: what a CA, a visitor, a stranger and an operator meet.

use nameplate::model::feed::HostAction;
use nameplate::store::{edges, sql};
use nameplate::vault::distribution::{DistributionKey, Preflight};
use nameplate::vault::{Context, Sealed};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::feed_world::{RunningEdge, World, until};
use crate::support::visitor::{Origin, connect, exchange, get, plain};

const HOST: &str = "support.acme.test";

/// A world with one served name, an origin and an edge that has all of it.
async fn served() -> (World, Origin, RunningEdge) {
    let world = World::new().await;
    let origin = Origin::start().await;
    let certificate = world.serve(HOST).await;
    let edge = world.edge("edge-1", origin.at).await;
    world.rolled_out("certificate", certificate.as_str()).await;
    world.rolled_out("host", HOST).await;
    (world, origin, edge)
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("no answer")
}

#[tokio::test]
async fn a_visitor_reaches_the_origin_and_the_origin_is_told_whose_it_is() {
    let (world, _origin, edge) = served().await;
    let forged = "X-Tenant-Id: ten_forged\r\nx_tenant_slug: forged\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n\
                  X-Forwarded-Host: evil.test\r\nX-Real-IP: 6.6.6.6\r\ntransfer_encoding: forged\r\nCookie: a=b\r\nConnection: x-hop\r\nX-Hop: 1\r\n";
    let answer = get(edge.tls, HOST, &world.ca.root, "/path?q=1", forged).await;
    assert_eq!(status(&answer), "200", "{answer}");
    for told in [
        "GET /path?q=1",
        "cookie=a=b",
        "host=support.acme.test",
        "x-tenant-slug=acme",
        "x-forwarded-proto=https",
        "x-forwarded-for=127.0.0.1",
        "x-forwarded-host=support.acme.test",
        "forwarded=for=127.0.0.1;host=support.acme.test;proto=https",
        &format!("x-tenant-id={}", world.tenant),
    ] {
        assert!(answer.contains(&format!("origin: {told}\n")), "{told} in {answer}");
    }
    for stripped in ["forged", "6.6.6.6", "evil", "x-hop", "keep-alive"] {
        assert!(!answer.contains(stripped), "{stripped} in {answer}");
    }
    let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let post = "POST /form HTTP/1.1\r\nHost: support.acme.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
                3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert!(exchange(stream, post).await.contains("origin: body=abcde\n"));
    let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let broken = exchange(stream, &post.replace("\r\n2\r\nde", "\r\nnonsense\r\nde")).await;
    assert_eq!(status(&broken), "400", "{broken}");
    let answer = get(edge.tls, HOST, &world.ca.root, "/421", "").await;
    assert_eq!(status(&answer), "502", "{answer}");
    edge.stop().await;
}

/// Field case B68.
#[tokio::test]
async fn b68_a_stranger_is_shown_nobodys_certificate() {
    let (world, origin, edge) = served().await;
    let root = &world.ca.root;
    for stranger in ["127.0.0.1", "nobody.example", "acme.test", "x.support.acme.test"] {
        let error = connect(edge.tls, stranger, root).await.unwrap_err();
        assert!(error.to_string().contains("alert"), "{stranger}: {error}");
    }
    let mut kept = connect(edge.tls, HOST, root).await.unwrap();
    world.route(HOST, HostAction::Gone, None, 2).await;
    world.rolled_out("host", HOST).await;
    assert!(connect(edge.tls, HOST, root).await.unwrap_err().to_string().contains("alert"));
    kept.write_all(b"GET / HTTP/1.1\r\nHost: support.acme.test\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = kept.read_to_string(&mut answer).await;
    assert_eq!(status(&answer), "404", "{answer}");
    let answer = plain(edge.plain, "GET / HTTP/1.1\r\nHost: support.acme.test\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&answer), "404");
    drop(origin);
    edge.stop().await;
}

/// Field case B72.
#[tokio::test]
async fn b72_a_ca_is_answered_before_any_redirect() {
    let (world, _origin, edge) = served().await;
    let challenge = world.challenge("tok-1", true).await;
    world.rolled_out("challenge", challenge.as_str()).await;
    let ask = async |method: &str, target: &str, host: &str| {
        plain(
            edge.plain,
            &format!("{method} /.well-known/acme-challenge/{target} HTTP/1.1\r\n{host}Connection: close\r\n\r\n"),
        )
        .await
    };
    for host in ["Host: support.acme.test\r\n", "Host: not-known-yet.test:80\r\n", ""] {
        for target in ["tok-1", "tok-1?x=y"] {
            let answer = ask("GET", target, host).await;
            assert_eq!(
                (status(&answer), answer.ends_with("\r\n\r\ntok-1.thumbprint")),
                ("200", true),
                "{host} {target} {answer}"
            );
        }
    }
    let head = ask("HEAD", "tok-1", "Host: support.acme.test\r\n").await;
    assert!(status(&head) == "200" && head.contains("content-length: 16") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(status(&ask("GET", "unknown", "Host: support.acme.test\r\n").await), "404");
    assert_eq!(status(&ask("POST", "tok-1", "Host: support.acme.test\r\n").await), "308");

    // Not in the feed yet: the edge asks once. Once removed, it is over, also for who asks.
    let early = world.challenge("tok-2", false).await;
    assert!(ask("GET", "tok-2", "Host: support.acme.test\r\n").await.ends_with("tok-2.thumbprint"));
    for (id, token) in [(challenge, "tok-1"), (early, "tok-2")] {
        world.end_challenge(&id).await;
        world.rolled_out("challenge", id.as_str()).await;
        assert_eq!(status(&ask("GET", token, "").await), "404", "{token}");
    }
    edge.stop().await;
}

#[tokio::test]
async fn the_plain_port_redirects_known_hosts_only() {
    let (world, _origin, edge) = served().await;
    world.route("bare.acme.test", HostAction::Serve, None, 1).await;
    world.rolled_out("host", "bare.acme.test").await;
    let ask = async |target: &str, lines: &str| {
        plain(edge.plain, &format!("GET {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n")).await
    };
    let answer = ask("/a/b?c=d", "Host: Support.ACME.test:8080\r\n").await;
    assert_eq!(status(&answer), "308");
    assert!(answer.contains("location: https://support.acme.test:8443/a/b?c=d\r\n"), "{answer}");
    let unknown = ask("/", "Host: evil.example\r\n").await;
    assert!(status(&unknown) == "404" && !unknown.contains("evil"), "{unknown}");
    assert_eq!(status(&ask("/", "Host: bare.acme.test\r\n").await), "404", "there is no certificate to meet it with");
    for bad in
        ["", "Host: support.acme.test\r\nHost: support.acme.test\r\n", "Host: a b\r\n", "Host: user@support.acme.test\r\n"]
    {
        assert_eq!(status(&ask("/", bad).await), "400", "{bad:?}");
    }
    edge.stop().await;
}

#[tokio::test]
async fn a_host_that_is_not_the_connections_is_misdirected() {
    let (world, _origin, edge) = served().await;
    world.serve("shop.acme.test").await;
    world.rolled_out("host", "shop.acme.test").await;
    let ask = async |host: &str| {
        let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
        exchange(stream, &format!("GET / HTTP/1.1\r\n{host}Connection: close\r\n\r\n")).await
    };
    for same in ["support.acme.test", "SUPPORT.acme.TEST", "support.acme.test.", "support.acme.test:8443"] {
        assert_eq!(status(&ask(&format!("Host: {same}\r\n")).await), "200", "{same}");
    }
    for other in ["shop.acme.test", "nobody.example", "127.0.0.1"] {
        let answer = ask(&format!("Host: {other}\r\n")).await;
        assert!(status(&answer) == "421" && !answer.contains("origin"), "{other}: {answer}");
    }
    for bad in ["", "Host: support.acme.test\r\nHost: shop.acme.test\r\n", "Host: support..test\r\n"] {
        assert_eq!(status(&ask(bad).await), "400", "{bad:?}");
    }
    edge.stop().await;
}

/// Invariant 10.
#[tokio::test]
async fn with_the_control_plane_down_an_edge_serves_on_also_after_a_restart() {
    let (mut world, origin, edge) = served().await;
    world.serve("shop.acme.test").await;
    world.rolled_out("host", "shop.acme.test").await;
    world.down().await;
    assert_eq!(status(&get(edge.tls, HOST, &world.ca.root, "/", "").await), "200");
    edge.kill().await;
    let edge = RunningEdge::start(&world.dir.path().join("edge-1"), "edge-1", origin.at, None).await;
    for host in [HOST, "shop.acme.test"] {
        assert_eq!(status(&get(edge.tls, host, &world.ca.root, "/", "").await), "200", "{host}");
    }
    until("the trouble", || async { edge.view.status().trouble.is_some() }).await;
    assert_eq!(edge.view.status().serving, 2);

    // Back again, it follows on from where it was.
    world.up().await;
    world.serve("blog.acme.test").await;
    world.rolled_out("host", "blog.acme.test").await;
    assert_eq!(status(&get(edge.tls, "blog.acme.test", &world.ca.root, "/", "").await), "200");
    assert_eq!(edges::list(&world.store).await.unwrap().len(), 1);
    edge.stop().await;
}

#[tokio::test]
async fn an_edge_that_never_had_a_book_refuses_to_serve() {
    let mut world = World::new().await;
    world.serve(HOST).await;
    let token = world.join_token().await;
    world.down().await;
    let origin = Origin::start().await;
    let edge = RunningEdge::start(&world.dir.path().join("edge-1"), "edge-1", origin.at, Some(token)).await;
    let answer = plain(edge.plain, "GET / HTTP/1.1\r\nHost: support.acme.test\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&answer), "503");
    assert!(connect(edge.tls, HOST, &world.ca.root).await.is_err());
    assert_eq!(edge.view.status().position, None);
    edge.stop().await;
}

#[tokio::test]
async fn a_renewal_changes_the_certificate_and_a_bad_one_is_told_while_the_good_one_stays_known() {
    let (world, _origin, edge) = served().await;
    let (chain, key) = world.ca.leaf(HOST);
    let renewed = world.store_certificate(HOST, &chain, key).await;
    world.route(HOST, HostAction::Serve, Some(&renewed), 2).await;
    world.rolled_out("host", HOST).await;
    let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    assert_eq!(shown, CertificateDer::from_pem_slice(chain.as_bytes()).unwrap());

    let (chain, _) = world.ca.leaf("shop.acme.test");
    let (_, other_key) = world.ca.leaf("shop.acme.test");
    let bad = world.store_certificate("shop.acme.test", &chain, other_key).await;
    world.announce("certificate", bad.as_str(), 1).await;
    world.route("shop.acme.test", HostAction::Serve, Some(&bad), 1).await;
    until("the exception", || async { !world.rollout("certificate", bad.as_str()).await.exceptions.is_empty() }).await;
    let told = world.rollout("certificate", bad.as_str()).await;
    assert!(told.behind.is_empty() && told.exceptions[0].1.contains("handshake failed"), "{told:?}");
    edge.stop().await;
}

#[tokio::test]
async fn an_origin_that_is_down_is_a_502_and_a_running_request_survives_the_drain() {
    let (world, origin, edge) = served().await;
    let slow = tokio::spawn({
        let (root, at) = (world.ca.root.clone(), edge.tls);
        async move { get(at, HOST, &root, "/slow", "").await }
    });
    origin.began.notified().await;
    edge.stop.cancel();
    until("the closed door", || async { tokio::net::TcpStream::connect(edge.tls).await.is_err() }).await;
    assert!(!slow.is_finished());
    origin.go.notify_one();
    assert_eq!(status(&slow.await.unwrap()), "200");
    edge.stop().await;

    let nowhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let edge = RunningEdge::start(&world.dir.path().join("edge-1"), "edge-1", nowhere, None).await;
    assert_eq!(status(&get(edge.tls, HOST, &world.ca.root, "/", "").await), "502");
    edge.stop().await;
}

/// The preflight of the control plane is answered for any host, on both ports, by whoever was given the distribution key; a
/// token that somebody made up is like any other that is not known.
#[tokio::test]
async fn a_preflight_is_answered_for_hosts_that_the_edge_does_not_know() {
    let (world, origin, edge) = served().await;
    let question = Preflight::of(&distribution_key(&world).await).ask(&world.env);
    let path = |token: &str| format!("/.well-known/acme-challenge/{token}");
    let ask = |host: &str, token: &str| format!("GET {} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n", path(token));
    for host in ["nobody.example", HOST, "10.0.0.1"] {
        let answer = plain(edge.plain, &ask(host, &question.token)).await;
        assert_eq!(status(&answer), "200", "{host}: {answer}");
        assert!(answer.ends_with(&question.answer), "{host}: {answer}");
    }
    let answer = get(edge.tls, HOST, &world.ca.root, &path(&question.token), "").await;
    assert!(answer.ends_with(&question.answer), "{answer}");
    let stranger = Preflight::of(&DistributionKey::generate(&world.env)).ask(&world.env);
    let answer = plain(edge.plain, &ask("nobody.example", &stranger.token)).await;
    assert_eq!(status(&answer), "404", "{answer}");
    assert!(!answer.contains(&stranger.answer));
    // Over TLS what is not known is the origin's own.
    let answer = get(edge.tls, HOST, &world.ca.root, &path("of-the-origin"), "").await;
    assert!(answer.contains("origin: GET /.well-known/acme-challenge/of-the-origin"), "{answer}");
    drop(origin);
    edge.stop().await;
}

/// A distribution key that no certificate was sealed under yet is not known to the edges: they ask the control plane.
#[tokio::test]
async fn a_preflight_under_a_key_that_the_edge_was_not_given_is_answered_all_the_same() {
    let (world, _origin, edge) = served().await;
    let other = world.edge("edge-2", "127.0.0.1:9".parse().unwrap()).await;
    let enrolled = async || world.store.query(sql("SELECT id FROM edges WHERE name = 'edge-2'")).await.unwrap();
    until("the second edge enrols", async || !enrolled().await.is_empty()).await;
    let rows = enrolled().await;
    let before = distribution_key(&world).await.id();
    assert!(world.feed.revoke(&rows[0].parse("id").unwrap()).await.unwrap());
    let now = distribution_key(&world).await;
    assert_ne!(now.id(), before, "the key was rotated");
    let question = Preflight::of(&now).ask(&world.env);
    let path = format!("/.well-known/acme-challenge/{}", question.token);
    let request = format!("GET {path} HTTP/1.1\r\nHost: nobody.example\r\nConnection: close\r\n\r\n");
    let answer = plain(edge.plain, &request).await;
    assert!(answer.ends_with(&question.answer), "{answer}");
    other.stop().await;
    edge.stop().await;
}

/// The distribution key in use.
async fn distribution_key(world: &World) -> DistributionKey {
    let mut tx = world.store.read().await.unwrap();
    let epoch = nameplate::store::feed::position(&mut tx).await.unwrap().epoch;
    let rows = edges::distribution_keys(&mut tx, epoch).await.unwrap();
    let row = rows.into_iter().find(|row| row.retired_at.is_none()).unwrap();
    let sealed = Sealed::try_from(row.sealed_key).unwrap();
    let secret = world.vault.open(&Context::new("distribution-key", &row.id), &sealed).unwrap();
    DistributionKey::from_secret(&secret).unwrap()
}
