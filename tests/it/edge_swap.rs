//! Certificates that change under way: nobody notices but by the certificate.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use nameplate::model::conclude::FRESH_EDGE;
use nameplate::model::feed::HostAction;
use nameplate::store::{rollout, sql};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::edge_http2::served;
use crate::support::feed_world::{World, until};
use crate::support::live_origin::LiveOrigin;
use crate::support::visitor::{connect, get, h2};

const HOST: &str = "support.acme.test";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_and_no_handshake_fails_while_a_certificate_changes_many_times() {
    const CHANGES: i64 = 30;
    let (world, _origin, edge) = served(|_| {}).await;
    let (done, requests) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let mut load = Vec::new();
    for kind in 0..4 {
        let (root, at) = (world.ca.root.clone(), edge.tls);
        let (done, requests) = (Arc::clone(&done), Arc::clone(&requests));
        load.push(tokio::spawn(async move {
            let mut shown = BTreeSet::new();
            while !done.load(Ordering::Relaxed) {
                if kind % 2 == 0 {
                    // A new connection each time.
                    let stream = connect(at, HOST, &root).await.expect("a handshake failed");
                    shown.insert(stream.get_ref().1.peer_certificates().unwrap()[0].to_vec());
                    let answer = get(at, HOST, &root, "/", "").await;
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                    requests.fetch_add(1, Ordering::Relaxed);
                } else {
                    // One that is kept for a while.
                    let (mut sender, connection) = h2::<Empty<Bytes>>(at, HOST, &root).await;
                    for _ in 0..50 {
                        let request = Request::get(format!("https://{HOST}/")).body(Empty::new()).unwrap();
                        let response = sender.send_request(request).await.expect("a request failed");
                        assert_eq!(response.status(), 200);
                        response.into_body().collect().await.expect("an answer broke off");
                        requests.fetch_add(1, Ordering::Relaxed);
                    }
                    drop(sender);
                    connection.await.unwrap().unwrap();
                }
            }
            shown
        }));
    }
    let mut last = String::new();
    for version in 2..2 + CHANGES {
        let before = requests.load(Ordering::Relaxed);
        let (chain, key) = world.ca.leaf(HOST);
        let renewed = world.store_certificate(HOST, &chain, key).await;
        world.route(HOST, HostAction::Serve, Some(&renewed), version).await;
        world.rolled_out("host", HOST).await;
        until("some requests", || async { requests.load(Ordering::Relaxed) > before + 5 }).await;
        last = chain;
    }
    done.store(true, Ordering::Relaxed);
    let mut shown = BTreeSet::new();
    for task in load {
        shown.extend(task.await.expect("the load failed"));
    }
    assert!(shown.len() > 10, "only {} certificates were ever shown", shown.len());
    let stream = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let now = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
    assert_eq!(now, CertificateDer::from_pem_slice(last.as_bytes()).unwrap());
    edge.stop().await;
}

/// Field case B65: of a pair of which the one has ended and the other is fresh, visitors get the fresh one, and the edge tells by itself
/// that it serves another than its book says, since when, until a renewal heals it.
#[tokio::test]
async fn b65_a_real_edge_shows_the_fresh_one_and_tells_that_its_book_says_another() {
    let world = World::new().await;
    let origin = LiveOrigin::start().await;
    let edge = world.edge("edge-1", origin.at).await;
    world.serve("*.acme.test").await;
    world.rolled_out("host", "*.acme.test").await;
    let ended = world.certificate_until(HOST, world.env.now() - Duration::from_secs(1)).await;
    world.route(HOST, HostAction::Serve, Some(&ended), 1).await;
    let instead = async || {
        let now = world.env.now();
        rollout::instead(&world.store, now, now - FRESH_EDGE, 3).await.unwrap()
    };
    until("the edge tells of it", || async { instead().await.is_some() }).await;
    let seen = instead().await.unwrap();
    assert_eq!((seen.edges.some, seen.certificates), (vec!["edge-1".to_owned()], 1));
    let since = async || {
        let rows = world.store.query(sql("SELECT certificate_id, observed, at FROM rollout_exceptions")).await.unwrap();
        assert_eq!((rows.len(), rows[0].text("certificate_id").unwrap().as_str()), (1, ended.as_str()));
        let observed = rows[0].text("observed").unwrap();
        assert!(observed.starts_with("serial "), "{observed}");
        rows[0].moment("at").unwrap()
    };
    let first = since().await;
    // It tells so again with every change that it confirms; since when is known still.
    world.serve("other.acme.test").await;
    world.rolled_out("host", "other.acme.test").await;
    assert_eq!(since().await, first);
    let (chain, key) = world.ca.leaf(HOST);
    let renewed = world.store_certificate(HOST, &chain, key).await;
    world.route(HOST, HostAction::Serve, Some(&renewed), 2).await;
    world.rolled_out("host", HOST).await;
    until("it is healed", || async { instead().await.is_none() }).await;
    let shown = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
    let shown = shown.get_ref().1.peer_certificates().unwrap()[0].clone();
    assert_eq!(shown, CertificateDer::from_pem_slice(chain.as_bytes()).unwrap());
    edge.stop().await;
}

/// Field case B65 without a change: a certificate reaches its end while nothing is pushed. The edge finds that on its walk through all names,
/// shows the fresh one that covers the name, and tells what it serves instead.
#[tokio::test]
async fn b65_what_goes_wrong_without_a_change_is_found_by_the_walk_through_all_names() {
    let world = World::new().await;
    let origin = LiveOrigin::start().await;
    let edges = [
        world.edge("edge-1", origin.at).await,
        world.edge("edge-2", origin.at).await,
        world.edge("edge-3", origin.at).await,
    ];
    world.serve("*.acme.test").await;
    world.rolled_out("host", "*.acme.test").await;
    let ends = world.certificate_until(HOST, world.env.now() + Duration::from_secs(4)).await;
    world.route(HOST, HostAction::Serve, Some(&ends), 1).await;
    world.rolled_out("host", HOST).await;
    let instead = async || {
        let now = world.env.now();
        rollout::instead(&world.store, now, now - FRESH_EDGE, 3).await.unwrap()
    };
    assert!(instead().await.is_none(), "they serve what they hold");
    until("all three tell of it", || async { instead().await.is_some_and(|i| i.edges.some.len() == 3) }).await;
    for edge in &edges {
        let shown = connect(edge.tls, HOST, &world.ca.root).await.unwrap();
        let shown = shown.get_ref().1.peer_certificates().unwrap()[0].clone();
        let (_, parsed) = x509_parser::parse_x509_certificate(&shown).unwrap();
        assert!(parsed.validity().is_valid(), "never one that has ended");
    }
    let renewed = world.certificate_until(HOST, world.env.now() + Duration::from_secs(3_600)).await;
    world.route(HOST, HostAction::Serve, Some(&renewed), 2).await;
    world.rolled_out("host", HOST).await;
    until("it is healed", || async { instead().await.is_none() }).await;
    for edge in edges {
        edge.stop().await;
    }
}

/// Field case B69.
#[tokio::test]
async fn b69_the_exact_name_wins_in_both_load_orders_and_the_wildcard_steps_in_when_it_expires() {
    for exact_first in [true, false] {
        let world = World::new().await;
        let origin = LiveOrigin::start().await;
        let edge = world.edge("edge-1", origin.at).await;
        let (later, past) = (world.env.now() + Duration::from_secs(3_600), world.env.now() - Duration::from_secs(1));
        let load = async |exact: bool| {
            if exact {
                let id = world.certificate_until("a.acme.test", later).await;
                world.route("a.acme.test", HostAction::Serve, Some(&id), 1).await;
                world.rolled_out("host", "a.acme.test").await;
            } else {
                world.serve("*.acme.test").await;
                world.rolled_out("host", "*.acme.test").await;
            }
        };
        load(exact_first).await;
        load(!exact_first).await;
        let names_shown = async |name: &str| {
            let stream = connect(edge.tls, name, &world.ca.root).await.ok()?;
            let leaf = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
            let (_, parsed) = x509_parser::parse_x509_certificate(&leaf).unwrap();
            let names = parsed.subject_alternative_name().unwrap().unwrap();
            Some(format!("{}", names.value.general_names[0]))
        };
        let shown = names_shown("a.acme.test").await.unwrap();
        assert!(shown.contains("a.acme.test") && !shown.contains('*'), "{shown}");
        assert!(names_shown("b.acme.test").await.unwrap().contains("*.acme.test"));
        assert!(names_shown("A.ACME.test").await.unwrap().contains("a.acme.test"));
        assert_eq!(names_shown("x.a.acme.test").await, None);
        assert_eq!(names_shown("acme.test").await, None);
        let answer = get(edge.tls, "b.acme.test", &world.ca.root, "/", "").await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("host=b.acme.test\n"), "{answer}");
        let expired = world.certificate_until("a.acme.test", past).await;
        world.route("a.acme.test", HostAction::Serve, Some(&expired), 2).await;
        world.rolled_out("host", "a.acme.test").await;
        assert!(names_shown("a.acme.test").await.unwrap().contains("*.acme.test"));
        let answer = get(edge.tls, "a.acme.test", &world.ca.root, "/", "").await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("host=a.acme.test\n"), "{answer}");
        edge.stop().await;
    }
}
